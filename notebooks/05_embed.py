# Databricks notebook source
# MAGIC %md
# MAGIC # Embeddings
# MAGIC Vectors of texts, from the provider that is named: a dry run says what that costs, and each text is asked for
# MAGIC once. On serverless compute tasks have no way out, so that the process of the notebook asks.

# COMMAND ----------

# MAGIC %pip install /Volumes/main/tools/wheels/spark_omnigraph-0.1.0-py3-none-any.whl

# COMMAND ----------

dbutils.library.restartPython()

# COMMAND ----------

dbutils.widgets.text("graph", "s3://bucket/graphs/films")
dbutils.widgets.text("provider", "openai")
dbutils.widgets.text("model", "text-embedding-3-small")
dbutils.widgets.text("scope", "films")
graph_uri = dbutils.widgets.get("graph")

# COMMAND ----------

# MAGIC %md
# MAGIC The key stands in a secret scope and is given by hand: it is in no option, log or commit.

# COMMAND ----------

from spark_omnigraph import Graph, embedding_config

key = dbutils.secrets.get(dbutils.widgets.get("scope"), "embedding_key")
provider = embedding_config(dbutils.widgets.get("provider"), model=dbutils.widgets.get("model") or None, api_key=key)
graph = Graph.open(graph_uri)

# COMMAND ----------

planned = graph.embed("Film", "plot_vec", provider, dry_run=True)
planned

# COMMAND ----------

from spark_omnigraph import LocalExecutor, WatchedExecutor, progress_bar

with progress_bar() as bar:
    report = graph.embed("Film", "plot_vec", provider, executor=WatchedExecutor(LocalExecutor(1), bar))
report

# COMMAND ----------

# MAGIC %md
# MAGIC Films whose plots are nearest to a text.

# COMMAND ----------

near = graph.query(
    """
    query like($text: String) {
        match { $f: Film }
        return { $f.name as name }
        order { nearest($f.plot_vec, $text) }
        limit 1
    }
    """,
    params={"text": "A thief and a detective in one town"},
    embedder=provider,
)
near

# COMMAND ----------

dbutils.notebook.exit(str((report.properties["Film.plot_vec"].embedded, near.to_pylist())))
