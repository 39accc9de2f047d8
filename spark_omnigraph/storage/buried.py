"""Rows that files still hold, shown or not: masked ones, and those that only old versions show."""

from __future__ import annotations

from dataclasses import dataclass, field

from lance import LanceDataset
from lance.fragment import LanceFragment

from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.storage.faults import reading


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

    def is_in(self, dataset: LanceDataset) -> bool:
        """Whether any file of the opened version holds such a row."""
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
