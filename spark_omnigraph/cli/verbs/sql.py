"""The verb that answers in SQL: `sql`."""

from __future__ import annotations

from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.cli.verbs.mutate import query_text
from spark_omnigraph.cli.verbs.query import check_output, check_plan, show_plan, write_rows
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.progress.meter import begin
from spark_omnigraph.words import counted


def sql(job: Job) -> VerbOutcome:
    """The rows of one statement, as they are found."""
    config = job.config
    check_output(config)
    is_plan = config.explain or config.analyze
    if is_plan:
        check_plan(config)
    text = query_text(config)
    graph = Graph.open(config.graph, mode="r", branch=config.branch, storage_options=job.host.storage_options(config))
    asked = f"EXPLAIN {'ANALYZE ' if config.analyze else ''}{text}" if is_plan else text
    result = graph.sql(asked, config.params, memory=config.memory, spill=config.spill, **config.bounded())
    if is_plan:
        rows = result.to_arrow().to_pylist()
        return show_plan(job, "\n".join(f"{row['plan_type']}\n{row['plan']}" for row in rows))
    begin(job.progress, "query")
    write_rows(job, result)
    if result.row_count is not None:
        job.log.info("%s", counted(result.row_count, "row"))
    return VerbOutcome(
        branch=result.branch,
        manifest_version=result.manifest_version,
        result={"row_count": result.row_count, "columns": result.column_names, "output": config.output},
    )
