"""The embedder of a configuration."""

from __future__ import annotations

from spark_omnigraph.embed.config import EmbedConfig
from spark_omnigraph.embed.embedder import Embedder
from spark_omnigraph.embed.mock import MockEmbedder


def embedder_for(config: EmbedConfig) -> Embedder:
    """What asks the provider of a configuration; nothing is asked, and no model is read, before the first text."""
    return MockEmbedder(config.model)
