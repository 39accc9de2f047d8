"""Rows that files still hold, shown or not: masked ones, those that only old versions show, and those that an index has
kept, since an index forgets a row no sooner than it is built anew.

An index that finds rows by value has the id of a row beside its row id. Others (of texts, of vectors) have row ids
alone: one that no row has, and that no index by value knows for another row, may be any row that was ever deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.file import LanceFileReader
from lance.fragment import LanceFragment

from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.index import coverage

IndexFiles = Mapping[str, Sequence[str]]
"""Paths of the files of each segment of an index, by its id."""

_VALUES = "page_data.lance"
"""Where an index that finds rows by value has the values, and the row ids beside them."""
_ROW_IDS = {_VALUES: "ids", "docs.lance": "_rowid", "auxiliary.idx": "_rowid"}
"""Columns of row ids, by the end of a file's name: of indexes by value, of texts, of vectors."""
_KNOWN = ("BTREE", "INVERTED", "IVF_")
"""Kinds of indexes whose row ids can be read; what another one has, nobody here knows."""
_NONE: npt.NDArray[np.uint64] = np.empty(0, dtype=np.uint64)


@dataclass(slots=True)
class Buried:
    """Looks for rows that have a text in one of these columns, in the files of versions; each file is read once."""

    columns: tuple[str, ...]
    text: str
    _seen: dict[str, bool] = field(default_factory=dict)
    _ids: dict[str, npt.NDArray[np.uint64]] = field(default_factory=dict)

    @property
    def condition(self) -> str:
        """The same as a Lance filter."""
        return " OR ".join(is_text_of(column, [self.text]) for column in self.columns)

    def is_in(self, dataset: LanceDataset, files: IndexFiles) -> bool:
        """Whether any file of the opened version holds such a row, its text as an id, or what may be left of it;
        `files` are those of the indexes of its table.
        """
        return self.is_in_rows(dataset) or self._is_in_indexes(dataset, files)

    def is_in_rows(self, dataset: LanceDataset) -> bool:
        """Whether any file of rows of the opened version holds such a row."""
        return any(self._holds(dataset, fragment) for fragment in dataset.get_fragments())

    def _holds(self, dataset: LanceDataset, fragment: LanceFragment) -> bool:
        name = "|".join(file.path for file in fragment.data_files())
        if name not in self._seen:
            with reading(f"look through files of {dataset.uri}"):
                scanner = dataset.scanner(
                    columns=[*self.columns],
                    filter=self.condition,
                    fragments=[fragment],
                    with_row_id=True,
                    include_deleted_rows=True,
                    use_scalar_index=False,
                )
                self._seen[name] = any(batch.num_rows for batch in scanner.to_batches())
        return self._seen[name]

    def _is_in_indexes(self, dataset: LanceDataset, files: IndexFiles) -> bool:
        by_value: dict[str, list[str]] = {column: [] for column in self.columns}
        others: list[str] = []
        for index in coverage(dataset):
            kind = index.kind.upper()
            paths = [path for part in index.segments for path in files.get(part.uuid, ())]
            if kind == "BTREE" and set(index.columns) <= by_value.keys():
                by_value[index.columns[0]] += [path for path in paths if path.endswith(f"/{_VALUES}")]
            elif kind.startswith(_KNOWN):
                others += [path for path in paths if _ids_column(path)]
            elif paths:
                return True
        if any(self._has_text(dataset, path) for paths in by_value.values() for path in paths):
            return True
        return bool(others) and self._has_unknown(dataset, by_value.values(), others)

    def _has_text(self, dataset: LanceDataset, path: str) -> bool:
        if path not in self._seen:
            values = _column(dataset, path, "values")
            self._seen[path] = any(pc.any(pc.equal(each, self.text)).as_py() for each in values.chunks)
        return self._seen[path]

    def _has_unknown(self, dataset: LanceDataset, by_value: Iterable[Sequence[str]], others: Sequence[str]) -> bool:
        """Whether an index has the id of a row that there is not, and of which no value says that it is another one."""
        unknown = self._rows(dataset, others)
        unknown = np.setdiff1d(unknown, reduce(np.intersect1d, (self._rows(dataset, paths) for paths in by_value)))
        if not len(unknown):
            return False
        with reading(f"list rows of {dataset.uri}"):
            present = dataset.scanner(columns=[], with_row_id=True).to_table().column("_rowid")
        return bool(len(np.setdiff1d(unknown, np.asarray(present))))

    def _rows(self, dataset: LanceDataset, paths: Sequence[str]) -> npt.NDArray[np.uint64]:
        for path in paths:
            if path not in self._ids:
                self._ids[path] = np.asarray(_column(dataset, path, _ids_column(path) or "")).astype(np.uint64)
        return np.unique(np.concatenate([_NONE, *(self._ids[path] for path in paths)]))


def _ids_column(path: str) -> str | None:
    return next((column for end, column in _ROW_IDS.items() if path.endswith(end)), None)


def _column(dataset: LanceDataset, path: str, name: str) -> pa.ChunkedArray:
    with reading(f"look through indexes of {dataset.uri}"):
        file = LanceFileReader(path, storage_options=dataset.initial_storage_options, columns=[name])
        return file.read_all().to_table().column(0)


def index_files(store: GraphStore, location: str) -> IndexFiles:
    """Files of the indexes of a dataset, by the ids of their segments."""
    found = defaultdict(list)
    for each in store.objects.walk(location):
        folder, _, segment = each.path.rpartition("/")[0].rpartition("/")
        if folder.endswith("_indices"):
            found[segment].append(store.location.join(each.path))
    return found
