"""What searches of a bound plan look for, the same for every engine."""

from __future__ import annotations

from typing import cast

from spark_omnigraph.errors import BadRequestError, InternalError
from spark_omnigraph.lang.gq.plan import Column, Constant, Fuse, Operand


def text_of(query: Operand) -> str | None:
    """The text of a search; null matches nothing."""
    value = _value(query)
    return None if value is None else str(value)


def edits_of(operand: Operand | None) -> int:
    """How many edits a fuzzy search allows."""
    value = _value(operand)
    if not isinstance(value, int) or value < 0:
        raise BadRequestError(f"fuzzy max_edits must be a whole number from 0, got {value}")
    return value


def vector_of(column: Column, query: Operand) -> tuple[float, ...] | None:
    """The vector that those of a column are compared with, as wide as they are; None for null."""
    value = _value(query)
    if value is None:
        return None
    if isinstance(value, str):
        raise InternalError(f"nearest() on '{column.name}' is not bound to a vector")
    vector = cast("tuple[float, ...]", value)
    if column.type.dimension is not None and len(vector) != column.type.dimension:
        raise BadRequestError(
            f"nearest() on '{column.name}': expected {column.type.dimension} values, got {len(vector)}"
        )
    return vector


def fusion_k(fuse: Fuse) -> int:
    """The constant of a reciprocal rank fusion."""
    value = fuse.k.value if isinstance(fuse.k, Constant) else None
    if not isinstance(value, int) or value <= 0:
        raise BadRequestError(f"rrf k must be greater than 0, got {value}")
    return value


def _value(operand: Operand | None) -> object:
    if not isinstance(operand, Constant):
        raise InternalError("the query of a search is not bound to a value")
    return operand.value
