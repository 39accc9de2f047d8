"""Schemas at random, steps from one to another, and rows: from a seed, with what a naive reader says of every row.

`schema` draws types as plain values; `changed` takes some steps; `text` writes `.pg`; `rows` draws data of the first
schema. `refused` says in plain Python which rows the second schema refuses, from the values alone: no Arrow, no rule of
the package.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from spark_omnigraph import FromColumn

Value = Any
"""A JSON value: what a row has in a property depends on its type."""

SCALARS = ("String", "I32", "U32", "F32", "Bool", "Date")
WIDER = {"I32": ("I64", "F64"), "U32": ("I64", "U64"), "F32": ("F64",)}
NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
WORDS = ("ash", "birch", "cedar", "elm", "fir", "oak")
PATTERNS = ("^[a-e]", "r", "h$")


@dataclass
class Prop:
    """A property; `enum` lists its values, `rule` is a bound or a pattern, `old` its name before."""

    name: str
    kind: str
    nullable: bool = True
    enum: tuple[str, ...] | None = None
    unique: bool = False
    index: bool = False
    low: int | None = None
    high: int | None = None
    pattern: str | None = None
    old: str | None = None
    relaxed: bool = False
    fill: Value = None
    """The value that stored rows get, `@name` for another property's."""


@dataclass
class Type:
    """A node type, or an edge type between two (`ends`)."""

    name: str
    props: list[Prop] = field(default_factory=list)
    ends: tuple[str, str] | None = None
    card: tuple[int, int | None] = (0, None)
    old: str | None = None

    @property
    def key(self) -> str:
        return f"{'node' if self.ends is None else 'edge'}:{self.name}"


Schema = list[Type]
Rows = dict[str, list[dict[str, Value]]]
"""Rows by table key of the first schema; edges have `from` and `to`."""


def schema(rng: random.Random) -> Schema:
    """Two or three node types and one or two edge types."""
    nodes = [Type(name, _props(rng)) for name in ("Kite", "Reel", "Tail")[: rng.randint(2, 3)]]
    ends = [(rng.choice(nodes).name, rng.choice(nodes).name) for _ in range(rng.randint(1, 2))]
    edges = [Type(name, _props(rng, 2, True), pair) for name, pair in zip(("Uses", "Has"), ends, strict=False)]
    return [*nodes, *edges]


def _props(rng: random.Random, most: int = 5, of_edge: bool = False) -> list[Prop]:
    props = [_prop(rng, f"p{i}") for i in range(rng.randint(1, most))]
    return props if of_edge else [Prop("tag", "String", nullable=False), *props]


def _prop(rng: random.Random, name: str) -> Prop:
    kind = rng.choice(SCALARS)
    enum = tuple(sorted(rng.sample(WORDS, 3))) if kind == "String" and rng.random() < 0.3 else None
    return Prop(name, kind, nullable=rng.random() < 0.8, enum=enum)


def rows(rng: random.Random, types: Schema, most: int = 40) -> Rows:
    """Rows that the schema accepts: values repeat, and null is among them where it may be."""
    found: Rows = {}
    for each in types:
        ids = [f"{each.name.lower()}{i}" for i in range(rng.randint(0, most))]
        found[each.key] = [
            {p.name: ids[i] if p.name == "tag" else _value(rng, p) for p in each.props} | {"id": ids[i]}
            for i in range(len(ids))
        ]
    for each in types:
        if each.ends is not None:
            sources, targets = (found[f"node:{end}"] for end in each.ends)
            kept = found[each.key] if sources and targets else []
            for row in kept:
                row |= {"from": rng.choice(sources)["id"], "to": rng.choice(targets)["id"]}
            found[each.key] = kept
    return found


def _value(rng: random.Random, prop: Prop) -> Value:
    if prop.nullable and rng.random() < 0.2:
        return None
    if prop.enum is not None:
        return rng.choice(prop.enum)
    if prop.kind == "String":
        return rng.choice(WORDS)
    if prop.kind == "Bool":
        return rng.random() < 0.5
    if prop.kind == "Date":
        return f"2024-01-{rng.randint(1, 28):02}"
    if prop.kind == "F32":
        return rng.randint(-8, 40) / 4
    return rng.randint(0 if prop.kind.startswith("U") else -5, 20)


def records(data: Rows) -> list[str]:
    """The rows as JSON lines of a load."""
    lines = []
    for key, of_table in data.items():
        kind, name = key.split(":")
        for row in of_table:
            given = {member: value for member, value in row.items() if value is not None}
            if kind == "edge":
                ends = {"from": given.pop("from"), "to": given.pop("to")}
                lines.append(json.dumps({"edge": name, **ends, "data": given}))
            else:
                lines.append(json.dumps({"type": name, "data": given}))
    return lines


