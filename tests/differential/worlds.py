"""Random small graphs with a history: several loads, deleted and replaced rows, indexes in parts, a compaction."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.catalog.types import Catalog, PropType, Scalar
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.manifest.snapshot import Snapshot
from tests.oracle.evaluate import property_type
from tests.oracle.values import Stored, single
from tests.oracle.walks import Row, Rows

WORDS = ("wax", "fern", "moss", "bog", "elk", "Öl", "elks", "ferns")
PLAIN = (*WORDS[:5], "elks", "Ferns")
"""Words that are no stop words, and whose stems the oracle knows."""
ALIKE = ("wax", "wex", "fen", "mess", "bag", "bg", "elx", "ol", "fernx")
"""Words within a letter or two of others, which are their own stems."""
NOW = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=1_700_000_000_123)
"""What `now()` is: an instant that rows have, too."""

PROPERTIES = (
    ("t", "String"), ("i", "I32"), ("l", "I64"), ("u", "U32"), ("w", "U64"), ("f", "F32"), ("d", "F64"),
    ("b", "Bool"), ("day", "Date"), ("at", "DateTime"), ("e", "enum(x, y, z)"), ("ns", "[I32]"), ("ts", "[String]"),
    ("v", "Vector(2)"), ("camelCase", "I32"), ("order", "String"),
)  # laid out as a table  # fmt: skip
_VALUES: dict[Scalar, tuple[Stored, ...]] = {
    Scalar.BOOL: (True, False),
    Scalar.I32: (0, 1, 2, 3, -7, 2**31 - 1, -(2**31)),
    Scalar.I64: (0, 1, 2, 2**53 + 1, -(2**63), 2**63 - 1),
    Scalar.U32: (0, 1, 2, 2**32 - 1),
    Scalar.U64: (0, 1, 2, 2**53 + 1, 2**63, 2**64 - 1),
    Scalar.F32: (0.0, -0.0, 0.5, 1.0, 0.1, -2.5, 2.0**24),
    Scalar.F64: (0.0, -0.0, 0.5, 1.0, 0.1, 2.5, float(2**53), -1e300),
    Scalar.DATE: (0, 1, 19_000, -1),
    Scalar.DATETIME: (0, 1, 1_700_000_000_123, -1),
}


@dataclass(frozen=True)
class State:
    """A snapshot of both graphs, and the rows that it has to show."""

    name: str
    plain: Snapshot
    indexed: Snapshot
    rows: Rows


@dataclass
class World:
    """The same rows in a graph without indexes and in one with all of them."""

    catalog: Catalog
    schema: str
    plain: Graph
    indexed: Graph
    states: list[State] = field(default_factory=list)


def value_of(source: random.Random, of: PropType) -> Stored:
    """A value of a type, as it is stored; never null."""
    if of.is_vector:
        return tuple(float(source.randrange(4)) for _ in range(of.dimension or 0))
    if of.is_list:
        items = [value_of(source, PropType(of.scalar)) for _ in range(source.randrange(4))]
        return tuple(None if source.random() < 0.15 else item for item in items)
    if of.enum_values is not None:
        return source.choice(of.enum_values)
    if of.scalar is Scalar.STRING:
        return " ".join(source.choice(WORDS) for _ in range(source.choice((0, 1, 1, 2, 3))))
    found = source.choice(_VALUES[of.scalar])
    return single(found) if of.scalar is Scalar.F32 else found


def as_json(value: Stored, of: PropType) -> Stored:
    """A stored value as an input line or a parameter has it."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return [as_json(item, PropType(of.scalar)) for item in value]
    if of.scalar is Scalar.DATE:
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    if of.scalar is Scalar.DATETIME:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=value)  # noqa: DTZ001 - UTC throughout
        return f"{moment.isoformat(timespec='milliseconds')}Z"
    return value


def make_world(source: random.Random, folder: Path) -> World:
    """A world of a random schema with its states."""
    plain, indexed = _schema(source)
    graphs = Graph.init(folder / "plain", plain), Graph.init(folder / "indexed", indexed)
    catalog = compile_schema(plain)
    world = World(catalog, plain, *graphs)
    rows = Rows({name: {} for name in catalog.nodes}, {name: {} for name in catalog.edges})
    _load(world, _grown(source, catalog, rows), "append")
    _note(world, "first load", rows)
    _load(world, _grown(source, catalog, rows), "append")
    _load(world, _replaced(source, catalog, rows), "merge")
    _note(world, "three loads", rows)
    for statement in _removed(source, rows):
        for graph in graphs:
            graph.mutate(f"query m() {{ {statement} }}")
    _note(world, "deleted rows", rows)
    for number in range(2):
        world.indexed.ensure_indices()
        _note(world, f"extended indexes {number}", rows)
        _load(world, _replaced(source, catalog, rows), "merge")
        _note(world, f"replaced rows {number}", rows)
    world.indexed.ensure_indices()
    _note(world, "extended indexes again", rows)
    for graph in graphs:
        graph.optimize()
    _note(world, "compacted", rows)
    return world


def _note(world: World, name: str, rows: Rows) -> None:
    world.states.append(State(name, world.plain.snapshot(), world.indexed.snapshot(), copy.deepcopy(rows)))


