"""Follows a table over Spark Connect, and says how it went: `python -m tests.delta.over_connect FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from spark_omnigraph import FeedLostError, Graph, LoadOptions, delta_source
from tests.spark.sessions import connect_session
from tests.support.delta_jars import delta_jars, settings


def main(folder: Path) -> None:
    jars = delta_jars()
    assert jars is not None
    graph = Graph.init(folder / "g", "node Film { title: String @key }")
    place, options = folder / "films", LoadOptions(max_deletes=1.0, build_indexes=False)
    table = f"delta.`{place}`"
    with connect_session(folder, settings(jars)) as spark:
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
    print(json.dumps({"outcomes": outcomes, "titles": titles, "lost": lost}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
