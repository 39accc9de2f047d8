"""Tables as input on Spark: tasks read files, frames go by a mapping, and the local executor makes the same graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import BadRowsError, Graph, LoadOptions
from spark_omnigraph.spark.errors import typed_errors
from spark_omnigraph.spark.executor import SparkExecutor

SCHEMA = """
node Person { name: String @key  born: Date?  score: F64? }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = pa.table(
    {
        "name": [f"p{i}" for i in range(40)],
        "born": pa.array([i * 200 - 800 for i in range(40)], pa.int32()).cast(pa.date32()),
        "score": [i / 7 for i in range(40)],
    }
)
KNOWS = pa.table({"a": ["p1", "p2", "p1"], "b": ["p2", "p3", None], "since": pa.array([1, None, 3], pa.int32())})
RULES: dict[str, Any] = {"edge": "Knows", "from": "a", "to": "b", "id": ["a", "b"], "when": "b"}


def test_files_and_frames_give_what_the_local_executor_gives(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet", row_group_size=10)
    with ipc.new_file(tmp_path / "knows.arrow", KNOWS.schema) as out:
        out.write_table(KNOWS, max_chunksize=1)
    (tmp_path / "more.csv").write_text('name,born,score\n"q,1",0001-01-01,.5\n')
    people = [{"path": str(tmp_path / name), "node": "Person"} for name in ("people.parquet", "more.csv")]
    mapping = {"inputs": [*people, {"path": str(tmp_path / "knows.arrow"), **RULES}]}
    exports = []
    for number, executor in enumerate([None, SparkExecutor(spark)]):
        graph = Graph.init(tmp_path / f"g{number}", SCHEMA)
        graph.load(mapping=mapping, options=LoadOptions(executor=executor))
        exports.append(list(graph.export()))
    framed = Graph.init(tmp_path / "framed", SCHEMA)
    rows = [*PEOPLE.to_pylist(), {"name": "q,1", "born": None, "score": 0.5}]
    frame = spark.createDataFrame([{**row, "born": str(row["born"] or "0001-01-01")} for row in rows])
    frame.write.format("omnigraph").mode("append").options(node="Person", coerce="true").save(framed.uri)
    edges = spark.createDataFrame([tuple(row.values()) for row in KNOWS.to_pylist()], "a string, b string, since int")
    edges.write.format("omnigraph").mode("append").option("mapping", json.dumps(RULES)).save(framed.uri)
    assert list(framed.export()) == exports[0] == exports[1]
    assert len(exports[0]) == 43
    assert [c.facts.mapping_digest is not None for c in framed.commits()[:2] if c.facts] == [True, False]


def test_bad_rows_of_files_are_named_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("name,born\na,1990-01-01\nb,never\n")
    graph = Graph.init(tmp_path / "g", SCHEMA)
    with pytest.raises(BadRowsError) as caught, typed_errors():
        graph.load(tmp_path / "p.csv", node="Person", options=LoadOptions(executor=SparkExecutor(spark)))
    assert [(row.line, str(row.rule)) for row in caught.value.summary.sample] == [(3, "invalid_date")]
