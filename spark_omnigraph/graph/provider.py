"""Who gives vectors: what a caller gives, or what the environment of this process names."""

from __future__ import annotations

import os
from typing import cast

from spark_omnigraph.embed.callables import EmbedFunction, embedder_of
from spark_omnigraph.embed.config import EmbedConfig, resolve_config
from spark_omnigraph.embed.embedder import Embedder
from spark_omnigraph.graph.arguments import CALLABLE, require

VectorSource = Embedder | EmbedConfig | EmbedFunction
"""Who gives vectors, as a caller says it: one that asks, a configuration, or a function from texts to vectors."""


def embedding_config(
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
) -> EmbedConfig:
    """The provider that variables of this process name (`OMNIGRAPH_EMBED_…`); what is given here wins over them.

    EmbeddingConfigError says what is missing. Limits are set with `dataclasses.replace`.

    Examples:
        >>> embedding_config("local").model
        'wordllama-256'
    """
    return resolve_config(os.environ, provider=provider, model=model, base_url=base_url, api_key=api_key)


def provider_of(given: object) -> EmbedConfig | Embedder:
    """The provider of vectors that a caller gives, else the one that the environment of this process names.
    EmbeddingConfigError when there is none.
    """
    if given is None:
        return embedding_config()
    # Asked of the class: a check of the protocol would look at properties, of which `identity` reads a model.
    # A model of some other library may have an `embed` of its own.
    if isinstance(given, EmbedConfig) or (hasattr(type(given), "embed") and hasattr(type(given), "identity")):
        return cast("EmbedConfig | Embedder", given)
    require("embedder", given, CALLABLE)
    return embedder_of(cast("EmbedFunction", given))