def _load(world: World, lines: list[str], mode: str) -> None:
    world.plain.load(lines, mode, options=LoadOptions(build_indexes=False))
    world.indexed.load(lines, mode)


def _schema(source: random.Random) -> tuple[str, str]:
    """A schema without and with indexes. `A` has a text as key, `B` a number, `C` none, `D` a text and a number."""
    texts = {False: "", True: ""}
    types = {name: source.sample(PROPERTIES, source.randrange(5, 12)) for name in "ABCD"}
    edges = {name: source.sample(PROPERTIES[:13], source.randrange(3)) for name in ("Ab", "Ac", "Ad", "Self", "Loop")}
    for indexed in texts:
        shown = {
            name: "  ".join(f"{p}: {of}?{_index(of) if indexed else ''}" for p, of in properties)
            for name, properties in {**types, **edges}.items()
        }
        texts[indexed] = "\n".join(
            [
                f"node A {{ name: String @key  {shown['A']} }}",
                f"node B {{ num: I32 @key  {shown['B']} }}",
                f"node C {{ {shown['C']} }}",
                f"node D {{ part: String  place: I32  @key(part, place)  {shown['D']} }}",
                f"edge Ab: A -> B {{ {shown['Ab']} }}",
                f"edge Ac: C -> A {{ {shown['Ac']} }}",
                f"edge Ad: A -> D {{ {shown['Ad']} }}",
                f"edge Self: A -> A {{ {shown['Self']} }}",
                f"edge Loop: B -> B {{ {shown['Loop']} }}",
            ]
        )
    return texts[False], texts[True]


def _index(of: str) -> str:
    return "" if of.startswith("[") else " @index"


def _grown(source: random.Random, catalog: Catalog, rows: Rows) -> list[str]:
    """Input lines of new nodes and edges, which also go into `rows`."""
    lines = []
    for name, node in catalog.nodes.items():
        there = rows.nodes[name]
        for _ in range(source.choice((1, 3, 5, 6))):
            number = len(there)
            row: Row = {p.name: _or_null(source, p.type) for p in node.properties}
            part = source.choice(("x", 'y"z', ""))
            composite = json.dumps([part, str(number)], separators=(",", ":"))
            key = {"A": f"a{number}", "B": str(number), "C": f"c{number}", "D": composite}[name]
            keys: dict[str, Row] = {"A": {"name": key}, "B": {"num": number}, "D": {"part": part, "place": number}}
            row |= keys.get(name, {})
            there[key] = row
            lines.append(_node_line(catalog, name, key, row))
    for name, edge in catalog.edges.items():
        ends = list(rows.nodes[edge.from_type]), list(rows.nodes[edge.to_type])
        for _ in range(source.choice((2, 5, 9)) if all(ends) else 0):
            made = rows.edges[name]
            src = source.choice(ends[0])
            dst = src if edge.from_type == edge.to_type and source.random() < 0.15 else source.choice(ends[1])
            key = f"{name}-{len(made):03d}"
            made[key] = {p.name: _or_null(source, p.type) for p in edge.properties}
            data = {"id": key, **{n: as_json(v, property_type(catalog, name, n)) for n, v in made[key].items()}}
            made[key] |= {"src": src, "dst": dst}
            lines.append(json.dumps({"edge": name, "from": src, "to": dst, "data": data}))
    return lines


def _node_line(catalog: Catalog, name: str, key: str, row: Row) -> str:
    data = {n: as_json(v, property_type(catalog, name, n)) for n, v in row.items()}
    return json.dumps({"type": name, "data": data if name != "C" else {"id": key, **data}})


def _or_null(source: random.Random, of: PropType) -> Stored:
    return None if of.nullable and source.random() < 0.25 else value_of(source, of)


def _replaced(source: random.Random, catalog: Catalog, rows: Rows) -> list[str]:
    lines = []
    for name in "ABD":
        for key in source.sample(sorted(rows.nodes[name]), min(2, len(rows.nodes[name]))):
            row = rows.nodes[name][key]
            for prop in catalog.nodes[name].properties:
                if prop.name not in ("name", "num", "part", "place"):
                    row[prop.name] = _or_null(source, prop.type)
            lines.append(_node_line(catalog, name, key, row))
    return lines


def _removed(source: random.Random, rows: Rows) -> list[str]:
    """Statements that delete a node with its edges, and the edges of another; done to `rows` too."""
    statements = []
    if rows.nodes["A"]:
        key = source.choice(sorted(rows.nodes["A"]))
        statements.append(f'delete A where name = "{key}"')
        del rows.nodes["A"][key]
        for name, ends in (("Ab", ("src",)), ("Ac", ("dst",)), ("Ad", ("src",)), ("Self", ("src", "dst"))):
            rows.edges[name] = {k: r for k, r in rows.edges[name].items() if all(r[end] != key for end in ends)}
    if rows.nodes["B"]:
        key = source.choice(sorted(rows.nodes["B"]))
        statements.append(f'delete Loop where from = "{key}"')
        rows.edges["Loop"] = {k: r for k, r in rows.edges["Loop"].items() if r["src"] != key}
    return statements
