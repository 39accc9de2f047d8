"""Names of what two branches may disagree on, and of what becomes of it."""

from __future__ import annotations

import hashlib

from spark_omnigraph.words import TextEnum


class ConflictKind(TextEnum):
    """What two branches disagree on: first the classes of a row, then the rules that the merged graph would break."""

    DIVERGENT_INSERT = "divergent_insert"
    DELETE_VS_UPDATE = "delete_vs_update"
    DIVERGENT_UPDATE = "divergent_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"


class OnConflict(TextEnum):
    """What becomes of a row on which the branches disagree."""

    FAIL = "fail"
    """Nothing is merged."""
    SOURCE = "source"
    """The source's row, or its absence, takes the place of the target's."""
    TARGET = "target"
    """The target's row stays as it is."""


class Take(TextEnum):
    """What becomes of one row in conflict."""

    SOURCE = "source"
    TARGET = "target"
    ROW = "row"
    """A row that was given takes the place of both."""


def digest_of(source: str | None, target: str | None) -> str:
    """What a decision of a conflict is tied to: the rows of both sides, as records, None where there is none."""
    text = f"{source or 'null'}\n{target or 'null'}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def conflict_kind(in_base: bool, in_source: bool, in_target: bool) -> ConflictKind:
    """Class of a conflict by where the row is; the base is the newest one."""
    if in_source != in_target:
        return ConflictKind.DELETE_VS_UPDATE
    return ConflictKind.DIVERGENT_UPDATE if in_base else ConflictKind.DIVERGENT_INSERT


MESSAGES = {
    ConflictKind.DIVERGENT_INSERT: "divergent insert for id '{}'",
    ConflictKind.DELETE_VS_UPDATE: "delete/update conflict for id '{}'",
    ConflictKind.DIVERGENT_UPDATE: "divergent update for id '{}'",
}
"""Texts of the classes of a row, by its id."""
STALE = "; the decision was made on other rows"
"""What follows the text of a row whose decision does not count any more."""
