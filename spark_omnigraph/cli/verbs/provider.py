"""The embedding provider of a job: from its options, the environment, and the Spark configuration."""

from __future__ import annotations

import os
from dataclasses import replace

from spark_omnigraph.cli.verb import Job
from spark_omnigraph.embed.config import EmbedConfig, overridden, resolve_config


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
