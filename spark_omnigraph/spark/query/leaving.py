"""Work of Spark that its caller can leave: at an interrupt from the keyboard, or at a limit of time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_omnigraph.limits import Leaving
from spark_omnigraph.spark.delta_tables import own_session, release
from spark_omnigraph.spark.errors import JavaError, task_failure

T = TypeVar("T")
_PATIENCE = 5.0
"""Seconds that a caller who leaves waits for his work to end. It is cancelled as long as it goes on."""
_PAUSE = 0.1


def in_own_session(spark: SparkSession, seconds: float | None, work: Callable[[SparkSession], T]) -> T:
    """What `work` makes of a session beside the caller's. Where the caller leaves it, the jobs of that session are
    cancelled, and no others. LimitError when it takes longer than `seconds`; whatever `work` raises, and for errors of
    Spark those of `task_failure`.
    """
    own, ended = own_session(spark), threading.Event()

    def run() -> T:
        try:
            return work(own)
        finally:
            ended.set()

    try:
        with _interrupts_of_python():
            return Leaving[T](seconds).value(run)
    except (PySparkException, JavaError) as error:
        raise task_failure(error) from error
    finally:
        if ended.is_set():
            release(own)
        else:
            threading.Thread(target=_end, args=(own, ended), daemon=True).start()
            ended.wait(_PATIENCE)


def _end(own: SparkSession, ended: threading.Event) -> None:
    """Cancels what runs in a session until its work has ended: between two jobs there is nothing to cancel."""
    while not ended.is_set():
        with suppress(PySparkException, JavaError):  # a session that has gone has no jobs
            own.interruptAll()
        ended.wait(_PAUSE)
    release(own)


@contextmanager
def _interrupts_of_python() -> Iterator[None]:
    """An interrupt is an exception of this thread alone; where a JVM is a child, pyspark would cancel all jobs of all
    sessions at one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
