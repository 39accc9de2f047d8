"""What a write did comes back from Spark: as the commit of a call, or found by the name of whoever wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from spark_omnigraph import BadRequestError, Graph, RowFacts, last_write, write_edges, write_nodes
from spark_omnigraph.manifest.rows import Transaction

SCHEMA = """
node Person { name: String @key  age: I32? @range(age, 0..150) }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def test_writes_return_their_commit_and_are_found_again(spark: SparkSession, graph: Graph) -> None:
    people = spark.createDataFrame([("a", 1), ("b", 2), ("c", 999)], "name string, age int")
    options = {"maxBadRows": "1", "job": "nightly"}
    made = write_nodes(people, graph.uri, "Person", actor="eve", metadata={"ticket": "7"}, options=options)
    assert made == graph.commits()[0]
    assert made is not None
    assert made.facts is not None
    assert made.facts == graph.commits()[0].facts
    assert made.facts.tables == {"node:Person": RowFacts(inserted=2, bad=1)}
    assert (made.actor, made.facts.mode, made.facts.origin.job) == ("eve", "append", "nightly")
    assert made.facts.origin.metadata == {"ticket": "7"}
    edge = write_edges(spark.createDataFrame([("a", "b")], "src string, dst string"), graph.uri, "Knows", mode="merge")
    assert edge is not None
    assert edge.facts is not None
    assert (edge.facts.mode, edge.facts.tables) == ("merge", {"edge:Knows": RowFacts(inserted=1)})
    found = last_write(spark, graph.uri)
    assert (found, found and found.facts) == (edge, edge.facts)
    assert edge.facts.origin.app_id == made.facts.origin.app_id != ""

    named = {"txnAppId": "etl", "txnVersion": "4", "node": "Person", "loadMode": "delete"}
    people.limit(1).selectExpr("name AS id").write.format("omnigraph").mode("append").options(**named).save(graph.uri)
    gone = last_write(spark, graph.uri, "etl")
    assert gone is not None
    assert gone.facts is not None
    assert gone.facts.transaction == Transaction("etl", 4)
    assert gone.facts.tables == {"node:Person": RowFacts(deleted=1), "edge:Knows": RowFacts(deleted=1)}

    table = spark.read.format("omnigraph").option("table", "commits").load(graph.uri)
    rows = table.where(col("operation") == "load").orderBy("manifest_version").collect()
    assert [(r["mode"], r["inserted"], r["bad"]) for r in rows] == [("append", 2, 1), ("merge", 1, 0)]
    assert rows[0]["metadata"] == {"ticket": "7"}


def test_a_write_without_effect_has_no_commit(spark: SparkSession, graph: Graph) -> None:
    none = spark.createDataFrame([], "name string")
    assert write_nodes(none, graph.uri, "Person") is None
    assert last_write(spark, graph.uri) is None
    with pytest.raises(BadRequestError, match="'a b' is no name of metadata"):
        write_nodes(none, graph.uri, "Person", metadata={"a b": "x"})
