"""A graph follows a table that Spark writes, by the session's Delta, and by `deltalake` where that reads the table."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import BadRequestError, FeedLostError, Graph, LoadOptions, delta_source
from spark_omnigraph.cli.program import main
from tests.support.delta_tables import SEED

SCHEMA = "node Film { title: String @key  year: I32?  part: String? }"
ANY = LoadOptions(max_deletes=1.0, build_indexes=False)
FEED = "'delta.enableChangeDataFeed'='true'"
KINDS = {
    "deletion vectors": ("'delta.enableDeletionVectors'='true', 'delta.checkpointPolicy'='v2'", "", True),
    "mapped columns": ("'delta.columnMapping.mode'='name'", "PARTITIONED BY (part)", False),
}
"""Name → properties of a table, its partitions, and whether `deltalake` reads its changes."""
STEPS: dict[str, Callable[[random.Random], str]] = {
    "insert": lambda luck: f"INSERT INTO {{table}} VALUES ('n{luck.randrange(10**6)}', 3, 'y')",
    "update": lambda luck: f"UPDATE {{table}} SET year = year + 1 WHERE pmod(hash(title), 3) = {luck.randrange(3)}",
    "move": lambda luck: f"UPDATE {{table}} SET part = 'z' WHERE pmod(hash(title), 4) = {luck.randrange(4)}",
    "rename": lambda luck: (
        f"UPDATE {{table}} SET title = concat(title, '-') WHERE pmod(hash(title), 5) = {luck.randrange(5)}"
    ),
    "delete": lambda luck: f"DELETE FROM {{table}} WHERE pmod(hash(title), 6) = {luck.randrange(6)}",
    "merge": lambda luck: (
        f"MERGE INTO {{table}} t USING (SELECT title, year + 10 AS year, part FROM {{table}} WHERE "
        f"pmod(hash(title), 3) = {luck.randrange(3)} UNION ALL SELECT 'm{luck.randrange(10**6)}', 1, 'x') s "
        "ON t.title = s.title WHEN MATCHED AND s.year % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    ),
    "again": lambda luck: (
        "INSERT INTO {table} SELECT title, year + 1, 'w' FROM {table} WHERE part <> 'w' AND pmod(hash(title), 2) = 0;"
        "DELETE FROM {table} WHERE part <> 'w' AND pmod(hash(title), 2) = 0"
    ),
    "optimize": lambda luck: "OPTIMIZE {table}",
}


def make(spark: SparkSession, place: Path, properties: str, partitions: str = "") -> str:
    table = f"delta.`{place}`"
    columns = "title STRING, year INT, part STRING"
    spark.sql(f"CREATE TABLE {table} ({columns}) USING delta {partitions} TBLPROPERTIES ({FEED}, {properties})")
    rows = ", ".join(f"('f{number}', {number}, 'x')" for number in range(24))
    spark.sql(f"INSERT INTO {table} VALUES {rows}")
    return table


def films(graph: Graph) -> list[tuple[Any, ...]]:
    rows = [json.loads(line)["data"] for line in graph.export()]
    return sorted((row["title"], row["year"], row["part"]) for row in rows)


def table_rows(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(f"SELECT title, year, part FROM {table}").collect())


@pytest.mark.parametrize("kind", KINDS)
def test_the_graph_is_the_table_after_a_random_history(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    luck, (properties, partitions, is_local) = random.Random(SEED), KINDS[kind]
    place = tmp_path / "films"
    table = make(spark, place, properties, partitions)
    by_spark, by_rust = (Graph.init(tmp_path / name, SCHEMA) for name in ("s", "r"))
    steps = luck.sample(list(STEPS), len(STEPS))
    for number, step in enumerate(steps):
        if number % 3 == 0:
            by_spark.sync(delta_source(spark, f"delta:{place}"), node="Film", options=ANY)
            assert films(by_spark) == table_rows(spark, table), (SEED, steps[:number])
        if is_local and number % 2 == 0:
            by_rust.sync(f"delta:{place}", node="Film", options=ANY)
            assert films(by_rust) == table_rows(spark, table), (SEED, steps[:number])
        for statement in STEPS[step](luck).format(table=table).split(";"):
            spark.sql(statement)
    source = delta_source(spark, f"delta:{place}")
    last = by_spark.sync(source, node="Film", options=ANY)
    assert films(by_spark) == table_rows(spark, table), SEED
    assert by_spark.sync(source, node="Film", options=ANY, full=True).commit is None, (SEED, "nothing differs")
    if not is_local:
        with pytest.raises(BadRequestError, match="mapped columns, whose changes are not read here"):
            by_rust.sync(f"delta:{place}", node="Film", options=ANY)
        by_rust.sync(f"delta:{place}", node="Film", options=ANY, full=True)
        assert films(by_rust) == films(by_spark), SEED
        return
    # Who goes on with the other reader goes on from the same version.
    spark.sql(f"DELETE FROM {table} WHERE year % 2 = 0")
    assert by_spark.sync(f"delta:{place}", node="Film", options=ANY).since == last.version
    assert films(by_spark) == table_rows(spark, table), SEED


def test_a_column_that_is_renamed_and_changes_that_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "films"
    table = make(spark, place, "'delta.columnMapping.mode'='name'")
    source, graph = delta_source(spark, f"delta:{place}"), Graph.init(tmp_path / "g", SCHEMA)
    graph.sync(source, node="Film", options=ANY)
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN part TO place")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN part STRING")
    spark.sql(f"UPDATE {table} SET part = 'new' WHERE year < 3")
    with pytest.raises(FeedLostError, match="--full"):
        graph.sync(source, node="Film", mapping={"ignore": ["place"]}, options=ANY)
    graph.sync(source, node="Film", mapping={"ignore": ["place"]}, full=True, options=ANY)
    assert films(graph) == table_rows(spark, table)
    spark.sql(f"UPDATE {table} SET year = 1")
    spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    with pytest.raises(FeedLostError, match="--full"):
        graph.sync(source, node="Film", mapping={"ignore": ["place"]}, options=ANY)
    graph.sync(source, node="Film", mapping={"ignore": ["place"]}, full=True, options=ANY)
    assert films(graph) == table_rows(spark, table)


def test_instants_are_right_or_refused(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "films"
    spark.sql(f"CREATE TABLE delta.`{place}` (title STRING, at TIMESTAMP) USING delta TBLPROPERTIES ({FEED})")
    schema = "node Film { title: String @key  at: DateTime? }"
    by_spark, by_rust = (Graph.init(tmp_path / name, schema) for name in ("s", "r"))
    source = delta_source(spark, f"delta:{place}")
    for graph, reader in ((by_spark, source), (by_rust, f"delta:{place}")):
        graph.sync(reader, node="Film", options=ANY)
    spark.sql(f"INSERT INTO delta.`{place}` VALUES ('a', TIMESTAMP'9999-12-31 23:59:59.999')")
    by_spark.sync(source, node="Film", options=ANY)
    assert [json.loads(line)["data"]["at"] for line in by_spark.export()] == ["9999-12-31T23:59:59.999Z"]
    with pytest.raises(BadRequestError, match="instants stored as INT96"):
        by_rust.sync(f"delta:{place}", node="Film", options=ANY)
    by_rust.sync(f"delta:{place}", node="Film", options=ANY, full=True)
    assert list(by_rust.export()) == list(by_spark.export())


def test_a_job_follows(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "films"
    table = make(spark, place, "'delta.enableDeletionVectors'='true'")
    graph = Graph.init(tmp_path / "g", SCHEMA)
    given = ["sync", "--graph", graph.uri, "--from", f"delta:{place}", "--node", "Film", "--executor", "spark"]
    bodies = []
    for change in (f"DELETE FROM {table} WHERE title = 'f1'", None, None):
        assert main(given) == 0
        bodies.append(json.loads(capsys.readouterr().out.splitlines()[-1])["result"])
        if change is not None:
            spark.sql(change)
    assert [(body["outcome"], body["executor"]) for body in bodies] == [
        ("snapshot", "spark"), ("changes", "spark"), ("same", "spark")
    ]  # laid out as a table  # fmt: skip
    assert films(graph) == table_rows(spark, table)
    assert main([*given[:3], "--from", f"delta:{tmp_path}/none", *given[5:]]) == 6
