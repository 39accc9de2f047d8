"""What a session of Spark has of Delta, and its errors as ours: before anything runs, with the way out.

`require_delta` is asked first by whatever reads or writes a Delta table through Spark. The jars are the session's
business, never ours; the wheel `delta-spark` has none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph.errors import BadRequestError, ConflictError, NotFoundError, OmnigraphError
from spark_omnigraph.spark.errors import JavaError, task_failure
from spark_omnigraph.storage.uri import DELTA, DELTA_EXTRA

SETTINGS = (
    "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
    "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"
)
_WAY_OUT = f"start it with the jars of Delta (--packages io.delta:delta-spark_4.2_2.13:4.4.0, or --jars) and {SETTINGS}"
_LOCAL = f"or use --executor local with {DELTA_EXTRA}"
_ABSENT = re.compile(r"DATA_SOURCE_NOT_FOUND|ClassNotFoundException|UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY")
_NOT_CONFIGURED = re.compile(r"DELTA_CONFIGURE_SPARK_SESSION|The table or view `HISTORY`")
_OTHER_SPARK = re.compile(r"NoSuchMethodError|NoClassDefFoundError|NoSuchFieldError|AbstractMethodError|LinkageError")
_NO_TABLE = re.compile(
    r"DELTA_MISSING_DELTA_TABLE|DELTA_PATH_DOES_NOT_EXIST|DELTA_TABLE_NOT_FOUND|PATH_NOT_FOUND|DELTA_TABLE_ONLY_OPERATION"
    r"|DELTA_MISSING_DELTA_TABLE_COPY_INTO|DELTA_SCHEMA_NOT_SET"
)
_NO_VERSION = re.compile(r"DELTA_VERSION_NOT_FOUND|VersionNotFoundException|Cannot time travel")
_FEATURE = re.compile(
    r"(?:DELTA_UNSUPPORTED_FEATURES_FOR_(?:READ|WRITE)|DELTA_INVALID_PROTOCOL_VERSION|DELTA_UNSUPPORTED_FEATURES\w*)\]?"
    r"\s*([^\n]*)"
)
_RACED = re.compile(r"DELTA_CONCURRENT_\w+|DELTA_PROTOCOL_CHANGED|DELTA_METADATA_CHANGED|io\.delta\.exceptions\.\w+")


def require_delta(spark: SparkSession, name: str, place: str) -> DataFrame | None:
    """The table at a place as the session reads it, None where there is none; no row is read. `name` is what messages
    call it. BadRequestError for a session without Delta, and for a table with a feature that this one lacks.
    """
    try:
        return delta_frame(spark, name, place)
    except NotFoundError:
        return None


def delta_frame(spark: SparkSession, name: str, place: str, version: int | None = None) -> DataFrame:
    """A Delta table, at its newest version or an older one. NotFoundError, and BadRequestError as `require_delta`."""
    reader = spark.read.format("delta")
    with delta_errors(name, version):
        frame = (reader if version is None else reader.option("versionAsOf", version)).load(place)
        _ = frame.schema  # over Connect nothing has been asked before
        return frame


def has_delta(spark: SparkSession) -> bool:
    """Whether a session knows Delta."""
    try:
        require_delta(spark, "a table", "/omnigraph/none")
    except BadRequestError:
        return False
    except OmnigraphError:
        return True
    return True


def spark_place(uri: str) -> str:
    """Where a table lies, for Spark, which may run in another folder."""
    place = uri.removeprefix(DELTA)
    return place if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", place) else os.path.abspath(place)


@contextmanager
def delta_errors(name: str, version: int | None = None) -> Iterator[None]:
    """Around what asks Spark for a Delta table: its errors become ours."""
    try:
        yield
    except (PySparkException, JavaError) as error:
        raise _typed(error, name, version) from error


def _typed(error: BaseException, name: str, version: int | None) -> OmnigraphError:
    text = str(error)
    if _ABSENT.search(text):
        wheel = ": the wheel delta-spark is here, and has no jars" if find_spec("delta") is not None else ""
        return BadRequestError(f"{name} is a Delta table, and this session has no Delta{wheel}: {_WAY_OUT}, {_LOCAL}")
    if _NOT_CONFIGURED.search(text):
        return BadRequestError(
            f"{name} is a Delta table, and this session has the jars of Delta without its settings: start it with "
            f"{SETTINGS}, {_LOCAL}"
        )
    if _OTHER_SPARK.search(text):
        return BadRequestError(
            f"{name} is a Delta table, and the jars of Delta in this session are of another release of Spark: "
            f"{_WAY_OUT}, {_LOCAL}"
        )
    if _NO_TABLE.search(text):
        return NotFoundError(f"{name} not found: there is no Delta table")
    if version is not None and _NO_VERSION.search(text):
        return NotFoundError(f"{name} has no version {version} that can be read")
    if (feature := _FEATURE.search(text)) is not None:
        return BadRequestError(
            f"{name} needs more than the Delta of this session has ({feature.group(1)[:300]}): use a session with a "
            "newer release of Delta"
        )
    if _RACED.search(text):
        return ConflictError(f"{name} was written by somebody else meanwhile, and shows nothing of this: run it again")
    return task_failure(error)
