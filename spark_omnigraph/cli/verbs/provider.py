"""The embedding provider of a job: from its options, the environment, and the Spark configuration. And what a job says
of what asking takes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.output.log import say_table
from spark_omnigraph.cli.verb import Job
from spark_omnigraph.embed.config import EmbedConfig, overridden, resolve_config
from spark_omnigraph.embed.counts import NOBODY_WAS_ASKED, Properties, PropertyCounts, minutes
from spark_omnigraph.errors import BadRequestError, EmbeddingConfigError, UsageError
from spark_omnigraph.limits import beyond

_SHOWN = (
    "rows", "missing", "stale", "blank", "distinct", "cached", "requested", "requests", "tokens", "embedded", "cleaned",
    "failed",
)  # laid out as a table  # fmt: skip


def provider_of(job: Job) -> EmbedConfig:
    """Options win over the environment; a key in the Spark configuration over none."""
    config = job.config
    warning = overridden(os.environ, config.provider)
    if warning is not None:
        job.log.warning(warning)
    found = resolve_config(os.environ, provider=config.provider, model=config.model, api_key=job.host.embed_key)
    return replace(
        found,
        batch_size=config.batch,
        parallel=config.parallel,
        requests_per_minute=config.requests_per_minute or found.requests_per_minute,
        tokens_per_minute=config.tokens_per_minute or found.tokens_per_minute,
    )


def provider_of_dry_run(job: Job) -> EmbedConfig | None:
    """Whom a run would ask; None, with a warning, where nobody is configured: a dry run needs no key."""
    try:
        return provider_of(job)
    except EmbeddingConfigError as error:
        job.log.warning("nobody knows what is answered already, or how many requests it takes: %s", error.message)
        return None


def most_tokens(config: JobConfig) -> int | None:
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
def naming_cost(config: JobConfig) -> Iterator[None]:
    """A refusal by a cost names the cost and that option, not the tokens that it comes to."""
    try:
        yield
    except BadRequestError as error:
        if error.bound == "max_tokens" and most_tokens(config) != config.max_tokens:
            spent, most = cost_of(config, error.needed), config.max_cost
            costs, may = (f"{cost:,f}".rstrip("0").rstrip(".") for cost in (spent, most))
            told = (
                f"about {error.needed:,} tokens would be asked for, which cost about {costs}, and at most {may} may be"
            )
            raise beyond(BadRequestError, f"{told} spent: {NOBODY_WAS_ASKED}", "max_cost") from error
        raise


def cost_of(config: JobConfig, tokens: int | None) -> float | None:
    """What tokens cost, None where no price is given or nobody counts them."""
    price = config.price_per_million
    return None if price is None or tokens is None else round(tokens * price / 1e6, 6)


def say_properties(job: Job, properties: Properties) -> None:
    """A table of the figures of properties, where there are some."""
    rows = [(name, *(getattr(each, figure) for figure in _SHOWN)) for name, each in properties.items()]
    if rows:
        say_table(job.log, ("property", *_SHOWN), rows)


def say_dry_run(job: Job, provider: object, counts: Iterable[PropertyCounts]) -> None:
    """What a run would take, about."""
    total = sum(listed := list(counts), PropertyCounts())
    figures = (
        (total.tokens, "tokens: about {:,}"),
        (minutes(provider, listed), "minutes: {:,}"),
        (cost_of(job.config, total.tokens), "cost: {:,f}"),
    )
    told = "; ".join(["", *(form.format(figure) for figure, form in figures if figure is not None)])
    job.log.info("dry run: nobody was asked, nothing was written%s", told)
