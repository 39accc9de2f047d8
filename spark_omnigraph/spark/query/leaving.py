"""Work of Spark that its caller can leave: at an interrupt from the keyboard, or at a limit of time."""

from __future__ import annotations

import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_omnigraph.limits import Leaving
from spark_omnigraph.spark.api import is_remote
from spark_omnigraph.spark.delta_tables import own_session
from spark_omnigraph.spark.errors import JavaError, task_failure

T = TypeVar("T")
_PATIENCE = 5.0
"""Seconds that a caller who leaves waits for his work to end. It is cancelled as long as it goes on."""
_PAUSE = 0.1


def leaving(
    spark: SparkSession,
    seconds: float | None,
    work: Callable[[SparkSession], T],
    undo: Callable[[], object] = lambda: None,
) -> T:
    """What `work` makes of a session. Where the caller leaves it, its jobs are cancelled, and no others: over Connect
    by their tag. Elsewhere tags are a thread's, so the session is one beside the caller's. LimitError when it takes
    longer than `seconds`; whatever `work` raises, and for errors of Spark those of `task_failure`. `undo` is called
    where the work has failed, or is done after its caller left.
    """
    thread = Leaving[T](seconds)
    own, tag, ended = spark if is_remote(spark) else own_session(spark), f"omnigraph-{uuid.uuid4()}", threading.Event()

    def run() -> T:
        try:
            own.addTag(tag)
            made = work(own)
            thread.check()
            return made
        except BaseException:
            undo()
            raise
        finally:
            ended.set()

    def end() -> None:
        """Cancels until the work has ended: between two jobs there is nothing to cancel."""
        while not ended.is_set():
            with suppress(PySparkException, JavaError):  # a session that has gone has no jobs
                own.interruptTag(tag) if own is spark else own.interruptAll()
            ended.wait(_PAUSE)

    try:
        with _interrupts_of_python():
            return thread.value(run)
    except (PySparkException, JavaError) as error:
        raise task_failure(error) from error
    finally:
        if not ended.is_set():
            threading.Thread(target=end, daemon=True).start()
            ended.wait(_PATIENCE)


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
