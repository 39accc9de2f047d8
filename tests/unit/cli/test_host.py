from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from spark_omnigraph.cli import host as module
from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.host import Host, surroundings
from spark_omnigraph.write.executor import LocalExecutor

LOG = logging.getLogger("test")
GIB = 1024**3


class Session:
    """As much of a Spark session as a host looks at."""

    def __init__(self, **conf: str) -> None:
        self.stopped = False
        self.conf = SimpleNamespace(get=lambda key, default=None: conf.get(key, default), getAll=conf)

    def stop(self) -> None:
        self.stopped = True


def session(master: str, **conf: str) -> Any:
    return Session(**{"spark.master": master, **conf})


def config(**given: Any) -> JobConfig:
    return JobConfig(verb="ingest", **given)


@pytest.mark.parametrize(
    ("executor", "spark", "size", "expected"),
    [
        ("local", session("yarn"), 100 * GIB, False),
        ("spark", None, 0, True),
        ("auto", None, GIB - 1, False),
        ("auto", None, GIB, True),
        ("auto", session("yarn"), 0, True),
        ("auto", session("local[2]"), 0, False),
        ("auto", session("local[2]"), GIB, True),
    ],
)
def test_who_takes_spark(executor: str, spark: Any, size: int, expected: bool) -> None:
    assert Host("job", LOG, spark).takes_spark(config(executor=executor), size) is expected


def test_auto_stays_local_where_spark_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_installed", lambda: False)
    assert Host("job", LOG).takes_spark(config(), GIB) is False


def test_the_threshold_is_an_option() -> None:
    assert Host("job", LOG).takes_spark(config(spark_threshold=10), 10)


def test_local_work_is_left_to_the_library_unless_bounded() -> None:
    assert Host("job", LOG).executor(config(), 0) is None
    bounded = Host("job", LOG).executor(config(load_concurrency=3), 0)
    assert isinstance(bounded, LocalExecutor)
    assert bounded.parallelism == 3


def test_options_of_the_job_win_over_those_of_spark() -> None:
    spark = session("local", **{"spark.omnigraph.storage.a": "spark", "spark.omnigraph.storage.b": "spark"})
    job = config(storage_options={"b": "job", "c": "job"})
    assert Host("job", LOG, spark).storage_options(job) == {"a": "spark", "b": "job", "c": "job"}
    assert Host("job", LOG).storage_options(config()) == {}


def test_a_session_of_the_surroundings_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = session("local")
    monkeypatch.setattr(module, "running_session", lambda: notebook)
    with surroundings("job", LOG, {}) as host:
        assert host.executor(config(executor="spark", load_concurrency=2), 0) is not None
    assert notebook.stopped is False


def test_a_session_made_for_the_job_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    made = session("local")
    monkeypatch.setattr(module, "running_session", lambda: None)
    monkeypatch.setattr(module, "active_or_local", lambda _name, **_conf: made)
    with surroundings("job", LOG, {}) as host:
        assert host.storage_options(config()) == {}
        host.executor(config(executor="spark", load_concurrency=2), 0)
        assert made.stopped is False
    assert made.stopped is True


def test_a_submitted_driver_has_its_session_at_once_and_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = session("yarn", **{"spark.omnigraph.storage.aws_secret_access_key": "x"})
    monkeypatch.setattr(module, "running_session", lambda: None)
    monkeypatch.setattr(module, "active_or_local", lambda _name, **_conf: made)
    with surroundings("job", LOG, {"PYSPARK_GATEWAY_PORT": "1"}) as host:
        assert host.storage_options(config()) == {"aws_secret_access_key": "x"}
    assert made.stopped is True


def test_a_session_is_stopped_after_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made = session("yarn")
    monkeypatch.setattr(module, "running_session", lambda: None)
    monkeypatch.setattr(module, "active_or_local", lambda _name, **_conf: made)

    def work() -> None:
        with surroundings("job", LOG, {"SPARK_REMOTE": "sc://host"}):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        work()
    assert made.stopped is True
