"""Checks that one batch of rows answers by itself: length of ids, required values, `@range`, `@check`, enums.

Uniqueness, endpoints and cardinality need the whole graph: see `probes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.types import Bound, Check, EntityType, NodeType, Property, Range, Scalar
from spark_omnigraph.errors import ConstraintError
from spark_omnigraph.validate.pattern import InvalidPatternError, Pattern

LONGEST_ID = 8192
"""Bytes in UTF-8 of an id, and so of a key, `from` and `to`. No URL or path that is in use is longer, indexes of other
databases end near it, and a page of an index, which holds 4,096 ids, stays within 32 MB.
"""
_ID_COLUMNS = {"id": "id", "src": "from", "dst": "to"}


@dataclass(frozen=True, slots=True)
class RowViolation:
    """A rule that a row breaks."""

    row: int
    field: str | None
    rule: Rule
    message: str


class BatchChecker:
    """Checks batches of one type. Patterns are compiled with the first batch; an invalid one does no harm before."""

    def __init__(self, entity: EntityType) -> None:
        is_node = isinstance(entity, NodeType)
        self._name = entity.name
        self._key = entity.key or () if isinstance(entity, NodeType) else ()
        self._required = [p for p in entity.properties if not p.type.nullable]
        self._ranges = [c for c in entity.constraints if isinstance(c, Range)] if is_node else []
        self._checks = [c for c in entity.constraints if isinstance(c, Check)] if is_node else []
        self._enums = [(p, pa.array(p.type.enum_values)) for p in entity.properties if p.type.enum_values is not None]
        self._patterns: list[Pattern] | None = None

    def check(self, table: pa.Table) -> list[RowViolation]:
        """Rules that rows break, by row; of one row a long id, required, then range, check, enum.

        Raises ConstraintError when a `@check` pattern of the type is no regular expression.
        """
        if self._patterns is None:
            self._patterns = [self._compiled(check) for check in self._checks]
        return sorted(self._violations(table, self._patterns), key=lambda violation: violation.row)

    def _compiled(self, check: Check) -> Pattern:
        try:
            return Pattern(check.pattern)
        except InvalidPatternError as error:
            message = f"@check on {self._name}.{check.property} has invalid regex '{check.pattern}': {error}"
            raise ConstraintError(message) from None

    def _violations(self, table: pa.Table, patterns: list[Pattern]) -> Iterator[RowViolation]:
        for name, member in _ID_COLUMNS.items():
            if name in table.column_names:
                yield from self._too_long(member, table.column(name))
        for prop in self._required:
            yield from self._missing(prop, table.column(prop.name))
        for bounds in self._ranges:
            yield from self._outside(bounds, table.column(bounds.property))
        for check, pattern in zip(self._checks, patterns, strict=True):
            yield from self._mismatches(check, pattern, table.column(check.property))
        for prop, allowed in self._enums:
            yield from self._not_allowed(prop, allowed, table.column(prop.name))

    def _too_long(self, member: str, column: pa.ChunkedArray) -> Iterator[RowViolation]:
        lengths = pc.binary_length(column)
        longest = pc.max(lengths).as_py()
        if longest is None or longest <= LONGEST_ID:
            return
        field = self._key[0] if member == "id" and len(self._key) == 1 else member
        what = f"the key of {self._name}" if member == "id" and self._key else f"'{member}' of {self._name}"
        for row in _rows(pc.greater(lengths, LONGEST_ID)):
            message = f"{what} has {lengths[row].as_py()} bytes; ids and keys may have {LONGEST_ID}"
            yield RowViolation(row, field, Rule.KEY_TOO_LONG, message)

    def _missing(self, prop: Property, column: pa.ChunkedArray) -> Iterator[RowViolation]:
        if not column.null_count:
            return
        kind = "vector " if prop.type.is_vector else "blob " if prop.type.scalar is Scalar.BLOB else ""
        reason = "null values" if kind else "null or invalid values: it is missing or null"
        message = f"non-nullable {kind}property '{prop.name}' has {reason}"
        for row in _rows(column.is_null()):
            yield RowViolation(row, prop.name, Rule.REQUIRED, message)

    def _outside(self, bounds: Range, column: pa.ChunkedArray) -> Iterator[RowViolation]:
        extremes = pc.min_max(column)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        has_nan = pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
        if not has_nan and (low is None or (_problem(low, bounds) is None and _problem(high, bounds) is None)):
            return
        place = f"@range violation on {self._name}.{bounds.property}"
        # Compared in Python: integers and floats of any size, exactly.
        for row, value in enumerate(column.to_pylist()):
            problem = None if value is None else _problem(value, bounds)
            if problem is not None:
                yield RowViolation(row, bounds.property, Rule.RANGE, f"{place}: {problem}")

    def _mismatches(self, check: Check, pattern: Pattern, column: pa.ChunkedArray) -> Iterator[RowViolation]:
        found = pattern.found_in(column)
        if pc.all(found).as_py() is not False:
            return
        for row in _rows(pc.invert(found).fill_null(False)):
            message = (
                f"@check violation on {self._name}.{check.property}: value '{column[row].as_py()}' "
                f"does not match pattern '{check.pattern}'"
            )
            yield RowViolation(row, check.property, Rule.CHECK, message)

    def _not_allowed(self, prop: Property, allowed: pa.Array, column: pa.ChunkedArray) -> Iterator[RowViolation]:
        known = pc.is_in(column, value_set=allowed)
        bad = pc.and_not(column.is_valid(), known)
        if not pc.any(bad).as_py():
            return
        expected = ", ".join(prop.type.enum_values or ())
        for row in _rows(bad):
            value = column[row].as_py()
            message = f"invalid enum value '{value}' for {self._name}.{prop.name} (expected: {expected})"
            yield RowViolation(row, prop.name, Rule.ENUM, message)


def _rows(mask: pa.ChunkedArray) -> list[int]:
    rows: list[int] = np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()
    return rows


def _problem(value: int | float, bounds: Range) -> str | None:
    if value != value:
        return "value is NaN"
    if bounds.min is not None and value < bounds.min:
        return f"value {number_text(value)} < min {number_text(bounds.min)}"
    if bounds.max is not None and value > bounds.max:
        return f"value {number_text(value)} > max {number_text(bounds.max)}"
    return None


def number_text(value: Bound) -> str:
    """A number for a message: shortest, without exponent, a whole float without fraction.

    >>> number_text(-1.75), number_text(3.0), number_text(120)
    ('-1.75', '3', '120')
    """
    if isinstance(value, int):
        return str(value)
    return str(np.format_float_positional(np.float64(value), unique=True, trim="-"))
