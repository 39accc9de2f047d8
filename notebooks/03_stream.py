# Databricks notebook source
# MAGIC %md
# MAGIC # Stream and change feed
# MAGIC Files that arrive go into the graph, each batch once; what changed in the graph goes to whoever follows it.
# MAGIC Both use the trigger `availableNow`, the one that serverless compute has.

# COMMAND ----------

# MAGIC %pip install /Volumes/main/tools/wheels/spark_omnigraph-0.1.0-py3-none-any.whl

# COMMAND ----------

dbutils.library.restartPython()

# COMMAND ----------

dbutils.widgets.text("graph", "s3://bucket/graphs/films")
dbutils.widgets.text("folder", "/Volumes/main/raw/films")
graph_uri, folder = dbutils.widgets.get("graph"), dbutils.widgets.get("folder")

# COMMAND ----------

from spark_omnigraph import Graph, register

register(spark)
before = Graph.open(graph_uri, mode="r").snapshot().version

# COMMAND ----------

# MAGIC %md
# MAGIC A folder of JSON into nodes of one type: a film that is stored is replaced, another one is new.

# COMMAND ----------

arriving = spark.readStream.schema("name string, year int, plot string").json(f"{folder}/changes")
(
    arriving.writeStream.format("omnigraph")
    .option("node", "Film")
    .option("loadMode", "merge")
    .option("checkpointLocation", f"{folder}/checkpoints/films")
    .trigger(availableNow=True)
    .start(graph_uri)
    .awaitTermination()
)

# COMMAND ----------

# MAGIC %md
# MAGIC The rows that commits since then inserted, updated and deleted.

# COMMAND ----------

feed = (
    spark.read.format("omnigraph")
    .option("table", "changes")
    .option("node", "Film")
    .option("startingVersion", before + 1)
    .load(graph_uri)
)
display(feed.select("name", "year", "_change_type", "_commit_version"))

# COMMAND ----------

# MAGIC %md
# MAGIC The same as a stream, into files that others read. The checkpoint remembers how far it came; `consumer` has
# MAGIC clean-up wait for what was not read yet.

# COMMAND ----------

(
    spark.readStream.format("omnigraph")
    .option("table", "changes")
    .option("node", "Film")
    .option("startingVersion", before + 1)
    .option("consumer", "notebook")
    .load(graph_uri)
    .select("name", "year", "_change_type", "_commit_version")
    .writeStream.format("parquet")
    .option("checkpointLocation", f"{folder}/checkpoints/feed")
    .trigger(availableNow=True)
    .start(f"{folder}/feed")
    .awaitTermination()
)

# COMMAND ----------

rows = sorted((row["name"], row["_change_type"]) for row in spark.read.parquet(f"{folder}/feed").collect())
dbutils.notebook.exit(str(rows))
