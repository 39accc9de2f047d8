"""The rows that a schema change would break, counted by Spark tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import FromColumn, Graph, LoadOptions, SparkExecutor
from spark_omnigraph.storage.tables import scan

NO_INDEX = LoadOptions(build_indexes=False)


def test_tasks_count_what_one_process_counts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "TASK_ROWS", 2)  # several tasks
    graph = Graph.init(
        tmp_path / "g", "node Room { name: String @key  size: I32?  use: String? }\nedge To: Room -> Room"
    )
    for start in range(0, 12, 4):
        rooms = [{"name": f"r{i}", "size": i, **({"use": "hall"} if i % 3 else {})} for i in range(start, start + 4)]
        graph.load([json.dumps({"type": "Room", "data": room}) for room in rooms], options=NO_INDEX)
    graph.load([json.dumps({"edge": "To", "from": "r1", "to": f"r{i}"}) for i in range(3)], options=NO_INDEX)
    graph.delete("node:Room", ["r5"])
    after = (
        'node Hall @rename_from("Room") { name: String @key  size: I64 @range(size, 2..8)  use: String @unique  '
        'label: String @check(label, "[02468]$") }\nedge To: Hall -> Hall @card(0..1)'
    )
    bad = {who: tmp_path / f"{who}.jsonl" for who in ("tasks", "here")}
    values = {"Hall.label": FromColumn("name")}
    executor = SparkExecutor(spark, 2)
    by_tasks = graph.plan_schema(after, values=values, bad_rows=bad["tasks"], executor=executor)
    here = graph.plan_schema(after, values=values, bad_rows=bad["here"])
    assert by_tasks.to_dict() == here.to_dict()
    assert dict(by_tasks.bad_rows.per_rule) == {"cardinality": 2, "check": 5, "range": 5, "required": 4, "unique": 6}
    assert bad["tasks"].read_text() == bad["here"].read_text()
    rows = [json.loads(line) for line in bad["tasks"].read_text().splitlines()]
    assert [row["id"] for row in rows[:11]] == [f"r{i}" for i in range(12) if i != 5]
    assert [(row["file"], row["line"]) for row in rows[11:]] == [("<stored edge:To>", 2), ("<stored edge:To>", 3)]
