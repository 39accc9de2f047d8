"""Streams into a graph: one commit a batch, each batch once, whatever dies."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import Graph
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.manifest.rows import last_transaction
from spark_omnigraph.spark.api import register
from spark_omnigraph.spark.errors import typed_errors
from tests.spark.stream_victim import ENVELOPE
from tests.support.graph_files import recovery_files

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


def test_batches_of_patches(spark: SparkSession, tmp_path: Path) -> None:
    graph, source = Graph.init(tmp_path / "g", SCHEMA), tmp_path / "in"
    edge: dict[str, object] = {"edge": "Near", "from": "a", "to": "b", "data": json.dumps({"id": "ab"})}
    put(source, 1, node("a", 1), node("b", 2), edge)
    pour(spark, source, graph, tmp_path / "one", loadMode="merge")
    put(tmp_path / "patches", 1, node("a", 10), {"edge": "Near", "data": json.dumps({"id": "ab", "seen": 5})})
    put(tmp_path / "patches", 2, node("a", 11), node("b", 20))
    pour(spark, tmp_path / "patches", graph, tmp_path / "two", loadMode="update")
    assert readings(graph) == {"a": 11, "b": 20}
    assert graph.entity("edge:Near", "ab") == {"id": "ab", "src": "a", "dst": "b", "seen": 5}
    facts = [commit.facts for commit in graph.commits()[:2]]
    assert [(each.mode, each.totals().updated) for each in facts if each is not None] == [("update", 2), ("update", 2)]


def test_batches_go_by_a_mapping(spark: SparkSession, tmp_path: Path) -> None:
    graph, source = Graph.init(tmp_path / "g", SCHEMA), tmp_path / "in"
    rows: list[dict[str, object]] = [{"type": "a", "from": "b", "data": "1"}, {"type": "b", "from": None, "data": "2"}]
    put(source, 1, *rows)
    put(source, 2, {"type": "a", "from": "a", "data": "3"}, {"type": "b", "from": "a", "data": "2"})
    mapping = {
        "ignore": ["edge", "to"],
        "rows": [
            {"node": "Sensor", "columns": {"type": "name", "data": "reading"}},
            {"edge": "Near", "from": "type", "to": "from", "id": ["type", "from"], "when": "from"},
        ],
    }
    pour(spark, source, graph, tmp_path / "one", loadMode="merge", mapping=json.dumps(mapping), coerce="true")
    assert readings(graph) == {"a": 3, "b": 2}
    edges = [json.loads(line) for line in graph.export(types=["Near"])]
    assert [(edge["from"], edge["to"]) for edge in edges] == [("a", "a"), ("a", "b"), ("b", "a")]
    facts = [commit.facts for commit in graph.commits()[:2]]
    assert len({each.mapping_digest for each in facts if each is not None and each.mapping_digest}) == 1


def test_each_batch_is_one_commit_and_a_lost_checkpoint_repeats_none(spark: SparkSession, tmp_path: Path) -> None:
    graph, source = Graph.init(tmp_path / "g", SCHEMA), tmp_path / "in"
    put(source, 1, node("a", 1), node("b", 2), {"edge": "Near", "from": "a", "to": "b"})
    put(source, 2, node("a", 10), node("c", 3))
    pour(spark, source, graph, tmp_path / "one", loadMode="merge", txnAppId="sensors", actor="ada")
    assert readings(graph) == {"a": 10, "b": 2, "c": 3}
    assert [commit.actor for commit in graph.commits()[:-1]] == ["ada", "ada"]
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
    assert recovery_files(Path(graph.uri)) == []


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


Wait = Callable[[Graph, Path, "subprocess.Popen[bytes]"], None]


def _killed_and_finished(tmp_path: Path, kills: int, files: int, pause: float, wait: Wait) -> None:
    """A stream of files whose driver and everything below it is killed so many times, then run to its end."""
    graph, source, checkpoint = Graph.init(tmp_path / "g", SCHEMA), tmp_path / "in", tmp_path / "checkpoint"
    for number in range(files):
        put(source, number, *(node(f"s{number}-{i}", i) for i in range(3)))
    command = [sys.executable, "-m", "tests.spark.stream_victim"]
    command += [str(source), graph.uri, str(checkpoint), str(tmp_path / "local")]
    killed = 0
    for _ in range(20 * kills):
        with subprocess.Popen(
            command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as child:
            wait(graph, checkpoint, child)
            time.sleep(pause * random.random())  # anywhere within a batch
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                killed += 1
        if killed == kills:
            break
    assert killed == kills
    # A writer that died armed covers its tables until its lease has run out: whoever starts the stream starts it again.
    attempts = 0
    while subprocess.run(command, cwd=ROOT, capture_output=True, timeout=1500, check=False).returncode:
        attempts += 1
        assert attempts < 30
    Graph.open(graph.uri)
    assert readings(graph) == {f"s{number}-{i}": i for number in range(files) for i in range(3)}
    assert graph.count("node:Sensor") == 3 * files
    batches = [c for c in graph.commits()[:-1] if c.actor != "omnigraph:recovery"]
    assert len(batches) <= files


def _until(child: subprocess.Popen[bytes], met: Callable[[], bool]) -> None:
    """Until a condition holds, or the stream is over; bounded."""
    deadline = time.monotonic() + 120
    while child.poll() is None and not met() and time.monotonic() < deadline:
        time.sleep(0.05)


def _some_commits(graph: Graph, _: Path, child: subprocess.Popen[bytes]) -> None:
    """Until the stream has made up to four commits more."""
    wanted = len(graph.commits()) + random.randint(1, 4)
    _until(child, lambda: len(graph.commits()) >= wanted)


def _some_steps(graph: Graph, checkpoint: Path, child: subprocess.Popen[bytes]) -> None:
    """Until the files of the graph and of the checkpoint show that up to eight steps of batches were taken."""

    def files() -> set[str]:
        return {str(path) for root in (Path(graph.uri), checkpoint) for path in root.glob("**/*")}

    def changed(before: set[str]) -> bool:
        return files() != before

    # A checkpoint whose first offsets were being written when its driver died is refused by Spark for ever.
    _until(child, (checkpoint / "offsets" / "0").exists)
    for _ in range(random.randint(1, 8)):
        _until(child, partial(changed, files()))


@pytest.mark.classic  # the drivers that are killed are processes with sessions of their own
@pytest.mark.timeout(600)
def test_a_killed_stream_ends_with_its_input_once(tmp_path: Path) -> None:
    random.seed(1)
    _killed_and_finished(tmp_path, kills=1, files=6, pause=0.3, wait=_some_commits)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_stream_killed_twenty_times_ends_with_its_input_once(tmp_path: Path) -> None:
    """Each kill hits a batch under way: files of the graph or of the checkpoint have just changed."""
    _killed_and_finished(tmp_path, kills=20, files=30, pause=0.1, wait=_some_steps)
