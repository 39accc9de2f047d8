# Databricks notebook source
# MAGIC %md
# MAGIC # Upkeep
# MAGIC What a graph that is written every day needs now and then: a name for a state, joined files, whole indexes,
# MAGIC and an end for old states.

# COMMAND ----------

# MAGIC %pip install /Volumes/main/tools/wheels/spark_omnigraph-0.1.0-py3-none-any.whl

# COMMAND ----------

dbutils.library.restartPython()

# COMMAND ----------

dbutils.widgets.text("graph", "s3://bucket/graphs/films")
dbutils.widgets.text("tag", "reviewed")
dbutils.widgets.text("keep", "10")
dbutils.widgets.dropdown("confirm", "no", ["no", "yes"])
graph_uri = dbutils.widgets.get("graph")

# COMMAND ----------

from spark_omnigraph import Graph

graph = Graph.open(graph_uri)
graph.describe()

# COMMAND ----------

# MAGIC %md
# MAGIC A tagged state stays readable, whatever clean-up lets go: `read_nodes(…, tag="reviewed")`.

# COMMAND ----------

graph.tag(dbutils.widgets.get("tag"))

# COMMAND ----------

report = graph.optimize()
report

# COMMAND ----------

# MAGIC %md
# MAGIC Without `confirm` clean-up only says what would go. States that somebody was shown within seven days stay.

# COMMAND ----------

cleaned = graph.cleanup(keep=int(dbutils.widgets.get("keep")), confirm=dbutils.widgets.get("confirm") == "yes")
cleaned

# COMMAND ----------

# MAGIC %md
# MAGIC The history, with who wrote and how much.

# COMMAND ----------

display(spark.read.format("omnigraph").option("table", "commits").load(graph_uri))

# COMMAND ----------

dbutils.notebook.exit(
    str({"tags": [tag.name for tag in graph.tags()], "removed": sum(i.deleted for i in cleaned.items)})
)
