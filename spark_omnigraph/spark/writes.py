"""Calls for notebooks and jobs that write a frame and tell what became of it, which a `save()` cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import uuid4

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql.functions import col

from spark_omnigraph.manifest.branches import stored_branch
from spark_omnigraph.manifest.facts import checked_metadata, decode_facts
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.spark.api import check_arguments, load_source, register
from spark_omnigraph.spark.errors import typed_errors
from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.spark.read.options import STORAGE_PREFIX
from spark_omnigraph.spark.session import application_id
from spark_omnigraph.spark.session import storage_options as session_storage_options
from spark_omnigraph.spark.source import OmnigraphDataSource


@check_arguments
def write_nodes(  # noqa: PLR0913 - the options of the data source, by name
    df: DataFrame,
    uri: str,
    type: str,
    *,
    mode: str = "append",
    branch: str | None = None,
    actor: str | None = None,
    metadata: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Commit | None:
    """Writes a frame of nodes in one commit, and returns that with its facts: rows inserted, updated, deleted and left
    out as bad. None when nothing had changed, and so no commit was made.

    `mode` is append, merge, update, overwrite, changes or delete; `options` are further ones of the data source, such
    as `maxBadRows`.
    Raises what `save()` does: BadRowsError, ConstraintError, ConflictError; then nothing has changed.

    Example: `write_nodes(df, uri, "Person", mode="merge", metadata={"ticket": "OPS-7"}).facts.totals().inserted`
    """
    given = _given({"node": type, "loadMode": mode, "branch": branch, "actor": actor}, metadata, options)
    return _write(df, uri, given, storage_options)


@check_arguments
def write_edges(  # noqa: PLR0913 - the options of the data source, by name
    df: DataFrame,
    uri: str,
    type: str,
    *,
    mode: str = "append",
    branch: str | None = None,
    actor: str | None = None,
    metadata: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Commit | None:
    """Writes a frame of edges (`src`, `dst` and the properties); else as `write_nodes`."""
    given = _given({"edge": type, "loadMode": mode, "branch": branch, "actor": actor}, metadata, options)
    return _write(df, uri, given, storage_options)


@check_arguments
def last_write(
    spark: SparkSession,
    uri: str,
    app_id: str | None = None,
    *,
    branch: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Commit | None:
    """The newest commit of an application with its facts, or None: of a Spark application by its id, by default that of
    this session; of numbered writes by their `txnAppId`; of a stream by the id of its query.
    """
    name = application_id(spark) if app_id is None else app_id
    if name is None:
        return None
    return _newest(spark, uri, branch, col("app_id").isin(name) | col("txn_app_id").isin(name), storage_options)


def _given(
    said: Mapping[str, str | None], metadata: Mapping[str, str] | None, options: Mapping[str, str] | None
) -> dict[str, str]:
    meta = {"userMetadata": json.dumps(checked_metadata(metadata))} if metadata else {}
    return {**{name: text for name, text in said.items() if text is not None}, **meta, **(options or {})}


def _write(
    df: DataFrame, uri: str, options: Mapping[str, str], storage_options: Mapping[str, str] | None
) -> Commit | None:
    spark, run = df.sparkSession, uuid4().hex
    register(spark)
    given = {**options, **sharing_tasks(spark, options), "runId": run}
    application = application_id(spark)
    if application is not None:
        given["applicationId"] = application
    for name, value in {**session_storage_options(spark), **(storage_options or {})}.items():
        given[STORAGE_PREFIX + name] = value
    replaces = "overwrite" if options["loadMode"].strip().lower() == "overwrite" else "append"
    with typed_errors():
        df.write.format(OmnigraphDataSource.name()).options(**given).mode(replaces).save(uri)
    return _newest(spark, uri, options.get("branch"), col("run_id").isin(run), storage_options)


def sharing_tasks(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """The option that says how many tasks ask for vectors at a time, where they ask and it is not given."""
    named = {name.lower(): text for name, text in options.items()}
    if named.get("embed", "off").strip().lower() == "off" or "embedtasks" in named:
        return {}
    return {"embedTasks": str(SparkExecutor(spark).parallelism)}


def _newest(
    spark: SparkSession, uri: str, branch: str | None, condition: Column, storage_options: Mapping[str, str] | None
) -> Commit | None:
    at = {"table": "commits"} if branch is None else {"table": "commits", "branch": branch}
    frame = load_source(spark, uri, at, storage_options)
    with typed_errors():
        found = frame.where(condition).selectExpr("*", "unix_micros(created_at) AS micros")
        rows = found.orderBy(col("manifest_version").desc()).limit(1).collect()
    return _commit(rows[0]) if rows else None


def _commit(row: Row) -> Commit:
    return Commit(
        id=row["commit"],
        branch=stored_branch(row["branch"]),
        manifest_version=row["manifest_version"],
        parent=row["parent"],
        merged_parent=row["merged_parent"],
        created_micros=row["micros"],
        actor=row["actor"],
        facts=decode_facts(row["facts"]),
    )
