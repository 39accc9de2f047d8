"""A schema change whose rows are written by Spark tasks, and frames of states before and after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import FromColumn, Graph, LoadOptions, SparkExecutor
from spark_omnigraph.cli import main
from tests.format.second_reader import check_format


def test_tasks_write_and_old_frames_stay(spark: SparkSession, tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Room { name: String @key  size: I32?  use: String? }")
    for start in range(0, 8, 4):
        rooms = [{"name": f"r{i}", "size": i, "use": "hall"} for i in range(start, start + 4)]
        lines = [json.dumps({"type": "Room", "data": room}) for room in rooms]
        graph.load(lines, options=LoadOptions(build_indexes=False))
    version = graph.snapshot().version

    def frame(kind: str, **options: object) -> list[dict[str, object]]:
        reader = spark.read.format("omnigraph").option("node", kind)
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return [row.asDict() for row in reader.load(graph.uri).orderBy("id").collect()]

    text = "query q() { match { $r: Room  $r.size > 5 } return { $r.name, $r.size, $r.use } order { $r.name } }"
    before = frame("Room")
    wide = "node Room { name: String @key  size: I64?  label: String }"
    graph.apply_schema(wide, values={"Room.label": FromColumn("use")}, executor=SparkExecutor(spark, 2))
    assert frame("Room")[7] == {"id": "r7", "label": "hall", "name": "r7", "size": 7}
    hall = wide.replace("node Room", 'node Hall @rename_from("Room")')
    graph.apply_schema(hall, executor=SparkExecutor(spark, 2))
    assert frame("Hall")[7] == {"id": "r7", "label": "hall", "name": "r7", "size": 7}
    assert frame("Room", versionAsOf=version) == before
    old = spark.read.format("omnigraph").option("query", text).option("versionAsOf", str(version)).load(graph.uri)
    assert [tuple(row) for row in old.collect()] == [("r6", 6, "hall"), ("r7", 7, "hall")]
    check_format(tmp_path / "g")


@pytest.mark.usefixtures("spark")
def test_the_verbs_do_the_same_with_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the session that there is, whichever kind that is of."""
    graph = Graph.init(tmp_path / "g", "node Room { name: String @key  size: I32? }")
    rooms = [json.dumps({"type": "Room", "data": {"name": f"r{i}", "size": i}}) for i in range(6)]
    graph.load(rooms, options=LoadOptions(build_indexes=False))
    (tmp_path / "tight.pg").write_text("node Room { name: String @key  size: I64? @range(size, 0..3)  label: String }")
    (tmp_path / "wide.pg").write_text("node Room { name: String @key  size: I64? @range(size, 0..9)  label: String }")

    def run(verb: str, file: str) -> tuple[int, dict[str, Any]]:
        words = ["--graph", graph.uri, "--set", "Room.label=@name", "--executor", "spark"]
        code = main(["schema", verb, str(tmp_path / file), *words])
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    code, told = run("plan", "tight.pg")
    assert (code, told["result"]["applicable"]) == (0, False)
    assert told["bad_rows"]["per_rule"] == {"range": 2}
    assert run("apply", "tight.pg")[1]["error"]["kind"] == "bad_rows"
    code, told = run("apply", "wide.pg")
    assert (code, told["result"]["applied"], told["tables"]["node:Room"]["updated"]) == (0, True, 6)
    assert graph.entity("node:Room", "r5") == {"id": "r5", "label": "r5", "name": "r5", "size": 5}
    assert run("plan", "wide.pg")[1]["result"]["steps"] == []
    check_format(tmp_path / "g")
