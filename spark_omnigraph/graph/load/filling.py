"""Who gives vectors to the rows of a load, and what is said of it afterwards."""

from __future__ import annotations

from spark_omnigraph.catalog.types import Catalog, embedding_source
from spark_omnigraph.embed.config import EmbedConfig, shared_limits
from spark_omnigraph.embed.counts import Properties, estimated
from spark_omnigraph.embed.embedder import Embedder
from spark_omnigraph.embed.providers import embedder_for
from spark_omnigraph.errors import EmbeddingConfigError
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.graph.provider import provider_of
from spark_omnigraph.records.mode import EmbedAtLoad
from spark_omnigraph.staging.filling import VectorFill
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.vectors import VectorStore


def vector_fill(store: GraphStore, catalog: Catalog, options: LoadOptions, tasks: int) -> VectorFill | None:
    """What gives vectors to rows without one, in each of so many tasks; None where it is not asked for, or no row needs
    it. EmbeddingConfigError when there is nobody.
    """
    if options.embed is EmbedAtLoad.OFF:
        return None
    if not any(embedding_source(prop) is not None for node in catalog.nodes.values() for prop in node.properties):
        return None
    provider = _provider(options)
    embedder = embedder_for(shared_limits(provider, tasks)) if isinstance(provider, EmbedConfig) else provider
    cache = VectorStore.beside(store.root, options.cache, store.storage_options)
    return VectorFill(embedder, cache, asks=not options.dry_run)


def told(properties: Properties, options: LoadOptions) -> Properties:
    """What was counted; of a dry run with what asking would take."""
    if not options.dry_run or not properties:
        return properties
    provider = _provider(options)
    return {name: estimated(counts, provider) for name, counts in properties.items()}


def _provider(options: LoadOptions) -> EmbedConfig | Embedder | None:
    """Who would give vectors; a dry run, which asks nobody, does without."""
    try:
        return provider_of(options.embedder)
    except EmbeddingConfigError:
        if options.dry_run:
            return None
        raise
