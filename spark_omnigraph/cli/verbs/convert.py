"""The verb `convert`."""

from __future__ import annotations

from dataclasses import asdict

from spark_omnigraph.cli.output.log import counted, say_table
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.manifest.branches import MAIN


def convert_graph(job: Job) -> VerbOutcome:
    """The graph in the format that is written, at another place."""
    config = job.config
    storage = job.host.storage_options(config)
    graph = Graph.open(config.graph, mode="r", storage_options=storage).with_origin(job.origin)
    report = graph.convert(
        config.to,
        all_branches=config.all_branches,
        storage_options=config.to_storage_options or storage,
        dry_run=config.dry_run,
    )
    rows = [
        (branch, key, each["rows"], each["digest"] or "")
        for branch, tables in report.tables.items()
        for key, each in tables.items()
    ]
    say_table(job.log, ("branch", "table", "rows", "digest"), rows)
    what = f"{counted(len(report.branches), 'branch', 'branches')} of {report.source}, {counted(report.rows, 'row')},"
    if config.dry_run:
        job.log.info("%s would be converted to %s; dry run: nothing was written", what, report.target)
    else:
        job.log.info("%s converted to %s and compared", what, report.target)
    result = {name: value for name, value in asdict(report).items() if name != "warnings"}
    return VerbOutcome(manifest_version=report.branches[MAIN], warnings=report.warnings, result=result)
