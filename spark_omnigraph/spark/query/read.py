"""`read_query`: the rows of a read query as a DataFrame, by either engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.commit.contract import view
from spark_omnigraph.embed.callables import EmbedFunction
from spark_omnigraph.embed.config import EmbedConfig
from spark_omnigraph.embed.embedder import Embedder
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.provider import embedding_config
from spark_omnigraph.graph.read.history import ReadTarget, resolve
from spark_omnigraph.graph.read.query import bound_plan, prepare, query_task, stored_rows
from spark_omnigraph.lang.gq.choose import Engine, choose
from spark_omnigraph.lang.gq.plan import Plan
from spark_omnigraph.limits import Limits, Watch
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.progress.meter import Progress, unheard
from spark_omnigraph.spark.api import check_arguments
from spark_omnigraph.spark.errors import typed_errors
from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.spark.query.result import measured_plan, plan_frame
from spark_omnigraph.spark.query.tables import COLUMN_BYTES, UNKNOWN_BYTES, GraphTables, run_tasks
from spark_omnigraph.spark.query.tasks import AnswerTask
from spark_omnigraph.spark.session import embed_key
from spark_omnigraph.spark.session import storage_options as session_storage_options
from spark_omnigraph.spark.types import answer_schema
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.words import nearest

AUTO = "auto"


@check_arguments
def read_query(  # noqa: PLR0913 - those of Graph.query, by name
    spark: SparkSession,
    uri: str,
    text: str,
    name: str | None = None,
    params: Mapping[str, object] | None = None,
    *,
    engine: str = AUTO,
    embedder: Embedder | EmbedConfig | EmbedFunction | None = None,
    branch: str | None = None,
    version: int | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | None = None,
    tag: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of a read query, as `Graph.query` finds them, of one state of the graph however often they are used.

    `engine` says who finds them: `embedded`, the engine of `Graph.query`, in tasks; `spark`, joins of DataFrames;
    `auto` takes `spark` where the numbers of stored rows say that the other one would not do, which `Graph.explain`
    shows. Rows are in the order that the query asks for as long as the frame is collected or written as it is. Walks
    of several hops run while the frame of `spark` is made. The graph is opened where this is called, over Spark
    Connect by the client.

    Raises what `Graph.query` raises; BadRequestError for two columns of one name.
    """
    chosen = _engine(engine)
    store = GraphStore.open(uri, {**session_storage_options(spark), **(storage_options or {})} or None)
    key = embed_key(spark)
    source = embedding_config(api_key=key) if embedder is None and key is not None else embedder
    query = ask(store, ReadTarget(branch, version, snapshot, as_of, tag), AskedQuery(text, name, params, source))
    return query.frame(spark, chosen or query.choice)


def _engine(name: str) -> Engine | None:
    """None leaves it open."""
    known = [AUTO, *map(str, Engine)]
    if name not in known:
        raise BadRequestError(f"engine is one of {', '.join(known)}, not '{name}'{nearest(name, known)}")
    return None if name == AUTO else Engine(name)


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query of a text, the values of its parameters, and what gives vectors for texts of `nearest`."""

    text: str
    name: str | None = None
    params: Mapping[str, object] | None = None
    embedder: Embedder | EmbedConfig | EmbedFunction | None = None


def ask(store: GraphStore, target: ReadTarget, asked: AskedQuery) -> BoundQuery:
    """A query of one state of a graph. Raises as `read_query`."""
    contract, state = view(store, lambda: resolve(store, target))
    prepared = prepare(contract.catalog, asked.text, asked.name)
    return BoundQuery(store, contract.catalog, state, bound_plan(prepared, asked.params, embedder=asked.embedder))


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A bound plan and the state of the graph that it is asked of."""

    store: GraphStore
    catalog: Catalog
    snapshot: Snapshot
    plan: Plan

    @property
    def choice(self) -> Engine:
        """The engine for whoever leaves it open."""
        return choose(self.plan, self.catalog, stored_rows(self.snapshot)).engine

    def frame(self, spark: SparkSession, engine: Engine, progress: Progress = unheard) -> DataFrame:
        """The rows, by an engine; `progress` is told of the hops of walks."""
        schema = answer_schema(self.plan.columns)
        if engine is Engine.EMBEDDED:
            task = query_task(self.store, self.catalog, self.snapshot, self.plan)
            shares = tuple(task.shares(SparkExecutor(spark).parallelism))
            size = min(sum(task.rows.values()) * COLUMN_BYTES * len(schema), UNKNOWN_BYTES)
            return run_tasks(spark)(AnswerTask(task, shares, schema), len(shares), size)
        with typed_errors():
            return plan_frame(self.plan, self._tables(spark, progress))

    def measured(self, spark: SparkSession, limits: Limits, progress: Progress = unheard) -> str:
        """The plan as text, run by the engine of Spark an operator at a time, with their rows and times."""
        return measured_plan(self.plan, self._tables(spark, progress), Watch(), limits)

    def _tables(self, spark: SparkSession, progress: Progress) -> GraphTables:
        task = query_task(self.store, self.catalog, self.snapshot, self.plan)
        slots = SparkExecutor(spark).parallelism
        return GraphTables(spark, self.catalog, task.tables, task.rows, slots, run_tasks(spark), progress=progress)
