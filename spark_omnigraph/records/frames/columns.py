"""Columns of a frame → columns as stored: which types a property takes, and rows whose value needs a closer look."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import INTEGER_RANGES, Property, Scalar
from spark_omnigraph.records.arrow_schema import BLOB, property_type
from spark_omnigraph.records.columns import Bools, Reading, outside_years, rows_of_items, with_items
from spark_omnigraph.records.frames.texts import from_texts, takes_texts
from spark_omnigraph.records.json_numbers import EXACT_INTEGERS
from spark_omnigraph.records.record_text import milliseconds

Converted = tuple[pa.Array, Bools | None]

_NUMBERS = (Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64)
_FLOATS = (Scalar.F32, Scalar.F64)


_TAKEN: Mapping[Scalar, str] = {
    Scalar.STRING: "string",
    Scalar.BOOL: "boolean",
    Scalar.DATE: "date",
    Scalar.DATETIME: "timestamp or timestamp_ntz",
    Scalar.F32: "float, double, any integer type or decimal",
    Scalar.F64: "float, double, any integer type or decimal",
    Scalar.BLOB: "binary",
}


def takes(prop: Property, column_type: pa.DataType, coerce: bool = False) -> bool:
    """Whether a property can be filled from a column of this type; single values may still not fit. With `coerce` from
    one of texts, too.
    """
    if pa.types.is_null(column_type) or (coerce and is_text(column_type)):
        return True
    if prop.type.is_vector:
        return _is_list(column_type) and _scalar_takes(Scalar.F32, column_type.value_type)
    if prop.type.is_list:
        return _is_list(column_type) and _scalar_takes(prop.type.scalar, column_type.value_type)
    return _scalar_takes(prop.type.scalar, column_type)


def columns_taken(prop: Property) -> str:
    """What `takes` lets pass, in words for a message."""
    if prop.type.is_vector:
        return "arrays of numbers"
    one = _TAKEN.get(prop.type.scalar, "any integer type or decimal")
    return f"arrays of {one}" if prop.type.is_list else one


def convert(prop: Property, column: pa.Array) -> Converted:
    """The stored column, and the rows (None: no row) of which the row decoder must say what is wrong."""
    target = property_type(prop.type)
    if is_text(column.type) and takes_texts(prop):
        return from_texts(prop, column)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), target), None
    if pa.types.is_large_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    if prop.type.is_vector:
        doubles = _doubles(column.values)
        return Reading(prop).convert(with_items(column, doubles, pa.list_(doubles.type)))
    if prop.type.is_list:
        items, doubtful = _convert_scalars(prop.type.scalar, column.values, target.value_type)
        return with_items(column, items, target), rows_of_items(column, doubtful)
    return _convert_scalars(prop.type.scalar, column, target)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _scalar_takes(scalar: Scalar, kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_null(kind):
        return True
    if scalar is Scalar.STRING:
        return is_text(kind)
    if scalar is Scalar.BLOB:
        return bool(types.is_binary(kind) or types.is_large_binary(kind))
    if scalar is Scalar.DATETIME:
        return bool(types.is_timestamp(kind))
    if scalar is Scalar.DATE:
        return bool(types.is_date32(kind))
    if scalar is Scalar.BOOL:
        return bool(types.is_boolean(kind))
    numbers = types.is_integer(kind) or types.is_decimal(kind)
    return bool(numbers or (scalar in _FLOATS and types.is_floating(kind)))


def _convert_scalars(scalar: Scalar, column: pa.Array, target: pa.DataType) -> Converted:
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), target), None
    if scalar in _NUMBERS:
        return _integers(column, scalar, target)
    if scalar in _FLOATS:
        return _floats(column, scalar, target)
    if scalar is Scalar.DATETIME:
        stored = milliseconds(column)
        return stored, outside_years(stored.view(pa.int64()), scalar)
    if scalar is Scalar.DATE:
        return column, outside_years(column.view(pa.int32()), scalar)
    if scalar is Scalar.BLOB:
        data = column.cast(pa.large_binary())
        uris = pa.nulls(len(column), pa.string())
        return pa.StructArray.from_arrays([data, uris], fields=list(BLOB), mask=column.is_null()), None
    return column.cast(target), None


def _integers(column: pa.Array, scalar: Scalar, target: pa.DataType) -> Converted:
    if column.type == target:
        return column, None
    if pa.types.is_decimal(column.type):
        return _from_decimals(column, scalar, target)
    try:
        return column.cast(target), None
    except pa.ArrowInvalid:
        low, high = (pa.scalar(bound, column.type) for bound in _common_range(scalar, column.type))
        return _split(column, pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high)), target)


def _from_decimals(column: pa.Array, scalar: Scalar, target: pa.DataType) -> Converted:
    try:
        return column.cast(target), None
    except pa.ArrowInvalid:
        low, high = INTEGER_RANGES[scalar]
        values = column.to_pylist()
        good = [v is not None and low <= v <= high and v == v.to_integral_value() for v in values]
        # One by one: Arrow's cast refuses numbers near the end of U64 that have many decimal places.
        kept = [int(v) if fits else None for v, fits in zip(values, good, strict=True)]
        return pa.array(kept, target), ~np.array(good, dtype=bool) & np.asarray(column.is_valid())


def _common_range(scalar: Scalar, kind: pa.DataType) -> tuple[int, int]:
    """The integers that both a property and a column of an integer type can hold."""
    low, high = INTEGER_RANGES[scalar]
    bits = kind.bit_width - 1 if pa.types.is_signed_integer(kind) else kind.bit_width
    return max(low, -(2**bits)) if pa.types.is_signed_integer(kind) else 0, min(high, 2**bits - 1)


def _split(column: pa.Array, good: pa.Array, target: pa.DataType) -> Converted:
    """Values that fit, and the rows whose value does not."""
    fits = np.asarray(good.fill_null(False))
    kept = pc.if_else(pa.array(fits), column, pa.scalar(None, column.type)).cast(target)
    return kept, ~fits & np.asarray(column.is_valid())


def _floats(column: pa.Array, scalar: Scalar, target: pa.DataType) -> Converted:
    if pa.types.is_floating(column.type):
        stored = column.cast(target, safe=False)
        # No record can carry a number that is not finite.
        doubtful = ~np.isfinite(np.asarray(stored.fill_null(0)))
    else:
        doubles = _doubles(column)
        stored = doubles.cast(target, safe=False)
        doubtful = np.abs(np.asarray(doubles.fill_null(0))) >= EXACT_INTEGERS[scalar]
    return stored, doubtful if doubtful.any() else None


def _doubles(column: pa.Array) -> pa.Array:
    """The nearest float of each number: of decimals by their text, since Arrow's own cast misses it by a bit."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    return column.cast(pa.float64(), safe=False)
