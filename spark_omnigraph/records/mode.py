"""Load modes and the options that decide what a record may look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from spark_omnigraph.catalog.numbers import count_of
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.words import TextEnum

Choice = TypeVar("Choice", bound=TextEnum)


class LoadMode(TextEnum):
    """What a load does with a record whose id is stored already."""

    APPEND = "append"
    """Refuse it: a strict insert."""
    MERGE = "merge"
    """Replace the stored row as a whole."""
    UPDATE = "update"
    """Change the properties that the record has, and keep the others; an id that is not stored is a mistake."""
    OVERWRITE = "overwrite"
    """Replace all rows of every type that the input mentions."""
    CHANGES = "changes"
    """Replace the stored row, or delete it: each record says which."""

    @property
    def replaces(self) -> bool:
        """Whether an id that is stored is no mistake, and its row changes or goes by records of the same id alone."""
        return self in (LoadMode.MERGE, LoadMode.UPDATE, LoadMode.CHANGES)


class OnDuplicate(TextEnum):
    """What a merge does with an id that the input repeats."""

    LAST = "last"
    ERROR = "error"


class OnMissing(TextEnum):
    """What an update does with an id that is not stored."""

    ERROR = "error"
    INSERT = "insert"
    """Insert the record, which must be a whole one then."""


class Nulls(TextEnum):
    """What a null of an update means."""

    SET = "set"
    """The property is null afterwards."""
    KEEP = "keep"
    """The property stays as it is, as if the record had none."""


class UnknownFields(TextEnum):
    """What decoding does with a member of `data` that the type does not declare."""

    REFUSE = "refuse"
    IGNORE = "ignore"


class InputFormat(TextEnum):
    """What an input file holds."""

    AUTO = "auto"
    """What the ending of its name says; JSON lines where it says nothing."""
    JSONL = "jsonl"
    PARQUET = "parquet"
    CSV = "csv"
    ARROW = "arrow"
    DELTA = "delta"
    """A Delta table, at one version."""


class EmbedAtLoad(TextEnum):
    """Whether a load asks a provider for vectors."""

    OFF = "off"
    MISSING = "missing"
    """For rows that have the text of an `@embed` property, and no vector."""


def choice(name: str, value: object, choices: type[Choice]) -> Choice:
    """The member that an argument names. BadRequestError for a value that names none."""
    try:
        return choices(value)
    except ValueError as error:
        raise BadRequestError(f"{name} must be one of {', '.join(choices)}, got {as_shown(value)}") from error


BLOB_SCHEMES = ("abfss", "az", "cos", "file", "goosefs", "gs", "hf", "oss", "s3", "tos")
"""Where storage can find a blob. Lance refuses any other reference, and with it the whole load."""
LOCAL_SCHEMES = ("file",)
"""Those that name a file of whichever machine reads the reference later."""
REMOTE_SCHEMES = tuple(scheme for scheme in BLOB_SCHEMES if scheme not in LOCAL_SCHEMES)
"""Those that input may use unless more is allowed: no row decides which file of a reader is opened."""


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """What decoding accepts beyond the schema."""

    unknown_fields: UnknownFields = UnknownFields.REFUSE
    blob_schemes: tuple[str, ...] = REMOTE_SCHEMES
    coerce: bool = False
    """Whether a text is read as the value that it spells, where a property takes no text."""
    patches: bool = False
    """Whether records are patches: rows in the layout of `patch_schema`, with what they have of their properties."""
    nulls: Nulls = Nulls.SET
    changes: bool = False
    """Whether records say how they change a row."""
    edge_id: tuple[str, ...] | None = None
    """Of edges whose id follows from their ends: the properties that it follows from besides."""


def bad_row_limit(text: str) -> int | float:
    """How many bad rows are left out at most: `N` rows, `P%` of the records, or a fraction below 1. ValueError for
    anything else.

    >>> bad_row_limit("100"), bad_row_limit("5%"), bad_row_limit("0.05")
    (100, 0.05, 0.05)
    """
    plain = text.strip()
    rows = count_of(plain)
    if rows is not None:
        return rows
    try:
        share = float(plain.removesuffix("%")) / (100.0 if plain.endswith("%") else 1.0)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"'{text[:40]}' is neither a number of rows nor a share such as 5% or 0.05")
    return share


def schemes_of(text: str) -> tuple[str, ...]:
    """Schemes of URIs that blobs may refer to, from a text with commas. ValueError for one that storage does not know.

    >>> schemes_of("s3, file")
    ('s3', 'file')
    """
    found = tuple(part.strip().lower() for part in text.split(",") if part.strip())
    unknown = next((each for each in found if each not in BLOB_SCHEMES), None)
    if unknown is not None:
        raise ValueError(f"'{unknown[:40]}' is none of {', '.join(BLOB_SCHEMES)}")
    return found
