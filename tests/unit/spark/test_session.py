from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from spark_omnigraph.errors import UsageError
from spark_omnigraph.spark import session


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
