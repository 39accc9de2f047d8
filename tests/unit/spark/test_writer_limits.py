"""What a minute allows, shared by the tasks that write a frame. No session is needed: a task is played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
from pyspark.sql.pandas.types import from_arrow_schema

from spark_omnigraph import Graph
from spark_omnigraph.embed import remote
from spark_omnigraph.errors import EmbeddingConfigError
from spark_omnigraph.spark.errors import CodedError
from spark_omnigraph.spark.write.writer import plan_stream_write, plan_write
from spark_omnigraph.spark.writes import sharing_tasks
from tests.support.embedding_server import EmbeddingServer

FILMS = pa.schema([("name", pa.string()), ("plot", pa.string())])
LIMIT = "OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE"
Settings = Mapping[str, str]
Waits = list[float]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", 'node Film { name: String @key  plot: String?  v: Vector(4)? @embed("plot") }')


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as made:
        for name, value in made.environ().items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Minutes before each request."""
    found: Waits = []
    monkeypatch.setattr(remote._Call, "pause", lambda call, seconds: found.append(round(seconds / 60)))
    remote._pace_of.cache_clear()
    return found


def in_task(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    told = {f"spark.{name}": value for name, value in settings.items()} | {"sql.streaming.queryId": "9f1c"}
    task = SimpleNamespace(partitionId=lambda: 0, getLocalProperty=told.get)
    monkeypatch.setattr(TaskContext, "get", lambda: task)


def write(planned: DataSourceArrowWriter | DataSourceStreamArrowWriter, name: str) -> None:
    """A task, in this process, as one that Spark uses again."""
    rows = pa.RecordBatch.from_pylist([{"name": name, "plot": f"plot of {name}"}], FILMS)
    cloudpickle.loads(cloudpickle.dumps(planned)).write(iter([rows]))


def options(graph: Graph, **more: str) -> dict[str, str]:
    return {"path": graph.uri, "node": "Film", "index": "false", "embed": "missing", **more}


@pytest.mark.parametrize(
    ("settings", "more", "tasks"),
    [
        ({"master": "local[3]"}, {}, 3),
        ({"master": "yarn", "executor.cores": "4", "executor.instances": "2"}, {}, 8),
        ({"master": "local[3]"}, {"embedTasks": "5"}, 5),
        ({}, {"embedTasks": "2"}, 2),
    ],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_each_task_has_its_share(
    graph: Graph,
    waits: Waits,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    more: Settings,
    tasks: int,
    is_stream: bool,
) -> None:
    """A request a minute, and one waits for the task before, in a stream for the batch before, too."""
    monkeypatch.setenv(LIMIT, "1")
    plan = plan_stream_write if is_stream else plan_write
    planned = plan(options(graph, **more), from_arrow_schema(FILMS), overwrite=False)
    in_task(monkeypatch, settings)
    write(planned, "a")
    write(planned, "b")
    assert waits == [0, tasks]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"embed": "off"}, {}),
        ({"embed": "missing"}, {"embedTasks": "7"}),
        ({"Embed": " MISSING "}, {"embedTasks": "7"}),
        ({"embed": "missing", "EMBEDTASKS": "2"}, {}),
    ],
)
def test_calls_ask_the_session_how_many_tasks_there_are(given: Settings, found: Settings) -> None:
    settings = {"spark.default.parallelism": "7"}
    spark = cast("SparkSession", SimpleNamespace(conf=SimpleNamespace(get=settings.get)))
    assert sharing_tasks(spark, given) == found


def test_a_limit_that_nobody_can_share_is_refused(
    graph: Graph, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_task(monkeypatch, {"master": "spark://host:7077"})
    write(plan_write(options(graph), from_arrow_schema(FILMS), overwrite=False), "a")
    assert server.asked == ["plot of a"], "without a limit there is nothing to share"
    monkeypatch.setenv(LIMIT, "1")
    planned = plan_write(options(graph), from_arrow_schema(FILMS), overwrite=False)
    with pytest.raises(CodedError, match=r"nobody knows how many ask at a time: say it by the option embedTasks"):
        write(planned, "b")
    assert server.asked == ["plot of a"]


def test_without_a_provider_the_process_is_named_that_needs_it(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream asks in its tasks, and its query begins without."""
    monkeypatch.delenv("OPENAI_API_KEY")
    schema = from_arrow_schema(FILMS)
    with pytest.raises(
        EmbeddingConfigError, match=r"is required for.*in which Spark plans the write, .* when the session began: set"
    ):
        plan_write(options(graph), schema, overwrite=False)
    in_task(monkeypatch, {})
    with pytest.raises(CodedError, match=r"is required for.*that run the stream, .* when the session began: set"):
        write(plan_stream_write(options(graph), schema, overwrite=False), "a")
