"""A store of vectors outside of any graph: what a provider answered, by what it was asked, and what else is known of
rows.

    answers_<n>   `key`, `at`, `check`, `vector` (n numbers); the first row of a key counts
    rows          `place`, `id`, `key`, `model`, `at`; the last row of a place and an id counts

A key is a digest, from which no text can be read back. `check` is the checksum of the vector; datasets of earlier
versions have none, and stay without. Rows are only ever added, by any number of processes at once,
so nothing here needs a turn, and nothing that is missing is more than a question that is asked again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.embed.hashes import checksums
from spark_omnigraph.embed.vectors import Vectors, have_length
from spark_omnigraph.errors import BadRequestError, StorageError
from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.records.arrow_schema import property_type
from spark_omnigraph.storage.faults import CommitFailed, reading
from spark_omnigraph.storage.layout import MANIFEST
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.tables.commits import append_batches, compact, create_dataset, expire
from spark_omnigraph.storage.tables.keys import rows_among, scan_columns, scan_where
from spark_omnigraph.storage.tables.scan import PinnedTable, open_pinned
from spark_omnigraph.storage.uri import Location, is_inside, locate

TIDY_ABOVE = 64
"""Files of one dataset from which it is compacted."""
CACHE = ".embeddings"
"""What the name of a graph's own store ends with."""
_ALL = 4
"""Stored answers for each wanted one up to which all keys are read at once."""
TIDY_ROWS, TIDY_VALUES = 1 << 15, 1 << 20
"""Rows of a file that is large enough, and numbers that are in memory at once while files are joined."""
_KEPT = timedelta(days=1)
"""How long a version stays that nobody should read any more."""
_PLAIN = {"lance-encoding:compression": "none"}
"""Of a column of digests, in which there is nothing to find that could be said shorter."""
_KEY, _AT = pa.field("key", pa.string(), False, _PLAIN), pa.field("at", pa.int64(), False)
_CHECK = pa.field("check", pa.uint64(), False, _PLAIN)
_PLACE, _ID, _MODEL = (pa.field(name, pa.string(), False) for name in ("place", "id", "model"))
_ANSWERS = "answers_"
_ROWS = pa.schema([_PLACE, _ID, _KEY, _MODEL, _AT])

Rows = npt.NDArray[np.int64]
"""int64[n]: row ids of answers, -1 where there is none."""


def vector_type(dimension: int) -> pa.DataType:
    """How vectors of so many numbers are stored."""
    return property_type(PropType(Scalar.VECTOR, dimension=dimension))


def answered(keys: pa.Array, vectors: npt.NDArray[np.float32]) -> pa.RecordBatch:
    """Answers of now by their keys, as a store has them. The numbers are not copied."""
    schema = _schema_of(_answers(vectors.shape[1]))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), type=schema.field("vector").type)
    return pa.RecordBatch.from_arrays([keys, _now(len(keys)), pa.array(checksums(vectors)), column], schema=schema)


def numbers_of(vectors: pa.Array) -> Vectors:
    """The numbers of vectors of which none is null, which are not copied."""
    return np.asarray(vectors.flatten()).reshape(-1, vectors.type.list_size)


