"""Frames of ids to delete: of one type, or of many types, which each row names as a record does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.delete.by_id import DeleteReport, DeleteRequest, Ids, delete_ids
from spark_omnigraph.records.legible import legible_batch, why_illegible
from spark_omnigraph.storage.graph_store import GraphStore

_KINDS = {"node": "type", "edge": "edge"}
"""Kind of table → the column in which a row names its type, as in records."""

DELETE_COLUMNS = ("id", *_KINDS.values())
"""All columns that a frame of ids is asked for."""


@dataclass(frozen=True, slots=True)
class FrameIds:
    """Distinct ids of one partition by table key; how many rows have no id, how many name no type or two, and how many
    hold bytes that are no text.
    """

    ids: Mapping[str, tuple[str, ...]]
    nulls: int = 0
    unnamed: int = 0
    example: str | None = None
    """Id of a row that names no type or two."""
    illegible: int = 0
    fault: str | None = None
    """What is wrong with one of those that hold no text, and where it stands."""


def check_delete_columns(catalog: Catalog, table_key: str | None, columns: pa.Schema) -> None:
    """Refuses a frame without ids, or one of many types whose rows cannot say which they belong to.

    BadRequestError names the column, NotFoundError a type that the graph lacks. Further columns are ignored.
    """
    if table_key is not None:
        catalog.require(table_key)
        return _check_text(columns, "id", "loadMode 'delete'")
    named = [name for name in _KINDS.values() if name in columns.names]
    if not named:
        raise BadRequestError(
            "loadMode 'delete' takes ids of one type, named by the option 'node' or 'edge', or a frame of ids with a "
            "column 'type' or 'edge'"
        )
    for name in ("id", *named):
        _check_text(columns, name, "loadMode 'delete' without the option 'node' or 'edge'")
    return None


def frame_ids(batches: Iterable[pa.RecordBatch], table_key: str | None) -> FrameIds:
    """Distinct ids of one partition of a frame that `check_delete_columns` lets pass."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    nulls = unnamed = 0
    example: str | None = None
    texts = _LegibleTexts(DELETE_COLUMNS if table_key is None else ("id",))
    for batch in map(texts.of, batches):
        nulls += batch.column("id").null_count
        if table_key is not None:
            found[table_key].update(_distinct(batch.column("id")))
            continue
        named = {kind: _column(batch, name) for kind, name in _KINDS.items()}
        untold = batch.column("id").filter(pc.equal(named["node"].is_null(), named["edge"].is_null()))
        unnamed += len(untold)
        example = untold[0].as_py() if len(untold) and example is None else example
        for kind, types in named.items():
            for name in _distinct(types):
                found[f"{kind}:{name}"].update(_distinct(batch.column("id").filter(pc.equal(types, name))))
    return FrameIds(
        {key: tuple(sorted(ids)) for key, ids in found.items()}, nulls, unnamed, example, texts.bad, texts.fault
    )


class _LegibleTexts:
    """Keeps the rows of a partition whose texts are UTF-8, counts the others and says what is wrong with the first."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self.bad = 0
        self.fault: str | None = None
        self._seen = 0

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        found = legible_batch(batch.select([name for name in self._columns if name in batch.schema.names]))
        bad = found.bad_rows
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            if self.fault is None:
                names = found.columns_of(row)
                why = why_illegible(names, found.batch.column(names[0]).slice(row, 1))
                self.fault = f"row {self._seen + row + 1} of a partition: {why}"
            self.bad += int(bad.sum())
        self._seen += batch.num_rows
        return found.batch.filter(pa.array(~bad)) if bad.any() else found.batch


def delete_frame(store: GraphStore, parts: Iterable[FrameIds], request: DeleteRequest) -> DeleteReport:
    """Deletes the ids of all partitions in one commit, as `delete_ids` does; `request.ids` is not looked at.

    BadRequestError for rows whose text is no UTF-8, that have no id, or whose type is not told; NotFoundError for a
    type that the graph lacks.
    """
    told = list(parts)
    if illegible := sum(part.illegible for part in told):
        fault = next(part.fault for part in told if part.illegible)
        raise BadRequestError(f"{_counted(illegible)} text that cannot be read; filter it out first: {fault}")
    if nulls := sum(part.nulls for part in told):
        raise BadRequestError(f"{_counted(nulls)} no id; filter them out first")
    if unnamed := sum(part.unnamed for part in told):
        raise BadRequestError(
            f"{_counted(unnamed)} no type, or both a node type and an edge type: each must have either 'type' or "
            f"'edge'. One has the id '{next(part.example for part in told if part.unnamed)}'"
        )
    keys = sorted({key for part in told for key in part.ids})
    catalog = read_catalog(store)
    for key in keys:
        catalog.require(key)
    ids: Ids = {key: pa.array([one for part in told for one in part.ids.get(key, ())], pa.string()) for key in keys}
    return delete_ids(store, replace(request, ids=ids))


def _counted(rows: int) -> str:
    return "1 row of the frame to delete has" if rows == 1 else f"{rows} rows of the frame to delete have"


def _distinct(column: pa.Array) -> list[str]:
    texts: list[str] = pc.unique(column.drop_null()).to_pylist()
    return texts


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    place = batch.schema.get_field_index(name)
    return batch.column(place) if place >= 0 else pa.nulls(batch.num_rows, pa.string())


def _check_text(columns: pa.Schema, name: str, who: str) -> None:
    types = [field.type for field in columns if field.name == name]
    found = "is missing" if not types else f"is {types[0]}" if len(types) == 1 else "is there twice"
    if len(types) != 1 or not pa.types.is_string(types[0]):
        raise BadRequestError(f"{who} needs a string column '{name}', which {found}; other columns are ignored")
