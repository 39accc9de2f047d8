"""Where a job runs: in this process alone, under spark-submit, or with a Spark session it starts when needed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.spark.session import (
    active_or_local,
    application_id,
    embed_key,
    is_installed,
    is_local,
    is_submitted,
    running_session,
    storage_options,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_omnigraph.write.executor import Executor


_ONLY_OURS = {"spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true"}
"""For a session in which no code of a user runs: errors of workers without the stack, which is of no use to him."""


class Host:
    """The Spark session of the surroundings, if any, and the executors that a job may use.

    `owned` says that the session ends with the job; a notebook's session does not.
    """

    def __init__(
        self, app_name: str, log: logging.Logger, spark: SparkSession | None = None, *, owned: bool = False
    ) -> None:
        self._app_name = app_name
        self._log = log
        self._spark = spark
        self._owned = owned

    def storage_options(self, config: JobConfig) -> dict[str, str]:
        """Options for the object store: those of the Spark configuration, then those of the job."""
        from_spark = storage_options(self._spark) if self._spark is not None else {}
        return {**from_spark, **config.storage_options}

    @property
    def application_id(self) -> str | None:
        """Of the Spark session of the job, if it has one."""
        return None if self._spark is None else application_id(self._spark)

    @property
    def embed_key(self) -> str | None:
        """The key of the embedding provider, where the Spark configuration has one."""
        return None if self._spark is None else embed_key(self._spark)

    def takes_spark(self, config: JobConfig, input_bytes: int) -> bool:
        """Whether a load of this size runs on Spark."""
        if config.executor != "auto":
            return config.executor == "spark"
        if self._spark is not None:
            return not is_local(self._spark) or input_bytes >= config.spark_threshold
        return input_bytes >= config.spark_threshold and is_installed()

    def executor(self, config: JobConfig, input_bytes: int) -> Executor | None:
        """The executor for a load of this size; None leaves the number of local processes to the library.

        Starts a local Spark when the choice is Spark and none runs.
        """
        if not self.takes_spark(config, input_bytes):
            return None if config.load_concurrency is None else _local_executor(config.load_concurrency)
        return _spark_executor(self.session(), config.load_concurrency)

    def session(self) -> SparkSession:
        """The Spark session of the surroundings; a local one is started where there is none."""
        if self._spark is None:
            self._log.info("starting Spark")
            self._spark = active_or_local(self._app_name, conf=_ONLY_OURS)
            self._owned = True
        return self._spark

    def close(self) -> None:
        """Stops the session if it is owned."""
        if self._owned and self._spark is not None:
            self._spark.stop()
            self._spark = None


def _local_executor(workers: int) -> Executor:
    from spark_omnigraph.write.executor import LocalExecutor  # noqa: PLC0415 - its pool is slow to import

    return LocalExecutor(workers)


def _spark_executor(spark: SparkSession, parallelism: int | None) -> Executor:
    from spark_omnigraph.spark.executor import SparkExecutor  # noqa: PLC0415 - needs pyspark, which is optional

    return SparkExecutor(spark, parallelism)


@contextmanager
def surroundings(app_name: str, log: logging.Logger, environ: Mapping[str, str] = os.environ) -> Iterator[Host]:
    """The host of a job.

    Under spark-submit the session is made at once: its configuration may hold the store's secrets, and YARN
    counts a driver that never makes one as failed.
    """
    running = running_session()
    if running is None and is_submitted(environ):
        host = Host(app_name, log, active_or_local(app_name), owned=True)
    else:
        host = Host(app_name, log, running)
    try:
        yield host
    finally:
        host.close()
