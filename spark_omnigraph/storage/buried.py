"""Rows that files still hold, shown or not: masked ones, those that only old versions show, and those whose ids an
index has kept, since an index forgets a row no sooner than it is built anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow.compute as pc
from lance import LanceDataset
from lance.file import LanceFileReader
from lance.fragment import LanceFragment

from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.index import coverage

_VALUES = "page_data.lance"
"""Where an index that finds rows by value has the values."""


@dataclass(slots=True)
class Buried:
    """Looks for rows that have a text in one of these columns, in the files of versions; each file is read once."""

    columns: tuple[str, ...]
    text: str
    _seen: dict[str, bool] = field(default_factory=dict)

    @property
    def condition(self) -> str:
        """The same as a Lance filter."""
        return " OR ".join(is_text_of(column, [self.text]) for column in self.columns)

    def is_in(self, dataset: LanceDataset, indexes: Mapping[str, str]) -> bool:
        """Whether any file of the opened version holds such a row, or its text as an id; `indexes` are the files with
        the values of indexes, by the ids of their segments.
        """
        return self.is_in_rows(dataset) or any(self._is_in_index(dataset, path) for path in self._of(dataset, indexes))

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

    def _of(self, dataset: LanceDataset, indexes: Mapping[str, str]) -> Iterator[str]:
        for index in coverage(dataset):
            if index.kind.upper() == "BTREE" and set(index.columns) <= set(self.columns):
                yield from (indexes[part.uuid] for part in index.segments if part.uuid in indexes)

    def _is_in_index(self, dataset: LanceDataset, path: str) -> bool:
        if path not in self._seen:
            with reading(f"look through indexes of {dataset.uri}"):
                file = LanceFileReader(path, storage_options=dataset.initial_storage_options, columns=["values"])
                batches = file.read_all().to_batches()
                self._seen[path] = any(pc.any(pc.equal(batch.column(0), self.text)).as_py() for batch in batches)
        return self._seen[path]


def value_files(store: GraphStore, location: str) -> dict[str, str]:
    """Files of a dataset in which indexes have values, by the ids of their segments."""
    paths = (each.path for each in store.objects.walk(location))
    return {path.split("/")[-2]: store.location.join(path) for path in paths if path.endswith(f"/{_VALUES}")}
