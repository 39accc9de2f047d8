"""Runs functions as Spark tasks, one for each item, without anything that Spark Connect does not have."""

from __future__ import annotations

import json
import pickle
import socket
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from spark_omnigraph.errors import InternalError, OmnigraphError
from spark_omnigraph.spark.delta_tables import SparkTable, own_session, release
from spark_omnigraph.spark.errors import JavaError, missing_package, task_failure
from spark_omnigraph.spark.session import slots_of
from spark_omnigraph.storage.delta_write import Followed

T = TypeVar("T")
R = TypeVar("R")

CHUNK_BYTES = 64 << 20
"""A larger result travels in several rows: one Arrow batch must stay far below 2 GiB."""

_ROW = pa.schema([("item", pa.int64()), ("part", pa.int32()), ("status", pa.string()), ("payload", pa.binary())])
_DDL = "item bigint, part int, status string, payload binary"
_DONE, _REFUSED, _MISSING = "done", "refused", "missing"
_PROBE_ROWS = 4096
_WAVE = 8
"""Tasks a slot in one job of Spark. Results come when a job ends, so that long work is several jobs: the caller can say
how far it is, and a failure stops what has not begun."""
_ONE_WAVE = 16
"""So few tasks are one job, whatever the number of slots."""

_Rows = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class SparkExecutor:
    """Executor over a Spark session, classic or Connect.

    Work and items travel pickled; results come back in item order, those of one job of Spark after its last task. An
    OmnigraphError that a task raises arrives as itself and is not retried; anything else is Spark's to retry, and is
    raised here as StorageError or InternalError with the reason in one line. A `parallelism` that is given also bounds
    the tasks: no more run at once, however many slots there are.
    """

    def __init__(self, spark: SparkSession, parallelism: int | None = None) -> None:
        self.spark = spark
        self._bound = parallelism
        self._parallelism = parallelism
        self._own: SparkSession | None = None

    @property
    def parallelism(self) -> int:
        """Tasks that run at once; asked of the session at first use."""
        if self._parallelism is None:
            self._parallelism = _task_slots(self.spark)
        return self._parallelism

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """`work` of every item, in item order. The first job has ended when this returns."""
        if not items:
            return iter(())
        program = cloudpickle.dumps((_attempt, work))
        size = len(items) if len(items) <= _ONE_WAVE else max(_ONE_WAVE, _WAVE * self.parallelism)
        waves = [items[start : start + size] for start in range(0, len(items), size)]
        first: Iterator[R] = self._run(program, waves[0])
        return chain(first, chain.from_iterable(self._run(program, wave) for wave in waves[1:]))

    def map_frame(self, work: Callable[[Iterator[pa.RecordBatch], int], R], frame: DataFrame) -> list[R]:
        """`work` of the rows of every partition and its number, in one job, in the order of partitions."""
        rows = _partition_rows(cloudpickle.dumps((_attempt, work)), CHUNK_BYTES)
        try:
            table = frame.mapInArrow(rows, _DDL).toArrow()
        except (PySparkException, JavaError) as error:
            raise task_failure(error) from error
        numbers = sorted(set(table.column("item").to_pylist()))
        return [pickle.loads(payload) for payload in _payloads(table, numbers)]

    def delta_table(self, followed: Followed) -> SparkTable:
        """A Delta table that the session writes, in a session beside it, which goes with this executor."""
        if self._own is None:
            self._own = own_session(self.spark)
            if self._own is not self.spark:
                weakref.finalize(self, release, self._own)
        return SparkTable(self._own, followed)

    def _run(self, program: bytes, items: Sequence[T]) -> Iterator[R]:
        """One job: a task for each item, or as many as may run at once."""
        rows = _task_rows(program, [cloudpickle.dumps(item) for item in items], CHUNK_BYTES)
        tasks = min(len(items), self._bound or len(items))
        try:
            table = self.spark.range(0, len(items), 1, tasks).mapInArrow(rows, _DDL).toArrow()
        except (PySparkException, JavaError) as error:
            raise task_failure(error) from error
        return _results(table, len(items))


