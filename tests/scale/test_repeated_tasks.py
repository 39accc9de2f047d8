"""A task that runs twice, or is lost after its work was done, never doubles a row."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tests.support.executors as executors_module
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.write.executor import Executor, LocalExecutor
from tests.support.executors import LosingExecutor, TwiceExecutor
from tests.support.graph_files import pins, recovery_files

SCHEMA = """
node Person { name: String @key  age: I32? }
node Note { text: String }
edge Knows: Person -> Person { weight: I32? }
"""
PEOPLE = 600


def write_input(folder: Path, age: int) -> list[str]:
    """Three files, so that there is more than one task: people in two of them, notes and edges in all."""
    paths = []
    for part in range(3):
        lines = []
        for i in range(part, PEOPLE, 3):
            lines.append(json.dumps({"type": "Person", "data": {"name": f"p{i}", "age": age}}))
            lines.append(json.dumps({"type": "Note", "data": {"text": f"n{i}"}}))
            ends = {"from": f"p{i}", "to": f"p{(i + 1) % PEOPLE}"}
            lines.append(json.dumps({"edge": "Knows", **ends, "data": {"id": f"k{i}", "weight": age}}))
        path = folder / f"part-{age}-{part}.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        paths.append(str(path))
    return paths


def load_and_check(root: Path, inputs: Path, executor: Executor) -> None:
    """An append, then a merge that replaces every keyed row: counts, values and versions as if nothing was repeated."""
    g = Graph.init(str(root), SCHEMA)
    report = g.load(write_input(inputs, 1), mode="append", options=LoadOptions(executor=executor))
    assert report.nodes_loaded == {"Person": PEOPLE, "Note": PEOPLE}
    merged = g.load(write_input(inputs, 2), mode="merge", options=LoadOptions(executor=executor))
    assert (merged.tables["node:Person"].inserted, merged.tables["node:Person"].updated) == (0, PEOPLE)
    assert merged.tables["edge:Knows"].updated == PEOPLE
    assert [g.count(table) for table in ("node:Person", "node:Note", "edge:Knows")] == [PEOPLE, 2 * PEOPLE, PEOPLE]
    people = pins(root)["node:Person"].open(root).to_table(columns=["id", "age"]).to_pylist()
    assert {row["id"]: row["age"] for row in people} == {f"p{i}": 2 for i in range(PEOPLE)}
    assert len(people) == PEOPLE
    assert len(g.commits()) == 3
    assert recovery_files(root) == []


@pytest.fixture
def shipped_by_value() -> Iterator[None]:
    """Executors elsewhere do not have the test package, so its classes travel with the work."""
    module = sys.modules[executors_module.__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.parametrize("keep", [0, 1], ids=["first-result", "second-result"])
def test_tasks_that_run_twice(tmp_path: Path, keep: int) -> None:
    load_and_check(tmp_path / "graph", tmp_path, TwiceExecutor(LocalExecutor(1), keep))


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("shipped_by_value")
def test_spark_tasks_that_run_twice(tmp_path: Path, spark: SparkSession) -> None:
    load_and_check(tmp_path / "graph", tmp_path, TwiceExecutor(SparkExecutor(spark), 1))


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("shipped_by_value")
def test_spark_tasks_that_are_lost_after_their_work(tmp_path: Path, spark: SparkSession) -> None:
    memory = tmp_path / "lost"
    memory.mkdir()
    executor = LosingExecutor(SparkExecutor(spark), memory)
    load_and_check(tmp_path / "graph", tmp_path, executor)
    assert executor.lost >= 2, "a task of either load was lost"
