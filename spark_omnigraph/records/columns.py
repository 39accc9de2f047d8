"""Arrow columns of stored values: from Python values, and from what the column decoder produced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.dates import DATE_MAX, DATE_MIN, INSTANT_MAX, INSTANT_MIN
from spark_omnigraph.catalog.types import INTEGER_RANGES, Property, PropType, Scalar
from spark_omnigraph.records.arrow_schema import BLOB, property_type
from spark_omnigraph.records.date_columns import read_dates, read_datetimes
from spark_omnigraph.records.json_numbers import EXACT_INTEGERS, FLOAT_INTEGERS
from spark_omnigraph.records.values import BadValueError, read_blob

Bools = npt.NDArray[np.bool_]

_DATES = (Scalar.DATE, Scalar.DATETIME)
_INTEGERS: dict[Scalar, type[np.integer[Any]]] = {
    Scalar.I32: np.int32,
    Scalar.I64: np.int64,
    Scalar.U32: np.uint32,
    Scalar.U64: np.uint64,
}
DATE_BOUNDS = {Scalar.DATE: (DATE_MIN, DATE_MAX), Scalar.DATETIME: (INSTANT_MIN, INSTANT_MAX)}
_STORAGE = {Scalar.DATE: pa.int32(), Scalar.DATETIME: pa.int64()}


def python_column(ptype: PropType, values: Sequence[object]) -> pa.Array:
    """Column of stored values as `values.stored_value` gives them."""
    target = property_type(ptype)
    storage = _STORAGE.get(ptype.scalar)
    if storage is None:
        return pa.array(values, target)
    if not ptype.is_list:
        return pa.array(values, storage).view(target)
    lists = pa.array(values, pa.list_(storage))
    return with_items(lists, lists.values.view(target.value_type), target)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the column decoder reads a property: `wide` integers are read as floats, `whole` dates as integers."""

    prop: Property
    wide: bool = False
    whole: bool = False

    def json_type(self) -> pa.DataType:
        """Type to ask the JSON reader for."""
        ptype = self.prop.type
        if ptype.is_vector:
            return pa.list_(pa.float64())
        scalar = self._scalar()
        return pa.list_(scalar) if ptype.is_list else scalar

    def _scalar(self) -> pa.DataType:
        scalar = self.prop.type.scalar
        if scalar in _DATES:
            return pa.int64() if self.whole else pa.string()
        if scalar is Scalar.BLOB:
            return pa.string()
        if scalar in EXACT_INTEGERS or self.wide:
            return pa.float64()
        return property_type(PropType(scalar))

    def convert(self, column: pa.Array) -> tuple[pa.Array, Bools | None]:
        """Stored column, and the rows whose value needs the row decoder (None: no row does)."""
        ptype = self.prop.type
        target = property_type(ptype)
        if ptype.is_vector:
            return _vectors(column, target)
        if ptype.is_list:
            items, doubtful = self._convert_scalars(column.values, target.value_type)
            return with_items(column, items, target), rows_of_items(column, doubtful)
        return self._convert_scalars(column, target)

    def _convert_scalars(self, column: pa.Array, target: pa.DataType) -> tuple[pa.Array, Bools | None]:
        scalar = self.prop.type.scalar
        if scalar in _DATES:
            return _whole_dates(column, scalar, target) if self.whole else _text_dates(column, scalar, target)
        if scalar is Scalar.BLOB:
            return _blobs(column, self.prop.name)
        if scalar in EXACT_INTEGERS:
            return _floats(column, scalar, target)
        if self.wide:
            return _integers_from_floats(column, scalar)
        return column, None


def convert_present(
    convert: Callable[[pa.Array], tuple[pa.Array, Bools | None]], column: pa.Array, kind: pa.DataType
) -> tuple[pa.Array, Bools | None]:
    """What a conversion makes of the values that are there, in a type whose nulls take no place; and doubtful rows."""
    there = _valid(column)
    stored, doubtful = convert(column.filter(pa.array(there)))
    found = stored.cast(kind).take(pa.array(np.cumsum(there) - 1, mask=~there))
    if doubtful is None:
        return found, None
    rows = np.zeros(len(column), dtype=bool)
    rows[there] = doubtful
    return found, rows


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, copied only when it has several."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def floats_of(column: pa.Array) -> npt.NDArray[np.float64]:
    """Values of a float column; what stands in null rows does not matter."""
    return np.frombuffer(column.buffers()[1] or b"", dtype=np.float64)[column.offset : column.offset + len(column)]


def _valid(column: pa.Array) -> Bools:
    valid: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _doubt(column: pa.Array, doubtful: Bools) -> Bools | None:
    if column.null_count:
        doubtful = doubtful & _valid(column)
    return doubtful if doubtful.any() else None


def _from_numpy(values: npt.NDArray[np.generic], column: pa.Array) -> pa.Array:
    """The values as an array that is null where the column is."""
    return pa.array(values, mask=~_valid(column)) if column.null_count else pa.array(values)


def _floats(column: pa.Array, scalar: Scalar, target: pa.DataType) -> tuple[pa.Array, Bools | None]:
    values = floats_of(column)
    stored = column if scalar is Scalar.F64 else column.cast(target, safe=False)
    doubtful = ~(np.abs(values) < EXACT_INTEGERS[scalar])
    if not doubtful.any():
        return stored, None
    # NaN and infinities are no JSON, and an integer this large may have lost digits: both are decided exactly.
    certain = np.abs(values) < FLOAT_INTEGERS
    if scalar is Scalar.F32:
        with np.errstate(over="ignore", invalid="ignore"):
            certain &= (values != np.floor(values)) | (values.astype(np.float32) == values)
    return stored, _doubt(column, doubtful & ~certain)


