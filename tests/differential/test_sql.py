"""SQL against a naive evaluator, over states of the past and of branches; `DIFFERENTIAL_SEED` chooses another run."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from spark_omnigraph.graph.handle import Graph
from tests.oracle.sql import POOL, Maker, Row, Value

SEED = int(os.environ.get("DIFFERENTIAL_SEED", "20261129"))
SCHEMA = """
node Person { name: String @key  age: I32? @index  city: String? @index  score: F64? }
edge Knows: Person -> Person { weight: I64? }
"""


def line(rng: random.Random, name: str) -> str:
    data = {
        key: rng.choice([None, *POOL[kind]]) for key, kind in (("age", "int"), ("city", "text"), ("score", "float"))
    }
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def edges(rng: random.Random, names: list[str], count: int) -> list[str]:
    ends = [(rng.choice(names), rng.choice(names), rng.choice([None, *POOL["int"]])) for _ in range(count)]
    return [json.dumps({"edge": "Knows", "from": a, "to": b, "data": {"weight": w}}) for a, b, w in ends]


def state(graph: Graph, **where: str | int) -> dict[str, list[Row]]:
    """Rows of a state by the other way to them: the export."""
    found: dict[str, list[Row]] = {"Person": [], "Knows": []}
    for text in graph.export(**where):  # type: ignore[arg-type]  # the names of a state
        record = json.loads(text)
        row: dict[str, Value] = {name: record["data"].get(name) for name in ("age", "city", "score", "name", "weight")}
        if "edge" in record:
            ends = {"id": record["data"]["id"], "src": record["from"], "dst": record["to"]}
            found["Knows"].append({**ends, "weight": row["weight"]})
        else:
            found["Person"].append({"id": row["name"], **{k: row[k] for k in ("name", "age", "city", "score")}})
    return found


def world(rng: random.Random, root: Path) -> tuple[Graph, dict[str, dict[str, list[Row]]]]:
    """A graph with a past, a tag and a branch, and the rows of each by the name of its schema."""
    graph = Graph.init(root, SCHEMA)
    names = ["a", "b", "c", "Zürich", "rome", "d'or", "x1", "x2", "x3", "x4"]
    graph.load([line(rng, name) for name in names[:7]] + edges(rng, names[:7], 9))
    first = graph.load([line(rng, name) for name in names[7:]] + edges(rng, names, 5)).manifest_version
    graph.tag("rel-1")
    graph.create_branch("review/x")
    graph.load([line(rng, name) for name in names[:4]] + edges(rng, names, 2), "merge", branch="review/x")
    graph.delete("node:Person", ["a", "x4"])
    states = {
        "main": state(graph),
        f"main@{first}": state(graph, version=first or 0),
        "rel-1": state(graph, tag="rel-1"),
        "review/x": state(graph, branch="review/x"),
    }
    assert len({json.dumps(each, sort_keys=True) for each in states.values()}) == 3, "two of them are one state"
    return graph, states


def compare(seed: int, count: int, root: Path) -> int:
    """How many statements gave rows; AssertionError with the first that gave others."""
    print(f"DIFFERENTIAL_SEED={seed}")
    rng = random.Random(seed)
    graph, states = world(rng, root)
    maker, full = Maker(rng, states), 0
    for _ in range(count):
        asked = maker.select()
        table = graph.sql(asked.sql).to_arrow()
        found = [tuple(row[f"c{place}"] for place in range(table.num_columns)) for row in table.to_pylist()]
        if asked.is_ordered:
            assert found == asked.rows, f"seed {seed}: {asked.sql}"
        else:
            assert Counter(found) == Counter(asked.rows), f"seed {seed}: {asked.sql}"
        full += bool(found)
    return full


def test_statements_mean_what_loops_find(tmp_path: Path) -> None:
    assert compare(SEED, 120, tmp_path / "g") > 60


@pytest.mark.long
@pytest.mark.parametrize("turn", range(10))
def test_many_statements_mean_what_loops_find(tmp_path: Path, turn: int) -> None:
    assert compare(SEED + 1 + turn, 400, tmp_path / "g") > 200
