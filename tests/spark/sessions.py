"""The two kinds of session that the tests of this folder run on: classic, and Spark Connect with no JVM in reach."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn
from unittest.mock import patch

import py4j.java_gateway
import pyspark
from pyspark.sql import SparkSession

from spark_omnigraph.spark.java import ensure_java
from spark_omnigraph.spark.session import local_session
from tests.support.object_store import free_ports
from tests.support.short_jvm import SHORT_LIVED, WARM

SLOTS = "2,4"
"""Two tasks at once, four attempts each."""

CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.driver.memory": "1g",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
}

UNUSUAL = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.caseSensitive": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
}
"""Settings of a session that no answer may depend on."""

_ROOT = Path(__file__).parents[2]
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_SECONDS = 240.0


@contextmanager
def classic_session(folder: Path) -> Iterator[SparkSession]:
    """A session whose JVM is a child of this process."""
    session = local_session("spark_omnigraph tests", SLOTS, {**CONF, **WARM, **_places(folder)})
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def connect_session(folder: Path, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[SparkSession]:
    """A client of a Connect server that is a process of its own, in another working directory, with `more` settings.

    Nothing that needs a JVM can be had here: starting one, or a SparkContext, is an error of the test.
    """
    ensure_java()
    with (
        connect_server(folder, more=more) as url,
        patch.object(py4j.java_gateway.JavaGateway, "__init__", _no_jvm),
    ):
        builder = SparkSession.builder.remote(url)
        for key, value in CONF.items():
            if key.startswith("spark.sql."):
                builder = builder.config(key, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def connect_server(
    folder: Path,
    python: str = sys.executable,
    package: Path | None = _ROOT,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """The address of a server whose Python workers are of this interpreter; `package` is where they find this package,
    None where it is installed for them; `more` are settings of its session.
    """
    (port,) = free_ports(1)
    conf = {
        **CONF,
        **more,
        **_places(folder),
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--class", _SERVER]
    command += ["--master", f"local[{SLOTS}]"]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    # The server runs our code in Python workers of its own; an installed package would need no PYTHONPATH.
    paths = [] if package is None else [str(package), os.environ.get("PYTHONPATH")]
    pythons = {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    environ = {**os.environ, **pythons, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "spark-internal"], cwd=folder, env=environ, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _wait_for(port, process, folder / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server listens; bounded."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the Connect server ended with code {process.returncode}: {log.read_text()[-2000:]}")
        # Its log is the only sign of readiness that costs no connection.
        if re.search(rf"server started at: .*:{port}\b", log.read_text(errors="replace")):
            return
        time.sleep(0.1)
    raise RuntimeError(f"the Connect server did not start within {_START_SECONDS:.0f} seconds")


def _places(folder: Path) -> dict[str, str]:
    return {"spark.local.dir": str(folder / "local"), "spark.sql.warehouse.dir": str(folder / "warehouse")}


def _no_jvm(*_: object, **__: object) -> NoReturn:
    raise AssertionError("a JVM was asked for in a Spark Connect client")
