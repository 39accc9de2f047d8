"""Columns of a table that say how its rows change the graph: read apart from the columns of its types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.bad_rows import RAW_LIMIT, Mistake
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import EntityType
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.changes.ranks import (
    CHANGE_TYPE,
    COMMIT_VERSION,
    NO_VERSION,
    NOT_TOLD,
    OP,
    UNREADABLE,
    WORDS,
    BadChangeError,
    RecordChanges,
    telling_names,
    unknown_version,
    unknown_word,
)
from spark_omnigraph.records.frames.columns import is_text
from spark_omnigraph.records.json_text import json_text
from spark_omnigraph.records.jsonl.decode import Rejected
from spark_omnigraph.records.legible import legible, legible_batch
from spark_omnigraph.records.record_text import plain_values

Int64s = npt.NDArray[np.int64]


def without_changes(columns: pa.Schema, entities: Iterable[EntityType]) -> pa.Schema:
    """The columns of the types of a table alone. BadRequestError where none says how rows change, or one that does
    could be a property.
    """
    names = telling_names(columns.names)
    if OP not in names and CHANGE_TYPE not in names:
        raise BadRequestError(f"{NOT_TOLD}: the table has neither column")
    for name in names:
        kind = columns.field(name).type
        if name in (OP, CHANGE_TYPE) and not (is_text(kind) or pa.types.is_null(kind)):
            raise BadRequestError(f"column '{name}' must hold the kinds of changes as texts, not {kind}")
        if name == COMMIT_VERSION and not (pa.types.is_integer(kind) or is_text(kind) or pa.types.is_null(kind)):
            raise BadRequestError(f"column '{name}' must hold the numbers of versions, not {kind}")
        entity = next((each for each in entities if each.property(name) is not None), None)
        if entity is not None:
            way = f"; name the kind of change '{CHANGE_TYPE}'" if name == OP else ""
            raise BadRequestError(f"column '{name}' may be the property '{entity.name}.{name}' or tell of changes{way}")
    return pa.schema([field for field in columns if field.name not in names])


def changes_in_columns(batch: pa.RecordBatch) -> tuple[RecordChanges, dict[int, Mistake]]:
    """What the rows of a table do, and rows that do not say it."""
    names = telling_names(batch.schema.names)
    kind = CHANGE_TYPE if CHANGE_TYPE in names else OP
    words, _ = legible(batch.column(kind))
    place = pc.index_in(words.cast(pa.string()), value_set=pa.array(WORDS)).fill_null(len(WORDS))
    ranks = np.array([*WORDS.values(), UNREADABLE], dtype=np.int8)[np.asarray(place)]
    mistakes = {}
    for row in np.flatnonzero(ranks == UNREADABLE).tolist():
        word = words[row].as_py()
        told = BadChangeError(kind, NOT_TOLD) if word is None else unknown_word(kind, word)
        mistakes[row] = told.mistake
    versions = np.full(batch.num_rows, NO_VERSION, dtype=np.int64)
    if COMMIT_VERSION in names:
        given, _ = legible(batch.column(COMMIT_VERSION))
        versions, bad = _versions(given)
        for row in bad.tolist():
            mistakes.setdefault(row, unknown_version(given[row].as_py()).mistake)
            ranks[row] = UNREADABLE
    return RecordChanges(ranks, versions), mistakes


def refused_rows(
    batch: pa.RecordBatch, lines: Int64s, mistakes: Mapping[int, Mistake], key: TableKey | None
) -> list[Rejected]:
    """Rows that do not say what they change, as bad ones of a type, on their lines."""
    name, is_edge = (None, False) if key is None else (key.type_name, key.kind == "edge")
    refused = []
    for row, mistake in mistakes.items():
        one = legible_batch(batch.slice(row, 1)).batch
        values = {column: plain_values(one.column(column))[0] for column in one.schema.names}
        text = json_text({column: value for column, value in values.items() if value is not None})[:RAW_LIMIT]
        line = int(lines[row])
        refused.append(Rejected(line, 0, name, mistake.field, mistake.rule, mistake.message, text, is_edge))
    return refused


def _versions(column: pa.Array) -> tuple[Int64s, Int64s]:
    """Whole numbers from 0 on, and the rows of what is none."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        numbers = pa.array([_whole(value) for value in column.to_pylist()], pa.int64())
    versions = np.asarray(numbers.fill_null(NO_VERSION))
    bad = (versions < 0) & np.asarray(column.is_valid())
    return np.where(bad, NO_VERSION, versions), np.flatnonzero(bad)


def _whole(value: object) -> int | None:
    text = str(value)
    fits = len(text) < 20 and text.isascii() and text.isdigit() and int(text) < 2**63
    return int(text) if fits else None
