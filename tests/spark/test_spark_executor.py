"""Tasks over Spark: order, errors, large results."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.errors import BadRowsError, InternalError, StorageError, UsageError
from spark_omnigraph.spark.executor import CHUNK_BYTES, SparkExecutor
from spark_omnigraph.write.executor import Executor


def square(n: int) -> int:
    return n * n


def test_results_in_item_order(spark: SparkSession) -> None:
    executor: Executor = SparkExecutor(spark)
    assert executor.parallelism == 2
    assert list(executor.map(square, list(range(7)))) == [n * n for n in range(7)]
    assert list(executor.map(square, [])) == []


def test_tasks_run_in_processes_of_their_own(spark: SparkSession) -> None:
    assert os.getpid() not in SparkExecutor(spark).map(lambda _: os.getpid(), [1, 2])


def test_a_result_larger_than_a_chunk(spark: SparkSession) -> None:
    (result,) = SparkExecutor(spark).map(lambda n: b"x" * n, [CHUNK_BYTES + 5])
    assert len(result) == CHUNK_BYTES + 5


def test_an_error_of_ours_is_typed_whole_and_not_retried(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path)

    def work(n: int) -> int:
        open(f"{folder}/{n}-{len(os.listdir(folder))}", "x").close()
        if n == 3:
            raise BadRowsError("2 bad rows", BadRowSummary(2, {"required": 2}))
        return n

    with pytest.raises(BadRowsError) as caught:
        SparkExecutor(spark).map(work, [3])
    assert caught.value.summary.per_rule == {"required": 2}
    assert len(list(tmp_path.iterdir())) == 1


def test_other_errors_are_retried_and_then_short(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path)

    def fails_twice(_: int) -> int:
        attempts = len(os.listdir(folder))
        open(f"{folder}/{attempts}", "x").close()
        if attempts < 2:
            raise OSError("disk full")
        return attempts

    assert list(SparkExecutor(spark).map(fails_twice, [1])) == [2]
    with pytest.raises(StorageError) as caught:
        SparkExecutor(spark).map(_disk_full, [1])
    assert caught.value.message == "a Spark task failed: OSError: disk full"
    with pytest.raises(InternalError, match="a Spark task failed: ZeroDivisionError"):
        SparkExecutor(spark).map(lambda n: n // 0, [1])


def _disk_full(_: int) -> int:
    raise OSError("disk full")


def test_a_worker_that_dies_is_a_storage_error(spark: SparkSession) -> None:
    with pytest.raises(StorageError) as caught:
        SparkExecutor(spark).map(lambda _: os._exit(3), [1])
    assert "\n" not in caught.value.message


def test_a_missing_package_says_which_and_where(spark: SparkSession) -> None:
    def work(_: int) -> None:
        __import__("package_that_is_not_there")

    with pytest.raises(UsageError, match=r"'package_that_is_not_there' is missing on .+ \(.+\): install"):
        SparkExecutor(spark).map(work, [1])


def test_a_parallelism_that_is_given_bounds_the_tasks(spark: SparkSession) -> None:
    one = SparkExecutor(spark, 1)
    assert one.parallelism == 1
    assert len(set(one.map(partition, [0] * 6))) == 1
    assert len(set(SparkExecutor(spark).map(partition, [0] * 6))) == 6


def partition(_: int) -> int:
    task = TaskContext.get()
    assert task is not None
    return task.partitionId()


def test_long_work_is_several_jobs(spark: SparkSession, tmp_path: Path) -> None:
    """The first results come while most of the work has not begun."""
    folder = str(tmp_path)

    def mark(n: int) -> int:
        open(f"{folder}/{n}", "x").close()
        return n

    results = SparkExecutor(spark).map(mark, list(range(20)))
    assert next(results) == 0
    assert len(list(tmp_path.iterdir())) == 16
    assert list(results) == list(range(1, 20))


def test_upkeep_by_tasks_is_that_of_one_process(spark: SparkSession, tmp_path: Path) -> None:
    """Files are joined and indexes built by Spark's tasks, with the same result as without."""
    made = Graph.init(tmp_path / "a", "node P { s: String @key  n: I32? @index  t: String? @index }")
    for load in range(5):
        rows = ({"s": f"{load}-{n}", "n": n, "t": f"word{n}"} for n in range(20))
        made.load([json.dumps({"type": "P", "data": row}) for row in rows], options=LoadOptions(build_indexes=False))
    made.delete("node:P", [f"0-{n}" for n in range(15)])
    made.copy(tmp_path / "b")
    graphs = [Graph.open(tmp_path / name) for name in ("a", "b")]
    reports = [graphs[0].optimize(), graphs[1].optimize(executor=SparkExecutor(spark))]
    assert reports[0].tables == reports[1].tables
    assert reports[1].tables["node:P"].files_after == 1
    assert sorted(reports[0].indexes) == sorted(reports[1].indexes) == ["node:P.id", "node:P.n", "node:P.s", "node:P.t"]
    assert graphs[0].indexes() == graphs[1].indexes()
    assert sorted(graphs[0].export()) == sorted(graphs[1].export())
    found = [
        graph.query("query q() { match { $p: P  $p.n = 7 } return { $p.s as s } }").to_pylist() for graph in graphs
    ]
    assert sorted(map(str, found[0])) == sorted(map(str, found[1]))
    assert len(found[0]) == 4
