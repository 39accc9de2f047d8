"""`from` and `to` of many edges at a time: the ids they mean."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import NodeType, Scalar
from spark_omnigraph.records.columns import Bools
from spark_omnigraph.records.jsonl.record_layout import EndForm
from spark_omnigraph.records.keys import STORED_DATE, composite_ids, key_columns

_DATES = (Scalar.DATE, Scalar.DATETIME)


def end_type(node: NodeType, form: EndForm) -> pa.DataType:
    """Type to ask the JSON reader for."""
    if form is EndForm.LIST:
        return pa.list_(pa.string())
    if form is EndForm.WHOLE:
        return pa.uint64() if key_columns(node)[0][1] is Scalar.U64 else pa.int64()
    return pa.string()


def end_ids(column: pa.Array, node: NodeType, form: EndForm) -> tuple[pa.Array, Bools]:
    """Ids, and the rows that only the row decoder can decide."""
    columns = key_columns(node)
    if form is EndForm.LIST:
        return _list_ids(column, [scalar for _, scalar in columns])
    ids = column.cast(pa.string())
    doubtful: Bools = column.is_null().to_numpy(zero_copy_only=False)
    if form is EndForm.TEXT and len(columns) == 1 and columns[0][1] in _DATES:
        doubtful = doubtful | _not_stored(ids)
    return ids, doubtful


def _list_ids(column: pa.Array, scalars: list[Scalar]) -> tuple[pa.Array, Bools]:
    size = len(scalars)
    fits = pc.equal(column.value_lengths(), size).fill_null(False)
    doubtful: Bools = ~fits.to_numpy(zero_copy_only=False)
    starts = np.asarray(column.offsets)[:-1]
    parts = []
    for place, scalar in enumerate(scalars):
        wanted = pa.array(starts + place, mask=doubtful)
        part = column.values.take(wanted)
        doubtful = doubtful | part.is_null().to_numpy(zero_copy_only=False)
        if scalar in _DATES:
            doubtful = doubtful | _not_stored(part)
        parts.append(part)
    return composite_ids(parts), doubtful


def _not_stored(texts: pa.Array) -> Bools:
    stored: Bools = (
        pc.match_substring_regex(texts, f"^{STORED_DATE.pattern}$").fill_null(False).to_numpy(zero_copy_only=False)
    )
    return ~stored
