"""Random queries of several statements against a small model in dictionaries: what they leave, what they count, and
that a query with a failing statement at any place leaves nothing.

`MUTATION_SEED` and `MUTATION_QUERIES` choose another run.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.errors import InputError

SEED = int(os.environ.get("MUTATION_SEED", "20261128"))
QUERIES = int(os.environ.get("MUTATION_QUERIES", "60"))

SCHEMA = """
node P { name: String @key  age: I32?  rate: F64?  mail: String? @unique  kind: enum(x, y)?  @range(age, 0..50) }
node N { text: String  pri: I32? }
edge K: P -> P @card(0..3) { w: I32? }
edge A: N -> P
"""
NAMES = [f"p{i}" for i in range(8)]
MAILS = [f"m{i}" for i in range(6)]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # numbers or texts on both sides
    "<=": lambda a, b: a <= b,  # numbers or texts on both sides
    ">": lambda a, b: a > b,  # numbers or texts on both sides
    ">=": lambda a, b: a >= b,  # numbers or texts on both sides
}
Row = dict[str, object]


class Refused(Exception):  # noqa: N818 - what the model says of a query, not a failure of the test
    """The model refuses the query."""


@dataclass
class Model:
    """Rows by type; those without a key, and edges, by a number that nobody sees."""

    rows: dict[str, dict[object, Row]] = field(default_factory=lambda: {"P": {}, "N": {}, "K": {}, "A": {}})
    nodes: int = 0
    edges: int = 0
    written_sources: set[object] = field(default_factory=set)
    made: int = 0

    def insert(self, kind: str, row: Row) -> None:
        self.made += 1
        self.rows[kind][row["name"] if kind == "P" else ("new", self.made)] = row
        self.nodes += 1

    def connect(self, kind: str, row: Row) -> None:
        source = "P" if kind == "K" else "N"
        if row["src"] not in self.rows[source] or row["dst"] not in self.rows["P"]:
            raise Refused
        self.made += 1
        self.rows[kind]["new", self.made] = row
        self.written_sources.add(row["src"])
        self.edges += 1

    def update(self, kind: str, values: Row, matches: Callable[[Row], bool]) -> None:
        for row in self.rows[kind].values():
            if matches(row):
                row.update(values)
                self.nodes += 1

    def delete(self, kind: str, matches: Callable[[Row], bool]) -> None:
        gone = [key for key, row in self.rows[kind].items() if matches(row)]
        for key in gone:
            del self.rows[kind][key]
        if kind in ("K", "A"):
            self.edges += len(gone)
            return
        self.nodes += len(gone)
        ends = {"P": (("K", "src"), ("K", "dst"), ("A", "dst")), "N": (("A", "src"),)}[kind]
        for edge, end in ends:
            for key in [key for key, row in self.rows[edge].items() if row[end] in gone]:
                del self.rows[edge][key]
                self.edges += 1

    def finish(self) -> None:
        """The rules that hold at the end."""
        people = list(self.rows["P"].values())
        mails = Counter(row["mail"] for row in people if row["mail"] is not None)
        if any(count > 1 for count in mails.values()):
            raise Refused
        if any(row["age"] is not None and not 0 <= int(str(row["age"])) <= 50 for row in people):
            raise Refused
        degrees = Counter(row["src"] for row in self.rows["K"].values())
        if any(degrees[source] > 3 for source in self.written_sources):
            raise Refused

    def shown(self) -> Counter[str]:
        """Every row as a text, without the ids that nobody chose."""
        return Counter(
            json.dumps([kind, row], sort_keys=True) for kind, rows in self.rows.items() for row in rows.values()
        )


Act = Callable[[Model], None]


@dataclass
class Statement:
    """A statement of the language, and what it does to the model."""

    text: str
    act: Act


def literal(value: object) -> str:
    return json.dumps(value)


def chosen(source: random.Random, values: list[Row]) -> Row:
    return {name: value for row in values for name, value in row.items() if source.random() < 0.6}


def person_values(source: random.Random) -> Row:
    return chosen(
        source,
        [
            {"age": source.randrange(51)},
            {"rate": source.choice([0.5, 1.5, 2.0])},
            {"mail": source.choice(MAILS)},
            {"kind": source.choice("xy")},
        ],
    )


def predicate(source: random.Random, kind: str) -> tuple[str, Callable[[Row], bool]]:
    choices: dict[str, list[tuple[str, object]]] = {
        "P": [
            ("name", source.choice(NAMES)), ("age", source.randrange(51)), ("age", source.randrange(50) + 0.5),
            ("rate", 1), ("mail", source.choice(MAILS)), ("kind", "x"),
        ],
        "N": [("pri", source.randrange(4)), ("text", source.choice("abc"))],
        "K": [("from", source.choice(NAMES)), ("to", source.choice(NAMES)), ("w", source.randrange(4))],
        "A": [("from", source.choice(["n0", "n1"])), ("to", source.choice(NAMES))],
    }  # laid out as a table  # fmt: skip
    name, value = source.choice(choices[kind])
    operator = source.choice(list(OPERATORS) if name != "kind" else ["=", "!="])
    column = {"from": "src", "to": "dst"}.get(name, name)

    def matches(row: Row) -> bool:
        return row[column] is not None and OPERATORS[operator](row[column], value)

    return f"{name} {operator} {literal(value)}", matches


def assigned(values: Row) -> str:
    return ", ".join(f"{name}: {literal(value)}" for name, value in values.items())


def write(source: random.Random) -> Statement:
    """An insert or an update."""
    kind = source.choice(["node", "node", "edge", "update", "update"])
    if kind == "node" and source.random() < 0.7:
        row: Row = {"name": source.choice(NAMES), **person_values(source)}
        whole = {"age": None, "rate": None, "mail": None, "kind": None, **row}
        return Statement(f"insert P {{ {assigned(row)} }}", lambda model: model.insert("P", dict(whole)))
    if kind == "node":
        row = {"text": source.choice("abc"), **chosen(source, [{"pri": source.randrange(4)}])}
        whole = {"pri": None, **row}
        return Statement(f"insert N {{ {assigned(row)} }}", lambda model: model.insert("N", dict(whole)))
    if kind == "edge":
        edge = source.choice("KKA")
        ends = {"from": source.choice(NAMES if edge == "K" else ["n0", "n1"]), "to": source.choice(NAMES)}
        values = chosen(source, [{"w": source.randrange(4)}]) if edge == "K" else {}
        stored: Row = {"src": ends["from"], "dst": ends["to"], **({"w": None} if edge == "K" else {}), **values}
        return Statement(f"insert {edge} {{ {assigned({**ends, **values})} }}", lambda m: m.connect(edge, dict(stored)))
    target = source.choice("PPN")
    values = person_values(source) or {"age": 1} if target == "P" else {"pri": source.randrange(4)}
    if source.random() < 0.8:
        values.pop("mail", None)
    values = values or {"age": 2}
    where, matches = predicate(source, target)
    return Statement(
        f"update {target} set {{ {assigned(values)} }} where {where}",
        lambda model: model.update(target, values, matches),
    )


def removal(source: random.Random) -> Statement:
    kind = source.choice("PNKA")
    where, matches = predicate(source, kind)
    return Statement(f"delete {kind} where {where}", lambda model: model.delete(kind, matches))


def refused(_: Model) -> None:
    raise Refused


FAILING = (
    Statement('insert P { name: "bad", age: 51 }', refused),
    Statement('insert P { name: "bad", age: 2.5 }', refused),
    Statement('insert K { from: "p0", to: "nobody" }', refused),
    Statement('insert P { name: "b1", mail: "same" } insert P { name: "b2", mail: "same" }', refused),
    Statement('update P set { age: 51 } where name >= "p"', refused),
)


def graph_of(folder: Path) -> tuple[Graph, Model]:
    graph, model = Graph.init(folder, SCHEMA), Model()
    lines = []
    for number, name in enumerate(NAMES[:5]):
        row: Row = {"name": name, "age": number * 10, "rate": 1.5, "mail": None, "kind": "x"}
        lines.append({"type": "P", "data": row})
        model.rows["P"][name] = dict(row)
    for number in range(2):
        note: Row = {"text": "abc"[number], "pri": number}
        lines.append({"type": "N", "data": {"id": f"n{number}", **note}})
        model.rows["N"][f"n{number}"] = dict(note)
    for source, target in (("p0", "p1"), ("p1", "p0"), ("p2", "p3")):
        lines.append({"edge": "K", "from": source, "to": target, "data": {"w": 1}})
        model.rows["K"][source, target] = {"src": source, "dst": target, "w": 1}
    graph.load([json.dumps(line) for line in lines], options=LoadOptions(build_indexes=SEED % 2 == 0))
    return graph, model


def shown(graph: Graph) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in graph.export():
        record = json.loads(line)
        row = {name: value for name, value in record["data"].items() if name != "id"}
        if "edge" in record:
            row |= {"src": record["from"], "dst": record["to"]}
        found[json.dumps([record.get("type", record.get("edge")), row], sort_keys=True)] += 1
    return found


def files(graph: Graph) -> set[Path]:
    return {path for path in Path(graph.uri).rglob("*") if path.is_file()}


def play(graph: Graph, model: Model, statements: list[Statement]) -> Model:
    """Runs a query on both; the model after it."""
    text = f"query q() {{ {' '.join(s.text for s in statements)} }}"
    after = copy.deepcopy(model)
    after.nodes = after.edges = 0
    after.written_sources = set()
    try:
        for statement in statements:
            statement.act(after)
        after.finish()
    except Refused:
        before, commits, there = graph.snapshot().version, len(graph.commits()), files(graph)
        with pytest.raises(InputError):
            graph.mutate(text)
        assert (graph.snapshot().version, len(graph.commits()), files(graph)) == (before, commits, there), (SEED, text)
        return model
    commits = len(graph.commits())
    result = graph.mutate(text)
    assert (result.affected_nodes, result.affected_edges) == (after.nodes, after.edges), (SEED, text)
    assert len(graph.commits()) == commits + (result.commit is not None), (SEED, text)
    assert shown(graph) == after.shown(), (SEED, text)
    return after


def test_random_queries_do_what_the_model_does(tmp_path: Path) -> None:
    source = random.Random(SEED)
    graph, model = graph_of(tmp_path / "g")
    for _ in range(QUERIES):
        one = removal if source.random() < 0.15 else write
        model = play(graph, model, [one(source) for _ in range(source.randrange(1, 7))])


def test_a_failing_statement_at_any_place_leaves_nothing(tmp_path: Path) -> None:
    source = random.Random(SEED + 1)
    graph, model = graph_of(tmp_path / "g")
    statements = [write(source) for _ in range(4)]
    for place in range(len(statements) + 1):
        for failing in FAILING:
            model = play(graph, model, [*statements[:place], failing, *statements[place:]])
    assert shown(graph) == model.shown()
