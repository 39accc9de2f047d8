"""Every edge value of every type, written both ways, read and found; the page of the matrix is the same table."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import Graph
from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.predicates.where import where_json
from spark_omnigraph.spark.api import read_nodes
from spark_omnigraph.spark.errors import typed_errors
from spark_omnigraph.spark.read.plan import plan_read
from spark_omnigraph.storage.tables.scan import TableScan, read_batches
from tests.spark.type_matrix import (
    ABSENT,
    CASES,
    FRAME,
    SCHEMA,
    Case,
    filter_sql,
    found_by,
    frame_rows,
    name,
    records,
    where,
)

Outcomes = dict[int, object]
STORED = {number: case for number, case in enumerate(CASES) if case.is_stored}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, dict[str, str]]:
    """The records, loaded, and the rule of each that was refused."""
    folder = tmp_path_factory.mktemp("loaded")
    graph = Graph.init(folder / "g", SCHEMA)
    numbered = list(records())
    options = LoadOptions(max_bad_rows=len(numbered), bad_rows=str(folder / "bad.jsonl"))
    graph.load([text for _, text in numbered], options=options)
    return graph, refusals(folder / "bad.jsonl")


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, dict[str, str]]:
    """The rows of the frame, written, and the rule of each that was refused."""
    folder = tmp_path_factory.mktemp("written")
    graph = Graph.init(folder / "g", SCHEMA)
    options = {"node": "Value", "maxBadRows": str(len(CASES)), "badRowsPath": str(folder / "bad.jsonl")}
    rows = frame_rows()
    frame = spark.createDataFrame(rows)
    with typed_errors():
        frame.write.format("omnigraph").mode("append").options(**options).save(graph.uri)
    return graph, refusals(folder / "bad.jsonl")


def refusals(report: Path) -> dict[str, str]:
    found = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    return {json.loads(row["raw"])["data"]["name"]: row["rule"] for row in found}


def outcomes(spark: SparkSession, graph: Graph, refused: dict[str, str]) -> Outcomes:
    """What became of each case: its rule, or the value that Spark reads."""
    table = read_nodes(spark, graph.uri, "Value").toArrow()
    rows = {row["name"]: row for row in utc(table).to_pylist()}
    found: Outcomes = {}
    for number, case in enumerate(CASES):
        if name(number) in refused:
            found[number] = Rule(refused[name(number)])
        elif name(number) in rows:
            found[number] = plain(rows[name(number)][case.column])
    return found


def plain(value: object) -> object:
    """The value with its instants in the one UTC that the cases use."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value


def utc(table: pa.Table) -> pa.Table:
    """Instants in UTC: the session's zone has none for the first hours of the year 1."""
    moments = pa.timestamp("us", "UTC")
    fields = [
        pa.field(f.name, moments if f.name == "datetime" else pa.list_(moments) if f.name == "datetimes" else f.type)
        for f in table.schema
    ]
    return table.cast(pa.schema(fields))


def differences(found: Outcomes, wanted: dict[int, Case]) -> dict[str, tuple[object, object]]:
    """Cases whose outcome is another; `repr` tells both zeros apart."""
    return {name(n): (found.get(n), case.value) for n, case in wanted.items() if repr(found.get(n)) != repr(case.value)}


def test_records(spark: SparkSession, loaded: tuple[Graph, dict[str, str]]) -> None:
    wanted = {n: CASES[n] for n, _ in records()}
    assert differences(outcomes(spark, *loaded), wanted) == {}


def test_frames(spark: SparkSession, written: tuple[Graph, dict[str, str]]) -> None:
    assert differences(outcomes(spark, *written), {n: c for n, c in enumerate(CASES) if c.frame is not ABSENT}) == {}


def test_both_ways_store_the_same(loaded: tuple[Graph, dict[str, str]], written: tuple[Graph, dict[str, str]]) -> None:
    both = {name(n) for n, _ in records() if n in STORED}
    exported = []
    for graph, _ in (loaded, written):
        lines = {json.loads(line)["data"]["name"]: line for line in graph.export()}
        exported.append({key: line for key, line in lines.items() if key in both})
    assert len(exported[0]) == len(both)
    assert exported[0] == exported[1]


def test_what_is_exported_can_be_loaded(written: tuple[Graph, dict[str, str]], tmp_path: Path) -> None:
    lines = list(written[0].export())
    again = Graph.init(tmp_path / "again", SCHEMA)
    again.load(lines)
    assert list(again.export()) == lines


@pytest.mark.parametrize("option", ["where", "filter"])
def test_each_value_is_found(written: tuple[Graph, dict[str, str]], option: str) -> None:
    """By the plan of a read and its tasks, run here: Spark has no part in a predicate, and ninety jobs take long."""
    wrong = {}
    for number, case in STORED.items():
        condition = where(case)
        if condition is not None:
            given = where_json([condition]) if option == "where" else str(filter_sql(case))
            plan = plan_read({"path": written[0].uri, "node": "Value", "columns": "name", option: given})
            assert isinstance(plan.source, TableScan)
            found = {int(n[:3]) for batch in read_batches(plan.source) for n in batch.column("name").to_pylist()}
            if found != found_by(case, STORED):
                wrong[name(number)] = found ^ found_by(case, STORED)
    assert wrong == {}


def test_every_type_has_cases() -> None:
    assert {case.column for case in CASES} == set(FRAME)
