"""Columns of texts that spell values → columns as stored, where that is sure; the row decoder has the last word."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import Property, Scalar
from spark_omnigraph.records.arrow_schema import property_type
from spark_omnigraph.records.columns import Bools, Reading
from spark_omnigraph.records.json_texts import BOOLS

_DATES = (Scalar.DATE, Scalar.DATETIME)
_WHOLE = "^-?[0-9]{1,18}$"
_REAL = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"


def takes_texts(prop: Property) -> bool:
    """Whether texts need a reader of their own to become values of a property."""
    return prop.type.scalar is not Scalar.STRING or prop.type.is_list


def from_texts(prop: Property, column: pa.Array) -> tuple[pa.Array, Bools | None]:
    """The stored column, and the rows of which the row decoder must say what they are."""
    scalar, column = prop.type.scalar, column.cast(pa.string())
    if prop.type.is_list or prop.type.is_vector or scalar is Scalar.BLOB:
        return _unread(column, property_type(prop.type))
    if scalar in _DATES:
        return Reading(prop).convert(column)
    if scalar is Scalar.BOOL:
        lower = pc.ascii_lower(column)
        sure = pc.is_in(lower, pa.array(list(BOOLS)))
        return _sure(pc.equal(lower, "true"), sure, column, pa.bool_())
    if scalar.is_integer:
        sure = pc.match_substring_regex(column, _WHOLE)
        whole, doubtful = _sure(column, sure, column, pa.int64())
        return _fitting(whole, doubtful, property_type(prop.type))
    sure = pc.match_substring_regex(column, _REAL)
    reals, doubtful = _sure(column, sure, column, pa.float64())
    stored, unsure = Reading(prop).convert(reals.fill_null(0.0))
    doubtful = unsure if doubtful is None else doubtful if unsure is None else doubtful | unsure
    return pc.if_else(reals.is_valid(), stored, pa.scalar(None, stored.type)), doubtful


def _unread(column: pa.Array, target: pa.DataType) -> tuple[pa.Array, Bools | None]:
    given: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    return pa.nulls(len(column), target), given if given.any() else None


def _sure(values: pa.Array, sure: pa.Array, column: pa.Array, target: pa.DataType) -> tuple[pa.Array, Bools | None]:
    """Values where they are sure, and the rows that have a value which is not."""
    sure = sure.fill_null(False)
    doubtful: Bools = pc.and_not(column.is_valid(), sure).to_numpy(zero_copy_only=False)
    return pc.if_else(sure, values, pa.scalar(None, values.type)).cast(target), doubtful if doubtful.any() else None


def _fitting(whole: pa.Array, doubtful: Bools | None, target: pa.DataType) -> tuple[pa.Array, Bools | None]:
    try:
        return whole.cast(target), doubtful
    except pa.ArrowInvalid:
        low, high = (
            (0, 2**target.bit_width - 1)
            if pa.types.is_unsigned_integer(target)
            else (-(2 ** (target.bit_width - 1)), 2 ** (target.bit_width - 1) - 1)
        )
        fits = np.array([v is not None and low <= v <= high for v in whole.to_pylist()])
        outside = ~fits & np.asarray(whole.is_valid())
        kept = pc.if_else(pa.array(fits), whole, pa.scalar(None, whole.type)).cast(target)
        return kept, outside if doubtful is None else doubtful | outside
