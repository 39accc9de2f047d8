"""Rows that are stored as they are: a write that compares leaves them out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset

from spark_omnigraph.catalog.types import EntityType, Scalar, embedding_source
from spark_omnigraph.records.equality import equal_rows
from spark_omnigraph.storage.tables.blobs import StoredBlobs
from spark_omnigraph.storage.tables.keys import Matches
from spark_omnigraph.storage.tables.stored_rows import StoredRows

_BYTES = 64 << 20
"""Stored rows are read so many bytes at a time."""


def unchanged_rows(
    entity: EntityType, dataset: LanceDataset, rows: pa.Table, matches: Matches
) -> npt.NDArray[np.bool_]:
    """bool[n]: which of n rows the stored row of their id equals in every column. A vector that the schema makes of a
    text is not compared where the row has none. Blobs are not compared, nor are several rows of one id: they differ.
    """
    same = np.zeros(rows.num_rows, dtype=np.bool_)
    if any(prop.type.scalar is Scalar.BLOB for prop in entity.properties):
        return same
    _, inverse, counts = np.unique(matches.addresses, return_inverse=True, return_counts=True)
    alone = np.flatnonzero(counts[inverse] == 1)
    places, row_ids = np.flatnonzero(matches.hit)[alone], matches.row_ids[alone]
    stored = StoredRows(dataset, tuple(rows.column_names), StoredBlobs(dataset))
    made = [prop.name for prop in entity.properties if embedding_source(prop) is not None]
    step = max(1, _BYTES // max(1, stored.bytes_per_row))
    for start in range(0, len(places), step):
        some = places[start : start + step]
        new, old = rows.take(pa.array(some)), stored.take(pa.array(row_ids[start : start + step]))
        others = [name for name in rows.column_names if name not in made]
        found = equal_rows(new.select(others), old.select(others).cast(new.select(others).schema))
        for name in made:
            absent = np.asarray(new.column(name).is_null())
            found &= absent | equal_rows(new.select([name]), old.select([name]).cast(new.select([name]).schema))
        same[some] = found
    return same
