"""The verb that answers a question: `query`; and what it has in common with `sql`."""

from __future__ import annotations

from spark_omnigraph.answer import Rows
from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.files import whole_file
from spark_omnigraph.cli.output.log import Progress, counted
from spark_omnigraph.cli.output.result_text import lines_of, write_parquet
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.cli.verbs.mutate import query_text
from spark_omnigraph.engine.result import QueryResult
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.provider import embedding_config
from spark_omnigraph.limits import Leaving
from spark_omnigraph.memory import Memory
from spark_omnigraph.storage.input.globs import is_packed
from spark_omnigraph.storage.tables.reader import ReadCache


def query(job: Job) -> VerbOutcome:
    """The rows of a read query."""
    config = job.config
    check_output(config)
    named = next((f"--{name.replace('_', '-')}" for name, value in config.past().items() if value is not None), None)
    if config.explain and not config.analyze and named is not None:
        raise UsageError(f"--explain shows a plan and reads no state: leave {named} out")
    text = query_text(config)
    graph = Graph.open(config.graph, mode="r", branch=config.branch, storage_options=job.host.storage_options(config))
    graph.store.reads = ReadCache(Memory(config.cache_memory))
    if config.explain or config.analyze:
        return _explained(job, graph, text)
    key = job.host.embed_key
    embedder = None if key is None else embedding_config(api_key=key)

    with Progress(job.log) as progress:

        def answer() -> QueryResult:
            bounds = config.bounded()
            return graph.query(text, config.name or None, config.params, embedder, progress=progress, **bounds)

        # In another thread, so that an interrupt is seen at once.
        result = Leaving[QueryResult](None).value(answer)
    write_rows(job, result)
    job.log.info("%s: %s", result.name, counted(result.row_count, "row"))
    return VerbOutcome(
        branch=result.branch,
        manifest_version=result.manifest_version,
        result={
            "query_name": result.name,
            "row_count": result.row_count,
            "columns": result.column_names,
            "output": config.output,
        },
    )


def _explained(job: Job, graph: Graph, text: str) -> VerbOutcome:
    config = job.config
    of, values, choices = config.name or None, config.params, config.bounded()
    plan = (
        graph.explain(text, of, values, analyze=True, **choices) if config.analyze else graph.explain(text, of, values)
    )
    return show_plan(job, plan)


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
