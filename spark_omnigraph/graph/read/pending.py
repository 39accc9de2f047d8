"""Writes that have begun and not ended: under way, or interrupted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from spark_omnigraph.catalog.dates import moment, moment_text
from spark_omnigraph.commit.owners import is_live, lease_end
from spark_omnigraph.commit.plan import WriterKind
from spark_omnigraph.commit.sidecar import Sidecar, pending
from spark_omnigraph.graph.read.facts import Facts
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.storage.graph_store import GraphStore


@dataclass(frozen=True, slots=True)
class PendingWrite(Facts):
    """A write that is not at its end. `writer` is the name of a kind that only a later engine knows.

    `alive_until` is when one that is under way counts as dead, unless its writer shows a sign of life; None for one
    that is interrupted.
    """

    operation: str
    writer: WriterKind | str
    branch: str
    tables: tuple[str, ...]
    alive_until: datetime | None = None

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON; `alive_until` only of a write under way."""
        facts: dict[str, object] = {
            "operation": self.operation,
            "writer": str(self.writer),
            "branch": self.branch,
            "tables": list(self.tables),
        }
        return facts if self.alive_until is None else {**facts, "alive_until": moment_text(self.alive_until)}


def interrupted_writes(store: GraphStore) -> list[PendingWrite]:
    """Writes whose writer is gone and that await recovery."""
    return [_described(each) for each in pending(store) if not is_live(store, each)]


def running_writes(store: GraphStore) -> list[PendingWrite]:
    """Writes under way, with the time until which each counts as alive."""
    return [
        _described(each, moment(int(lease_end(store, each) * 1_000_000)))
        for each in pending(store)
        if is_live(store, each)
    ]


def _described(write: Sidecar, alive_until: datetime | None = None) -> PendingWrite:
    tables = tuple(sorted(write.tables))
    return PendingWrite(write.operation_id, write.writer_kind, display(write.branch), tables, alive_until)
