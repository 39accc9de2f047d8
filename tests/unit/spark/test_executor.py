"""The body of the tasks and the reading of their results, without a session."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from spark_omnigraph.errors import ExpectedVersionMismatch, InternalError, UsageError
from spark_omnigraph.spark.executor import _attempt, _results, _task_rows


def run(work: Callable[[Any], Any], items: list[Any], chunk: int = 1 << 20) -> list[Any]:
    body = _task_rows(cloudpickle.dumps((_attempt, work)), [cloudpickle.dumps(i) for i in items], chunk)
    numbers = [pa.record_batch({"id": pa.array([n], pa.int64())}) for n in reversed(range(len(items)))]
    # By value, as Spark ships it.
    shipped = pickle.loads(cloudpickle.dumps(body))
    return list(_results(pa.Table.from_batches(list(shipped(iter(numbers)))), len(items)))


def test_results_come_in_item_order() -> None:
    assert run(lambda n: n * 2, [5, 6, 7]) == [10, 12, 14]


def test_large_results_travel_in_pieces() -> None:
    assert run(lambda n: b"x" * n, [10_000, 0], chunk=100) == [b"x" * 10_000, b""]


def test_an_error_of_ours_arrives_as_itself() -> None:
    def work(item: int) -> int:
        if item == 1:
            raise ExpectedVersionMismatch("node:P", 3, 4)
        return item

    with pytest.raises(ExpectedVersionMismatch) as caught:
        run(work, [0, 1, 2])
    assert caught.value.actual == 4


def test_other_errors_are_sparks_to_retry() -> None:
    with pytest.raises(ZeroDivisionError):
        run(lambda n: n // 0, [1])


def test_a_missing_package_is_named_with_its_place() -> None:
    def work(item: int) -> int:
        raise ModuleNotFoundError("No module named 'lance'", name="lance")

    with pytest.raises(UsageError, match=r"'lance' is missing on .+ \(.*python.*\)"):
        run(work, [1])


def test_the_body_does_not_need_this_package() -> None:
    body = cloudpickle.dumps(_task_rows(b"", [], 1))
    assert b"spark_omnigraph.errors" not in body
    names = [n for n in (b"spark_omnigraph.spark.errors", b"_attempt", b"SparkExecutor") if n in body]
    assert names == []


def test_a_lost_result_is_a_bug() -> None:
    with pytest.raises(InternalError, match="no result for task 0"):
        _results(pa.table({"item": [], "part": [], "status": [], "payload": []}), 1)
