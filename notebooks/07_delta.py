# Databricks notebook source
# MAGIC %md
# MAGIC # Delta
# MAGIC A table of Unity Catalog is a frame, and goes into a graph as one; a graph goes out as tables. On Databricks
# MAGIC Delta is there; elsewhere the session needs its jars.

# COMMAND ----------

# MAGIC %pip install "/Volumes/main/tools/wheels/spark_omnigraph-0.1.0-py3-none-any.whl[delta]"

# COMMAND ----------

dbutils.library.restartPython()

# COMMAND ----------

dbutils.widgets.text("graph", "s3://bucket/graphs/films")
dbutils.widgets.text("table", "main.raw.films")
dbutils.widgets.text("target", "main.gold.films")
graph_uri, table, target = (dbutils.widgets.get(name) for name in ("graph", "table", "target"))

# COMMAND ----------

from spark_omnigraph import read_nodes, register, write_nodes

register(spark)
films = spark.table(table).select("name", "year", "plot")
write_nodes(films, graph_uri, "Film", mode="merge")

# COMMAND ----------

# MAGIC %md
# MAGIC And back: a type as a table that other tools read, and the report of a load as one.

# COMMAND ----------

read_nodes(spark, graph_uri, "Film", columns=["name", "year"]).write.format("delta").mode("overwrite").saveAsTable(
    target
)

# COMMAND ----------

dbutils.notebook.exit(str(spark.table(target).count()))
