"""Upserts and deletes as values, and which of several changes of one row counts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_omnigraph.bad_rows import Mistake, Rule
from spark_omnigraph.redaction import as_shown

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

UNREADABLE, PREIMAGE, DELETE, INSERT, UPDATE = -2, -1, 0, 1, 2
"""Within one version the greatest counts: who replaces a row may tell of it as a delete and an insert."""
NO_VERSION = -1

OP, CHANGE_TYPE, COMMIT_VERSION = "op", "_change_type", "_commit_version"
CHANGE_NAMES = (OP, CHANGE_TYPE, COMMIT_VERSION, "_commit_timestamp", "_commit_id")
"""Members beside `data`, and columns, that are no property in mode `changes`."""
WORDS = {
    "u": UPDATE,
    "d": DELETE,
    "insert": INSERT,
    "update_postimage": UPDATE,
    "delete": DELETE,
    "update_preimage": PREIMAGE,
}
NOT_TOLD = f"mode changes needs '{OP}' (u or d) or '{CHANGE_TYPE}' (insert, update_postimage, delete) of every record"


def telling_names(names: Collection[str]) -> list[str]:
    """Those of the names that tell of changes; `op` is another one where there is `_change_type`."""
    return [name for name in names if name in CHANGE_NAMES and (name != OP or CHANGE_TYPE not in names)]


class BadChangeError(ValueError):
    """A record that does not say what it changes."""

    def __init__(self, field: str | None, message: str, rule: Rule = Rule.INVALID_ENVELOPE) -> None:
        super().__init__(message)
        self.mistake = Mistake(field, rule, message)


def unknown_word(name: str, word: object) -> BadChangeError:
    """For what is no kind of change."""
    return BadChangeError(name, f"'{name}' is {as_shown(word)}; it must be one of {', '.join(WORDS)}")


def unknown_version(version: object) -> BadChangeError:
    """For what is no version."""
    return BadChangeError(COMMIT_VERSION, f"'{COMMIT_VERSION}' is {as_shown(version)}, and no whole number from 0 on")


@dataclass(frozen=True, slots=True, eq=False)
class RecordChanges:
    """What becomes of rows: `ranks` (int8[n]) by the names above, `versions` (int64[n]) in which they changed."""

    ranks: npt.NDArray[np.int8]
    versions: Int64s

    @classmethod
    def of(cls, rank: int, count: int) -> RecordChanges:
        """The same of all rows, without versions."""
        return cls(np.full(count, rank, dtype=np.int8), np.full(count, NO_VERSION, dtype=np.int64))

    @property
    def deletes(self) -> Bools:
        found: Bools = self.ranks == DELETE
        return found

    def take(self, rows: Int64s | Bools) -> RecordChanges:
        """Those of some rows: by place, or by a mask."""
        return RecordChanges(self.ranks[rows], self.versions[rows])


def joined_changes(parts: list[RecordChanges]) -> RecordChanges:
    """Those of several runs of rows in order."""
    return RecordChanges(np.concatenate([p.ranks for p in parts]), np.concatenate([p.versions for p in parts]))


@dataclass(frozen=True, slots=True, eq=False)
class Netted:
    """Of rows that change the same rows, those that do not count.

    `superseded` are overtaken by others, the later of two behind the earlier; `repeats` contradict or repeat another
    row, which `holders` names for each. All are places (int64).
    """

    superseded: Int64s
    repeats: Int64s
    holders: Int64s


def netted(groups: Int64s, changes: RecordChanges, order: Int64s, last_wins: bool) -> Netted:
    """Which changes of the same row (rows of one group) do not count; `order` is the place of each in the input.

    The greatest version counts, in it the greatest rank. Changes of a row that are not all numbered have no order: a
    delete beside anything else contradicts it. Of equal upserts the last one counts where `last_wins`, else the first
    one, and the others repeat it.
    """
    if not len(groups):
        return Netted(groups, groups, groups)
    unnumbered = np.zeros(int(groups.max()) + 1, dtype=bool)
    unnumbered[groups[changes.versions == NO_VERSION]] = True
    flat = unnumbered[groups]
    versions, ranks = np.where(flat, 0, changes.versions), np.where(flat, 0, changes.ranks)
    by = np.lexsort((order, ranks, versions, groups))
    run = groups[by]
    starts = np.flatnonzero(np.append(True, run[1:] != run[:-1]))
    ends = np.append(starts[1:], len(run)) - 1
    which = np.cumsum(np.append(False, run[1:] != run[:-1]))
    last = ends[which]
    top = (versions[by] == versions[by][last]) & (ranks[by] == ranks[by][last])
    deletes = changes.deletes[by]
    mixed = _any_of(starts, top & deletes)[which] & _any_of(starts, top & ~deletes)[which] & top
    first = np.searchsorted(np.cumsum(top), np.cumsum(top)[starts] - top[starts], side="right")[which]
    first_wins = ~_any_of(starts, deletes & top)[which] & (not last_wins)
    kept = np.where(first_wins, first, last)
    here = np.arange(len(by))
    repeats = mixed | (top & first_wins & (here != kept))
    other = np.where(here == first, last, first)
    superseded = ~repeats & (here != kept)
    return Netted(by[superseded], by[repeats], by[other[repeats]])


def _any_of(starts: Int64s, rows: Bools) -> Bools:
    found: Bools = np.logical_or.reduceat(rows, starts)
    return found
