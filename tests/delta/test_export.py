"""Types as Delta tables that a session writes: every value, months of commits, two at once; in turn with deltalake."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from chispa import assert_df_equality
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_omnigraph import BadRequestError, ConflictError, Graph, SparkExecutor, VersionExpiredError
from spark_omnigraph.cli.program import main
from spark_omnigraph.graph.export.tables import ExportOutcome, WrittenTable
from spark_omnigraph.spark.api import read_edges, read_nodes
from spark_omnigraph.spark.delta_tables import SparkTable
from spark_omnigraph.spark.rows import delta_rows
from tests.support.delta_logs import add_feature
from tests.support.delta_tables import SEED
from tests.support.export_history import PLAIN, Months, expire_at_once
from tests.support.export_history import SCHEMA as SMALL
from tests.unit.graph.test_export_tables import FULL, SCHEMA, SHOWN, acted, node, rows


def test_every_value_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    graph, out = Graph.init(tmp_path / "g", SCHEMA), tmp_path / "out"
    lines = [node("Film", **FULL), node("Film", title="bare"), node("Person", name="Al"), acted("1", "Al", "bare", "x")]
    graph.load(lines, options=PLAIN)
    done = graph.export_tables(str(out), with_blobs=True, executor=SparkExecutor(spark))
    assert {key: (each.outcome, each.rows) for key, each in done.items()} == {
        "edge:ActedIn": (ExportOutcome.WHOLE, 1),
        "node:Film": (ExportOutcome.WHOLE, 2),
        "node:Person": (ExportOutcome.WHOLE, 1),
    }
    for place, ours in (
        ("nodes/Film", read_nodes(spark, graph.uri, "Film")),
        ("edges/ActedIn", read_edges(spark, graph.uri, "ActedIn")),
    ):
        theirs = spark.read.format("delta").load(str(out / place))
        text = [f"CAST({name} AS STRING) AS {name}" if name == "at" else name for name in theirs.columns]
        assert_df_equality(
            ours.selectExpr(*text), theirs.selectExpr(*text), ignore_row_order=True, ignore_nullable=True
        )
        assert [(f.name, f.dataType) for f in ours.schema] == [(f.name, f.dataType) for f in theirs.schema]
    assert rows(out / "nodes/Film") == [SHOWN, {**dict.fromkeys(SHOWN), "id": "bare", "title": "bare"}]
    graph.load([node("Film", title="bare", a=7)], "merge", options=PLAIN)
    graph.export_tables(str(out), types=["Film"], with_blobs=True, incremental=True)  # instants are no INT96
    history = DeltaTable(str(out / "nodes/Film")).history()
    assert [each["operation"] for each in history] == ["MERGE", "CREATE TABLE AS SELECT"] or [
        each["operation"] for each in history
    ] == ["MERGE", "WRITE"]
    assert rows(out / "nodes/Film")[0] == SHOWN


@pytest.mark.parametrize("turns", ["SLS", pytest.param("SSLSLSSLLSSSLS", marks=pytest.mark.long)])
def test_months_of_commits_are_followed_by_both_in_turn(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: str
) -> None:
    """By Spark (S) and without (L)."""
    expire_at_once(monkeypatch)
    graph, out = Graph.init(tmp_path / "g", SMALL), tmp_path / "out"
    months, executor = Months(graph, SEED), SparkExecutor(spark)

    def exported(by: SparkExecutor | None, incremental: bool, version: int | None) -> dict[str, WrittenTable]:
        return graph.export_tables(str(out), incremental=incremental, version=version, executor=by)

    for turn in turns:
        for _ in range(5):
            months.day()
        months.export(partial(exported, executor if turn == "S" else None), lambda place: rows(out / place))
    for name in ("P", "Q"):
        theirs = spark.read.format("delta").load(str(out / "nodes" / name)).drop("at", "more")
        ours = read_nodes(spark, graph.uri, name).drop("at", "more")
        assert_df_equality(ours, theirs, ignore_row_order=True, ignore_nullable=True)


_LONG = [pytest.param(case, marks=pytest.mark.long) for case in ("new", "no_change")]


@pytest.mark.parametrize("case", ["whole", "changes", *_LONG])
def test_of_two_at_once_one_conflicts_and_the_other_stands(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """The other one writes without Spark, between what this one sees and its transaction."""
    graph, out, look = Graph.init(tmp_path / "g", SMALL), str(tmp_path / "out"), SparkTable.look
    graph.load([node("P", name="a", n=1)], options=PLAIN)
    kind = "Q" if case == "no_change" else "P"
    if case != "new":
        graph.export_tables(out)
    graph.load([node("P", name="a", n=2), node("P", name="b")], "merge", options=PLAIN)

    def raced(self: SparkTable) -> Any:
        found = look(self)
        monkeypatch.setattr(SparkTable, "look", look)
        graph.delete("node:P", ["b"])
        graph.load([node("P", name="c", n=3)], options=PLAIN)
        Graph.open(graph.uri).export_tables(out, types=[kind], incremental=case != "whole")
        return found

    monkeypatch.setattr(SparkTable, "look", raced)
    with pytest.raises(ConflictError, match="written by somebody else"):
        graph.export_tables(
            out, types=[kind], incremental=case in ("changes", "no_change"), executor=SparkExecutor(spark)
        )
    stored = [(row["id"], int(row["n"])) for row in rows(f"{out}/nodes/{kind}")]
    assert stored == ([] if kind == "Q" else [("a", 2), ("c", 3)])


def test_a_state_that_expired_and_a_session_of_its_own(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expire_at_once(monkeypatch)
    graph, out, executor = Graph.init(tmp_path / "g", SMALL), str(tmp_path / "out"), SparkExecutor(spark)
    graph.load([node("Q", code=1)], options=PLAIN)
    settings = spark.conf.getAll
    graph.export_tables(out, types=["Q"], executor=executor)
    for code in (2, 3):
        graph.load([node("Q", code=code)], options=PLAIN)
    graph.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    with pytest.raises(VersionExpiredError, match="write the tables whole"):
        graph.export_tables(out, types=["Q"], incremental=True, executor=executor)
    assert [row["id"] for row in rows(f"{out}/nodes/Q")] == ["1"]
    assert spark.conf.getAll == settings


def test_a_feature_that_the_session_lacks(spark: SparkSession, tmp_path: Path) -> None:
    graph, out = Graph.init(tmp_path / "g", SMALL), tmp_path / "out"
    graph.load([node("Q", code=1)], options=PLAIN)
    graph.export_tables(str(out), types=["Q"])
    add_feature(out / "nodes/Q", "fancyFeature", read=True)
    with pytest.raises(BadRequestError, match=r"delta:.*fancyFeature.*newer release of Delta"):
        graph.export_tables(str(out), types=["Q"], executor=SparkExecutor(spark))
    with pytest.raises(BadRequestError, match=r"input 'delta:.*fancyFeature.*newer release of Delta"):
        delta_rows(spark, f"delta:{out}/nodes/Q", None)


def test_the_job(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph.init(tmp_path / "g", SMALL)
    graph.load([node("Q", code=1)], options=PLAIN)
    given = ["export", "--graph", graph.uri, "--format", "delta", "--type", "Q", "--output", f"{tmp_path}/a b"]
    assert main([*given, "--executor", "spark"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])["result"]
    assert (result["executor"], result["written"]["node:Q"]["outcome"]) == ("spark", "whole")
    graph.load([node("Q", code=2)], options=PLAIN)
    assert main([*given, "--executor", "spark", "--incremental"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])["result"]
    assert (result["written"]["node:Q"]["outcome"], result["records"]) == ("changes", 1)
    table = pa.table(DeltaTable(f"{tmp_path}/a b/nodes/Q").to_pyarrow_table())
    assert sorted(table["code"].to_pylist()) == [1, 2]
    assert pc.count_distinct(table["id"]).as_py() == 2
