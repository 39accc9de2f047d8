"""The verb that gives rows their vectors: `embed`; those of a graph here, those of a file in `embed_file.py`."""

from __future__ import annotations

from dataclasses import asdict

from spark_omnigraph.cli.output.log import log_bad_rows
from spark_omnigraph.cli.output.summary import bad_row_figures
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.cli.verbs.embed_file import embed_file, is_of_file
from spark_omnigraph.cli.verbs.provider import (
    cost_of,
    most_tokens,
    naming_cost,
    provider_of,
    say_dry_run,
    say_properties,
)
from spark_omnigraph.embed.config import EmbedConfig
from spark_omnigraph.embed.counts import PropertyCounts
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.embed.report import EmbedReport
from spark_omnigraph.graph.embed.request import EmbedMode
from spark_omnigraph.graph.handle import Graph


def embed(job: Job) -> VerbOutcome:
    """Embeds, or says what that would take."""
    config = job.config
    if is_of_file(config):
        return embed_file(job)
    if not config.graph:
        raise UsageError("embed needs --graph URI, or a file: --input FILE --output FILE --spec FILE")
    if len(config.types) > 1:
        raise UsageError("--type: one type of a graph at a time, or none for all of them")
    storage = job.host.storage_options(config)
    mode = next((mode for mode in EmbedMode if getattr(config, mode)), EmbedMode.MISSING)
    provider = None if mode is EmbedMode.CLEAN else provider_of(job)
    graph = Graph.open(config.graph, mode="r" if config.dry_run else "rw", storage_options=storage)
    with naming_cost(config):
        report = graph.with_origin(job.origin).embed(
            config.types[0] if config.types else None,
            config.property,
            provider,
            branch=config.branch,
            actor=config.actor,
            mode=mode,
            source=config.source or None,
            fields=config.fields or None,
            where=config.where,
            cache=config.cache,
            no_cache=config.no_cache,
            adopt=config.adopt,
            max_bad_rows=config.max_bad_rows,
            bad_rows=config.bad_rows,
            commit_every=config.commit_every,
            max_tokens=most_tokens(config),
            dry_run=config.dry_run,
            cache_every_texts=config.cache_every,
            cache_every_seconds=config.cache_seconds,
            executor=job.executor(),
        )
    _say(job, report, provider)
    return VerbOutcome(
        branch=report.branch,
        base_commit=report.base_commit,
        commit=report.commit,
        manifest_version=report.manifest_version,
        tables={key: {"updated": rows} for key, rows in report.tables.items()},
        bad_rows=bad_row_figures(report.bad_rows),
        bad_row_summary=report.bad_rows,
        phases=report.phases,
        warnings=report.warnings,
        result={
            "mode": report.mode,
            "model": report.model,
            "commits": list(report.commits),
            "properties": {name: asdict(each) for name, each in report.properties.items()},
            "minutes": report.minutes,
            "cost": cost_of(config, sum(report.properties.values(), PropertyCounts()).tokens),
        },
    )


def _say(job: Job, report: EmbedReport, provider: EmbedConfig | None) -> None:
    say_properties(job, report.properties)
    if report.bad_rows.total:
        log_bad_rows(job.log, report.bad_rows, job.config.show_rows)
    if job.config.dry_run:
        say_dry_run(job, provider, report.properties.values())
    elif report.commit is None:
        job.log.info("nothing to do: branch %s is unchanged", report.branch)
    else:
        job.log.info("commit %s on branch %s", report.commit, report.branch)
