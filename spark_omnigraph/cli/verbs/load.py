"""The verbs that load files (`ingest`, `merge`, `update`, `overwrite`, `changes`) or follow a table: `sync`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spark_omnigraph.cli.output.log import log_bad_rows, told
from spark_omnigraph.cli.output.summary import bad_row_figures
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.cli.verbs.provider import provider_of, provider_of_dry_run, say_dry_run, say_properties
from spark_omnigraph.embed.config import EmbedConfig
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.inputs import delta_alone, find_inputs, input_choices
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport
from spark_omnigraph.progress.meter import begin
from spark_omnigraph.records.mode import EmbedAtLoad, LoadMode
from spark_omnigraph.words import counted
from spark_omnigraph.write.executor import Executor, LocalExecutor

if TYPE_CHECKING:
    from spark_omnigraph.graph.load.inputs import InputArguments
    from spark_omnigraph.graph.load.source import OnceRows
    from spark_omnigraph.graph.sync.source import DeltaSource
    from spark_omnigraph.graph.sync.sync import SyncReport


def ingest(job: Job) -> VerbOutcome:
    """Loads the input into a branch, which is created from its base when it is missing."""
    config = job.config
    if config.max_deletes is not None and config.mode is not LoadMode.CHANGES:
        raise UsageError("--max-deletes goes with mode changes, which alone deletes rows by their records")
    if config.edge_id is not None and config.mode is LoadMode.UPDATE:
        raise UsageError("--edge-id does not go with mode update: a patch names its edge by 'id'")
    if config.adopt_edges and config.edge_id is None:
        raise UsageError("--adopt-edges goes with --edge-id: without, no id follows from the ends of an edge")
    storage = job.host.storage_options(config)
    arguments: InputArguments = {
        "node": config.node,
        "edge": config.edge,
        "format": config.input_format,
        "mapping": None if config.mapping is None else Path(config.mapping),
        "csv_single_line": config.csv_single_line,
        "version_as_of": config.version_as_of,
    }
    found = _find(job, arguments, storage)
    graph = Graph.open(config.graph, storage_options=storage)
    executor = job.host.executor(config, found.size)
    source = found.paths if found.table is None else _delta_rows(executor, found.table, config.version_as_of)
    arguments |= {"version_as_of": None} if found.table is not None else {}
    begin(job.progress, "plan")
    report = graph.with_origin(job.origin).ingest(
        source,
        config.branch,
        config.base,
        config.mode,
        actor=config.actor,
        options=load_options(job, executor),
        **arguments,
    )
    _say(job, report)
    ran = "local" if executor is None or isinstance(executor, LocalExecutor) else "spark"
    made = {"base_branch": report.base_branch, "branch_created": report.branch_created, "executor": ran}
    return _outcome(report, {"mode": report.mode, **made})


def _outcome(report: LoadReport, result: Mapping[str, object]) -> VerbOutcome:
    properties = {name: asdict(each) for name, each in report.properties.items()}
    return VerbOutcome(
        branch=report.branch,
        base_commit=report.base_commit,
        commit=report.commit,
        manifest_version=report.manifest_version,
        tables={key: asdict(counts) for key, counts in report.tables.items()},
        bad_rows=bad_row_figures(report.bad_rows),
        bad_row_summary=report.bad_rows,
        phases=report.phases,
        warnings=report.warnings,
        result={**result, **({"properties": properties} if properties else {})},
    )


def sync(job: Job) -> VerbOutcome:
    """Brings types to what a Delta table shows: once, or whenever it has changed until it is stopped."""
    config = job.config
    storage = job.host.storage_options(config)
    graph = Graph.open(config.graph, storage_options=storage).with_origin(job.origin)
    executor = job.host.executor(config, 0)
    on_spark = job.host.takes_spark(config, 0)
    source = _delta_source(executor, config.source) if on_spark else config.source
    batch = None if config.every is None else 0
    while True:
        begin(job.progress, "plan")
        report = graph.sync(
            source,
            node=config.node,
            edge=config.edge,
            mapping=None if config.mapping is None else Path(config.mapping),
            full=config.full,
            app_id=config.app_id,
            branch=config.branch,
            actor=config.actor,
            options=replace(load_options(job, executor), batch=batch),
        )
        if report.load is not None:
            _say(job, report.load)
        shown = "dry run: would show" if config.dry_run and report.load is not None else "shows"
        job.log.info("%s: branch %s %s version %s", report.table, config.branch, shown, report.version)
        every = config.every
        if every is None:
            return _synced(config.branch, report, "spark" if on_spark else "local")
        for warning in report.warnings:
            job.log.warning("%s", warning, extra=told("warning"))
        config = replace(config, full=False)
        time.sleep(every.total_seconds())


def _synced(branch: str, report: SyncReport, ran: str) -> VerbOutcome:
    result = {
        "table": report.table,
        "table_id": report.table_id,
        "app_id": report.app_id,
        "outcome": str(report.outcome),
        "version": report.version,
        "since": report.since,
        "executor": ran,
    }
    if report.load is None:
        return VerbOutcome(branch=branch, warnings=report.warnings, result=result)
    return replace(_outcome(report.load, result), warnings=report.warnings)


def _delta_source(executor: Executor | None, table: str) -> DeltaSource:
    from spark_omnigraph.spark.delta import delta_source  # noqa: PLC0415 - needs pyspark, which is optional
    from spark_omnigraph.spark.executor import SparkExecutor  # noqa: PLC0415 - needs pyspark, too

    assert isinstance(executor, SparkExecutor)
    return delta_source(executor.spark, table)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is loaded, and how large it is; `table` is a Delta table that Spark reads."""

    paths: list[str] | None
    size: int = 0
    table: str | None = None


