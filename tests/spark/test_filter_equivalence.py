"""A predicate given as an option keeps the rows that Spark's own filter keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.predicates.where import where_json
from spark_omnigraph.spark.api import read_nodes
from spark_omnigraph.spark.read.plan import plan_read
from spark_omnigraph.spark.read.reader import GraphReader
from tests.spark.graphs import graph_of_before, publish
from tests.spark.predicates import LANCE, SCHEMA, SPARK, Leaf, Tree, conditions, odd_rows, trees

PREDICATES = 150
THROUGH_SPARK = 3
"""Spark has no part in what an option keeps: most predicates are given to its reader here, without a job each."""


@dataclass(frozen=True)
class Odd:
    """Graphs of the same rows: one without indexes, one with indexes that half of the rows are in."""

    bare: str
    indexed: str


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Odd:
    roots = []
    for is_indexed in (False, True):
        store = graph_of_before(tmp_path_factory.mktemp("graphs") / "g", SCHEMA)
        publish(store, {"node:Odd": odd_rows(60, Random(1))})
        if is_indexed:
            built = Graph.open(store.root).ensure_indices()
            assert len(built) == 1 + SCHEMA.count("@index")  # ids have one too
        publish(store, {"node:Odd": odd_rows(60, Random(2), 60)})
        roots.append(store.root)
    return Odd(*roots)


def kept(root: str, option: str, text: str) -> set[str]:
    """What the source's reader returns for an option."""
    given = {"path": root, "node": "Odd", "columns": "id", option: text}
    reader = GraphReader(plan_read(given))
    return {i for p in reader.partitions() for batch in reader.read(p) for i in batch.column("id").to_pylist()}


def kept_by_spark(spark: SparkSession, odd: Odd, predicates: Sequence[Tree]) -> list[set[str]]:
    """What Spark's filter keeps for each predicate, found in one job."""
    holds = ", ".join(f"coalesce({predicate.text(SPARK)}, false)" for predicate in predicates)
    rows = read_nodes(spark, odd.bare, "Odd").selectExpr("id", f"array({holds}) as holds").collect()
    assert len(rows) == 120
    return [{row["id"] for row in rows if row["holds"][n]} for n in range(len(predicates))]


@pytest.fixture(scope="module", autouse=True)
def told_apart(spark: SparkSession) -> Iterator[None]:
    """Case tells `nAme` from `name`. Interpreted, since compiling hundreds of predicates takes longer than they do."""
    conf = {"spark.sql.caseSensitive": "true", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    conf["spark.sql.codegen.wholeStage"] = "false"
    for key, value in conf.items():
        spark.conf.set(key, value)
    yield
    for key in conf:
        spark.conf.unset(key)


def test_conditions_keep_what_sparks_filters_keep(spark: SparkSession, odd: Odd) -> None:
    made = list(islice(conditions(Random(3), exact=False), PREDICATES))
    wanted = kept_by_spark(spark, odd, [Tree("and", tuple(map(Leaf, terms))) for terms in made])
    check(odd, "where", [where_json(terms) for terms in made], wanted)
    for terms, want in list(zip(made, wanted))[:THROUGH_SPARK]:
        assert {
            row["id"] for row in read_nodes(spark, odd.indexed, "Odd", columns=["id"], where=terms).collect()
        } == want


def test_filters_keep_what_sparks_filters_keep(spark: SparkSession, odd: Odd) -> None:
    made = list(islice(trees(Random(4)), PREDICATES))
    wanted = kept_by_spark(spark, odd, made)
    check(odd, "filter", [tree.text(LANCE) for tree in made], wanted)
    for tree, want in list(zip(made, wanted))[:THROUGH_SPARK]:
        found = read_nodes(spark, odd.indexed, "Odd", columns=["id"], where=tree.text(LANCE)).collect()
        assert {row["id"] for row in found} == want


def check(odd: Odd, option: str, texts: Sequence[str], wanted: Sequence[set[str]]) -> None:
    assert len({frozenset(rows) for rows in wanted}) > PREDICATES / 2, "the predicates tell few rows apart"
    for root in (odd.bare, odd.indexed):
        found = {text: kept(root, option, text) for text in texts}
        wrong = {text: rows ^ found[text] for text, rows in zip(texts, wanted) if rows != found[text]}
        assert wrong == {}
