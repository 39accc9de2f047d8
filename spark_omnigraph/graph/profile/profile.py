"""Profiling files: one pass for what columns show, a second one for columns that may point at keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.graph.load.inputs import find_inputs, input_choices
from spark_omnigraph.graph.profile.evidence import ColumnEvidence, TableEvidence
from spark_omnigraph.graph.profile.propose import Pointer, is_end, key_of, left_out, propose
from spark_omnigraph.graph.profile.rows import Batch, batches
from spark_omnigraph.storage.input.ranges import InputFile

LEAST_VALUES = 10
"""Texts that must be keys of another type before a column counts as pointing at it without being called so."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A proposed schema as `.pg` text, and the rows that it was made from by type. `left_out` says of each file how
    many of its rows no load takes, and why.
    """

    schema: str
    rows: Mapping[str, int]
    left_out: tuple[str, ...] = ()


def propose_schema(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    format: str = "auto",
    storage_options: Mapping[str, str] | None = None,
) -> Profile:
    """Proposes a schema that the rows of files fit (paths, globs, folders, URIs of JSON lines, Parquet, CSV, Arrow or
    Delta tables): types, required properties, enumerations, ranges, unique values, keys, and edges of columns that
    point at keys, with what was seen as comments. Nothing is written.

    Raises NotFoundError, BadRequestError, InputError.
    """
    storage = dict(storage_options or {})
    files = find_inputs(source, input_choices({"format": format}), storage).files
    tables: dict[tuple[str, bool], TableEvidence] = {}
    for batch in (batch for file in files for batch in batches(file, storage)):
        key = (batch.name, batch.is_edge)
        table = tables.setdefault(key, TableEvidence(batch.name, batch.source, is_edge=batch.is_edge))
        table.see(batch.rows, batch.spelled, batch.mixed)
        if batch.left_out:
            table.leave_out(batch.source, batch.left_out, batch.first)
    pointers = _pointers(list(tables.values()), files, storage)
    found = list(tables.values())
    told = tuple(line for table in found for line in left_out(table))
    return Profile(propose(found, pointers), {table.name: table.rows for table in found}, told)


def _pointers(
    tables: Sequence[TableEvidence], files: Sequence[InputFile], options: Mapping[str, str]
) -> dict[str, list[Pointer]]:
    keys = {table.name: table.columns[key] for table in tables if (key := key_of(table)) is not None}
    open_ = {
        (table.name, column.name, target)
        for table in tables
        for column in table.columns.values()
        for target, key in keys.items()
        if _may_point(table, column, target, key)
    }
    sets = {target: _as_texts(pa.chunked_array(key.each_once or [])) for target, key in keys.items()}
    for batch in (batch for file in files for batch in batches(file, options)) if open_ else ():
        open_ -= {each for each in open_ if each[0] == batch.name and not _all_in(batch, each[1], sets[each[2]])}
    found: dict[str, list[Pointer]] = {}
    for table in tables:
        for column in table.columns.values():
            targets = sorted(target for name, at, target in open_ if (name, at) == (table.name, column.name))
            if targets:
                best = max(targets, key=lambda target: (_is_called(column.name, target), -len(target)))
                found.setdefault(table.name, []).append(Pointer(column.name, best, keys[best].name, column.values))
    return found


def _may_point(table: TableEvidence, column: ColumnEvidence, target: str, key: ColumnEvidence) -> bool:
    """Whether it is worth a look: the same kind of values, and a name that says so, or texts that are many."""
    if column is key or not column.values or column.is_list or column.proposed is None:
        return False
    if table.is_edge:
        return column.name in ("from", "to")
    whole, of = column.proposed.is_integer, key.proposed
    if of is None or whole != of.is_integer or (not whole and of is not column.proposed):
        return False
    texts = column.scalar is Scalar.STRING and not whole and column.values >= LEAST_VALUES and column.few is None
    named = _is_called(column.name, target) or _is_called(column.name, f"{target}_{key.name}")
    return named or is_end(column.name) or texts


def _is_called(column: str, target: str) -> bool:
    """`film_id`, `filmId`, `director_film` and `film` are called after `Films`."""
    plain, wanted = column.lower().replace("_", ""), target.lower().replace("_", "")
    stem = wanted.removesuffix("ies") if wanted.endswith("ies") else wanted.removesuffix("s")
    return len(stem) > 1 and stem in plain


def _all_in(batch: Batch, column: str, keys: pa.Array) -> bool:
    if column not in batch.rows.schema.names:
        return True
    values = _as_texts(batch.rows.column(column).drop_null())
    return bool(pc.all(pc.is_in(values, value_set=keys)).as_py()) or not len(values)


def _as_texts(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    return (whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole).cast(pa.string())