def changed(rng: random.Random, before: Schema, steps: int = 4) -> Schema:
    """A schema some steps later; every step is one that an apply can take, if the rows allow it."""
    after = deepcopy(before)
    for each in after:
        for prop in each.props:
            prop.old = None
    for _ in range(steps):
        each = rng.choice(after)
        rng.choice(_STEPS)(rng, each, after)
    return after


def _add(rng: random.Random, each: Type, _: Schema) -> None:
    prop = _prop(rng, f"q{sum(p.name.startswith('q') for p in each.props)}")
    if not prop.nullable or rng.random() < 0.5:
        prop.fill = _value(rng, Prop(prop.name, prop.kind, nullable=False, enum=prop.enum))
    texts = [p for p in each.props if p.kind == "String" and p.old is None and p.fill is None]
    if prop.kind == "String" and texts and rng.random() < 0.5:
        prop.fill = f"@{rng.choice(texts).name}"
    each.props.append(prop)


def _drop(rng: random.Random, each: Type, _: Schema) -> None:
    spare = [p for p in each.props if _is_stored(p) and not _is_read(each, p)]
    if spare:
        each.props.remove(rng.choice(spare))


def _rename(rng: random.Random, each: Type, _: Schema) -> None:
    spare = [p for p in each.props if _is_stored(p) and p.old is None and not _is_read(each, p)]
    if spare:
        prop = rng.choice(spare)
        prop.old, prop.name = prop.name, f"r{prop.name}"


def _rename_type(_: random.Random, each: Type, all_types: Schema) -> None:
    if each.old is not None:
        return
    each.old, each.name = each.name, f"{each.name}2"
    for edge in all_types:
        if edge.ends is not None and each.ends is None:
            edge.ends = tuple(each.name if end == each.old else end for end in edge.ends)  # type: ignore[assignment]  # a pair stays one


def _require(rng: random.Random, each: Type, _: Schema) -> None:
    nullable = [p for p in each.props if p.nullable and _is_stored(p) and not p.relaxed]
    if nullable:
        prop = rng.choice(nullable)
        prop.nullable = False
        if rng.random() < 0.5:
            prop.fill = _value(rng, prop)


def _relax(rng: random.Random, each: Type, _: Schema) -> None:
    required = [p for p in each.props if not p.nullable and _is_stored(p) and p.fill is None]
    if required:
        prop = rng.choice(required)
        prop.nullable = prop.relaxed = True


def _widen(rng: random.Random, each: Type, _: Schema) -> None:
    narrow = [p for p in each.props if p.kind in WIDER and _is_stored(p)]
    if narrow:
        prop = rng.choice(narrow)
        prop.kind = rng.choice(WIDER[prop.kind])


def _enum(rng: random.Random, each: Type, _: Schema) -> None:
    texts = [p for p in each.props if p.kind == "String" and _is_stored(p)]
    if texts:
        prop = rng.choice(texts)
        prop.enum = None if prop.enum is not None and rng.random() < 0.3 else tuple(sorted(rng.sample(WORDS, 4)))


def _rule(rng: random.Random, each: Type, _: Schema) -> None:
    spare = [p for p in each.props if p.name != "tag"]
    if not spare:
        return
    prop = rng.choice(spare)
    roll = rng.random()
    if roll < 0.4 and prop.kind != "Bool":
        prop.unique = True
    elif roll < 0.5:
        prop.index = True
    elif each.ends is None and prop.kind in NUMBERS:
        prop.low, prop.high = rng.randint(0, 4), rng.randint(5, 30)
    elif each.ends is None and prop.kind == "String":
        prop.pattern = rng.choice(PATTERNS)


def _card(rng: random.Random, each: Type, _: Schema) -> None:
    if each.ends is not None:
        each.card = (rng.randint(0, 2), rng.choice((None, 2, 3)))


_STEPS = (_add, _drop, _rename, _rename_type, _require, _relax, _widen, _enum, _rule, _rule, _card)


def _is_stored(prop: Prop) -> bool:
    """Whether the first schema has the property, apart from the key."""
    return not prop.name.startswith("q") and prop.name != "tag"


def _is_read(each: Type, prop: Prop) -> bool:
    """Whether another property takes its values from it."""
    return any(p.fill == f"@{prop.name}" for p in each.props)


