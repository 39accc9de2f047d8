"""Predicates from Python values: exact Lance SQL for a list of `(column, operator, value)`, all of which must hold.

A list travels to the data source as JSON (option `where`), and only there, where the catalog is at hand, becomes SQL:
the same value means different literals for different column types. Semantics are those of Spark's own filters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from spark_omnigraph.catalog.numbers import BEYOND, Real
from spark_omnigraph.catalog.types import EntityType, PropType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.predicates.condition import Condition
from spark_omnigraph.predicates.operands import StoredColumn, compare, list_has, text
from spark_omnigraph.predicates.sql import not_null, one_of, quote_text
from spark_omnigraph.words import nearest

_COMPARISONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_NULL_TESTS = ("is null", "is not null")
_TEXT_TESTS = {"starts with": "starts_with", "ends with": "ends_with", "contains": "contains"}
_OPERATORS = (*_COMPARISONS, "in", "not in", *_NULL_TESTS, *_TEXT_TESTS)


@dataclass(frozen=True, slots=True)
class Term:
    """One condition; `operator` is normalised, `value` is a JSON value (instants and dates are ISO text)."""

    column: str
    operator: str
    value: object = None


def where_json(terms: Iterable[Sequence[object]]) -> str:
    """Text of the option `where` for Python conditions such as `("born", "<", date(1990, 1, 1))`."""
    return json.dumps([[t.column, t.operator, t.value] for t in map(_term, terms)], ensure_ascii=False)


def parse_where(text: str) -> tuple[Term, ...]:
    """Conditions of the option `where`. Raises BadRequestError that says which of them is malformed."""
    try:
        raw = json.loads(text, parse_float=Real)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"option 'where' is not JSON: {error}") from error
    if not isinstance(raw, list):
        raise BadRequestError("option 'where' must be a JSON list of [column, operator, value]")
    return tuple(_term(item) for item in raw)


def where_sql(terms: Iterable[Term], entity: EntityType) -> str | None:
    """Lance SQL that keeps the rows for which all conditions hold; None when there is no condition."""
    parts = [_condition(term, entity) for term in terms]
    return " AND ".join(f"({part})" for part in parts) or None


def _term(item: object) -> Term:
    if not isinstance(item, (list, tuple)) or len(item) not in (2, 3) or not isinstance(item[0], str):
        raise BadRequestError(f"a condition is (column, operator, value), not {item!r}")
    column, word = item[0], str(item[1])
    operator = " ".join(word.lower().replace("_", " ").split())
    if operator not in _OPERATORS:
        raise BadRequestError(f"unknown operator '{word}' on '{column}'; known: {', '.join(_OPERATORS)}")
    value = _plain(item[2], column) if len(item) == 3 else None
    return Term(column, _COMPARISONS.get(operator, operator), _checked_value(column, operator, value))


def _checked_value(column: str, operator: str, value: object) -> object:
    if operator in _NULL_TESTS:
        if value is not None:
            raise BadRequestError(f"'{operator}' on '{column}' takes no value")
        return None
    if operator in ("in", "not in"):
        if not isinstance(value, list) or any(v is None for v in value):
            raise BadRequestError(f"'{operator}' on '{column}' takes a list of values, none of them null")
        return value
    if value is None:
        raise BadRequestError(f"'{operator}' on '{column}' has no value; use 'is null' or 'is not null'")
    return value


def _plain(value: object, column: str) -> object:
    """JSON form of a Python value."""
    if isinstance(value, int) and abs(value) >= BEYOND:
        raise BadRequestError(f"the number compared with '{column}' has too many digits")
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            raise BadRequestError(f"NaN cannot be compared with '{column}'")
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v, column) for v in value]
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise BadRequestError(f"the time compared with '{column}' has no zone; DateTime values are instants")
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    raise BadRequestError(f"a value of type {type(value).__name__} cannot be compared with '{column}'")


def _condition(term: Term, entity: EntityType) -> str:
    column = _column(term.column, entity)
    if column.type.scalar is Scalar.BLOB:
        raise BadRequestError(f"'{term.column}' is a Blob; blobs cannot be filtered")
    if term.operator in _NULL_TESTS:
        return f"{column.sql} {term.operator.upper()}"
    if column.type.is_list:
        return _list_condition(column, term)
    if column.type.is_vector:
        raise BadRequestError(f"'{term.column}' is a Vector; only 'is null' and 'is not null' apply")
    if term.operator in _TEXT_TESTS:
        if column.type.scalar is not Scalar.STRING:
            raise BadRequestError(f"'{term.operator}' needs a String or list column, '{term.column}' is neither")
        return f"{_TEXT_TESTS[term.operator]}({column.sql}, {quote_text(text(column, term.value))})"
    if term.operator in ("in", "not in"):
        return _membership(column, term)
    return compare(column, term.operator, term.value).sql


def _column(name: str, entity: EntityType) -> StoredColumn:
    if name in entity.identity:
        return StoredColumn(name, PropType(Scalar.STRING))
    found = entity.property(name)
    if found is None:
        hint, known = nearest(name, entity.columns), ", ".join(entity.columns)
        raise BadRequestError(f"'{entity.name}' has no column '{name}' to filter on{hint} (it has {known})")
    return StoredColumn(name, found.type)


def _membership(column: StoredColumn, term: Term) -> str:
    assert isinstance(term.value, list)
    alternatives = [compare(column, "=", value) for value in term.value]
    if term.operator == "in":
        return _any_of(column, alternatives)
    if not alternatives:
        return "true"
    return f"{not_null(column.name)} AND NOT ({_any_of(column, alternatives)})"


def _any_of(column: StoredColumn, alternatives: list[Condition]) -> str:
    """Equalities in one IN list, which an index serves at once; those that no row meets are left out."""
    return one_of(column.name, (each.literal for each in alternatives if not each.is_empty))


def _list_condition(column: StoredColumn, term: Term) -> str:
    if term.operator != "contains":
        raise BadRequestError(f"'{term.column}' is a list; only 'contains', 'is null' and 'is not null' apply")
    return list_has(column, term.value)
