"""Thousands of fragments and of tasks: what is planned and what tasks send back stays small."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from spark_omnigraph import Graph
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.graph.load.frame import frame_request, plan_frame_load, staged_part
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.spark.read.plan import plan_read
from spark_omnigraph.spark.read.reader import FragmentGroup, GraphReader
from spark_omnigraph.staging.stage import stage_frame
from tests.support.many_fragments import graph_of_fragments

ROWS = 20_000


def test_a_read_of_ten_thousand_fragments_is_a_few_tasks(tmp_path: Path) -> None:
    graph = graph_of_fragments(tmp_path / "g", 10_000)
    assert graph.count("node:Dot") == 20_000
    reader = GraphReader(plan_read({"path": graph.uri, "node": "Dot"}))
    partitions = reader.partitions()
    assert 1 <= len(partitions) <= 8
    assert sum(len(partition.ids or ()) for partition in partitions if isinstance(partition, FragmentGroup)) == 10_000
    assert len(cloudpickle.dumps((reader, partitions))) < 100_000


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_two_thousand_tasks_send_less_than_50_mb(tmp_path: Path, mode: str) -> None:
    graph = Graph.init(tmp_path / "g", "node Dot { name: String @key  size: I32? }")
    if mode == "merge":  # every second row replaces a stored one
        lines = (json.dumps({"type": "Dot", "data": {"name": f"n{i}"}}) for i in range(0, ROWS, 2))
        graph.load(list(lines))
    request = frame_request(None, LoadMode(mode), None, LoadOptions(on_duplicate=OnDuplicate.ERROR))
    plan = plan_frame_load(graph.store, request, "node:Dot")
    rows = pa.table({"name": [f"n{i}" for i in range(ROWS)], "size": pa.array(range(ROWS), pa.int32())})
    message = pickle.dumps(
        staged_part(
            plan.context, stage_frame(plan.context, TableInput.of_type(TableKey.node("Dot")), rows.to_batches(), 0)
        )
    )
    assert 2_000 * len(message) < 50e6
