"""Delta over Spark Connect, with no JVM in reach: `python -m tests.delta.over_connect FOLDER`.

Tables follow a graph, and a graph follows a table; what became of the second is printed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from spark_omnigraph import FeedLostError, Graph, LoadOptions, SparkExecutor, delta_source
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
        exported(spark, folder / "exported")
        print(json.dumps(followed(spark, folder / "followed")))


def exported(spark: SparkSession, folder: Path) -> None:
    """Fails where the tables are not the graph."""
    graph, out, executor = Graph.init(folder / "g", SCHEMA), folder / "out", SparkExecutor(spark)
    graph.load([node("P", name="a", n=1), node("Q", code=1)], options=PLAIN)
    months = Months(graph, 0)
    for number, turn in enumerate((executor, None, executor)):
        graph.load([node("P", name="a", n=number), node("P", name=f"b{number}")], "merge", options=PLAIN)
        done = graph.export_tables(str(out), incremental=True, executor=turn)
        months.check(lambda place: rows(out / place))
        graph.delete("node:P", [f"b{number}"])
    assert done["node:P"].outcome is ExportOutcome.CHANGES
    again = graph.export_tables(str(out), executor=executor, version=3)
    assert {each.outcome for each in again.values()} == {ExportOutcome.SAME}
    for name in ("write.txnAppId", "write.txnVersion", "commitInfo.userMetadata"):
        assert spark.conf.get(f"spark.databricks.delta.{name}", None) is None
    copy = Graph.init(folder / "copy", SCHEMA)
    mapping = {"node": "Q", "ignore": ["id"]}
    copy.load(delta_rows(spark, f"delta:{out}/nodes/Q", None), mapping=mapping)
    assert copy.count("node:Q") == len(rows(out / "nodes/Q"))


def followed(spark: SparkSession, folder: Path) -> dict[str, object]:
    """What the turns did, and what the graph has afterwards."""
    graph = Graph.init(folder / "g", "node Film { title: String @key }")
    place, options = folder / "films", LoadOptions(max_deletes=1.0, build_indexes=False)
    table = f"delta.`{place}`"
    properties = "TBLPROPERTIES ('delta.enableChangeDataFeed'='true')"
    spark.sql(f"CREATE TABLE {table} (title STRING) USING delta {properties}").collect()
    spark.sql(f"INSERT INTO {table} VALUES ('a'), ('b')").collect()
    source = delta_source(spark, f"delta:{place}")
    outcomes = [graph.sync(source, node="Film", options=options).outcome]
    spark.sql(f"DELETE FROM {table} WHERE title = 'a'").collect()
    spark.sql(f"INSERT INTO {table} VALUES ('c')").collect()
    outcomes += [graph.sync(source, node="Film", options=options).outcome for _ in range(2)]
    for on in ("false", "true"):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed'='{on}')").collect()
    try:
        graph.sync(source, node="Film", options=options)
    except FeedLostError as error:
        lost = error.kind
    outcomes.append(graph.sync(source, node="Film", options=options, full=True).outcome)
    titles = sorted(json.loads(line)["data"]["title"] for line in graph.export())
    return {"outcomes": outcomes, "titles": titles, "lost": lost}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