def text(types: Schema) -> str:
    """The schema as `.pg`."""
    return "\n".join(map(_declaration, types))


def _declaration(each: Type) -> str:
    low, high = each.card
    head = f"node {each.name}" if each.ends is None else f"edge {each.name}: {each.ends[0]} -> {each.ends[1]}"
    if each.card != (0, None):
        head += f" @card({low}..{'' if high is None else high})"
    if each.old is not None:
        head += f' @rename_from("{each.old}")'
    body = [_property(prop) for prop in each.props]
    body += [f"@range({p.name}, {_bound(p, p.low)}..{_bound(p, p.high)})" for p in each.props if p.low is not None]
    body += [f'@check({p.name}, "{p.pattern}")' for p in each.props if p.pattern is not None]
    return f"{head} {{\n  " + "\n  ".join(body) + "\n}"


def _bound(prop: Prop, bound: int | None) -> str:
    return f"{bound}.0" if prop.kind.startswith("F") else str(bound)


def _property(prop: Prop) -> str:
    kind = prop.kind if prop.enum is None else f"enum({', '.join(prop.enum)})"
    marks = ["@key"] * (prop.name == "tag") + ["@unique"] * prop.unique + ["@index"] * prop.index
    if prop.old is not None:
        marks.append(f'@rename_from("{prop.old}")')
    return f"{prop.name}: {kind}{'?' * prop.nullable} {' '.join(marks)}".rstrip()


def values(types: Schema) -> dict[str, object]:
    """What stored rows are given, by `Type.prop`, as `Graph.plan_schema` takes it."""
    given = {f"{each.key}.{prop.name}": prop.fill for each in types for prop in each.props if prop.fill is not None}
    return {place: FromColumn(fill[1:]) if str(fill).startswith("@") else fill for place, fill in given.items()}


def migrated(before: Rows, after: Schema) -> Rows:
    """The rows as the new schema has them, by its table keys; types and properties that are gone are left out."""
    found: Rows = {}
    for each in after:
        old_key = each.key if each.old is None else each.key.replace(each.name, each.old)
        found[each.key] = [_row(row, each) for row in before.get(old_key, [])]
    return found


def _row(row: dict[str, Value], each: Type) -> dict[str, Value]:
    kept: dict[str, Value] = {name: row[name] for name in ("id", "from", "to") if name in row}
    for prop in each.props:
        value = row.get(prop.old or prop.name)
        if value is None and prop.fill is not None:
            value = row[prop.fill[1:]] if isinstance(prop.fill, str) and prop.fill.startswith("@") else prop.fill
        kept[prop.name] = value
    return kept


def refused(before: Schema, after: Schema, data: Rows) -> Iterator[tuple[str, str, str, int]]:
    """Rows that new rules refuse: table key, rule, property (empty for the edges of a source), how many. Rules that the
    old schema has too refuse none, for its rows keep them.
    """
    for each in after:
        old = next(
            (t for t in before if t.key.split(":")[0] == each.key.split(":")[0] and t.name in (each.old or each.name,)),
            None,
        )
        of_table = migrated(data, [each])[each.key]
        if old is None:
            continue
        for prop in each.props:
            had = next((p for p in old.props if p.name == (prop.old or prop.name)), None)
            for rule, count in _of_property(prop, had, [row[prop.name] for row in of_table]):
                yield each.key, rule, prop.name, count
        yield each.key, "cardinality", "", _of_edges(each, old, of_table)


def _of_property(prop: Prop, had: Prop | None, column: list[Value]) -> Iterator[tuple[str, int]]:
    given = [value for value in column if value is not None]
    if not prop.nullable:
        yield "required", len(column) - len(given)
    if prop.enum is not None:
        yield "enum", sum(value not in prop.enum for value in given)
    if prop.low is not None and prop.high is not None:
        yield "range", sum(not prop.low <= value <= prop.high for value in given)
    if prop.pattern is not None:
        yield "check", sum(re.search(prop.pattern, value) is None for value in given)
    if prop.unique and (prop.fill is not None or had is None or not had.unique):
        yield "unique", len(given) - len(set(given))


def _of_edges(each: Type, old: Type, of_table: list[dict[str, Value]]) -> int:
    if each.ends is None or each.card == old.card:
        return 0
    low, high = each.card
    edges: dict[str, int] = defaultdict(int, Counter(row["from"] for row in of_table))
    too_few = sum(count for count in edges.values() if count < low)
    return too_few + sum(count - high for count in edges.values() if high is not None and count > high and count >= low)
