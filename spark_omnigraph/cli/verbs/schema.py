"""The verbs that change the schema of a graph, or say what that would do: `schema plan`, `schema apply`."""

from __future__ import annotations

from dataclasses import asdict

from spark_omnigraph.catalog.migration.sentences import sentence
from spark_omnigraph.cli.files import read_text
from spark_omnigraph.cli.output.log import log_bad_rows, say_table
from spark_omnigraph.cli.output.summary import bad_row_figures
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.schema.count import StepCount
from spark_omnigraph.graph.schema.preview import SchemaPreview
from spark_omnigraph.words import counted

_NOTHING = "nothing to do: the graph has this schema"


def plan_schema(job: Job) -> VerbOutcome:
    """What a change to another schema would do, and the rows that stand in its way."""
    config = job.config
    text = read_text("--file", config.file)
    found = _open(job).plan_schema(
        text,
        values=config.set,
        allow_data_loss=config.allow_data_loss,
        bad_rows=config.bad_rows,
        executor=job.executor(),
    )
    _say(job, found)
    return VerbOutcome(
        branch="main",
        manifest_version=found.manifest_version,
        bad_rows=bad_row_figures(found.bad_rows),
        bad_row_summary=found.bad_rows,
        phases=found.phases,
        result=found.to_dict(),
        dry_run=True,
    )


def apply_schema(job: Job) -> VerbOutcome:
    """Another schema for a graph with all its rows; a dry run is a plan."""
    config = job.config
    if config.dry_run:
        return plan_schema(job)
    text = read_text("--file", config.file)
    graph = _open(job, "rw").with_origin(job.origin)
    report = graph.apply_schema(
        text,
        values=config.set,
        allow_data_loss=config.allow_data_loss,
        bad_rows=config.bad_rows,
        actor=config.actor,
        executor=job.executor(),
    )
    for step in report.steps:
        job.log.info("%s", sentence(step))
    job.log.info("%s", f"commit {report.commit}" if report.applied else _NOTHING)
    return VerbOutcome(
        branch="main",
        base_commit=report.base_commit,
        commit=report.commit,
        manifest_version=report.manifest_version,
        tables={key: asdict(rows) for key, rows in report.tables.items()},
        phases=report.phases,
        warnings=report.warnings,
        result=report.to_dict(),
    )


def _say(job: Job, found: SchemaPreview) -> None:
    columns = ("step", "rows", "touched", "written", "would break")
    if found.steps:
        say_table(job.log, columns, [_row(each) for each in found.steps])
    for message in found.unsupported:
        job.log.error("%s", message)
    if found.bad_rows.total:
        log_bad_rows(job.log, found.bad_rows, job.config.show_rows)
    for table_key, rows in {each.step.table_key: each.rows for each in found.steps if each.shows_updates}.items():
        job.log.info("the change feed will show %s of %s as updated", counted(rows, "row"), table_key)
    if found.steps and found.branches:
        names = ", ".join(found.branches)
        job.log.warning("a schema is changed while there is only main; merge or delete first: %s", names)
    if found.tags:
        job.log.warning("what is dropped for good is kept by tags; delete first: %s", ", ".join(found.tags))
    job.log.info("%s", _verdict(found))


def _verdict(found: SchemaPreview) -> str:
    if not found.steps:
        return _NOTHING
    would = "would be made" if found.applicable else "would be refused"
    return f"a change of {counted(len(found.steps), 'step')} {would}; nothing was written"


def _row(count: StepCount) -> tuple[object, ...]:
    return sentence(count.step), count.rows, count.touched, count.rewritten, count.broken


def _open(job: Job, mode: str = "r") -> Graph:
    return Graph.open(job.config.graph, mode=mode, storage_options=job.host.storage_options(job.config))
