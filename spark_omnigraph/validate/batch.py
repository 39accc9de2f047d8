"""Checks that one batch of rows answers by itself: length of ids, required values, `@range`, `@check`, enums.

Uniqueness, endpoints and cardinality need the whole graph: see `probes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.types import GIVEN, Bound, Check, EntityType, NodeType, Property, Range, Scalar
from spark_omnigraph.errors import ConstraintError
from spark_omnigraph.redaction import cut
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


@dataclass(frozen=True, slots=True)
class BrokenRows:
    """The rows (int64[n], rising) that break one rule, and what to say of each, made when it is read."""

    field: str | None
    rule: Rule
    rows: npt.NDArray[np.int64]
    message: Callable[[int], str]

    def violations(self) -> Iterator[RowViolation]:
        for row in self.rows.tolist():
            yield RowViolation(row, self.field, self.rule, self.message(row))


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
        found = (violation for each in self.broken(table) for violation in each.violations())
        return sorted(found, key=lambda violation: violation.row)

    def broken(self, table: pa.Table) -> Iterator[BrokenRows]:
        """The same rule by rule. Raises what `check` raises."""
        if self._patterns is None:
            self._patterns = [self._compiled(check) for check in self._checks]
        return self._broken(table, self._patterns)

    def _compiled(self, check: Check) -> Pattern:
        try:
            return Pattern(check.pattern)
        except InvalidPatternError as error:
            message = f"@check on {self._name}.{check.property} has invalid regex '{check.pattern}': {error}"
            raise ConstraintError(message) from None

    def _broken(self, table: pa.Table, patterns: list[Pattern]) -> Iterator[BrokenRows]:
        names = frozenset(table.column_names)
        for name, member in _ID_COLUMNS.items():
            if name in names:
                yield from self._too_long(member, table.column(name))
        for prop in self._required:
            given = GIVEN + prop.name
            yield from self._missing(prop, table.column(prop.name), table.column(given) if given in names else None)
        for bounds in self._ranges:
            yield from self._outside(bounds, table.column(bounds.property))
        for check, pattern in zip(self._checks, patterns, strict=True):
            yield from self._mismatches(check, pattern, table.column(check.property))
        for prop, allowed in self._enums:
            yield from self._not_allowed(prop, allowed, table.column(prop.name))

    def _too_long(self, member: str, column: pa.ChunkedArray) -> Iterator[BrokenRows]:
        lengths = pc.binary_length(column)
        longest = pc.max(lengths).as_py()
        if longest is None or longest <= LONGEST_ID:
            return
        field = self._key[0] if member == "id" and len(self._key) == 1 else member
        what = f"the key of {self._name}" if member == "id" and self._key else f"'{member}' of {self._name}"

        def message(row: int) -> str:
            return f"{what} has {lengths[row].as_py()} bytes; ids and keys may have {LONGEST_ID}"

        yield BrokenRows(field, Rule.KEY_TOO_LONG, _rows(pc.greater(lengths, LONGEST_ID).fill_null(False)), message)

    def _missing(self, prop: Property, column: pa.ChunkedArray, given: pa.ChunkedArray | None) -> Iterator[BrokenRows]:
        """Rows without a value; of patches (`given` says whether they have the property) those that take it away."""
        if not column.null_count:
            return
        lacking = column.is_null() if given is None else pc.and_(column.is_null(), given)
        kind = "vector " if prop.type.is_vector else "blob " if prop.type.scalar is Scalar.BLOB else ""
        reason = "null values" if kind else "null or invalid values: it is missing or null"
        message = f"non-nullable {kind}property '{prop.name}' has {reason}"
        yield BrokenRows(prop.name, Rule.REQUIRED, _rows(lacking), lambda _: message)

    def _outside(self, bounds: Range, column: pa.ChunkedArray) -> Iterator[BrokenRows]:
        extremes = pc.min_max(column)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        has_nan = pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
        if not has_nan and (low is None or (_problem(low, bounds) is None and _problem(high, bounds) is None)):
            return
        place = f"@range violation on {self._name}.{bounds.property}"

        def message(row: int) -> str:
            return f"{place}: {_problem(column[row].as_py(), bounds)}"

        yield BrokenRows(bounds.property, Rule.RANGE, _rows(_is_outside(column, bounds)), message)

    def _mismatches(self, check: Check, pattern: Pattern, column: pa.ChunkedArray) -> Iterator[BrokenRows]:
        found = pattern.found_in(column)
        if pc.all(found).as_py() is not False:
            return

        def message(row: int) -> str:
            return (
                f"@check violation on {self._name}.{check.property}: value '{cut(column[row].as_py())}' "
                f"does not match pattern '{check.pattern}'"
            )

        yield BrokenRows(check.property, Rule.CHECK, _rows(pc.invert(found).fill_null(False)), message)

    def _not_allowed(self, prop: Property, allowed: pa.Array, column: pa.ChunkedArray) -> Iterator[BrokenRows]:
        known = pc.is_in(column, value_set=allowed)
        bad = pc.and_not(column.is_valid(), known)
        if not pc.any(bad).as_py():
            return
        expected = ", ".join(prop.type.enum_values or ())

        def message(row: int) -> str:
            return (
                f"invalid enum value '{cut(column[row].as_py())}' for {self._name}.{prop.name} (expected: {expected})"
            )

        yield BrokenRows(prop.name, Rule.ENUM, _rows(bad), message)


def _rows(mask: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _is_outside(column: pa.ChunkedArray, bounds: Range) -> pa.ChunkedArray:
    """Exact for integers and floats of any size: a bound becomes the nearest number of the column's type within it."""
    low = -math.inf if bounds.min is None else bounds.min
    high = math.inf if bounds.max is None else bounds.max
    if pa.types.is_floating(column.type):
        values = column.cast(pa.float64())
        low, high = _float_within(low, math.inf), _float_within(high, -math.inf)
    else:
        values, limits = column, np.iinfo(column.type.to_pandas_dtype())
        if low > limits.max or high < limits.min:
            return column.is_valid()
        low, high = math.ceil(max(low, limits.min)), math.floor(min(high, limits.max))
    ends = pa.scalar(low, values.type), pa.scalar(high, values.type)
    inside = pc.and_(pc.greater_equal(values, ends[0]), pc.less_equal(values, ends[1]))
    return pc.invert(inside).fill_null(False)


def _float_within(bound: Bound, toward: float) -> float:
    near = float(bound)
    is_within = near >= bound if toward > 0 else near <= bound
    return near if is_within else math.nextafter(near, toward)


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
