"""The verb that answers a question: `query`; and what it has in common with `sql`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from spark_omnigraph.answer import Rows
from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.files import whole_file
from spark_omnigraph.cli.output.result_text import lines_of, write_parquet
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.cli.verbs.mutate import query_text
from spark_omnigraph.engine.result import QueryResult
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.provider import embedding_config
from spark_omnigraph.graph.read.history import ReadTarget
from spark_omnigraph.lang.gq.choose import Engine
from spark_omnigraph.limits import Leaving, Limits
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.memory import Memory
from spark_omnigraph.progress.meter import begin
from spark_omnigraph.spark.session import check_installed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.input.globs import is_packed
from spark_omnigraph.storage.objects.new_folder import NewFolder
from spark_omnigraph.storage.tables.reader import ReadCache
from spark_omnigraph.storage.uri import plain
from spark_omnigraph.words import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITE = "write"
"""The phase in which rows by Spark become files."""
SPARK_FORMS = ("jsonl", "csv", "parquet")
"""Forms of rows that many files can have."""


def query(job: Job) -> VerbOutcome:
    """The rows of a read query."""
    config = job.config
    is_plan = config.explain and not config.analyze
    by_spark = config.executor == "spark" and not is_plan
    if not by_spark:
        check_output(config)
    elif not config.analyze:
        check_folder(config)
    named = next((f"--{name.replace('_', '-')}" for name, value in config.past().items() if value is not None), None)
    if is_plan and named is not None:
        raise UsageError(f"--explain shows a plan and reads no state: leave {named} out")
    if is_plan:
        check_plan(config)
    text = query_text(config)
    if by_spark:
        return _by_spark(job, text)
    graph = Graph.open(config.graph, mode="r", branch=config.branch, storage_options=job.host.storage_options(config))
    graph.store.reads = ReadCache(Memory(config.cache_memory))
    if config.explain or config.analyze:
        return _explained(job, graph, text)
    key = job.host.embed_key
    embedder = None if key is None else embedding_config(api_key=key)

    def answer() -> QueryResult:
        bounds = config.bounded()
        return graph.query(text, config.name or None, config.params, embedder, progress=job.progress, **bounds)

    # In another thread, so that an interrupt is seen at once.
    result = Leaving[QueryResult](None).value(answer)
    write_rows(job, result)
    figures = {"query_name": result.name, "row_count": result.row_count, "columns": result.column_names}
    return _told(job, result.branch, result.manifest_version, figures)


def _told(job: Job, branch: str, version: int, figures: dict[str, object]) -> VerbOutcome:
    job.log.info("%s: %s", figures["query_name"], counted(int(str(figures["row_count"])), "row"))
    return VerbOutcome(branch=branch, manifest_version=version, result={**figures, "output": job.config.output})


def check_folder(config: JobConfig) -> None:
    """UsageError where Spark cannot write rows as the options say."""
    if config.output is None or config.format not in SPARK_FORMS:
        raise UsageError(
            f"--executor spark writes files: give a new folder with --output, and --format {', '.join(SPARK_FORMS)}"
        )
    if os.path.lexists(plain(config.output)):
        raise UsageError(f"--output: '{config.output}' is there already: Spark writes a new folder of files")


def _by_spark(job: Job, text: str) -> VerbOutcome:
    """The rows by joins of DataFrames, written by tasks; or the plan with what they took."""
    config = job.config
    check_installed()
    from spark_omnigraph.cli.output.answer_files import write_answer  # noqa: PLC0415 - needs pyspark, which is optional
    from spark_omnigraph.spark.query.leaving import leaving  # noqa: PLC0415 - needs pyspark, too
    from spark_omnigraph.spark.query.read import AskedQuery, ask  # noqa: PLC0415 - needs pyspark, too

    key = job.host.embed_key
    embedder = None if key is None else embedding_config(api_key=key)
    store = GraphStore.open(config.graph, job.host.storage_options(config))
    asked = AskedQuery(text, config.name or None, config.params, embedder)
    target = ReadTarget(config.branch, config.version, config.snapshot, config.as_of, config.tag)
    limits = Limits.of(config.time_limit, config.max_rows)
    query = ask(store, target, asked)  # a mistake in it is told before Spark starts
    if config.analyze:
        plan = leaving(job.host.session(), limits.seconds, lambda own: query.measured(own, limits, job.progress))
        return show_plan(job, plan)
    folder = NewFolder(str(config.output), job.host.storage_options(config))
    folder.refuse_other()

    def write(own: SparkSession) -> int:
        frame = query.frame(own, Engine.SPARK, job.progress)
        begin(job.progress, WRITE)
        return write_answer(frame, query.plan.columns, folder, config.format, limits)

    rows = leaving(job.host.session(), limits.seconds, write, folder.remove)
    names = [column.name for column in query.plan.columns]
    figures = {"query_name": query.plan.query, "row_count": rows, "columns": names}
    return _told(job, display(query.snapshot.branch), query.snapshot.version, figures)


def _explained(job: Job, graph: Graph, text: str) -> VerbOutcome:
    config = job.config
    of, values, choices = config.name or None, config.params, config.bounded()
    plan = (
        graph.explain(text, of, values, analyze=True, **choices) if config.analyze else graph.explain(text, of, values)
    )
    if config.executor == "spark":
        operators, _, choice = plan.rpartition("engine auto: ")
        plan = f"{operators}engine spark, by --executor; auto would be {choice}"
    return show_plan(job, plan)


def check_plan(config: JobConfig) -> None:
    """UsageError for a bound of rows where a plan is shown in their place."""
    if config.max_rows is not None:
        raise UsageError("a plan is shown in place of rows: leave --max-rows out")


def show_plan(job: Job, plan: str) -> VerbOutcome:
    """A plan in place of rows."""
    for line in plan.splitlines():
        job.emit(line)
    return VerbOutcome(result={"plan": plan})


def check_output(config: JobConfig) -> None:
    """UsageError where rows cannot be written as the options say."""
    if config.format == "parquet" and config.output is None:
        raise UsageError("--format parquet writes a file: give its path with --output")
    if config.format == "parquet" and is_packed(config.output or ""):
        raise UsageError("a Parquet file is packed by itself: give --output a name without .gz")


def write_rows(job: Job, result: Rows) -> None:
    """Rows to the output that the job names, a run at a time."""
    config = job.config
    if config.output is None:
        for line in lines_of(result, config.format):
            job.emit(line)
    elif config.format == "parquet":
        write_parquet(result, config.output, job.host.storage_options(config))
    else:
        with whole_file(config.output, job.host.storage_options(config)) as file:
            for line in lines_of(result, config.format):
                file.write(line + "\n")
