"""What a commit of a Delta table says of the state of a graph that the table shows then.

It is one JSON object, the `userMetadata` of the commit, which Spark and deltalake both write and read; so each goes on
from what the other wrote. Each such commit is besides transaction `omnigraph:export` of the table, whose number is one
higher than that of the commit from which it goes on. Of two that go on from the same one only one lands: Spark passes
over a transaction whose number is recorded, and deltalake commits behind the version that was looked at alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

APPLICATION = "omnigraph:export"
_FACTS = "omnigraph."
_KEEP_ROWS = {
    "OPTIMIZE",
    "VACUUM START",
    "VACUUM END",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "ADD CONSTRAINT",
    "DROP CONSTRAINT",
    "ADD FEATURE",
    "DROP FEATURE",
    "UPGRADE PROTOCOL",
    "CLUSTER BY",
    "REORG",
    "COMPUTE STATS",
}
"""Operations of others after which a table still has the rows that it had."""


@dataclass(frozen=True, slots=True)
class ShownState:
    """The state of a graph that a table shows: `follows` names the graph, the branch and the type, `version` is the
    manifest version, `number` that of the transaction. `writer` is the id of one attempt.
    """

    follows: str
    version: int
    number: int
    facts: Mapping[str, str] = field(default_factory=dict)
    writer: str = field(default_factory=lambda: uuid4().hex)

    def to_dict(self) -> dict[str, str]:
        """Texts by the names that they have in the commit."""
        own = {"follows": self.follows, "manifest_version": self.version, "number": self.number, "writer": self.writer}
        return {f"{_FACTS}{name}": str(value) for name, value in {**self.facts, **own}.items()}

    def encoded(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class TableCommit:
    """A commit of a table, as its history tells it."""

    version: int
    operation: str | None
    metadata: str | None


@dataclass(frozen=True, slots=True)
class TableState:
    """What was found out about a table: the state that it shows, and the number of the transaction that comes next."""

    state: ShownState | None
    next_number: int


def decoded(metadata: str | None) -> ShownState | None:
    """The state that a commit tells of; None for a commit of somebody else."""
    try:
        found = json.loads(metadata or "")
        told = {name.removeprefix(_FACTS): value for name, value in found.items() if name.startswith(_FACTS)}
        numbers = int(told.pop("manifest_version")), int(told.pop("number"))
        return ShownState(str(told.pop("follows")), *numbers, writer=str(told.pop("writer")), facts=told)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def shown(history: Iterable[TableCommit]) -> TableState | None:
    """What a table shows, by its commits from the newest on; None when they do not tell. A table that somebody else
    wrote to afterwards shows no state.
    """
    touched = False
    for commit in history:
        state = decoded(commit.metadata)
        if state is not None:
            return TableState(None if touched else state, state.number + 1)
        touched = touched or commit.operation not in _KEEP_ROWS
    return None
