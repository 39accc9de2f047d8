"""The verb `lint`: a file of queries is checked against a schema, without running any."""

from __future__ import annotations

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.cli.files import read_text
from spark_omnigraph.cli.output.log import told
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.errors import UsageError
from spark_omnigraph.lang.gq.lint import LintReport, SchemaSource, Severity, lint_queries
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.words import counted


def lint(job: Job) -> VerbOutcome:
    """What is wrong with the queries of a file."""
    path = job.config.file
    text = read_text("--file", path)
    catalog, source = _schema(job)
    report = lint_queries(catalog, text, path, source)
    _say(job, report)
    return VerbOutcome(result=report.to_dict(), refused=report.errors > 0)


def _schema(job: Job) -> tuple[Catalog, SchemaSource]:
    config = job.config
    if config.schema:
        return compile_schema(read_text("--schema", config.schema)), SchemaSource("file", config.schema)
    if not config.graph:
        raise UsageError("lint needs a schema: --schema FILE, or --graph URI to take that of a graph")
    from spark_omnigraph.graph.handle import Graph  # noqa: PLC0415 - slow, and a schema file needs no graph

    graph = Graph.open(config.graph, mode="r", storage_options=job.host.storage_options(config))
    return graph.catalog(), SchemaSource("graph", config.graph)


def _say(job: Job, report: LintReport) -> None:
    for finding in report.findings:
        about = f" (queries: {', '.join(finding.query_names)})" if finding.query_names else ""
        speak = job.log.error if finding.severity is Severity.ERROR else job.log.warning
        facts = told("finding", code=finding.code, severity=str(finding.severity), queries=list(finding.query_names))
        speak("%s %s%s", finding.code, finding.message, about, extra=facts)
    for result in report.results:
        for warning in result.warnings:
            job.log.warning("query '%s': %s", result.name, warning)
        if result.error is not None:
            job.log.error("query '%s': %s", result.name, result.error, extra=told("query_error", query=result.name))
    job.log.info(
        "%s: %s, %s, %s",
        report.query_path,
        counted(len(report.results), "query", "queries"),
        counted(report.errors, "error"),
        counted(report.warnings, "warning"),
    )
