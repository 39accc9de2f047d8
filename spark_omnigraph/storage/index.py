"""Lance indexes of a table: which there are, and building segments that a later commit makes visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import lance
import pyarrow.compute as pc
from lance import LanceDataset

from spark_omnigraph.storage.faults import reading


@dataclass(frozen=True, slots=True)
class IndexCoverage:
    """An index, its columns, and how many rows it covers."""

    name: str
    columns: tuple[str, ...]
    kind: str
    rows: int


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """An index to build: `kind` is BTREE, INVERTED or IVF_FLAT."""

    column: str
    kind: str


def coverage(dataset: LanceDataset) -> list[IndexCoverage]:
    """Indexes of an opened table in name order."""
    with reading(f"list indexes of {dataset.uri}"):
        found = dataset.describe_indices()
    return sorted(
        (IndexCoverage(i.name, tuple(i.field_names), str(i.index_type), int(i.num_rows_indexed)) for i in found),
        key=lambda i: i.name,
    )


def build_segments(dataset: LanceDataset, wanted: Sequence[WantedIndex]) -> list[lance.Index]:
    """Staged index segments over all fragments. A vector column without values has none yet and is left out."""
    fragments = [f.fragment_id for f in dataset.get_fragments()]
    segments = []
    with reading(f"index {dataset.uri}"):
        for want in wanted:
            if want.kind == "IVF_FLAT":
                if not _has_values(dataset, want.column):
                    continue
                segment = dataset.create_index_uncommitted(
                    want.column, index_type=want.kind, fragment_ids=fragments, num_partitions=1, metric="L2"
                )
            else:
                segment = dataset.create_index_uncommitted(want.column, index_type=want.kind, fragment_ids=fragments)
            if want.kind == "INVERTED":
                # An unfinished text segment commits and then fails every search.
                segment = dataset.merge_existing_index_segments([segment])
            segments.append(segment)
    return segments


def _has_values(dataset: LanceDataset, column: str) -> bool:
    for batch in dataset.scanner(columns=[column], filter=f"`{column}` IS NOT NULL", limit=1).to_batches():
        if batch.num_rows and pc.count(batch.column(0)).as_py():
            return True
    return False
