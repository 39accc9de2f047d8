"""Tables that follow a graph over Spark Connect, with no JVM in reach: `python -m tests.delta.over_connect FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from spark_omnigraph import Graph, SparkExecutor
from spark_omnigraph.graph.export.tables import ExportOutcome
from spark_omnigraph.spark.rows import delta_rows
from tests.spark.sessions import connect_session
from tests.support.delta_jars import delta_jars, settings
from tests.support.export_history import PLAIN, SCHEMA, Months
from tests.unit.graph.test_export_tables import node, rows


def main(folder: Path) -> None:
    jars = delta_jars()
    assert jars is not None
    with connect_session(folder, settings(jars)) as spark:
        graph, out, executor = Graph.init(folder / "g", SCHEMA), folder / "out", SparkExecutor(spark)
        graph.load([node("P", name="a", n=1), node("Q", code=1)], options=PLAIN)
        months = Months(graph, 0)
        for number, turn in enumerate((executor, None, executor)):
            graph.load([node("P", name="a", n=number), node("P", name=f"b{number}")], "merge", options=PLAIN)
            done = graph.export_tables(str(out), incremental=True, executor=turn)
            months.check(lambda place: rows(out / place))
            graph.delete("node:P", [f"b{number}"])
        assert done["node:P"].outcome is ExportOutcome.CHANGES
        assert {each.outcome for each in graph.export_tables(str(out), executor=executor, version=3).values()} == {
            ExportOutcome.SAME
        }
        for name in ("write.txnAppId", "write.txnVersion", "commitInfo.userMetadata"):
            assert spark.conf.get(f"spark.databricks.delta.{name}", None) is None
        copy = Graph.init(folder / "copy", SCHEMA)
        mapping = {"node": "Q", "ignore": ["id"]}
        copy.load(delta_rows(spark, f"delta:{out}/nodes/Q", None), mapping=mapping)
        assert copy.count("node:Q") == len(rows(out / "nodes/Q"))
    print("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
