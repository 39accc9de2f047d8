"""Load modes and the options that decide what a record may look like."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class LoadMode(str, Enum):
    """What a load does with a record whose id is stored already."""

    APPEND = "append"
    """Refuse it: a strict insert."""
    MERGE = "merge"
    """Replace the stored row as a whole."""
    OVERWRITE = "overwrite"
    """Replace all rows of every type that the input mentions."""

    __str__ = str.__str__
    __format__ = str.__format__


class OnDuplicate(str, Enum):
    """What a merge does with an id that the input repeats."""

    LAST = "last"
    ERROR = "error"

    __str__ = str.__str__
    __format__ = str.__format__


class UnknownFields(str, Enum):
    """What decoding does with a member of `data` that the type does not declare."""

    REFUSE = "refuse"
    IGNORE = "ignore"

    __str__ = str.__str__
    __format__ = str.__format__


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    unknown_fields: UnknownFields = UnknownFields.REFUSE
