"""Queries by a handle, by a pinned one and by SQL, against a graph database (ladybug) and against Lance itself on the
same files.

Run it as `python tests/benchmarks/bench_query.py [--scale 0.01] [--rounds 15] [--profile] [--fastest]`; it needs the
extras `bench` and `sql`.
Contenders take turns, each round with other parameters and another one beginning; what they return has to be the same.
The process keeps its handles: the first rounds do not count. Beside the time that passes stands that of the processor,
of all threads, which says more on a machine that others use too.
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ladybug
import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph import Graph
from spark_omnigraph.graph.read.query import bound_plan, prepare, run_query
from tests.benchmarks.query_data import CITIES, DIMENSION, PEOPLE, SCHEMA, WORDS, knows, people, write_parquet
from tests.spark.graphs import new_graph, publish

Params = dict[str, object]
Ways = dict[str, Callable[[], int]]
SEARCH: dict[str, Any] = {"disable_scoring_autoprojection": True}


@dataclass(frozen=True)
class Tables:
    """The graph's own files, opened by Lance."""

    people: lance.LanceDataset
    knows: lance.LanceDataset

    def hop(self, names: set[str]) -> pa.Table:
        listed = ", ".join(f"'{name}'" for name in names)
        return self.knows.to_table(columns=["src", "dst"], filter=f"src IN ({listed})")


