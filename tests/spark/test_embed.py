"""Texts asked and vectors written by Spark tasks, and loads of frames that ask."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import Graph, LoadOptions, SparkExecutor
from spark_omnigraph.embed.config import resolve_config
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import EmbeddingConfigError
from spark_omnigraph.spark.errors import typed_errors
from spark_omnigraph.spark.write.options import tasks_beside
from tests.support.embedding_server import Act, EmbeddingServer, Reply, refusal

SCHEMA = 'node Film { name: String @key  plot: String?  year: I32?  v: Vector(4)? @embed("plot") }'


def film(number: int, **data: object) -> str:
    return json.dumps({"type": "Film", "data": {"name": f"f{number}", "plot": f"plot {number % 20}", **data}})


@pytest.mark.parametrize("shape", ["openai-compatible", "gemini"])
def test_tasks_ask_and_write(spark: SparkSession, tmp_path: Path, shape: str) -> None:
    """A server that answers badly at first, in both shapes of files: columns written anew, and whole rows."""
    graph = Graph.init(tmp_path / "g", SCHEMA)
    for part in range(2):
        lines = [film(number) for number in range(40 * part, 40 * part + 40)]
        graph.load(lines, options=LoadOptions(build_indexes=False))
    script: list[Act | Reply] = [
        Act.REORDERED,
        refusal(429, Retry_After="0"),
        Act.DROPPED,
        refusal(503),
        Act.SHORT,
        *([Act.MALFORMED] if shape != "gemini" else []),  # there a short answer is worth nothing either
    ]
    with EmbeddingServer(script) as server:
        config = replace(resolve_config(server.environ(shape)), batch_size=4, parallel=4)
        report = graph.embed("Film", embedder=config, executor=SparkExecutor(spark), max_bad_rows=32)
        again = graph.embed("Film", embedder=config, executor=SparkExecutor(spark))
        asked, tasks = Counter(server.asked), {_task_of(each.body) for each in server.log}
    assert tasks == {"RETRIEVAL_DOCUMENT" if shape == "gemini" else None}
    counts, rest = report.properties["Film.v"], again.properties["Film.v"]
    assert (counts.distinct, counts.requested, counts.embedded + counts.failed) == (20, 20, 80)
    assert rest.embedded == counts.failed == 4 * (rest.distinct)  # what was short or malformed is asked in the next run
    assert set(asked) == {f"plot {n}" for n in range(20)}
    assert len(report.commits) == 1
    expected = MockEmbedder().embed([f"plot {n}" for n in range(20)], dimension=4, role=Role.DOCUMENT).vectors
    frame = spark.read.format("omnigraph").option("node", "Film").load(graph.uri)
    found = {row["name"]: row["v"] for row in frame.collect()}
    wanted = np.array([expected[number % 20] for number in range(80)])
    assert np.allclose(np.array([found[f"f{number}"] for number in range(80)], np.float32), wanted, atol=1e-6)

    changed = graph.embed(
        "Film", "v", lambda texts: [[1, 0, 0, 0]] * len(texts), mode="all", where="name = 'f3'", no_cache=True,
        executor=SparkExecutor(spark),
    )  # laid out as a table  # fmt: skip
    assert [change.id for change in graph.diff(changed.base_commit or "", changed.commit).changes] == ["f3"]


def _task_of(body: dict[str, Any]) -> str | None:
    """What the texts of a request are said to be for, where its shape says it."""
    found: str | None = body.get("requests", [body])[0].get("taskType")
    return found


def test_a_task_knows_how_many_run_at_a_time(spark: SparkSession) -> None:
    """Settings of the session come with each task: what a minute allows is divided by them where a frame is written."""

    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"tasks": [tasks_beside()]})

    rows = spark.range(1).mapInArrow(told, "tasks bigint").collect()
    assert [row["tasks"] for row in rows] == [SparkExecutor(spark).parallelism]


def test_frames_ask_while_they_are_written(spark: SparkSession, provider: EmbeddingServer, tmp_path: Path) -> None:
    """Of the provider that the environment names where Spark plans, and of nobody unless it is said."""
    graph = Graph.init(tmp_path / "g", SCHEMA)

    def save(rows: list[tuple[str, str]], **options: str) -> None:
        frame = spark.createDataFrame(rows, "name string, plot string").repartition(2)
        frame.write.format("omnigraph").mode("append").option("node", "Film").options(**options).save(graph.uri)

    def asked() -> set[str]:
        return set(provider.asked[before:])

    before, plots = len(provider.asked), [f"frame {number % 10}" for number in range(40)]
    save([(f"f{number}", plot) for number, plot in enumerate(plots)] + [("blank", " ")], embed="missing")
    assert asked() == set(plots)
    assert graph.commits()[0].parent == graph.commits()[1].id
    assert len(graph.commits()) == 2  # rows and vectors are one
    vectors = MockEmbedder().embed(plots, dimension=4, role=Role.DOCUMENT).vectors
    stored = {row["name"]: row["v"] for row in (json.loads(line)["data"] for line in graph.export())}
    assert stored.pop("blank") is None
    assert np.allclose([stored.pop(f"f{number}") for number in range(40)], vectors, atol=1e-6)
    assert stored == {}

    before = len(provider.asked)
    save([("known", "frame 1")], embed="missing")  # answers are kept beside the graph
    save([("off", "never asked")])
    assert asked() == set()
    provider.script.extend([refusal(401)] * 8)  # Spark tries a task again
    with pytest.raises(EmbeddingConfigError, match="OPENAI_API_KEY"), typed_errors():
        save([("x", "with a key that is refused")], embed="missing")
    provider.script.clear()
    assert (graph.count("node:Film"), graph.entity("node:Film", "x")) == (43, None)