def _find(job: Job, arguments: InputArguments, storage: Mapping[str, str]) -> _Found:
    config, choices = job.config, input_choices(arguments)
    paths = list(config.input) or None
    table = delta_alone(config.input, choices)
    if table is not None and config.executor == "spark":
        job.log.info("input: %s", table)
        return _Found(paths, table=table)
    inputs = find_inputs(paths, choices, storage)
    job.log.info("input: %s, %s", counted(len(inputs.files), "file"), counted(inputs.size, "byte"))
    job.inputs.extend((file.name, file.size) for file in inputs.files)
    return _Found(paths, inputs.size, table if job.host.takes_spark(config, inputs.size) else None)


def _delta_rows(executor: Executor | None, table: str, version: int | None) -> OnceRows:
    from spark_omnigraph.spark.executor import SparkExecutor  # noqa: PLC0415 - needs pyspark, which is optional
    from spark_omnigraph.spark.rows import delta_rows  # noqa: PLC0415 - needs pyspark, too

    assert isinstance(executor, SparkExecutor)
    return delta_rows(executor.spark, table, version)


def load_options(job: Job, executor: Executor | None) -> LoadOptions:
    """Options of the load as the library takes them."""
    config = job.config
    return LoadOptions(
        max_bad_rows=config.max_bad_rows,
        bad_rows=config.bad_rows,
        max_deletes=config.max_deletes,
        on_duplicate=config.on_duplicate,
        missing=config.missing_rows,
        nulls=config.nulls,
        edge_id=config.edge_id,
        adopt_edges=config.adopt_edges,
        unknown_fields=config.unknown_fields,
        blob_schemes=config.blob_schemes,
        coerce=config.coerce,
        embed=config.embed,
        embedder=None if config.embed is EmbedAtLoad.OFF else _provider(job),
        cache=config.cache,
        build_indexes=config.index,
        dry_run=config.dry_run,
        progress=job.progress,
        executor=executor,
    )


def _provider(job: Job) -> EmbedConfig | None:
    return provider_of_dry_run(job) if job.config.dry_run else provider_of(job)


def _say(job: Job, report: LoadReport) -> None:
    for key, counts in sorted(report.tables.items()):
        figures = ", ".join(f"{name} {value:,}" for name, value in asdict(counts).items() if value)
        job.log.info("%s: %s", key, figures or "no rows", extra=told("table", type=key, **asdict(counts)))
    say_properties(job, report.properties)
    if report.bad_rows.total:
        log_bad_rows(job.log, report.bad_rows, job.config.show_rows)
    made = " (new)" if report.branch_created else ""
    if job.config.dry_run and report.properties:
        say_dry_run(job, None, report.properties.values())
    elif job.config.dry_run:
        job.log.info("dry run: nothing was written")
    elif report.commit is None:
        job.log.info("nothing to do: branch %s%s is unchanged", report.branch, made)
    else:
        job.log.info("commit %s on branch %s%s", report.commit, report.branch, made)
