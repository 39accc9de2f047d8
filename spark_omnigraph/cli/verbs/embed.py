"""The verb that gives rows their vectors: `embed`; those of a graph here, those of a file in `embed_file.py`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.output.log import log_bad_rows, say_table
from spark_omnigraph.cli.output.summary import bad_row_figures
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.cli.verbs.embed_file import embed_file, is_of_file
from spark_omnigraph.cli.verbs.provider import provider_of
from spark_omnigraph.errors import BadRequestError, UsageError
from spark_omnigraph.graph.embed.report import EmbedReport
from spark_omnigraph.graph.embed.request import EmbedMode
from spark_omnigraph.graph.handle import Graph

_SHOWN = ("rows", "missing", "stale", "blank", "distinct", "cached", "requested", "embedded", "cleaned", "failed")


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
    with _naming_cost(config):
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
            max_tokens=_most_tokens(config),
            dry_run=config.dry_run,
            cache_every_texts=config.cache_every,
            cache_every_seconds=config.cache_seconds,
            executor=job.executor(),
        )
    cost = _cost(config, report)
    _say(job, report, cost)
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
            "cost": cost,
        },
    )


def _most_tokens(config: JobConfig) -> int | None:
    """The smaller one of the two bounds of what is asked for."""
    if config.max_cost is None:
        return config.max_tokens
    price = config.price_per_million
    if price is None:
        raise UsageError("--max-cost needs --price-per-million PRICE, what a million tokens costs")
    tokens = config.max_cost / price * 1_000_000 if price else math.inf
    most = min(tokens, config.max_tokens or math.inf)
    return int(most) if most < math.inf else None


@contextmanager
def _naming_cost(config: JobConfig) -> Iterator[None]:
    """A refusal by a cost names that option, not the tokens that it comes to."""
    try:
        yield
    except BadRequestError as error:
        if config.max_cost is not None and _most_tokens(config) != config.max_tokens:
            error.message = error.message.replace("more by max_tokens", "more by --max-cost")
        raise


def _cost(config: JobConfig, report: EmbedReport) -> float | None:
    """What the tokens cost, None where no price is given or nobody counts them."""
    tokens, price = _tokens(report), config.price_per_million
    return None if price is None or tokens is None else round(tokens * price / 1e6, 6)


def _tokens(report: EmbedReport) -> int | None:
    """Of all properties that say any."""
    told = [each.tokens for each in report.properties.values() if each.tokens is not None]
    return sum(told) if told else None


def _say(job: Job, report: EmbedReport, cost: float | None) -> None:
    rows = [(name, *(getattr(each, figure) for figure in _SHOWN)) for name, each in report.properties.items()]
    say_table(job.log, ("property", *_SHOWN), rows)
    if report.bad_rows.total:
        log_bad_rows(job.log, report.bad_rows, job.config.show_rows)
    if job.config.dry_run:
        figures = ((_tokens(report), "tokens: about {:,}"), (report.minutes, "minutes: {:,}"), (cost, "cost: {:,f}"))
        told = "; ".join(["", *(form.format(figure) for figure, form in figures if figure is not None)])
        job.log.info("dry run: nobody was asked, nothing was written%s", told)
    elif report.commit is None:
        job.log.info("nothing to do: branch %s is unchanged", report.branch)
    else:
        job.log.info("commit %s on branch %s", report.commit, report.branch)
