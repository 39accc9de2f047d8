"""The predicate of an update or a delete, exact for the type of its column, over stored rows and rows in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import EntityType, PropType
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.gq.exact import normalized
from spark_omnigraph.lang.gq.plan import Column, Comparison, Constant
from spark_omnigraph.predicates.condition import Condition, nothing, on_boolean, on_number, on_text
from spark_omnigraph.records.columns import python_column

_ARROW = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def mask(condition: Condition, rows: pa.Table) -> pa.ChunkedArray:
    """Which rows meet a condition."""
    column = rows.column(condition.column)
    if condition.is_empty:
        return pa.chunked_array([pa.array(np.zeros(len(column), dtype=bool))])
    if condition.is_every:
        return column.is_valid()
    operand = python_column(PropType(condition.scalar), [condition.operand])[0]
    return _ARROW[condition.operator](column, operand).fill_null(False)


def condition(entity: EntityType, predicate: Comparison) -> Condition:
    """The condition that a checked predicate of a mutation means, its parameters bound."""
    predicate = normalized(predicate)
    column = predicate.left
    if not isinstance(column, Column) or not isinstance(predicate.right, Constant):
        raise InternalError("a predicate of a mutation compares a column with a value")
    scalar, operator, value = column.type.scalar, str(predicate.comparator), predicate.right.value
    if value is None:
        return nothing(column.name, scalar)
    if isinstance(value, bool):
        return on_boolean(column.name, operator, value)
    if isinstance(value, int | float):
        return on_number(column.name, scalar, operator, value)
    if isinstance(value, str):
        # A text key is stored in the id too, and only there an index answers comparisons.
        return on_text("id" if entity.key == (column.name,) else column.name, operator, value)
    raise InternalError(f"'{column.name}' was compared with a list")
