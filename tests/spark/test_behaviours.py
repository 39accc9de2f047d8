"""The same behaviour by every way: the data source, the jobs, `Graph`; on a classic session and over Connect."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph import Graph
from tests.spark.ways import COLUMNS, SCHEMA, WAYS, Ended, Way, knows, person

ADA = ("Ada", 36, date(1815, 12, 10), "Ada", ["a", None])
BOB = ("Bob", None, None, "Bob", None)
FIRST = [
    person("Ada", age=36, born="1815-12-10", tags=["a", None]),
    knows("k1", "Ada", "Bob", since="1840-01-01"),
    person("Bob"),
]


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Way:
    return WAYS[request.param](spark, tmp_path)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return Graph.init(tmp_path / "g", SCHEMA).uri


def same(spark: SparkSession, found: DataFrame, table: str, *rows: tuple[object, ...]) -> None:
    wanted = spark.createDataFrame(list(rows), COLUMNS[table])
    assert_df_equality(found, wanted, ignore_row_order=True, ignore_nullable=True)


def test_append_inserts_and_refuses_what_is_stored(spark: SparkSession, way: Way, uri: str) -> None:
    assert way.write(uri, FIRST) == Ended()
    same(spark, way.read(uri, "node:Person"), "node:Person", ADA, BOB)
    same(spark, way.read(uri, "edge:Knows"), "edge:Knows", ("k1", "Ada", "Bob", date(1840, 1, 1)))
    assert way.write(uri, [person("Eve"), person("Bob", age=1)]) == Ended("bad_rows", 3, {"key_conflict": 1})
    same(spark, way.read(uri, "node:Person"), "node:Person", ADA, BOB)


def test_merge_replaces_whole_rows(spark: SparkSession, way: Way, uri: str) -> None:
    way.write(uri, FIRST)
    assert way.write(uri, [person("Ada", age=37), person("Eve"), knows("k1", "Ada", "Eve")], "merge") == Ended()
    same(
        spark,
        way.read(uri, "node:Person"),
        "node:Person",
        ("Ada", 37, None, "Ada", None),
        BOB,
        ("Eve", None, None, "Eve", None),
    )
    same(spark, way.read(uri, "edge:Knows"), "edge:Knows", ("k1", "Ada", "Eve", None))


def test_overwrite_replaces_the_types_that_are_mentioned(spark: SparkSession, way: Way, uri: str) -> None:
    way.write(uri, [*FIRST, {"type": "City", "data": {"name": "Oslo"}}])
    assert way.write(uri, [{"type": "City", "data": {"name": "Rome"}}], "overwrite") == Ended()
    same(spark, way.read(uri, "node:City"), "node:City", ("Rome", "Rome"))
    same(spark, way.read(uri, "node:Person"), "node:Person", ADA, BOB)
    dangling = way.write(uri, [person("Ada")], "overwrite")
    assert (dangling.kind, dangling.exit_code) == ("constraint", 3)
    same(spark, way.read(uri, "node:Person"), "node:Person", ADA, BOB)


def test_changes_replace_and_delete_in_one_commit(spark: SparkSession, way: Way, uri: str) -> None:
    way.write(uri, [*FIRST, person("Eve")])
    commits = len(Graph.open(uri).commits())
    upserts, deletes = [person("Bob", age=4), knows("k2", "Bob", "Eve")], [person("Ada"), person("Zoe")]
    records = [*({"op": "u", **each} for each in upserts), *({"op": "d", **each} for each in deletes)]
    assert way.write(uri, records, "changes") == Ended()
    assert len(Graph.open(uri).commits()) == commits + 1
    same(
        spark,
        way.read(uri, "node:Person"),
        "node:Person",
        ("Bob", 4, None, "Bob", None),
        ("Eve", None, None, "Eve", None),
    )
    same(spark, way.read(uri, "edge:Knows"), "edge:Knows", ("k2", "Bob", "Eve", None))
    refused = way.write(uri, [{"op": "u", **knows("k3", "Bob", "Eve")}, {"op": "d", **person("Eve")}], "changes")
    assert refused == Ended("bad_rows", 3, {"endpoint": 1})


def test_bad_rows_are_counted_by_rule_and_may_be_left_out(spark: SparkSession, way: Way, uri: str) -> None:
    records = [person("Ada", age=151), person("Bob"), person("Eve", agee=1), knows("k1", "Bob", "Ada")]
    assert way.write(uri, records) == Ended("bad_rows", 3, {"range": 1, "unknown_field": 1, "endpoint": 1})
    assert way.read(uri, "node:Person").count() == 0
    assert way.write(uri, records, bad=3) == Ended()
    same(spark, way.read(uri, "node:Person"), "node:Person", BOB)
    assert way.read(uri, "edge:Knows").count() == 0


def test_a_branch_stands_apart_and_versions_stay(spark: SparkSession, way: Way, uri: str) -> None:
    way.write(uri, FIRST)
    graph = Graph.open(uri)
    graph.create_branch("dev")
    before = graph.commits()[0].manifest_version
    assert way.write(uri, [person("Eve")], branch="dev") == Ended()
    assert way.write(uri, [person("Bob", age=1)], "merge") == Ended()
    assert way.read(uri, "node:Person", "dev").count() == 3
    same(spark, way.read(uri, "node:Person"), "node:Person", ADA, ("Bob", 1, None, "Bob", None))
    same(spark, way.read(uri, "node:Person", version=before), "node:Person", ADA, BOB)


def test_a_condition_finds_what_is_there_and_a_delete_takes_edges_along(
    spark: SparkSession, way: Way, uri: str
) -> None:
    way.write(uri, [*FIRST, person("Eve", age=18)])
    assert way.older(uri, 18) == {"Ada", "Eve"}
    assert way.older(uri, 19) == {"Ada"}
    assert way.delete(uri, "Ada") == Ended()
    assert way.older(uri, 18) == {"Eve"}
    same(spark, way.read(uri, "node:Person"), "node:Person", BOB, ("Eve", 18, None, "Eve", None))
    assert way.read(uri, "edge:Knows").count() == 0


def test_what_is_not_there_is_not_found(way: Way, tmp_path: Path) -> None:
    missing = way.write(str(tmp_path / "nothing"), FIRST)
    assert (missing.kind, missing.exit_code) == ("not_found", 6)