def first_of_each(keys: pa.Array) -> Rows:
    """Where each of some keys, of which none is null, stands first."""
    codes = np.asarray(keys.dictionary_encode().indices)  # in the order in which they come
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of one dimension at one version. Picklable: tasks open it and see no newer one."""

    table: PinnedTable | None
    dimension: int

    def find(self, keys: pa.Array) -> Rows:
        """Row ids of the answers to these keys."""
        found = np.full(len(keys), -1, dtype=np.int64)
        if self.table is None or not len(keys):
            return found
        dataset = open_pinned(self.table)
        with _reading_answers(self.table.uri):
            is_all = dataset.count_rows() <= _ALL * len(keys)
            batches = list(
                scan_columns(dataset, ["key", "_rowid"])
                if is_all
                else rows_among(dataset, ["key", "_rowid"], ["key"], keys.unique().drop_null())
            )
        if not batches:
            return found
        rows = pa.Table.from_batches(batches).sort_by("_rowid")
        place = pc.index_in(keys, value_set=rows.column("key").combine_chunks())
        there = np.asarray(place.is_valid())
        found[there] = np.asarray(rows.column("_rowid").take(place.drop_null())).astype(np.int64)
        return found

    def all(self) -> Iterator[pa.Array]:
        """The vectors of all answers, of which some are in memory."""
        if self.table is not None:
            with _reading_answers(self.table.uri), reading(f"read vectors of {self.table.uri}"):
                rows = max(1, TIDY_VALUES // self.dimension)
                dataset = open_pinned(self.table)
                for batch in dataset.scanner(columns=_checked(dataset), batch_size=rows).to_batches():
                    yield _as_written(dataset.uri, *batch.columns)

    def reader(self) -> AnswerReader:
        """Opened once, read many times."""
        return AnswerReader(None if self.table is None else open_pinned(self.table), self.dimension)


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Vectors by the row ids that `Answers.find` gave."""

    dataset: lance.LanceDataset | None
    dimension: int

    def take(self, rows: Rows) -> pa.Array:
        """Vectors in the order of the rows, null for -1."""
        there = rows >= 0
        if self.dataset is None or not there.any():
            return pa.nulls(len(rows), vector_type(self.dimension))
        if there[0] and bool((np.diff(rows) > 0).all()):
            return self._read(self.dataset, rows)
        distinct, back = np.unique(rows[there], return_inverse=True)
        found = self._read(self.dataset, distinct)
        places = np.zeros(len(rows), dtype=np.int64)
        places[there] = back
        return found.take(pa.array(places, mask=~there))

    def _read(self, dataset: lance.LanceDataset, rows: Rows) -> pa.Array:
        with _reading_answers(dataset.uri):
            with reading(f"read vectors of {dataset.uri}"):
                # A table that is in one piece is not copied; an array of one piece would be.
                found = dataset._take_rows(rows.tolist(), columns=_checked(dataset)).combine_chunks()
            return _as_written(dataset.uri, *(column.chunk(0) for column in found.columns))


def _checked(dataset: lance.LanceDataset) -> list[str]:
    """The columns of vectors, and of their checksums where there are some."""
    return [name for name in ("vector", "check") if name in dataset.schema.names]


def _as_written(uri: str, vectors: pa.Array, checks: pa.Array | None = None) -> pa.Array:
    """The vectors. StorageError where one is not what was added; without checksums, where it has no length of 1."""
    numbers = numbers_of(vectors)
    if not (have_length(numbers) if checks is None else checksums(numbers) == np.asarray(checks)).all():
        raise StorageError(f"storage: a vector of {uri} is not as it was written")
    return vectors


