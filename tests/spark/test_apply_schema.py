"""A schema change whose rows are written by Spark tasks, and frames of states before and after it."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

from spark_omnigraph import FromColumn, Graph, LoadOptions, SparkExecutor
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
