# Databricks notebook source
# MAGIC %md
# MAGIC # Load
# MAGIC Loads files in one commit. Rows that the schema refuses are named, each with its place and its reason.

# COMMAND ----------

# MAGIC %pip install /Volumes/main/tools/wheels/spark_omnigraph-0.1.0-py3-none-any.whl

# COMMAND ----------

dbutils.library.restartPython()

# COMMAND ----------

dbutils.widgets.text("graph", "s3://bucket/graphs/films")
dbutils.widgets.text("folder", "/Volumes/main/raw/films")
dbutils.widgets.text("branch", "main")
dbutils.widgets.dropdown("executor", "auto", ["auto", "local", "spark"])
graph_uri, folder = dbutils.widgets.get("graph"), dbutils.widgets.get("folder")

# COMMAND ----------

# MAGIC %md
# MAGIC Exit code 4 is a lost race, and the only one that is worth another attempt. A task of Databricks cannot ask
# MAGIC for exit codes, so the loop stands here, and the task has `max_retries: 0`.

# COMMAND ----------

import json
from pathlib import Path

from spark_omnigraph.cli import main

CONFLICT, ATTEMPTS = 4, 3


def job(*words):
    """Runs a verb; its exit code and its summary."""
    summary = Path(folder, "summary.json")
    for _ in range(ATTEMPTS):
        code = main([*words, "--graph", graph_uri, "--summary", str(summary)])
        if code != CONFLICT:
            break
    return code, json.loads(summary.read_text())


bad_rows = f"{folder}/bad-rows.jsonl"
branch, executor = dbutils.widgets.get("branch"), dbutils.widgets.get("executor")
load = ["merge", "--input", f"{folder}/films.jsonl", "--branch", branch, "--executor", executor, "--bad-rows", bad_rows]

# COMMAND ----------

# MAGIC %md
# MAGIC By default one bad row refuses the load, and nothing in the graph has changed.

# COMMAND ----------

code, summary = job(*load)
display(spark.read.json(bad_rows).select("line", "record_type", "field", "rule", "message"))

# COMMAND ----------

# MAGIC %md
# MAGIC Whoever has looked at them may let the others in. `raise` ends the task as failed; a return means success.

# COMMAND ----------

if code:
    code, summary = job(*load, "--max-bad-rows", "2")
if code:
    raise RuntimeError(f"the load ended with {code}: {summary['error']}")
counts = [(key, n["inserted"], n["bad"]) for key, n in summary["tables"].items()]
display(spark.createDataFrame(counts, "table string, inserted long, bad long"))

# COMMAND ----------

dbutils.notebook.exit(json.dumps({"commit": summary["commit"], "bad_rows": summary["bad_rows"]["total"]}))