def _attempt(work: Callable[..., R], *items: object) -> tuple[str, bytes]:
    try:
        return _DONE, pickle.dumps(work(*items), protocol=pickle.HIGHEST_PROTOCOL)
    except OmnigraphError as error:
        return _REFUSED, pickle.dumps(error)


def _task_rows(program: bytes, items: list[bytes], chunk: int) -> _Rows:
    """Body of the tasks. It is pickled by value and names nothing of this package, so that it starts on an executor
    without the package too and can say what is missing there.
    """
    missing, pieces = _MISSING, _pieces(chunk)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    attempt, work = pickle.loads(program)
                    status, payload = attempt(work, pickle.loads(items[number]))
                except ModuleNotFoundError as error:
                    place = {"module": error.name or str(error), "host": socket.gethostname(), "python": sys.executable}
                    status, payload = missing, json.dumps(place).encode()
                yield from pieces(number, status, payload)

    return run


def _partition_rows(program: bytes, chunk: int) -> _Rows:
    """Like `_task_rows`, of a task that works on the rows of its partition."""
    missing, pieces = _MISSING, _pieces(chunk)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number = 0 if task is None else task.partitionId()
        try:
            attempt, work = pickle.loads(program)
            status, payload = attempt(work, iter(batches), number)
        except ModuleNotFoundError as error:
            place = {"module": error.name or str(error), "host": socket.gethostname(), "python": sys.executable}
            status, payload = missing, json.dumps(place).encode()
        yield from pieces(number, status, payload)

    return run


def _pieces(chunk: int) -> Callable[[int, str, bytes], Iterator[pa.RecordBatch]]:
    """Rows of a result, by value too."""
    row = _ROW

    def pieces(number: int, status: str, payload: bytes) -> Iterator[pa.RecordBatch]:
        for part, start in enumerate(range(0, max(1, len(payload)), chunk)):
            piece = [[number], [part], [status], [payload[start : start + chunk]]]
            yield pa.RecordBatch.from_arrays(
                [pa.array(value, kind) for value, kind in zip(piece, row.types)], schema=row
            )

    return pieces


def _results(table: pa.Table, count: int) -> Iterator[R]:
    """Checks every outcome before the first result is handed out."""
    return (pickle.loads(payload) for payload in _payloads(table, range(count)))


def _payloads(table: pa.Table, numbers: Sequence[int]) -> list[bytes]:
    parts: dict[int, dict[int, bytes]] = {}
    statuses: dict[int, str] = {}
    for batch in table.to_batches():
        for number, part, status, payload in zip(*(c.to_pylist() for c in batch.columns)):
            parts.setdefault(number, {})[part] = payload
            statuses[number] = status
    payloads = [b"".join(parts.get(i, {})[p] for p in sorted(parts.get(i, {}))) for i in numbers]
    for number, payload in zip(numbers, payloads):
        _raise_unless_done(statuses.get(number), payload, number)
    return payloads


def _raise_unless_done(status: str | None, payload: bytes, number: int) -> None:
    if status == _REFUSED:
        raise pickle.loads(payload)
    if status == _MISSING:
        raise missing_package(**json.loads(payload))
    if status != _DONE:
        raise InternalError(f"Spark returned no result for task {number}")


def _task_slots(spark: SparkSession) -> int:
    """Tasks that run at once: what the session is configured for, else what Spark splits a range into."""
    told = slots_of(partial(_setting, spark))
    if told is not None:
        return told
    pieces = spark.range(_PROBE_ROWS).select(spark_partition_id().alias("piece")).toArrow()
    return max(1, len(pieces.column("piece").unique()))


def _setting(spark: SparkSession, key: str) -> str:
    """A setting of the session; empty when it is not set, or when the platform does not show it."""
    try:
        return spark.conf.get(key, None) or ""
    except PySparkException:
        return ""
