"""Fixed cost of a small commit: on a fresh graph, and after a thousand commits with and without maintenance.

Run it as `python tests/benchmarks/bench_commit.py [--quick]`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from spark_omnigraph.graph.handle import Graph
from tests.support.measure import phases

SCHEMA = """
node Person { name: String @key  age: I32? }
node Company { name: String @key }
edge Knows: Person -> Person
edge WorksAt: Person -> Company
"""
_NUMBERS = count()


def small(graph: Graph) -> float:
    """Seconds of a load with one node and one edge to it."""
    name = f"p{next(_NUMBERS)}"
    lines = [
        json.dumps({"type": "Person", "data": {"name": name, "age": 1}}),
        json.dumps({"edge": "Knows", "from": name, "to": name}),
    ]
    start = time.perf_counter()
    graph.load(lines)
    return time.perf_counter() - start


def mutation(graph: Graph) -> float:
    """Seconds of a mutation with the same rows."""
    name = f"p{next(_NUMBERS)}"
    text = "query q($n: String) { insert Person { name: $n, age: 1 } insert Knows { from: $n, to: $n } }"
    start = time.perf_counter()
    graph.mutate(text, params={"n": name})
    return time.perf_counter() - start


def row(label: str, seconds: list[float], base: float) -> str:
    median = statistics.median(seconds)
    worst = max(seconds)
    return f"| {label} | {1000 * median:.0f} | {1000 * min(seconds):.0f}-{1000 * worst:.0f} | {median / base:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 commits instead of 1,000")
    options = parser.parse_args()
    commits = 100 if options.quick else 1_000
    with tempfile.TemporaryDirectory(prefix="bench-commit-") as name:
        graph = Graph.init(str(Path(name) / "graph"), SCHEMA)
        cold = small(graph)
        fresh = [small(graph) for _ in range(20)]
        for _ in range(commits - 21):
            small(graph)
        aged = [small(graph) for _ in range(20)]
        last = graph.load([json.dumps({"type": "Person", "data": {"name": "last"}})])
        base = statistics.median(fresh)
        print("\n| commit of one node and one edge | median ms | min-max ms | ratio to fresh |\n|---|---:|---:|---:|")
        print(row("first", [cold], base))
        print(row("fresh graph", fresh, base))
        print(row(f"after {commits} commits, no maintenance", aged, base))
        print(row("the same as a mutation", [mutation(graph) for _ in range(20)], base))
        graph.optimize()
        print(row(f"after {commits} commits, optimized", [small(graph) for _ in range(20)], base))
        print(row("the same as a mutation", [mutation(graph) for _ in range(20)], base))
        print(f"\nphases of the last load: {phases(last.phases)}")


if __name__ == "__main__":
    main()
