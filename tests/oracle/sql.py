"""A random grammar of SQL selects, and what each means in plain Python: joins by loops, three truth values."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import product

Value = str | int | float | None
Row = Mapping[str, Value]
Truth = bool | None
"""None is unknown."""
Tables = Mapping[str, Mapping[str, Sequence[Row]]]
"""Rows by schema and table."""

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "Person": {"id": "text", "name": "text", "age": "int", "city": "text", "score": "float"},
    "Knows": {"id": "edge", "src": "text", "dst": "text", "weight": "int"},
}
POOL: Mapping[str, Sequence[Value]] = {
    "text": ["a", "b", "c", "Zürich", "rome", "", "d'or"],
    "int": [-1, 0, 1, 2, 3, 2**31 - 1],
    "float": [-0.5, 0.0, 0.25, 1.5, 1e300],
}
_COMPARED: Mapping[str, Callable[[int], bool]] = {
    "=": lambda c: c == 0,
    "<>": lambda c: c != 0,
    "<": lambda c: c < 0,
    "<=": lambda c: c <= 0,
    ">": lambda c: c > 0,
    ">=": lambda c: c >= 0,
}


def order(a: Value, b: Value) -> int:
    """Of two values of one kind; texts by their bytes."""
    if isinstance(a, str) and isinstance(b, str):
        x, y = a.encode(), b.encode()
        return (x > y) - (x < y)
    assert isinstance(a, (int, float))
    assert isinstance(b, (int, float))
    return (a > b) - (a < b)


@dataclass(frozen=True)
class Term:
    """A column (`p.age`) or a value, as SQL writes it and as it is."""

    sql: str
    kind: str
    of: Callable[[Row], Value]


@dataclass(frozen=True)
class Condition:
    """A predicate with three truth values."""

    sql: str
    holds: Callable[[Row], Truth]


@dataclass(frozen=True)
class Select:
    """A statement, its answer, and how many of its rows must stand in order (all, or none)."""

    sql: str
    rows: list[tuple[Value, ...]]
    is_ordered: bool


def literal(value: Value) -> str:
    if value is None:
        return "NULL"
    return f"'{value.replace(chr(39), chr(39) * 2)}'" if isinstance(value, str) else repr(value)


class Maker:
    """Random statements about `tables`."""

    def __init__(self, rng: random.Random, tables: Tables) -> None:
        self.rng = rng
        self.tables = tables

    def select(self) -> Select:
        source, rows, columns = self._source()
        if self.rng.random() < 0.7:
            where = self._condition(columns, 2)
            source += f" WHERE {where.sql}"
            rows = [row for row in rows if where.holds(row) is True]
        grouped = self.rng.random() < 0.45
        head, tail, answer = self._grouped(columns, rows) if grouped else self._plain(columns, rows)
        return self._finished(f"{head} FROM {source}{tail}", answer)

    def _source(self) -> tuple[str, list[Row], list[Term]]:
        """One to three tables, joined in each of the ways."""
        text, rows, columns = self._table("t0")
        for place in range(1, self.rng.choice([1, 2, 2, 3])):
            named, others, new = self._table(f"t{place}")
            kind = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN", "CROSS JOIN"])
            if kind == "CROSS JOIN":
                text += f" CROSS JOIN {named}"
                rows = [{**a, **b} for a, b in product(rows, others)]
            else:
                on = self._joining(columns, new)
                text += f" {kind} {named} ON {on.sql}"
                rows = list(_joined(rows, others, on, [each.sql for each in new] if kind == "LEFT JOIN" else None))
            columns += new
        return text, rows, columns

    def _table(self, alias: str) -> tuple[str, list[Row], list[Term]]:
        schema, table = self.rng.choice(list(self.tables)), self.rng.choice(list(COLUMNS))
        rows: list[Row] = [
            {f"{alias}.{name}": value for name, value in row.items()} for row in self.tables[schema][table]
        ]
        columns = [_column(alias, name, kind) for name, kind in COLUMNS[table].items()]
        return f'"{schema}".{table if self.rng.random() < 0.8 else _key(table)} {alias}', rows, columns

    def _joining(self, left: Sequence[Term], right: Sequence[Term]) -> Condition:
        pairs = [(a, b) for a, b in product(left, right) if a.kind == b.kind]
        a, b = self.rng.choice(pairs)
        equal = self._compared(a, "=", b)
        return equal if self.rng.random() < 0.7 else _both(equal, self._condition([*left, *right], 1), "AND")

    def _condition(self, columns: Sequence[Term], depth: int) -> Condition:
        if depth and self.rng.random() < 0.5:
            word = self.rng.choice(["AND", "OR"])
            return _both(self._condition(columns, depth - 1), self._condition(columns, depth - 1), word)
        if depth and self.rng.random() < 0.15:
            inner = self._condition(columns, depth - 1)
            return Condition(f"NOT ({inner.sql})", lambda row: _not(inner.holds(row)))
        return self._leaf(columns)

    def _leaf(self, columns: Sequence[Term]) -> Condition:
        term = self.rng.choice(columns)
        if term.kind == "edge" or self.rng.random() < 0.2:
            word = self.rng.choice(["IS NULL", "IS NOT NULL"])
            return Condition(f"{term.sql} {word}", lambda row: (term.of(row) is None) == (word == "IS NULL"))
        if self.rng.random() < 0.25:
            values = self.rng.sample(POOL[term.kind], 3)
            listed = ", ".join(map(literal, values))
            return Condition(f"{term.sql} IN ({listed})", lambda row: _among(term.of(row), values))
        same = [each for each in columns if each.kind == term.kind and each is not term]
        other = self.rng.choice(same) if same and self.rng.random() < 0.3 else _constant(self.rng, term.kind)
        return self._compared(term, self.rng.choice(list(_COMPARED)), other)

    def _compared(self, a: Term, word: str, b: Term) -> Condition:
        def holds(row: Row) -> Truth:
            x, y = a.of(row), b.of(row)
            return None if x is None or y is None else _COMPARED[word](order(x, y))

        return Condition(f"{a.sql} {word} {b.sql}", holds)

    def _plain(self, columns: Sequence[Term], rows: Iterable[Row]) -> tuple[str, str, list[tuple[Value, ...]]]:
        chosen = self.rng.sample(columns, self.rng.randint(1, min(4, len(columns))))
        found = [tuple(term.of(row) for term in chosen) for row in rows]
        distinct = self.rng.random() < 0.3
        if distinct:
            found = list(dict.fromkeys(found))
        return f"SELECT {'DISTINCT ' if distinct else ''}{_named(term.sql for term in chosen)}", "", found

    def _grouped(self, columns: Sequence[Term], rows: Iterable[Row]) -> tuple[str, str, list[tuple[Value, ...]]]:
        keys = self.rng.sample(columns, self.rng.randint(0, 2))
        groups: dict[tuple[Value, ...], list[Row]] = {} if keys else {(): []}
        for row in rows:
            groups.setdefault(tuple(term.of(row) for term in keys), []).append(row)
        parts = [self._aggregate(columns) for _ in range(self.rng.randint(1, 3))]
        tail = f" GROUP BY {', '.join(term.sql for term in keys)}" if keys else ""
        if self.rng.random() < 0.3:
            least = self.rng.randint(1, 3)
            tail += f" HAVING count(*) >= {least}"
            groups = {key: group for key, group in groups.items() if len(group) >= least}
        answer = [(*key, *(of(group) for _, of in parts)) for key, group in groups.items()]
        return f"SELECT {_named([*(term.sql for term in keys), *(text for text, _ in parts)])}", tail, answer

    def _aggregate(self, columns: Sequence[Term]) -> tuple[str, Callable[[Sequence[Row]], Value]]:
        term = self.rng.choice(columns)
        word = self.rng.choice(["count(*)", "count", "count(DISTINCT", "min", "max", "sum"])
        if word == "count(*)":
            return word, len
        if word.startswith("count"):
            among: Callable[[Iterable[Value]], Iterable[Value]] = set if "DISTINCT" in word else list
            text = f"{word} {term.sql})" if "DISTINCT" in word else f"count({term.sql})"
            return text, lambda group: len(list(among(_known(term, group))))
        numbers = [each for each in columns if each.kind == "int"]
        if word == "sum" and numbers:
            number = self.rng.choice(numbers)
            return f"sum({number.sql})", lambda group: _sum(_known(number, group))
        best = min if word == "min" else max
        key = cmp_to_key(order)
        return f"{best.__name__}({term.sql})", lambda group: best(_known(term, group), key=key, default=None)

    def _finished(self, text: str, answer: list[tuple[Value, ...]]) -> Select:
        """With an order of all columns, so that it is one order, and some of the rows; or as they come."""
        if not answer or self.rng.random() < 0.4:
            return Select(text, answer, False)
        places = list(range(len(answer[0])))
        self.rng.shuffle(places)
        downwards = {place: self.rng.random() < 0.5 for place in places}
        for place in reversed(places):
            answer = _sorted(answer, place, downwards[place])
        text += " ORDER BY " + ", ".join(f"c{place}{' DESC' * downwards[place]}" for place in places)
        if self.rng.random() < 0.5:
            start, count = self.rng.randint(0, 3), self.rng.randint(0, 5)
            text += f" LIMIT {count} OFFSET {start}"
            answer = answer[start : start + count]
        return Select(text, answer, True)


def _key(table: str) -> str:
    return f'"{"node" if table == "Person" else "edge"}:{table}"'


def _named(parts: Iterable[str]) -> str:
    return ", ".join(f"{part} AS c{place}" for place, part in enumerate(parts))


def _column(alias: str, name: str, kind: str) -> Term:
    full = f"{alias}.{name}"
    return Term(full, kind, lambda row: row[full])


def _constant(rng: random.Random, kind: str) -> Term:
    value = rng.choice(POOL[kind])
    return Term(literal(value), kind, lambda _: value)


def _joined(left: Iterable[Row], right: Sequence[Row], on: Condition, nulls: Sequence[str] | None) -> Iterable[Row]:
    """`nulls` are the columns of a row of the left side that finds none."""
    for row in left:
        pairs = [pair for other in right if on.holds(pair := {**row, **other}) is True]
        if not pairs and nulls is not None:
            pairs = [{**row, **dict.fromkeys(nulls)}]
        yield from pairs


def _both(a: Condition, b: Condition, word: str) -> Condition:
    decides = word == "OR"

    def holds(row: Row) -> Truth:
        found = {a.holds(row), b.holds(row)}
        if decides in found:
            return decides
        return None if None in found else not decides

    return Condition(f"({a.sql} {word} {b.sql})", holds)


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _among(value: Value, values: Sequence[Value]) -> Truth:
    return None if value is None else value in values


def _known(term: Term, group: Iterable[Row]) -> list[Value]:
    return [value for row in group if (value := term.of(row)) is not None]


def _sum(values: Iterable[Value]) -> Value:
    numbers = [value for value in values if isinstance(value, int)]
    return sum(numbers) if numbers else None


def _sorted(rows: list[tuple[Value, ...]], place: int, downwards: bool) -> list[tuple[Value, ...]]:
    """Stable, so that keys may be sorted one after the other; nulls are the greatest."""

    def compare(a: tuple[Value, ...], b: tuple[Value, ...]) -> int:
        x, y = a[place], b[place]
        if x is None or y is None:
            return (x is None) - (y is None)
        return order(x, y)

    return sorted(rows, key=cmp_to_key(compare), reverse=downwards)
