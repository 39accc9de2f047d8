"""Texts of `nearest` → vectors, when the parameters of a query are bound: for every engine, and once a query."""

from __future__ import annotations

from functools import lru_cache

from spark_omnigraph.embed.callables import EmbedFunction
from spark_omnigraph.embed.config import EmbedConfig, way_to_model
from spark_omnigraph.embed.embedder import Embedder, Role, embed_text
from spark_omnigraph.embed.providers import embedder_for
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.provider import provider_of
from spark_omnigraph.lang.gq.bind import bind_texts
from spark_omnigraph.lang.gq.plan import Nearest, Plan


def with_vectors(plan: Plan, given: Embedder | EmbedConfig | EmbedFunction | None = None) -> Plan:
    """A plan whose texts for `nearest` are vectors of an embedder: the given one, a function, that of a configuration,
    or of this process's environment, which is looked at when there is such a text.

    BadRequestError when stored vectors come from another model; EmbeddingConfigError, EmbeddingError.
    """

    def vector(of: Nearest, text: str) -> tuple[float, ...]:
        provider = provider_of(given)
        embedder = _of_config(provider) if isinstance(provider, EmbedConfig) else provider
        if of.model is not None and of.model != embedder.model:
            way_out = way_to_model(of.model, embedder.identity)
            raise BadRequestError(
                f"nearest() on '{of.column.name}': its stored vectors were embedded with model '{of.model}', but the "
                f"query embedder resolves to '{embedder.model}'. {way_out[0].upper()}{way_out[1:]} "
                "or re-embed the stored vectors."
            )
        return embed_text(embedder, text, of.column.type.dimension or 0, Role.QUERY)

    return bind_texts(plan, vector)


@lru_cache(maxsize=4)
def _of_config(config: EmbedConfig) -> Embedder:
    """One for a configuration and process: its connections, or its model, serve the next query too."""
    return embedder_for(config)
