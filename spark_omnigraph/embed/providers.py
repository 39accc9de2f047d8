"""The embedder of a configuration. What one kind of provider needs is imported when it is asked for: a client for HTTP,
or a tokenizer.
"""

from __future__ import annotations

from importlib import import_module

from spark_omnigraph.embed.config import EmbedConfig, Provider
from spark_omnigraph.embed.embedder import Embedder, Limited
from spark_omnigraph.embed.mock import MockEmbedder

_CLASSES = {
    Provider.OPENAI: ("remote", "RemoteEmbedder"),
    Provider.GEMINI: ("remote", "RemoteEmbedder"),
    Provider.LOCAL: ("models.local", "LocalEmbedder"),
}


def embedder_for(config: EmbedConfig) -> Embedder:
    """What asks the provider of a configuration; nothing is asked before the first text."""
    if config.provider is Provider.MOCK:
        return MockEmbedder(config.model)
    module, name = _CLASSES[config.provider]
    made: Embedder = getattr(import_module(f"spark_omnigraph.embed.{module}"), name)(config)
    return made


def sharing(embedder: Embedder, tasks: int | None, name: str | None = None) -> Embedder:
    """`Limited.share_of` of any embedder."""
    return embedder.share_of(tasks, name) if isinstance(embedder, Limited) else embedder
