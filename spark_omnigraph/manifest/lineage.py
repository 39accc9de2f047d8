"""The commit graph: commits as values, the head of a branch, and parents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime

from spark_omnigraph.catalog.dates import moment, moment_text
from spark_omnigraph.draw.card import Card, figures_grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitFacts


@dataclass(frozen=True, slots=True, repr=False)
class Commit(Displayed):
    """One graph commit. `branch` None is main; `created_micros` counts microseconds since the epoch. `facts` say what
    it did, where its writer told and the history was asked for them.
    """

    id: str
    branch: Branch
    manifest_version: int
    parent: str | None
    merged_parent: str | None
    created_micros: int
    actor: str | None = None
    facts: CommitFacts | None = field(default=None, compare=False)

    @property
    def created_at(self) -> datetime:
        """When it was made, in UTC."""
        return moment(self.created_micros)

    def _card(self) -> Card:
        facts, made = self.facts, moment_text(self.created_at)
        operation = "" if facts is None else f"{facts.operation}{f' ({facts.mode})' if facts.mode else ''}, "
        tables = {} if facts is None else {key: asdict(rows) for key, rows in facts.tables.items()}
        others = None if facts is None else facts.others
        return Card(
            "Commit",
            f"{self.id}, {operation}version {self.manifest_version} of {display(self.branch)}, {made}",
            {
                "actor": self.actor,
                "parent": self.parent,
                "merged": self.merged_parent,
                "seconds": None if facts is None else facts.seconds,
                "job": None if facts is None else facts.origin.job,
                **({} if facts is None else facts.origin.metadata),
            },
            without_empty(figures_grid("Rows", tables if others is None else {**tables, "others": asdict(others)})),
        )


def head(commits: Iterable[Commit]) -> Commit | None:
    """Newest commit by manifest version, then time, then id."""
    return max(commits, key=_order, default=None)


def in_order(commits: Iterable[Commit]) -> list[Commit]:
    """Commits oldest first."""
    return sorted(commits, key=_order)


def _order(commit: Commit) -> tuple[int, int, str]:
    return commit.manifest_version, commit.created_micros, commit.id