def _integers_from_floats(column: pa.Array, scalar: Scalar) -> tuple[pa.Array, Bools | None]:
    values = floats_of(column)
    low, high = INTEGER_RANGES[scalar]
    good = (np.abs(values) < FLOAT_INTEGERS) & (values >= low) & (values <= high)
    good &= np.where(good, values, 0) == np.floor(np.where(good, values, 0))
    whole = np.where(good, values, 0).astype(_INTEGERS[scalar])
    return _from_numpy(whole, column), _doubt(column, ~good)


def read_texts(column: pa.Array, scalar: Scalar) -> tuple[npt.NDArray[np.int64], Bools]:
    """Days or milliseconds of texts, and which of them are no date or time that a property stores."""
    values, bad = (read_dates if scalar is Scalar.DATE else read_datetimes)(column)
    low, high = DATE_BOUNDS[scalar]
    return values, bad | (values < low) | (values > high)


def _text_dates(column: pa.Array, scalar: Scalar, target: pa.DataType) -> tuple[pa.Array, Bools | None]:
    values, bad = read_texts(column, scalar)
    values = np.where(bad, 0, values)
    stored = values.astype(np.int32) if scalar is Scalar.DATE else values
    return _from_numpy(stored, column).view(target), bad if bad.any() else None


def _whole_dates(column: pa.Array, scalar: Scalar, target: pa.DataType) -> tuple[pa.Array, Bools | None]:
    outside = outside_years(column, scalar)
    if outside is not None:
        column = pc.if_else(pa.array(outside), pa.scalar(0, pa.int64()), column)
    return column.cast(_STORAGE[scalar]).view(target), outside


def outside_years(column: pa.Array, scalar: Scalar) -> Bools | None:
    """Rows of a column of whole days or milliseconds that lie outside of the years 1 to 9999; None: no row does."""
    low, high = DATE_BOUNDS[scalar]
    limits = pc.min_max(column)
    if limits["min"].as_py() is None or (limits["min"].as_py() >= low and limits["max"].as_py() <= high):
        return None
    outside: Bools = pc.or_(pc.less(column, low), pc.greater(column, high)).fill_null(False).to_numpy(False)
    return outside


def _blobs(column: pa.Array, name: str) -> tuple[pa.Array, Bools | None]:
    doubtful = np.zeros(len(column), dtype=bool)
    blobs: list[dict[str, object] | None] = []
    for row, text in enumerate(column.to_pylist()):
        try:
            blobs.append(None if text is None else read_blob(name, text))
        except BadValueError:
            blobs.append(None)
            doubtful[row] = True
    return pa.array(blobs, BLOB), doubtful if doubtful.any() else None


def _vectors(column: pa.Array, target: pa.FixedSizeListType) -> tuple[pa.Array, Bools | None]:
    size = target.list_size
    lengths = column.value_lengths()
    wrong = pc.not_equal(lengths, size).fill_null(False).to_numpy(zero_copy_only=False)
    items, doubtful_items = _floats(column.values, Scalar.F32, target.value_type)
    if column.values.null_count:
        missing = ~_valid(column.values)
        doubtful_items = missing if doubtful_items is None else doubtful_items | missing
    doubtful = rows_of_items(column, doubtful_items)
    if wrong.any():
        doubtful = wrong if doubtful is None else doubtful | wrong
    if doubtful is None and not column.null_count:
        start = column.offsets[0].as_py()
        return pa.FixedSizeListArray.from_arrays(items.slice(start, len(column) * size), type=target), None
    return _padded_vectors(column, items, target, doubtful), doubtful


def _padded_vectors(
    column: pa.Array, items: pa.Array, target: pa.FixedSizeListType, doubtful: Bools | None
) -> pa.Array:
    """Vectors of a column with null (or doubtful) rows, which need items too."""
    size = target.list_size
    present = _valid(column)
    if doubtful is not None:
        present &= ~doubtful
    starts = np.asarray(column.offsets)[:-1][present].astype(np.int64)
    wanted = pa.array((starts[:, None] + np.arange(size)).ravel())
    full = np.zeros((len(column), size), dtype=np.float32)
    full[present] = items.take(wanted).to_numpy(zero_copy_only=False).reshape(len(starts), size)
    # Null vectors have null children, as the reference engine writes them.
    children = pa.array(full.ravel(), mask=np.repeat(~present, size))
    return pa.FixedSizeListArray.from_arrays(children, type=target, mask=pa.array(~present))


def with_items(lists: pa.Array, items: pa.Array, target: pa.DataType) -> pa.Array:
    """The same lists with other items. `items` runs along `lists.values`."""
    mask = lists.is_null() if lists.null_count else None
    # Arrow takes no mask with offsets that are a part of an array; seen through numpy they are an array of their own.
    offsets = pa.array(np.asarray(lists.offsets))
    return pa.ListArray.from_arrays(offsets, items, type=target, mask=mask)


def rows_of_items(lists: pa.Array, doubtful: Bools | None) -> Bools | None:
    """Rows that hold a doubtful item."""
    if doubtful is None:
        return None
    before = np.concatenate([[0], np.cumsum(doubtful)])
    offsets = np.asarray(lists.offsets)
    rows: Bools = before[offsets[1:]] > before[offsets[:-1]]
    return _doubt(lists, rows)
