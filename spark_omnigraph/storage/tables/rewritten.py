"""Rows that an index may still know by values which they no longer have.

A row keeps its row id when it is replaced. While a newer part of an index is missing, Lance leaves the old entries of
such a row out; once another part covers the row, or Lance has joined the parts, a text index answers for both texts.
"""

from __future__ import annotations

import numpy as np
from lance import LanceDataset

from spark_omnigraph.errors import StorageError
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.commits import OPERATION_KEY
from spark_omnigraph.storage.tables.index import IndexCoverage, IndexSegment
from spark_omnigraph.storage.tables.reader import Positions, TableReader

EVER = "_row_last_updated_at_version > _row_created_at_version"


def rewritten(reader: TableReader, index: IndexCoverage) -> Positions:
    """Positions of rows that were replaced after some entry of an index was made, or may have been; ascending."""
    key = (reader.identity, index.name, "rewritten")
    found = reader.memory.get(np.ndarray, key)
    if found is None:
        found = _rewritten(reader, index)
        reader.memory.put(np.ndarray, key, found, found.nbytes)
    return found


def _rewritten(reader: TableReader, index: IndexCoverage) -> Positions:
    if not all(_is_own(reader.dataset, segment) for segment in index.segments):
        return reader.find(EVER, by_index=False)
    oldest = min((segment.dataset_version for segment in index.segments), default=0)
    return reader.find(f"{EVER} AND _row_last_updated_at_version > {oldest}", by_index=False)


def _is_own(dataset: LanceDataset, segment: IndexSegment) -> bool:
    """Whether this project built a segment, from the rows of one version; what Lance joined has older entries too."""
    try:
        with reading(f"read version {segment.dataset_version + 1} of {dataset.uri}"):
            made = dataset.read_transaction(segment.dataset_version + 1)
    except (TypeError, StorageError):
        return False  # gone, or nothing that pylance can parse: then nobody knows, and rows are looked at
    properties = (made.transaction_properties or {}) if made is not None else {}
    built = getattr(made.operation, "new_indices", ()) if made is not None else ()
    return OPERATION_KEY in properties and segment.uuid in {each.uuid for each in built}
