"""Predicates → Lance SQL, where that keeps every row that a predicate keeps.

A literal takes the exact type of the column when that loses nothing, so that scalar indexes are used; otherwise the
comparison is rewritten (`i >= 2.7` is `i >= 3`), decided here (`i32 < 3000000000`), or left to memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.lang.gq.exact import normalized
from spark_omnigraph.lang.gq.plan import Column, Comparator, Comparison, Constant, Predicate
from spark_omnigraph.predicates.condition import Condition, item_of, on_boolean, on_number, on_text
from spark_omnigraph.predicates.sql import NO_ROW, is_text_of, one_of, quote_name, quote_text

_FLOATS = (Scalar.F32, Scalar.F64)
_DATES = (Scalar.DATE, Scalar.DATETIME)


@dataclass(frozen=True, slots=True)
class Asked:
    """A predicate as Lance is asked for it: `where` is SQL (None: it cannot be said), `exact` whether that says all."""

    predicate: Predicate
    where: str | None
    exact: bool


@dataclass(frozen=True, slots=True)
class Pushed:
    """`where` is for Lance (None: all rows), `rest` must still be asked of the rows that come back."""

    where: str | None
    rest: tuple[Predicate, ...]

    @classmethod
    def of(cls, asked: Iterable[Asked]) -> Pushed:
        """All that can be said of some predicates."""
        listed = tuple(asked)
        terms = [a.where for a in listed if a.where is not None]
        rest = tuple(a.predicate for a in listed if a.where is None or not a.exact)
        return cls(" AND ".join(terms) or None, rest)


def ask(predicate: Predicate, stored: Collection[str], text_key: str | None = None) -> Asked:
    """What Lance can decide of a predicate of one variable. `stored` are the columns of the table's version;
    `text_key` is a String property that alone is the key: `id` has the same values, and an index for comparisons.
    """
    found = _term(predicate, stored, text_key) if isinstance(predicate, Comparison) else None
    return Asked(predicate, *(found if found is not None else (None, False)))


def _term(predicate: Comparison, stored: Collection[str], text_key: str | None) -> tuple[str, bool] | None:
    """SQL, and whether it says all; None when it cannot be said."""
    predicate = normalized(predicate)
    column, constant, comparator = predicate.left, predicate.right, predicate.comparator
    if comparator is Comparator.HAS_ITEM and isinstance(column, Constant) and isinstance(constant, Column):
        return _one_of(constant, column, stored, text_key)
    if not isinstance(column, Column) or not isinstance(constant, Constant):
        return None
    if constant.value is None or column.name not in stored:
        return NO_ROW, True
    name = "id" if column.name == text_key else column.name
    if comparator is Comparator.HAS_ITEM:
        return _item(name, column.type.scalar, constant)
    if comparator is Comparator.HAS_TEXT:
        return f"contains({quote_name(name)}, {quote_text(str(constant.value))})", True
    if comparator is Comparator.STARTS_WITH:
        return f"starts_with({quote_name(name)}, {quote_text(str(constant.value))})", True
    if column.type.is_list or column.type.is_vector:
        return None
    condition = _condition(name, column.type.scalar, str(comparator), constant)
    return (condition.sql, _says_all(condition)) if condition is not None else None


def _condition(name: str, scalar: Scalar, operator: str, constant: Constant) -> Condition | None:
    value = constant.value
    if scalar is Scalar.STRING and isinstance(value, str):
        return on_text(name, operator, value)
    if scalar is Scalar.BOOL and isinstance(value, bool):
        return on_boolean(name, operator, value)
    if (scalar.is_numeric or scalar in _DATES) and isinstance(value, int | float) and not isinstance(value, bool):
        return on_number(name, scalar, operator, value)
    return None


def _says_all(condition: Condition) -> bool:
    """Lance orders NaN above all numbers; rows are asked again where that could matter."""
    return condition.scalar not in _FLOATS or condition.operator not in ("!=", ">", ">=")


def _one_of(
    column: Column, constant: Constant, stored: Collection[str], text_key: str | None
) -> tuple[str, bool] | None:
    """A column whose value is an item of a constant list."""
    items = constant.value if isinstance(constant.value, tuple) else ()
    if not items or column.name not in stored:
        return NO_ROW, True
    name = "id" if column.name == text_key else column.name
    scalar = column.type.scalar
    if scalar is Scalar.STRING:
        return is_text_of(name, (item for item in items if isinstance(item, str))), True
    if not (scalar.is_integer or scalar in _DATES):
        return None
    whole = [item for item in items if isinstance(item, int) and not isinstance(item, bool)]
    if len(whole) < len(items):
        return None
    equal = (on_number(name, scalar, "=", item) for item in whole)
    return one_of(name, (each.literal for each in equal if not each.is_empty)), True


def _item(name: str, scalar: Scalar, constant: Constant) -> tuple[str, bool] | None:
    equal = _condition(name, scalar, "=", constant) if scalar is Scalar.STRING or scalar.is_integer else None
    return None if equal is None else (item_of(equal), True)
