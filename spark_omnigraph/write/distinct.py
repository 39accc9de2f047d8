"""Rows of which equal ones count once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.types import EdgeType, EntityType, Scalar
from spark_omnigraph.records.equality import equal_rows
from spark_omnigraph.write.staged_table import Rows, RowsToCheck


def same_rows(table: RowsToCheck, entity: EntityType, rows: Rows, others: Rows) -> npt.NDArray[np.bool_]:
    """Which rows equal those at the same place of `others`, besides their ids and blobs."""
    names = [p.name for p in entity.properties if p.type.scalar is not Scalar.BLOB]
    names += ["src", "dst"] if isinstance(entity, EdgeType) else []
    table.load(names)
    columns = {name: table.column(name) for name in names}
    pairs = (pa.table({name: c.take(pa.array(at)) for name, c in columns.items()}) for at in (rows, others))
    return equal_rows(*pairs)
