"""Spark sessions: the one that runs already, or a quiet local one.

Nothing here imports `pyspark` before a session is asked for: it is an optional dependency, and importing it takes
longer than most verbs of the command line.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING

from spark_omnigraph.errors import UsageError
from spark_omnigraph.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL_SPARK = 'pyspark is not installed: `pip install "spark-omnigraph[spark]"`'
STORAGE_PREFIX = "spark.omnigraph.storage."
EMBED_KEY = "spark.omnigraph.embed.api_key"
"""Spark configuration below this prefix becomes storage options; the place for secrets of a job."""

_LOCAL_MASTER = re.compile(r"local(?:\[(\d+|\*)(?:\s*,\s*\d+)?\])?")
_LOG = logging.getLogger(__name__)
_LOCAL_CONF: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.unix.domain.socket.enabled": "true",
}


def local_session(app_name: str, cores: int | str = "*", conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session on this machine alone: quiet, without a UI, its workers in this very Python environment.

    `conf` wins over the defaults. When a session runs in this process already, Spark returns that one.
    Raises UsageError when pyspark or a Java runtime is missing.
    """
    session_class = _session_class()
    if running_session() is None:
        ensure_java()
        # Without it workers are whatever `python3` is on PATH, which need not have this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = session_class.builder.master(f"local[{cores}]").appName(app_name)
    for key, value in {**_LOCAL_CONF, **_quiet_logs(), **(conf or {})}.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        # Lance warns of every fork. This one becomes the JVM at once and never touches Lance.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        return builder.getOrCreate()


def active_or_local(app_name: str, cores: int | str = "*", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process or of spark-submit when there is one, left as it is; else a local session."""
    running = running_session()
    if running is not None:
        return running
    if is_submitted():
        return _session_class().builder.appName(app_name).getOrCreate()
    return local_session(app_name, cores, conf)


def running_session() -> SparkSession | None:
    """The session that is active in this process; costs nothing where pyspark was never imported."""
    if "pyspark.sql" not in sys.modules:
        return None
    return _session_class().getActiveSession()


def is_installed() -> bool:
    """True when pyspark can be imported; found without importing it."""
    return find_spec("pyspark") is not None


def check_installed() -> None:
    """UsageError where pyspark cannot be imported, before a session is asked for."""
    _session_class()


def is_submitted(environ: Mapping[str, str] = os.environ) -> bool:
    """True in a driver that spark-submit started, and where the environment names a Spark Connect server."""
    return "PYSPARK_GATEWAY_PORT" in environ or "SPARK_REMOTE" in environ


def is_local(spark: SparkSession) -> bool:
    """True when the session's tasks run on this machine inside one JVM."""
    master = spark.conf.get("spark.master", None)
    return master is not None and (master == "local" or master.startswith("local["))


def storage_options(spark: SparkSession) -> dict[str, str]:
    """Storage options from the session's configuration (`spark.omnigraph.storage.…`)."""
    return {
        key.removeprefix(STORAGE_PREFIX): value
        for key, value in spark.conf.getAll.items()
        if key.startswith(STORAGE_PREFIX)
    }


def embed_key(spark: SparkSession) -> str | None:
    """The key of the embedding provider from the session's configuration, which fills it from a secret scope."""
    return spark.conf.get(EMBED_KEY, None)


def application_id(spark: SparkSession) -> str | None:
    """Id of the Spark application behind a session; over Spark Connect, of the server."""
    return spark.conf.get("spark.app.id", None)


@contextmanager
def under(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session that are undone afterwards."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, former in before.items():
            if former is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, former)


def _session_class() -> type[SparkSession]:
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - optional and slow, see the module's docstring
    except ImportError as error:
        raise UsageError(f"{INSTALL_SPARK} ({error})") from error
    return SparkSession


def _quiet_logs() -> dict[str, str]:
    """Configuration that gives the JVM our logging file; nothing when the package runs out of a zip archive."""
    file = resources.files("spark_omnigraph.spark").joinpath("quiet-log4j2.properties")
    if not isinstance(file, os.PathLike):
        _LOG.debug("no logging file for Spark: the package is not unpacked")
        return {}
    return {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{os.fspath(file)}"}


def slots_of(setting: Callable[[str], str], cores: int | None = None) -> int | None:
    """Tasks that run at a time, where `setting` gives the text of a setting, empty where it is not set, and `cores` are
    those of the machine of a local session, as far as the caller knows. None where the settings do not say it, as of
    executors that come and go without a bound.
    """
    master = _LOCAL_MASTER.fullmatch(setting("spark.master"))
    if master is None:
        slots = _executor_slots(setting)
    else:
        threads = master.group(1) or "1"
        slots = cores if threads == "*" else int(threads)
    # What work is cut into by default may be far more, or less, than runs at a time.
    return slots or _number(setting("spark.default.parallelism"))


def _executor_slots(setting: Callable[[str], str]) -> int | None:
    cores, most = _number(setting("spark.executor.cores")), _number(setting("spark.cores.max"))
    if most is None and cores is not None:
        comes_and_goes = setting("spark.dynamicAllocation.enabled").lower() == "true"
        name = "spark.dynamicAllocation.maxExecutors" if comes_and_goes else "spark.executor.instances"
        executors = _number(setting(name))
        most = None if executors is None else executors * cores
    return None if most is None else max(1, most // (_number(setting("spark.task.cpus")) or 1))


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and int(text) > 0 else None
