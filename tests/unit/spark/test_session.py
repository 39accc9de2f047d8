from __future__ import annotations

import os
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from spark_omnigraph.errors import UsageError
from spark_omnigraph.spark import session
from spark_omnigraph.spark.session import slots_of


def fake(**conf: str) -> Any:
    values = {key.replace("_", "."): value for key, value in conf.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=values.get, getAll=values))


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[2]", True), ("local[*,4]", True), ("local-cluster[2,1,700]", False), ("yarn", False)],
)
def test_is_local(master: str, local: bool) -> None:
    assert session.is_local(fake(spark_master=master)) is local


def test_a_session_that_hides_its_master_is_not_local() -> None:
    assert session.is_local(fake()) is False


def test_storage_options_come_from_the_configuration() -> None:
    spark = fake()
    spark.conf.getAll.update({"spark.omnigraph.storage.aws_secret_access_key": "x", "spark.app.name": "y"})
    assert session.storage_options(spark) == {"aws_secret_access_key": "x"}


def test_submitted_drivers_are_known_by_their_environment() -> None:
    assert session.is_submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert session.is_submitted({"SPARK_REMOTE": "sc://host"})
    assert not session.is_submitted({})


def test_a_missing_pyspark_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(UsageError, match=r"spark-omnigraph\[spark\]"):
        session.local_session("test")


def test_the_module_does_not_import_pyspark() -> None:
    """Most verbs never need Spark; importing it would double their start."""
    program = (
        "import sys; from spark_omnigraph.spark import session; assert session.running_session() is None; "
        "assert session.is_installed(); sys.exit('pyspark' in sys.modules)"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    assert subprocess.run([sys.executable, "-c", program], check=False, env=environ).returncode == 0


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ("master=local", 1),
        ("master=local[3]", 3),
        ("master=local[3, 2]", 3),
        ("master=local[*]", 6),
        ("master=local[* , 4]", 6),
        ("master=local[3] default.parallelism=5", 3),
        ("master=local[3] default.parallelism=2", 3),
        ("master=yarn executor.cores=4 executor.instances=6 default.parallelism=200", 24),
        ("master=yarn executor.cores=4 default.parallelism=8", 8),
        ("master=yarn executor.cores=4 executor.instances=6", 24),
        ("master=yarn executor.cores=4 executor.instances=6 task.cpus=2", 12),
        ("master=yarn executor.cores=4 executor.instances=2 dynamicAllocation.enabled=TRUE", None),
        ("master=yarn executor.cores=4 dynamicAllocation.enabled=true dynamicAllocation.maxExecutors=5", 20),
        ("master=spark://host:7077 cores.max=9 task.cpus=2", 4),
        ("master=spark://host:7077 executor.cores=4", None),
        ("master=yarn executor.instances=6", None),
        ("master=local-cluster[2,1,1024]", None),
        ("", None),
    ],
)
def test_slots_follow_from_settings(settings: str, slots: int | None) -> None:
    told = dict(each.split("=", 1) for each in re.split(r" (?=[a-z])", settings) if each)
    assert slots_of(lambda name: told.get(name.removeprefix("spark."), ""), cores=6) == slots


def test_only_its_own_machine_says_how_many_a_local_session_runs() -> None:
    """Cores of this one are not those of the server, or of its container."""
    told = {"spark.master": "local[*]"}
    assert slots_of(lambda name: told.get(name, "")) is None
