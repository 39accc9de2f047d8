"""The commit graph: commits as values, the head of a branch, and parents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from spark_omnigraph.catalog.dates import moment
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.facts import CommitFacts


@dataclass(frozen=True, slots=True)
class Commit:
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


def head(commits: Iterable[Commit]) -> Commit | None:
    """Newest commit by manifest version, then time, then id."""
    return max(commits, key=_order, default=None)


def in_order(commits: Iterable[Commit]) -> list[Commit]:
    """Commits oldest first."""
    return sorted(commits, key=_order)


def _order(commit: Commit) -> tuple[int, int, str]:
    return commit.manifest_version, commit.created_micros, commit.id
