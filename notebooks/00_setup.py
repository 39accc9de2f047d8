# Databricks notebook source
# MAGIC %md
# MAGIC # Set up
# MAGIC Installs the package, writes sample files, makes a graph of them, and finds out where work can run: in Spark's
# MAGIC tasks, or in the process of the notebook alone, as on serverless compute whose tasks do not reach the store.

# COMMAND ----------

# MAGIC %pip install /Volumes/main/tools/wheels/spark_omnigraph-0.1.0-py3-none-any.whl

# COMMAND ----------

dbutils.library.restartPython()

# COMMAND ----------

dbutils.widgets.text("graph", "s3://bucket/graphs/films")
dbutils.widgets.text("folder", "/Volumes/main/raw/films")
graph_uri, folder = dbutils.widgets.get("graph"), dbutils.widgets.get("folder")

# COMMAND ----------

# MAGIC %md
# MAGIC Sample files: a schema, records of which two are wrong, and later changes. A volume is a folder to Python.

# COMMAND ----------

import json
from pathlib import Path

SCHEMA = """
node Film {
    name: String @key
    year: I32 @index
    plot: String?
    plot_vec: Vector(64)? @embed("plot")
    @range(year, 1888..2100)
}
node Person { name: String @key }
edge Directed: Person -> Film { @unique(src, dst) }
"""
FILMS = [
    {"type": "Film", "data": {"name": "Alien", "year": 1979, "plot": "A crew meets something that hunts it"}},
    {"type": "Film", "data": {"name": "Heat", "year": 1995, "plot": "A thief and a detective in one town"}},
    {"type": "Film", "data": {"name": "Playtime", "year": 1967, "plot": "Visitors are lost in a city of glass"}},
    {"type": "Person", "data": {"name": "Ridley Scott"}},
    {"type": "Person", "data": {"name": "Jacques Tati"}},
    {"edge": "Directed", "from": "Ridley Scott", "to": "Alien", "data": {"id": "d1"}},
    {"edge": "Directed", "from": "Jacques Tati", "to": "Playtime", "data": {"id": "d2"}},
    {"type": "Film", "data": {"name": "Faust", "year": 1587}},
    {"edge": "Directed", "from": "Nobody", "to": "Heat", "data": {"id": "d3"}},
]
CHANGES = [
    {"name": "Heat", "year": 1996, "plot": "A thief and a detective in one town"},
    {"name": "Brazil", "year": 1985, "plot": "A clerk dreams of wings"},
]
Path(folder, "changes").mkdir(parents=True, exist_ok=True)
Path(folder, "films.pg").write_text(SCHEMA)
Path(folder, "films.jsonl").write_text("".join(json.dumps(record) + "\n" for record in FILMS))
Path(folder, "changes", "1.json").write_text("".join(json.dumps(record) + "\n" for record in CHANGES))

# COMMAND ----------

from spark_omnigraph import AlreadyInitializedError, Graph

try:
    graph = Graph.init(graph_uri, f"{folder}/films.pg")
except AlreadyInitializedError:
    graph = Graph.open(graph_uri)
graph

# COMMAND ----------

# MAGIC %md
# MAGIC A table of a graph is read by tasks. Where they do not reach the store, loads take `--executor local`.

# COMMAND ----------

from spark_omnigraph import read_nodes

try:
    read_nodes(spark, graph_uri, "Film", limit=1).collect()
    executor = "auto"
except Exception as error:
    print(f"tasks of Spark cannot read the graph: {error}")
    executor = "local"

# COMMAND ----------

dbutils.notebook.exit(executor)
