"""Load modes and the options that decide what a record may look like."""

from __future__ import annotations

from dataclasses import dataclass

from spark_omnigraph.errors import TextEnum


class LoadMode(TextEnum):
    """What a load does with a record whose id is stored already."""

    APPEND = "append"
    """Refuse it: a strict insert."""
    MERGE = "merge"
    """Replace the stored row as a whole."""
    OVERWRITE = "overwrite"
    """Replace all rows of every type that the input mentions."""


class OnDuplicate(TextEnum):
    """What a merge does with an id that the input repeats."""

    LAST = "last"
    ERROR = "error"


class UnknownFields(TextEnum):
    """What decoding does with a member of `data` that the type does not declare."""

    REFUSE = "refuse"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """What decoding accepts beyond the schema."""

    unknown_fields: UnknownFields = UnknownFields.REFUSE
