"""From filled variables to the rows of an answer: aggregates, rankings, order, limit, columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from spark_omnigraph.catalog.types import Catalog, Scalar
from spark_omnigraph.lang.gq.check.scope import declared_params
from spark_omnigraph.lang.gq.syntax.ast import (
    AggregateCall,
    AliasReference,
    Bm25Call,
    Expr,
    Item,
    Literal,
    NearestCall,
    PropertyAccess,
    Query,
    Read,
    RrfCall,
    Variable,
)
from tests.oracle.evaluate import AmbiguousError, Evaluator, Filled, property_type, tokens
from tests.oracle.values import Stored, sort_rows
from tests.oracle.walks import Rows

_CANCELLED = 100.0


@dataclass(frozen=True)
class Answer:
    """Columns and printed rows. `ordered` says whether their order is fixed; `limit` how many are asked for if any of
    them will do.
    """

    columns: list[str]
    rows: list[tuple[Stored, ...]]
    ordered: bool
    limit: int | None


def answer(catalog: Catalog, rows: Rows, query: Query, params: Mapping[str, Stored]) -> Answer:
    """What a well-typed read query asks of the rows."""
    assert isinstance(query.body, Read)
    return _Asked(Evaluator(catalog, rows, params), query, query.body).answer()


@dataclass
class _Asked:
    of: Evaluator
    query: Query
    body: Read

    def answer(self) -> Answer:
        filled = self.of.match(self.body.match)
        columns = [self._name(item) for item in self.body.returns]
        if any(isinstance(item.value, AggregateCall) for item in self.body.returns):
            return self._aggregated(columns, filled)
        first = self._resolved(self.body.order[0].by) if self.body.order else None
        if isinstance(first, Bm25Call):
            filled = [row for row in filled if self._matches(first, row)]
            return self._cut(columns, self._printed(filled), False)
        if isinstance(first, NearestCall):
            filled = self._nearest(first, filled)
            return Answer(columns, self._printed(filled[: self.body.limit]), True, None)
        if isinstance(first, RrfCall):
            return Answer(columns, self._printed(self._fused(first, filled)), True, None)
        if not self.body.order:
            return self._cut(columns, self._printed(filled), False)
        return self._cut(columns, self._printed(self._sorted(filled, 0)), True)

    def _cut(self, columns: list[str], rows: list[tuple[Stored, ...]], ordered: bool) -> Answer:
        if ordered:
            return Answer(columns, rows[: self.body.limit], True, None)
        return Answer(columns, rows, False, self.body.limit)

    # --- columns

    def _name(self, item: Item) -> str:
        if item.alias is not None:
            return item.alias.text
        part = item.value.argument if isinstance(item.value, AggregateCall) else item.value
        if isinstance(part, PropertyAccess):
            return f"{part.variable.text}.{part.property.text}"
        if isinstance(part, Variable):
            return part.name.text
        return "literal" if isinstance(part, Literal) else "nearest"

    def _value(self, part: Expr, row: Filled) -> Stored:
        return self._distance(part, row) if isinstance(part, NearestCall) else self.of.value(part, row)

    def _printed(self, filled: list[Filled]) -> list[tuple[Stored, ...]]:
        return [
            tuple(printed(self._value(i.value, row), self._scalar(i.value, row)) for i in self.body.returns)
            for row in filled
        ]

    def _scalar(self, part: Expr, row: Filled) -> Scalar | None:
        if isinstance(part, PropertyAccess):
            entity = row[part.variable.text]
            return property_type(self.of.catalog, entity.kind, part.property.text).scalar
        if isinstance(part, Variable) and part.name.text not in row:
            return declared_params(self.query)[part.name.text].scalar
        return part.type.scalar if isinstance(part, Literal) else None

    # --- order

    def _resolved(self, part: Expr) -> Expr:
        """What an alias stands for."""
        if isinstance(part, AliasReference):
            return next(i.value for i in self.body.returns if i.alias is not None and i.alias.text == part.name.text)
        return part

    def _sorted(self, filled: list[Filled], first: int) -> list[Filled]:
        """By the keys from `first` on, then by the ids of the variables in order of their names."""
        keys = []
        for key in self.body.order[first:]:
            part = self._resolved(key.by)
            keys.append((lambda row, part=part: self._value(part, row), key.descending))
        names = sorted(filled[0]) if filled else []
        keys.extend((lambda row, name=name: row[name].id, False) for name in names)
        return sort_rows(filled, keys)

    # --- rankings

    def _distance(self, call: NearestCall, row: Filled) -> Stored:
        stored, query = self.of.value(call.target, row), self.of.value(call.query, row)
        return None if stored is None else float(sum((a - b) ** 2 for a, b in zip(stored, query, strict=True)))

    def _nearest(self, call: NearestCall, filled: list[Filled]) -> list[Filled]:
        ranked = [row for row in filled if self._distance(call, row) is not None]
        return sorted(self._sorted(ranked, 1), key=lambda row: self._distance(call, row))

    def _matches(self, call: Bm25Call, row: Filled) -> bool:
        text, query = self.of.value(call.field, row), self.of.value(call.query, row)
        return text is not None and bool(tokens(text) & tokens(query))

    def _fused(self, call: RrfCall, filled: list[Filled]) -> list[Filled]:
        k = 60 if call.k is None else self.of.value(call.k, {})
        limit = self.body.limit
        assert isinstance(call.primary, NearestCall)
        assert isinstance(call.secondary, NearestCall)
        name = call.primary.target.variable.text
        scores: dict[str, float] = {}
        first: dict[str, Filled] = {}
        for arm in (call.primary, call.secondary):
            ranked: dict[str, Filled] = {}
            for row in self._nearest(arm, filled)[:limit]:
                ranked.setdefault(row[name].id, row)
            for place, (key, row) in enumerate(ranked.items()):
                scores[key] = scores.get(key, 0.0) + 1.0 / (k + place + 1)
                first.setdefault(key, row)
        best = sorted(first, key=lambda key: -scores[key])
        return [first[key] for key in best][:limit]

    # --- aggregates

    def _aggregated(self, columns: list[str], filled: list[Filled]) -> Answer:
        items = self.body.returns
        keys = [i.value for i in items if not isinstance(i.value, AggregateCall)]
        groups: dict[tuple[Stored, ...], list[Filled]] = {} if keys else {(): []}
        for row in filled:
            groups.setdefault(tuple(self.of.value(part, row) for part in keys), []).append(row)
        rows = []
        for group, members in groups.items():
            given = iter(group)
            values = []
            for item in items:
                call = item.value
                values.append(self._summary(call, members) if isinstance(call, AggregateCall) else next(given))
            rows.append(tuple(values))
        if self.body.order:
            rows = self._sorted_groups(columns, rows)
        if filled:
            scalars = [self._item_scalar(item.value, filled[0]) for item in items]
            rows = [tuple(printed(v, s) for v, s in zip(row, scalars, strict=True)) for row in rows]
        return self._cut(columns, rows, bool(self.body.order))

    def _item_scalar(self, part: Expr, row: Filled) -> Scalar | None:
        if not isinstance(part, AggregateCall):
            return self._scalar(part, row)
        return self._scalar(part.argument, row) if part.function.value in ("min", "max") else None

    def _summary(self, call: AggregateCall, members: list[Filled]) -> Stored:
        values = [v for v in (self.of.value(call.argument, row) for row in members) if v is not None]
        function = call.function.value
        if function == "count":
            return len(values)
        if not values:
            return None
        if function in ("min", "max"):
            return min(values) if function == "min" else max(values)
        total = math.fsum(values)
        if abs(total) * _CANCELLED < math.fsum(map(abs, values)):
            raise AmbiguousError  # large numbers cancel, and what is left depends on the order of adding
        return total if function == "sum" else total / len(values)

    def _sorted_groups(self, columns: list[str], rows: list[tuple[Stored, ...]]) -> list[tuple[Stored, ...]]:
        keys = []
        for key in self.body.order:
            if isinstance(key.by, AliasReference):
                place = columns.index(key.by.name.text)
            else:
                assert isinstance(key.by, PropertyAccess)
                place = columns.index(f"{key.by.variable.text}.{key.by.property.text}")
            keys.append((lambda row, place=place: row[place], key.descending))
        keys.extend((lambda row, place=place: row[place], False) for place in range(len(columns)))
        return sort_rows(rows, keys)


def printed(value: Stored, scalar: Scalar | None) -> Stored:
    """A value as JSON has it; lists become tuples.

    >>> printed(1, Scalar.DATE), printed(-1, Scalar.DATETIME)
    ('1970-01-02', '1969-12-31T23:59:59.999Z')
    """
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(printed(item, scalar) for item in value)
    if scalar is Scalar.DATE:
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    if scalar is Scalar.DATETIME:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=value)  # noqa: DTZ001 - UTC throughout
        return f"{moment.isoformat(timespec='milliseconds')}Z"
    return value
