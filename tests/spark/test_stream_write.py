"""Streams into a graph: one commit a batch, each batch once, whatever dies."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import Graph
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.manifest.rows import last_transaction
from spark_omnigraph.spark.api import register
from spark_omnigraph.spark.errors import typed_errors
from tests.spark.stream_victim import ENVELOPE

ROOT = Path(__file__).parents[2]
SCHEMA = """
node Sensor { name: String @key  reading: I32? }
edge Near: Sensor -> Sensor { seen: I32? }
"""


def node(name: str, reading: int) -> dict[str, object]:
    return {"type": "Sensor", "data": json.dumps({"name": name, "reading": reading})}


def put(folder: Path, number: int, *records: dict[str, object]) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:04d}.json"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def pour(spark: SparkSession, source: Path, graph: Graph, checkpoint: Path, **options: str) -> None:
    """Runs the stream until all files are in, one file a batch."""
    register(spark)
    query = (
        spark.readStream.schema(ENVELOPE)
        .option("maxFilesPerTrigger", 1)
        .json(str(source))
        .writeStream.format("omnigraph")
        .options(checkpointLocation=str(checkpoint), **options)
        .trigger(availableNow=True)
        .start(graph.uri)
    )
    with typed_errors():
        assert query.awaitTermination(200)


def readings(graph: Graph) -> dict[str, int]:
    rows = (json.loads(line) for line in graph.export(types=["Sensor"]))
    return {row["data"]["id"]: row["data"]["reading"] for row in rows}


def test_each_batch_is_one_commit_and_a_lost_checkpoint_repeats_none(spark: SparkSession, tmp_path: Path) -> None:
    graph, source = Graph.init(tmp_path / "g", SCHEMA), tmp_path / "in"
    put(source, 1, node("a", 1), node("b", 2), {"edge": "Near", "from": "a", "to": "b"})
    put(source, 2, node("a", 10), node("c", 3))
    pour(spark, source, graph, tmp_path / "one", loadMode="merge", txnAppId="sensors", actor="ada")
    assert readings(graph) == {"a": 10, "b": 2, "c": 3}
    assert [commit.actor for commit in graph.commits()[1:]] == ["ada", "ada"]
    rows = graph.store.manifest_rows(graph.store.manifest(None))
    assert last_transaction(rows, "sensors") == 1
    put(source, 3, node("d", 4))
    pour(spark, source, graph, tmp_path / "two", loadMode="merge", txnAppId="sensors")  # a new checkpoint
    assert readings(graph) == {"a": 10, "b": 2, "c": 3, "d": 4}
    assert (len(graph.commits()), graph.count("edge:Near")) == (4, 1)
    (tmp_path / "two" / "commits" / "2").unlink()  # what a driver leaves that dies before it notes the end of a batch
    (tmp_path / "two" / "commits" / ".2.crc").unlink(missing_ok=True)
    pour(spark, source, graph, tmp_path / "two", loadMode="merge", txnAppId="sensors")
    assert len(graph.commits()) == 4
    # No batch that came again left what it had staged.
    paths = (item.path for item in graph.cleanup(timedelta(0)).items)
    assert [path for path in paths if path.startswith(("nodes/", "edges/"))] == []


def test_bad_rows_stop_the_stream_as_ours(spark: SparkSession, tmp_path: Path) -> None:
    graph, source = Graph.init(tmp_path / "g", SCHEMA), tmp_path / "in"
    put(source, 1, {"type": "Sensor", "data": json.dumps({"name": "a", "reading": "high"})})
    with pytest.raises(Exception, match="load refused, nothing changed: 1 bad row"):
        pour(spark, source, graph, tmp_path / "checkpoint")
    assert graph.count("node:Sensor") == 0


def test_options_of_a_stream_are_checked_when_it_starts(spark: SparkSession, tmp_path: Path) -> None:
    graph, source = Graph.init(tmp_path / "g", SCHEMA), tmp_path / "in"
    put(source, 1, node("a", 1))
    with pytest.raises(Exception, match="txnVersion"):
        pour(spark, source, graph, tmp_path / "checkpoint", txnAppId="x", txnVersion="1")
    frame = spark.createDataFrame([("Sensor", "{}")], "type string, data string")
    with pytest.raises(BadRequestError, match="'txnAppId' and 'txnVersion' go together"), typed_errors():
        frame.write.format("omnigraph").mode("append").option("txnAppId", "x").save(graph.uri)


def test_a_named_frame_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    register(spark)
    for name in ("a", "b"):  # the second is taken for the first come again
        frame = spark.createDataFrame([(name, 1)], "name string, reading int")
        options = {"node": "Sensor", "txnAppId": "job", "txnVersion": "5"}
        frame.write.format("omnigraph").mode("append").options(**options).save(graph.uri)
    assert readings(graph) == {"a": 1}


def _killed_and_finished(tmp_path: Path, kills: int, seed: int) -> None:
    """A stream of 12 files whose driver and everything below it is killed at random, then run to its end."""
    chance = random.Random(seed)
    graph, source = Graph.init(tmp_path / "g", SCHEMA), tmp_path / "in"
    for number in range(12):
        put(source, number, *(node(f"s{number}-{i}", i) for i in range(3)))
    command = [sys.executable, "-m", "tests.spark.stream_victim"]
    command += [str(source), graph.uri, str(tmp_path / "checkpoint"), str(tmp_path / "local")]
    for _ in range(kills):
        with subprocess.Popen(
            command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as child:
            _wait_for_commits(graph, child, chance.randint(0, 1 + 10 // max(kills, 1)))
            time.sleep(chance.uniform(0, 0.3))  # anywhere within a batch
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
    # A writer that died armed covers its tables until its lease has run out: whoever starts the stream starts it again.
    attempts = 0
    while subprocess.run(command, cwd=ROOT, capture_output=True, timeout=250, check=False).returncode:
        attempts += 1
        assert attempts < 30
    Graph.open(graph.uri)
    assert readings(graph) == {f"s{number}-{i}": i for number in range(12) for i in range(3)}
    assert graph.count("node:Sensor") == 36
    batches = [c for c in graph.commits()[1:] if c.actor != "omnigraph:recovery"]
    assert len(batches) <= 12


def _wait_for_commits(graph: Graph, child: subprocess.Popen[bytes], more: int) -> None:
    """Until the stream made so many commits more, or is over."""
    wanted = len(graph.commits()) + more
    deadline = time.monotonic() + 120
    while child.poll() is None and len(graph.commits()) < wanted and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.classic  # the drivers that are killed are processes with sessions of their own
@pytest.mark.timeout(600)
def test_a_killed_stream_ends_with_its_input_once(tmp_path: Path) -> None:
    _killed_and_finished(tmp_path, kills=2, seed=1)


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_a_stream_killed_twenty_times_ends_with_its_input_once(tmp_path: Path) -> None:
    _killed_and_finished(tmp_path, kills=20, seed=random.SystemRandom().randint(0, 2**32))