@dataclass
class Task:
    """One question in four languages; each answer is its number of rows."""

    name: str
    declared: str
    gq: str
    cypher: str | None
    sql: str | None
    plain: Callable[[Tables, Params], int] | None
    params: Callable[[random.Random, int], Params]
    seconds: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Of each contender and round: that passed, and of the processor."""
    rows: int = 0

    @property
    def text(self) -> str:
        return f"query q({self.declared}) {{ {self.gq} }}"


def one_person(source: random.Random, count: int) -> Params:
    return {"n": f"p{source.randrange(count):07d}"}


def nothing(_: random.Random, __: int) -> Params:
    return {}


def some_vector(source: random.Random, _: int) -> Params:
    return {"c": f"c{source.randrange(CITIES):02d}", "v": [source.random() for _ in range(DIMENSION)]}


def _rows(found: pa.Table) -> int:
    return int(found.num_rows)


def point(tables: Tables, given: Params) -> int:
    return _rows(tables.people.to_table(columns=["age", "city"], filter=f"id = '{given['n']}'"))


def one_hop(tables: Tables, given: Params) -> int:
    return _rows(tables.hop({str(given["n"])}))


def two_hops(tables: Tables, given: Params) -> int:
    first = tables.hop({str(given["n"])})["dst"].to_pylist()
    return tables.hop(set(first)).num_rows if first else 0


def three_hops(tables: Tables, given: Params) -> int:
    start = str(given["n"])
    seen, frontier = {start}, {start}
    for _ in range(3):
        frontier = set(tables.hop(frontier)["dst"].to_pylist()) - seen if frontier else set()
        seen |= frontier
    return len(seen) - 1


def filtered(tables: Tables, _: Params) -> int:
    return _rows(tables.people.to_table(columns=["name"], filter="score < 0.01 AND age >= 50"))


def grouped(tables: Tables, _: Params) -> int:
    read = tables.people.to_table(columns=["city", "score", "age"])
    return _rows(read.group_by("city").aggregate([("city", "count"), ("score", "mean"), ("age", "max")]))


def everybody(tables: Tables, _: Params) -> int:
    cities = tables.people.to_table(columns=["id", "city"])
    edges = tables.knows.to_table(columns=["src"])
    places = pc.index_in(edges["src"], value_set=cities["id"])
    return _rows(pa.table({"city": cities["city"].take(places)}).group_by("city").aggregate([("city", "count")]))


def nearest(tables: Tables, given: Params) -> int:
    query = {"column": "v", "q": np.array(given["v"], np.float32), "k": 10, "use_index": False}
    where = f"city = '{given['c']}'"
    return _rows(tables.people.to_table(columns=["name"], nearest=query, filter=where, **SEARCH, prefilter=True))


def words(tables: Tables, given: Params) -> int:
    query = {"columns": ["bio"], "query": str(given["w"])}
    return _rows(tables.people.to_table(columns=["name"], full_text_query=query, limit=10, **SEARCH))


ONE = "match { $p: Person { name: $n } "
MATCH = "MATCH (p:Person {name: $n})"
ONE_SQL = "Knows k JOIN Person q ON q.id = k.dst WHERE k.src = $n"
TWO_SQL = (
    "Knows k JOIN Person q ON q.id = k.dst JOIN Knows l ON l.src = q.id JOIN Person r ON r.id = l.dst WHERE k.src = $n"
)
WARM = 8
"""Rounds that do not count, in which columns, indexes and plans come into memory."""
CONTENDERS = ("gq", "pinned", "sql", "ladybug", "pylance")
OTHERS = ("ladybug", "pylance", "sql")
TASKS = (
    Task("point look-up", "$n: String", ONE + "} return { $p.age, $p.city }",
         f"{MATCH} RETURN p.age, p.city", "SELECT age, city FROM Person WHERE id = $n", point, one_person),
    Task("one hop", "$n: String", ONE + "$p knows $q } return { $q.name }",
         f"{MATCH}-[:Knows]->(q:Person) RETURN DISTINCT q.name", "SELECT q.name FROM " + ONE_SQL, one_hop, one_person),
    Task("two hops", "$n: String", ONE + "$p knows $q $q knows $r } return { $q.name, $r.name }",
         f"{MATCH}-[:Knows]->(q:Person)-[:Knows]->(r:Person) RETURN DISTINCT q.name, r.name",
         "SELECT q.name, r.name FROM " + TWO_SQL, two_hops, one_person),
    Task("one to three hops", "$n: String", ONE + "$p knows{1,3} $q } return { $q.name }",
         f"{MATCH}-[:Knows* SHORTEST 1..3]->(q:Person) WHERE q.name <> $n RETURN q.name", None, three_hops, one_person),
    Task("filter scan", "", "match { $p: Person $p.score < 0.01 $p.age >= 50 } return { $p.name }",
         "MATCH (p:Person) WHERE p.score < 0.01 AND p.age >= 50 RETURN p.name",
         "SELECT name FROM Person WHERE score < 0.01 AND age >= 50", filtered, nothing),
    Task("aggregate", "",
         "match { $p: Person } return { $p.city, count($p) as n, avg($p.score) as s, max($p.age) as a }",
         "MATCH (p:Person) RETURN p.city, count(*), avg(p.score), max(p.age)",
         "SELECT city, count(*), avg(score), max(age) FROM Person GROUP BY city", grouped, nothing),
    Task("one hop from everybody", "", "match { $p: Person $p knows $q } return { $p.city, count($q) as n }",
         "MATCH (p:Person)-[:Knows]->(q:Person) RETURN p.city, count(*)",
         "SELECT p.city, count(*) FROM Person p JOIN Knows k ON k.src = p.id GROUP BY p.city", everybody, nothing),
    Task("nearest with a filter", "$c: String, $v: Vector(16)",
         "match { $p: Person { city: $c } } return { $p.name } order { nearest($p.v, $v) } limit 10",
         "MATCH (p:Person) WHERE p.city = $c RETURN p.name "
         f"ORDER BY array_distance(p.v, CAST($v AS FLOAT[{DIMENSION}])) LIMIT 10",
         "SELECT name FROM Person WHERE city = $c ORDER BY array_distance(v, $v) LIMIT 10", nearest, some_vector),
    Task("full text", "$w: String",
         "match { $p: Person } return { $p.name } order { bm25($p.bio, $w) } limit 10",
         None, None, words, lambda source, _: {"w": f"w{source.randrange(WORDS):04d}"}),
)  # laid out as a table  # fmt: skip


def built(folder: Path, count: int) -> tuple[Graph, Tables, ladybug.Connection]:
    """The same rows in the graph, and in ladybug."""
    nodes, edges = people(count), knows(count)
    store = new_graph(folder / "graph", SCHEMA)
    publish(store, {"node:Person": nodes, "edge:Knows": edges})
    graph = Graph.open(folder / "graph")
    clock = time.perf_counter()
    graph.ensure_indices()
    print(f"indexes of the graph: {time.perf_counter() - clock:.1f} s", flush=True)
    entries = graph.snapshot().entries
    tables = Tables(*(store.open_table(entries[key]) for key in ("node:Person", "edge:Knows")))
    paths = write_parquet(folder, nodes, edges)
    clock = time.perf_counter()
    other = ladybug.Connection(ladybug.Database(str(folder / "ladybug")))
    columns = f"name STRING, age INT32, bio STRING, city STRING, score DOUBLE, v FLOAT[{DIMENSION}]"
    other.execute(f"CREATE NODE TABLE Person({columns}, PRIMARY KEY(name))")
    other.execute("CREATE REL TABLE Knows(FROM Person TO Person, since INT32)")
    other.execute(f"COPY Person FROM '{paths[0]}'")
    other.execute(f"COPY Knows FROM '{paths[1]}'")
    print(f"ladybug loaded: {time.perf_counter() - clock:.1f} s; {count:,} people, {len(edges):,} edges", flush=True)
    return graph, tables, other


def cypher_rows(other: ladybug.Connection, text: str, given: Params) -> int:
    """Rows of one statement."""
    found = other.execute(text, given)
    assert not isinstance(found, list)
    return _rows(found.get_as_arrow())


def ways(task: Task, given: Params, graph: Graph, pinned: Graph, tables: Tables, other: ladybug.Connection) -> Ways:
    """The contenders, each with its number of rows."""
    found: Ways = {
        "gq": lambda: len(graph.query(task.text, params=given)),
        "pinned": lambda: len(pinned.query(task.text, params=given)),
    }
    if task.sql is not None:
        found["sql"] = lambda: int(graph.sql(str(task.sql), given).to_arrow().num_rows)
    if task.cypher is not None:
        found["ladybug"] = lambda: cypher_rows(other, str(task.cypher), given)
    if task.plain is not None:
        found["pylance"] = partial(task.plain, tables, given)
    return found


def measure(task: Task, graph: Graph, tables: Tables, other: ladybug.Connection, count: int, rounds: int) -> None:
    """Rounds in which the contenders take turns, after some that are thrown away."""
    source, pinned = random.Random(task.name), graph.at()
    for number in range(rounds + WARM):
        given = task.params(source, count)
        counts = {}
        every = list(ways(task, given, graph, pinned, tables, other).items())
        first = number % len(every)
        for name, way in (*every[first:], *every[:first]):
            clock = time.perf_counter(), time.process_time()
            counts[name] = way()
            if number >= WARM:
                spent = time.perf_counter() - clock[0], time.process_time() - clock[1]
                task.seconds.setdefault(name, []).append(spent)
        if len(set(counts.values())) > 1:
            raise AssertionError(f"{task.name} {given}: {counts}")
        task.rows = counts["gq"]


def line(task: Task, fastest: bool = False) -> str:
    """A line of the table: milliseconds of median or fastest rounds, those of the processor behind a slash, and how
    many times longer the others take than a query by a handle, in both.
    """
    of = min if fastest else statistics.median
    wall, cpu = ({n: of([s[i] for s in found]) * 1000 for n, found in task.seconds.items()} for i in (0, 1))
    shown = [f"{wall[n]:,.1f} / {cpu[n]:,.1f}" if n in wall else "-" for n in CONTENDERS]
    ratios = [f"{wall[n] / wall['gq']:.2f} / {cpu[n] / cpu['gq']:.2f}" if n in wall else "-" for n in OTHERS]
    return f"| {task.name} | {' | '.join(shown)} | {' | '.join(ratios)} | {task.rows:,} |"


def profile(task: Task, graph: Graph, count: int) -> str:
    """Where the time of one query goes: by step, and by the functions in which most of it is spent."""
    given = task.params(random.Random(0), count)
    graph.query(task.text, params=given)
    clock = [time.perf_counter()]
    catalog = graph.catalog()
    clock.append(time.perf_counter())
    plan = bound_plan(prepare(catalog, task.text), given)
    clock.append(time.perf_counter())
    snapshot = graph.snapshot()
    clock.append(time.perf_counter())
    run_query(graph.store, catalog, snapshot, plan)
    clock.append(time.perf_counter())
    steps = [1000 * (after - before) for before, after in itertools.pairwise(clock)]
    shown = ", ".join(f"{n} {ms:.1f}" for n, ms in zip(("schema", "plan", "snapshot", "rows"), steps, strict=True))
    profiler = cProfile.Profile()
    profiler.runcall(run_query, graph.store, catalog, snapshot, plan)
    profiler.create_stats()
    top = sorted(profiler.stats.items(), key=lambda entry: -entry[1][2])[:5]
    slowest = ", ".join(f"{name[2]} {1000 * found[2]:.1f}" for name, found in top)
    return f"{task.name} [ms]: {shown}; of the rows: {slowest}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0, help="part of a million people")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--fastest", action="store_true", help="fastest rounds instead of medians, for a busy machine")
    chosen = parser.parse_args()
    count = int(PEOPLE * chosen.scale)
    with tempfile.TemporaryDirectory() as folder:
        graph, tables, other = built(Path(folder), count)
        heads = ("query", *CONTENDERS, *(f"{name} / gq" for name in OTHERS), "rows")
        print(f"| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
        for task in TASKS:
            measure(task, graph, tables, other, count, chosen.rounds)
            print(line(task, chosen.fastest), flush=True)
        if chosen.profile:
            for task in TASKS:
                print(profile(task, graph, count))


if __name__ == "__main__":
    main()
