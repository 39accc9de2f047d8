# Databricks notebook source
# MAGIC %md
# MAGIC # Query
# MAGIC One graph in three ways: views for Spark SQL, the graph's own language, and SQL on one machine.

# COMMAND ----------

# MAGIC %pip install "/Volumes/main/tools/wheels/spark_omnigraph-0.1.0-py3-none-any.whl[sql]"

# COMMAND ----------

dbutils.library.restartPython()

# COMMAND ----------

dbutils.widgets.text("graph", "s3://bucket/graphs/films")
graph_uri = dbutils.widgets.get("graph")

# COMMAND ----------

from spark_omnigraph import create_views

views = create_views(spark, graph_uri, replace=True)

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT Film.name, Film.year, Directed.src AS director
# MAGIC FROM Film LEFT JOIN Directed ON Directed.dst = Film.id
# MAGIC ORDER BY Film.year

# COMMAND ----------

# MAGIC %md
# MAGIC A query of paths. It runs in this process, and its result shows itself.

# COMMAND ----------

from spark_omnigraph import Graph

graph = Graph.open(graph_uri, mode="r")
found = graph.query(
    """
    query since($year: I32) {
        match { $p: Person  $p directed $f  $f.year >= $year }
        return { $p.name as director, $f.name as film }
        order { $f.year }
    }
    """,
    params={"year": 1970},
)
found

# COMMAND ----------

counted = graph.sql("SELECT count(*) AS films, min(year) AS first FROM Film")
counted

# COMMAND ----------

# MAGIC %md
# MAGIC Rows as a frame of Spark: `spark.createDataFrame(found.to_arrow())`, or of many rows `read_query`, whose joins
# MAGIC run in Spark.

# COMMAND ----------

dbutils.notebook.exit(str({"found": found.to_pylist(), "counted": counted.to_pylist()}))