@dataclass(frozen=True, slots=True)
class VectorStore:
    """The folder of a store. Picklable; nothing is made before something is added."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def beside(cls, graph: str, uri: str | None, options: Mapping[str, str]) -> VectorStore:
        """The store of a graph, beside it unless another place is named. BadRequestError for one that cannot be written
        to, or that lies in the graph: what other programs find there that they do not know they remove.
        """
        root = locate(f"{graph}{CACHE}" if uri is None else uri, options).root
        if is_inside(root, graph) or (uri is not None and _is_in_a_graph(root, options)):
            raise BadRequestError(f"the cache of vectors '{uri}' must lie outside of the graph, and of any other")
        return cls(root, dict(options))

    def answers(self, dimension: int) -> Answers:
        """What is answered now."""
        dataset = self._open(_answers(dimension))
        table = None if dataset is None else PinnedTable(self._uri(_answers(dimension)), dataset.version, self.options)
        return Answers(table, dimension)

    def add(self, dimension: int, answers: Sequence[pa.RecordBatch]) -> None:
        """Answers (`answered`) that stay whatever becomes of this process."""
        self._add(_answers(dimension), answers)

    def recorded(self, place: str) -> tuple[pa.Array, pa.Array]:
        """Ids of a place, each once, and what was said of them last, the latest first."""
        dataset = self._open("rows")
        with _reading_answers(self._uri("rows")):
            is_meant = is_text_of("place", [place])
            parts = [] if dataset is None else list(scan_where(dataset, ["id", "key", "at"], is_meant))
        if not parts:
            return pa.array([], pa.string()), pa.array([], pa.string())
        rows = pa.Table.from_batches(parts).sort_by([("at", "descending")])
        kept = rows.take(pa.array(first_of_each(rows.column("id").combine_chunks())))
        return kept.column("id").combine_chunks(), kept.column("key").combine_chunks()

    def record(self, place: str, ids: pa.Array, keys: pa.Array, model: str) -> None:
        """Says something of ids."""
        if len(ids):
            same = [pa.array([text]).take(pa.array(np.zeros(len(ids), np.int64))) for text in (place, model)]
            rows = pa.RecordBatch.from_arrays([same[0], ids, keys, same[1], _now(len(ids))], schema=_ROWS)
            self._add("rows", [rows])

    def tidy(self, *dimensions: int) -> None:
        """Joins the small files of many additions; what cannot be done now is left to the next time."""
        for name, width in (("rows", 1), *((_answers(each), each) for each in dimensions)):
            dataset = self._open(name)
            if dataset is not None and len(dataset.get_fragments()) > TIDY_ABOVE:
                with suppress(CommitFailed):
                    # What was joined once is not joined again.
                    compact(dataset, TIDY_ROWS, max(64, TIDY_VALUES // width))
                    expire(dataset, _KEPT)

    def remove(self) -> None:
        """Takes the whole store away: a folder of its own, which nobody else may look for."""
        folder, _, name = self.root.rpartition("/")
        Objects(Location(folder, self.options)).purge(name)

    def _uri(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _open(self, name: str) -> lance.LanceDataset | None:
        """The newest version, None before the first addition."""
        with _reading_answers(self._uri(name)):
            with reading(f"open {self._uri(name)}"):
                try:
                    dataset = lance.dataset(self._uri(name), storage_options=dict(self.options) or None)
                except ValueError as error:
                    if "was not found" in str(error):
                        return None
                    raise
            found, wanted = ({each.name: each.type for each in schema} for schema in (dataset.schema, _schema_of(name)))
            if found not in (wanted, {column: wanted[column] for column in wanted if column != _CHECK.name}):
                raise StorageError(f"storage: {self._uri(name)} has other columns than a cache of vectors")
            return dataset

    def _add(self, name: str, rows: Sequence[pa.RecordBatch]) -> None:
        dataset = self._open(name)
        if dataset is None:
            try:
                dataset = create_dataset(self._uri(name), rows[0].schema, None, self.options)
            except CommitFailed as failure:
                dataset = self._open(name)  # another process was quicker
                if dataset is None:
                    raise StorageError(f"storage: {failure}") from failure
        try:
            append_batches(dataset, [part.select(dataset.schema.names) for part in rows], self.options)
        except CommitFailed as failure:
            raise StorageError(f"storage: {failure}") from failure


@contextmanager
def _reading_answers(uri: str) -> Iterator[None]:
    """Says of a store that cannot be read that it may go."""
    try:
        yield
    except StorageError as error:
        raise StorageError(
            f"{error.message}. If {uri} is damaged, remove it, or name another cache or none: its texts are asked anew"
        ) from error


def _answers(dimension: int) -> str:
    return f"{_ANSWERS}{dimension}"


def _schema_of(name: str) -> pa.Schema:
    """The columns of one of the datasets."""
    if not name.startswith(_ANSWERS):
        return _ROWS
    kind = vector_type(int(name.removeprefix(_ANSWERS)))
    return pa.schema([_KEY, _AT, _CHECK, pa.field("vector", kind, nullable=False)])


def _is_in_a_graph(place: str, options: Mapping[str, str]) -> bool:
    """Whether a folder is the root of a graph, or lies in one."""
    scheme, mark, path = place.rpartition("://")
    if not mark:
        real = Path(os.path.realpath(place))
        return any((folder / MANIFEST).is_dir() for folder in (real, *real.parents))
    parts = path.split("/")
    folders = (scheme + mark + "/".join(parts[:count]) for count in range(len(parts), 0, -1))
    return any(_has_manifest(Location(folder, options)) for folder in folders)


def _has_manifest(folder: Location) -> bool:
    try:
        return Objects(folder).has_prefix(MANIFEST)
    except StorageError:
        return False  # who may not look into a folder above theirs has no graph there


def _now(count: int) -> pa.Array:
    return pa.array(np.full(count, time.time_ns() // 1000, dtype=np.int64))
