"""A year in minutes: with the upkeep of docs/maintenance.md a graph costs at its end what it cost at its start."""

from __future__ import annotations

import json
import random
import shutil
import statistics
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions
from tests.crash.worlds import assert_whole
from tests.faults.proxy import running_proxy
from tests.support.memory_store import memory_server
from tests.support.object_store import BUCKET

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

SCHEMA = "node Person { name: String @key  age: I32? @index }\nedge Knows: Person -> Person"
QUERY = "query q($n: String) { match { $a: Person  $a.name = $n  $a knows $b } return { $b.name as name } }"
PEOPLE, NIGHTLY = 2_000, 50
PLAIN = LoadOptions(build_indexes=False)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a graph costs: bytes and files; seconds of a small commit, an open and a query; requests of the three."""

    bytes: int
    files: int
    commits: int
    commit_s: float
    open_s: float
    query_s: float
    commit_requests: int
    open_requests: int
    query_requests: int


def night(graph: Graph, number: int, dice: random.Random) -> None:
    """Changes of known people and edges between them, loaded on a branch, which is merged: on Sundays with a name."""
    names = [f"p{dice.randrange(PEOPLE)}" for _ in range(NIGHTLY)]
    lines = [json.dumps({"type": "Person", "data": {"name": n, "age": dice.randrange(99)}}) for n in sorted({*names})]
    lines += [
        json.dumps({"edge": "Knows", "from": names[0], "to": n, "data": {"id": f"e{dice.randrange(PEOPLE)}"}})
        for n in names[:5]
    ]
    branch = f"night-{number:03d}"
    graph.load(lines, "merge", branch=branch, base="main")
    graph.merge_branch(branch)
    graph.delete_branch(branch)


def figures(graph: Graph, copy: Path) -> Figures:
    """Times on the disk, on a copy that is thrown away; requests of an object store."""
    graph.copy(copy)
    made, seconds = Graph.open(copy), {"commit": [0.0], "open": [0.0], "query": [0.0]}
    for turn in range(7):
        begin = time.process_time()
        opened = Graph.open(copy)
        middle = time.process_time()
        opened.query(QUERY, params={"n": "p1"})
        end = time.process_time()
        made.load([json.dumps({"type": "Person", "data": {"name": "p1", "age": turn}})], "merge", options=PLAIN)
        for name, value in zip(seconds, (time.process_time() - end, middle - begin, end - middle), strict=True):
            seconds[name].append(value)
    requests = {}
    with memory_server(copy, "g") as store, running_proxy(store) as proxy:
        remote = Graph.open(f"s3://{BUCKET}/g", storage_options=proxy.server(store).storage_options)
        requests["open"] = len(proxy.requests)
        proxy.reset()
        remote.query(QUERY, params={"n": "p1"})
        requests["query"] = len(proxy.requests)
        remote.load([json.dumps({"type": "Person", "data": {"name": "p2", "age": 1}})], "merge", options=PLAIN)
        proxy.reset()
        remote.load([json.dumps({"type": "Person", "data": {"name": "p3", "age": 1}})], "merge", options=PLAIN)
        requests["commit"] = len(proxy.requests)
    shutil.rmtree(copy)
    files = [path.stat().st_size for path in Path(graph.uri).rglob("*") if path.is_file()]
    commit_s, open_s, query_s = (statistics.median(seconds[name][1:]) for name in ("commit", "open", "query"))
    asked = (requests[name] for name in ("commit", "open", "query"))
    return Figures(sum(files), len(files), len(graph.commits()), commit_s, open_s, query_s, *asked)


def test_a_year_in_minutes(tmp_path: Path) -> None:
    graph, dice = Graph.init(tmp_path / "g", SCHEMA), random.Random(1)
    people = [json.dumps({"type": "Person", "data": {"name": f"p{n}", "age": n % 99}}) for n in range(PEOPLE)]
    edges = [
        json.dumps({"edge": "Knows", "from": f"p{n}", "to": f"p{n + 1}", "data": {"id": f"e{n}"}})
        for n in range(PEOPLE - 1)
    ]
    graph.load([*people, *edges])
    found = {}
    for day in range(1, 366):
        night(graph, day, dice)
        if day % 7 == 0:
            graph.optimize()
        if day % 30 == 0:
            graph.cleanup(timedelta(0), keep=30, confirm=True, force=True)
        if day in (30, 365):
            if day == 365:
                graph.optimize()
                graph.cleanup(timedelta(0), keep=30, confirm=True, force=True)
            found[day] = figures(graph, tmp_path / "copy")
            print(f"\nday {day}: {found[day]}", flush=True)
    first, last = found[30], found[365]
    assert graph.count("node:Person") == PEOPLE
    assert last.commits > 10 * first.commits
    assert last.commit_requests <= 1.5 * first.commit_requests
    assert last.open_requests <= 1.5 * first.open_requests
    assert last.query_requests <= 1.5 * first.query_requests
    assert last.bytes <= 3 * first.bytes
    assert_whole(graph)
