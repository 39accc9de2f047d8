"""A stream of files into a graph, in a process of its own that a test kills."""

from __future__ import annotations

import sys

from spark_omnigraph.spark.session import local_session

ENVELOPE = "type string, edge string, `from` string, `to` string, data string"


def main(source: str, graph: str, checkpoint: str, folder: str) -> None:
    """Reads all files of a folder, one a batch, and merges their records."""
    spark = local_session("stream", "1", {"spark.local.dir": folder, "spark.driver.memory": "512m"})
    (
        spark.readStream.schema(ENVELOPE)
        .option("maxFilesPerTrigger", 1)
        .json(source)
        .writeStream.format("omnigraph")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(graph)
        .awaitTermination()
    )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
