"""The predicate of an update or a delete, exact for the type of its column, over stored rows and rows in memory.

A literal is put into the column's type without loss, so that Lance can use an index: where no stored value can equal
it, the comparison moves to the nearest value that the column can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import EntityType, PropType, Scalar
from spark_omnigraph.engine.compare import normal
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.plan import Column, Comparison, Constant
from spark_omnigraph.records.columns import python_column
from spark_omnigraph.records.json_numbers import INTEGER_RANGES

_INTEGERS = {Scalar.DATE: Scalar.I32, Scalar.DATETIME: Scalar.I64}
_EVERY = "every"
_NONE = "none"
_BOOLEANS: dict[str, Callable[[bool, bool], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_ARROW = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_CASTS = {
    Scalar.DATE: "Date32",
    Scalar.DATETIME: "Date64",
    Scalar.F32: "Float32",
    Scalar.F64: "Float64",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """`column operator operand`; null never matches. Without an operand every value matches, or none does."""

    column: str
    type: PropType
    operator: str
    operand: str | int | float | bool | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no row can match."""
        return self.operator == _NONE

    def sql(self) -> str:
        """The condition for Lance."""
        if self.operator == _NONE:
            return "false"
        name = f"`{self.column}`"
        return f"{name} IS NOT NULL" if self.operator == _EVERY else f"{name} {self.operator} {self._literal()}"

    def mask(self, rows: pa.Table) -> pa.ChunkedArray:
        """Which rows match."""
        column = rows.column(self.column)
        if self.operator == _NONE:
            return pa.chunked_array([pa.array(np.zeros(len(column), dtype=bool))])
        if self.operator == _EVERY:
            return column.is_valid()
        operand = python_column(self.type, [self.operand])[0]
        return _ARROW[self.operator](column, operand).fill_null(False)

    def _literal(self) -> str:
        value, scalar = self.operand, self.type.scalar
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, int) and scalar not in _CASTS:
            # The negative limit of 64 bits would be read as the negation of a number that does not fit.
            return f"({value + 1} - 1)" if value == -(2**63) else str(value)
        if isinstance(value, float) and math.isinf(value):
            return f"arrow_cast(CAST('{value}' AS DOUBLE), '{_CASTS[scalar]}')"
        return f"arrow_cast({value!r}, '{_CASTS[scalar]}')"


def condition(entity: EntityType, predicate: Comparison) -> Condition:
    """The condition that a checked predicate of a mutation means, its parameters bound."""
    predicate = normal(predicate)
    column = predicate.left
    if not isinstance(column, Column) or not isinstance(predicate.right, Constant):
        raise InternalError("a predicate of a mutation compares a column with a value")
    ptype, operator, value = column.type, str(predicate.comparator), predicate.right.value
    if value is None:
        return Condition(column.name, ptype, _NONE)
    if isinstance(value, bool):
        return _of_booleans(column.name, ptype, operator, value)
    if isinstance(value, int | float):
        return _of_numbers(column.name, ptype, operator, value)
    if isinstance(value, str):
        # A text key is stored in the id too, and only there an index answers comparisons.
        name = "id" if entity.key == (column.name,) else column.name
        return Condition(name, ptype, operator, value)
    raise InternalError(f"'{column.name}' was compared with a list")


def _of_booleans(column: str, ptype: PropType, operator: str, value: bool) -> Condition:
    """False comes before true."""
    matching = [stored for stored in (False, True) if _BOOLEANS[operator](stored, value)]
    if len(matching) == 1:
        return Condition(column, ptype, "=", matching[0])
    return Condition(column, ptype, _EVERY if matching else _NONE)


def _of_numbers(column: str, ptype: PropType, operator: str, value: int | float) -> Condition:
    if value != value:
        return Condition(column, ptype, _EVERY if operator == "!=" else _NONE)
    stored = _nearest(ptype.scalar, value)
    if stored == value:
        return Condition(column, ptype, operator, stored)
    if operator in ("=", "!="):
        return Condition(column, ptype, _EVERY if operator == "!=" else _NONE)
    if operator in ("<", "<="):
        return Condition(column, ptype, "<=" if stored < value else "<", stored)
    return Condition(column, ptype, ">" if stored < value else ">=", stored)


def _nearest(scalar: Scalar, value: int | float) -> int | float:
    """A value of the column's type with none between it and `value`."""
    if scalar is Scalar.F64:
        return float(value)
    if scalar is Scalar.F32:
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    low, high = INTEGER_RANGES[_INTEGERS.get(scalar, scalar)]
    return math.floor(min(max(value, low), high))
