# Databricks notebook source
# MAGIC %md
# MAGIC # Review
# MAGIC Changes on a branch, looked at before they reach main: `main` moves on meanwhile, and the merge goes row by
# MAGIC row.

# COMMAND ----------

# MAGIC %pip install /Volumes/main/tools/wheels/spark_omnigraph-0.1.0-py3-none-any.whl

# COMMAND ----------

dbutils.library.restartPython()

# COMMAND ----------

dbutils.widgets.text("graph", "s3://bucket/graphs/films")
dbutils.widgets.text("folder", "/Volumes/main/raw/films")
dbutils.widgets.text("branch", "review")
graph_uri, folder, branch = (dbutils.widgets.get(name) for name in ("graph", "folder", "branch"))

# COMMAND ----------

from spark_omnigraph import Graph, LoadOptions

graph = Graph.open(graph_uri)
graph.create_branch(branch)
graph.load(
    [
        {"type": "Film", "data": {"name": "Alien", "year": 1980}},
        {"type": "Person", "data": {"name": "Michael Mann"}},
        {"edge": "Directed", "from": "Michael Mann", "to": "Heat", "data": {"id": "d4"}},
    ],
    mode="update",
    branch=branch,
    options=LoadOptions(missing="insert"),
)

# COMMAND ----------

# MAGIC %md
# MAGIC Meanwhile somebody corrects the same film on main, to another year.

# COMMAND ----------

graph.mutate('query fix() { update Film set { year: 1978 } where name = "Alien" }')

# COMMAND ----------

# MAGIC %md
# MAGIC What the branch would bring. A difference shows itself, and iterates over its rows.

# COMMAND ----------

graph.diff("main", branch)

# COMMAND ----------

# MAGIC %md
# MAGIC A row that both changed differently is a conflict: nothing is merged until somebody says which side wins, for
# MAGIC all rows as here, or row by row in a file of decisions.

# COMMAND ----------

from spark_omnigraph import MergeConflictsError

try:
    merged = graph.merge_branch(branch)
except MergeConflictsError as error:
    conflicts = error
    display(conflicts)

# COMMAND ----------

merged = graph.merge_branch(branch, on_conflict="source", conflicts=f"{folder}/conflicts.jsonl")
merged

# COMMAND ----------

graph.delete_branch(branch)

# COMMAND ----------

dbutils.notebook.exit(str({"conflicts": len(conflicts.conflicts), "year": graph.entity("node:Film", "Alien")["year"]}))
