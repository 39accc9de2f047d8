"""Readers and writers on their way to workers, with and without the packages they need there."""

from __future__ import annotations

import base64
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import datasource

from spark_omnigraph.errors import UsageError
from spark_omnigraph.spark.errors import translate
from spark_omnigraph.spark.portable import Portable, TaskBody, carried
from spark_omnigraph.spark.source import OmnigraphDataSource

OPEN_WITHOUT = """
import base64, pickle, sys

class Gate:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Gate())
from pyspark import cloudpickle
pickle.loads(base64.b64decode(sys.argv[2]))[0].schema()
"""


class Held(Portable):
    def __init__(self, value: object) -> None:
        self.value = value


def test_what_is_carried_arrives_as_it_was() -> None:
    found = pickle.loads(cloudpickle.dumps(Held({"a": [1]})))
    assert (type(found), found.value) == (Held, {"a": [1]})

    class Local(Held):  # known by value alone, as classes of a notebook are
        pass

    again = pickle.loads(cloudpickle.dumps(pickle.loads(cloudpickle.dumps(Local(7)))))
    assert (type(again).__name__, again.value) == ("Local", 7)


SOURCE = OmnigraphDataSource({"path": "/g", "node": "Lamp"})


class Twice(TaskBody):
    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from (batch, batch)


def test_a_body_arrives_as_a_function() -> None:
    run = pickle.loads(cloudpickle.dumps(carried(Twice())))
    batch = pa.record_batch({"id": [1]})
    assert list(run(iter([batch]))) == [batch, batch]


@pytest.mark.parametrize(
    ("what", "package"), [(SOURCE, "spark_omnigraph"), (SOURCE, "lance"), (carried(Twice()), "spark_omnigraph")]
)
def test_a_worker_without_a_package_names_it_the_host_the_python_and_the_way_out(what: object, package: str) -> None:
    packed = base64.b64encode(cloudpickle.dumps((what, "beside"))).decode()
    ended = subprocess.run(
        [sys.executable, "-c", OPEN_WITHOUT, package, packed],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("COV")},
    )
    found = translate(PySparkException(ended.stderr))
    assert type(found) is UsageError, ended.stderr
    assert found.message == (
        f"Python package '{package}' is missing on {socket.gethostname()} ({sys.executable}): "
        "install spark-omnigraph[spark] into the Python that the executors run (PYSPARK_PYTHON), "
        "or ship an environment that has it (--archives environment.tar.gz#environment)"
    )


def test_everything_that_spark_carries_is_portable() -> None:
    from spark_omnigraph.spark.read import reader  # noqa: F401, PLC0415 - imported when it is needed
    from spark_omnigraph.spark.write import writer  # noqa: F401, PLC0415 - imported when it is needed

    bases = [c for name, c in vars(datasource).items() if name.startswith("DataSource")]
    ours = {c for base in bases for c in _below(base) if c.__module__.startswith("spark_omnigraph")}
    assert {"OmnigraphDataSource", "GraphReader", "GraphWriter", "DeletingStreamWriter"} < {c.__name__ for c in ours}
    assert {c.__name__ for c in ours if not issubclass(c, Portable)} == set()


def _below(base: type) -> set[type]:
    children: list[type] = base.__subclasses__()
    return set(children).union(*(_below(child) for child in children))
