"""What a caller asks for: which properties, which of their rows, from which texts, and within which bounds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from math import inf
from typing import TypedDict

from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.catalog.types import Catalog, NodeType, Property, Scalar, embedding_model, embedding_source
from spark_omnigraph.embed.config import EmbedConfig, shared_limits, way_to_model
from spark_omnigraph.embed.embedder import Embedder
from spark_omnigraph.embed.providers import embedder_for
from spark_omnigraph.errors import BadRequestError, NotFoundError
from spark_omnigraph.graph.arguments import EXECUTOR, NAMES, SWITCH, TEXT, WHOLE, Kind, require, require_known
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.graph.provider import provider_of
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.records.mode import choice
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.staging.asking import AT_ONCE, EVERY_SECONDS
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.vectors import CACHE, VectorStore
from spark_omnigraph.words import TextEnum, nearest
from spark_omnigraph.write.executor import Executor, LocalExecutor

MANY = 1 << 16
"""Tasks, where nobody says how many may ask."""


class EmbedMode(TextEnum):
    """Which rows are embedded."""

    MISSING = "missing"
    """Rows that have a text and no vector."""
    STALE = "stale"
    """Besides those whose vector is not the answer to their text."""
    ALL = "all"
    CLEAN = "clean"
    """None: vectors are taken away."""


class EmbedChoices(TypedDict, total=False):
    """How rows are embedded; see `Graph.embed`."""

    mode: str
    source: str | None
    fields: Sequence[str] | None
    where: str | None
    cache: str | os.PathLike[str] | None
    no_cache: bool
    adopt: bool
    max_bad_rows: int | float
    bad_rows: str | os.PathLike[str] | None
    commit_every: int | None
    max_tokens: int | None
    dry_run: bool
    cache_every_texts: int | None
    cache_every_seconds: float
    branch: str | None
    actor: str | None
    metadata: Mapping[str, str] | None
    executor: Executor | None


_POSITIVE: Kind = (
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
    "a count above 0",
)
_SECONDS: Kind = (
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < inf,
    "a number of seconds",
)
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("mode", "source", "where", "branch", "actor"), TEXT),
    "fields": NAMES,
    "executor": EXECUTOR,
    **dict.fromkeys(("no_cache", "adopt", "dry_run"), SWITCH),
    **dict.fromkeys(("commit_every", "cache_every_texts"), _POSITIVE),
    "max_tokens": WHOLE,
    "cache_every_seconds": _SECONDS,
}


@dataclass(frozen=True, slots=True)
class EmbedTarget:
    """A vector property, and the columns that its texts are made of: one that is the text, or `fields` of a record."""

    entity: NodeType
    prop: str
    dimension: int
    columns: tuple[str, ...]
    is_rendered: bool = False

    @property
    def name(self) -> str:
        return f"{self.entity.name}.{self.prop}"

    @property
    def has_blobs(self) -> bool:
        return any(prop.type.scalar is Scalar.BLOB for prop in self.entity.properties)


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """A checked request; `branch` None is main. `provider` is a configuration, of which each task makes an embedder
    with its share of the limits, or an embedder; None where nothing is asked.
    """

    provider: EmbedConfig | Embedder | None
    store: VectorStore
    branch: Branch
    type_name: str | None = None
    prop_name: str | None = None
    mode: EmbedMode = EmbedMode.MISSING
    source: str | None = None
    fields: tuple[str, ...] = ()
    where: str | None = None
    keeps_answers: bool = True
    """Whether the store outlives the run."""
    adopt: bool = False
    """Vectors of which nobody knows what they were made of count as up to date."""
    bounds: LoadOptions = field(default_factory=LoadOptions)
    """How many rows may fail, where they are written to, and whether anything is written at all."""
    commit_every: int | None = None
    every_texts: int | None = None
    every_seconds: float = EVERY_SECONDS
    max_tokens: int | None = None
    """Tokens, about, of texts without an answer beyond which nobody is asked."""
    executor: Executor = field(default_factory=lambda: LocalExecutor(1))
    actor: str | None = None
    origin: CommitOrigin = field(default_factory=CommitOrigin)
    now: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def embedder(self, tasks: int = 1) -> Embedder:
        """What one of so many tasks asks."""
        if self.provider is None:
            raise BadRequestError("this needs no provider of vectors and has none")
        return (
            embedder_for(shared_limits(self.provider, tasks))
            if isinstance(self.provider, EmbedConfig)
            else self.provider
        )

    @property
    def most_tasks(self) -> int:
        """Tasks that may ask at the same time: each of them has a request under way."""
        return self.provider.parallel if isinstance(self.provider, EmbedConfig) else MANY

    @property
    def texts_at_once(self) -> int:
        """Texts that are asked for together: as many as may be on their way."""
        config = self.provider
        under_way = config.batch_size * config.parallel if isinstance(config, EmbedConfig) else AT_ONCE
        return under_way if self.every_texts is None else min(self.every_texts, under_way)


def embed_request(
    store: GraphStore,
    branch: str,
    names: tuple[str | None, str | None],
    embedder: object,
    choices: EmbedChoices,
    origin: CommitOrigin,
) -> EmbedRequest:
    """A checked request for the type and property of these names. BadRequestError for what no run could mean,
    EmbeddingConfigError where no provider is configured.
    """
    require_known(choices, EmbedChoices, "embed")
    given = {name: value for name, value in choices.items() if value is not None}
    for name, value in zip(("type", "property"), names, strict=True):
        if value is not None:
            require(name, value, TEXT)
    for name, kind in _KINDS.items():
        if name in given:
            require(name, given[name], kind)
    mode = choice("mode", given.get("mode", EmbedMode.MISSING), EmbedMode)
    if "source" in given and "fields" in given:
        raise BadRequestError("texts come from a source or from fields, not from both")
    if given.get("no_cache") and (mode is EmbedMode.STALE or "cache" in given):
        raise BadRequestError(
            "without a cache nobody knows what is stale, and no place is needed for it: leave one out"
        )
    if given.get("adopt") and mode is not EmbedMode.STALE:
        raise BadRequestError("adopt is about what is stale: ask for the mode stale (--stale) too")
    fields = tuple(choices.get("fields") or ())
    if len(set(fields)) < len(fields):
        raise BadRequestError(f"fields are each named once, not {as_shown(list(fields))}")
    bounds = LoadOptions(
        max_bad_rows=choices.get("max_bad_rows", 0),
        bad_rows=choices.get("bad_rows"),  # type: ignore[arg-type]  # a path too
        dry_run=choices.get("dry_run", False),
    )
    check_report_path(bounds.report, (), store.root)
    line = parse_branch(choices.get("branch") or branch)
    store.require_branch(line, "; create it first")
    provider = None if mode is EmbedMode.CLEAN else provider_of(embedder)
    return EmbedRequest(
        provider,
        _store_of(store, choices),
        line,
        *names,
        mode,
        choices.get("source"),
        fields,
        choices.get("where"),
        not choices.get("no_cache", False),
        choices.get("adopt", False),
        bounds,
        choices.get("commit_every"),
        choices.get("cache_every_texts"),
        choices.get("cache_every_seconds", EVERY_SECONDS),
        choices.get("max_tokens"),
        choices.get("executor") or LocalExecutor(1),
        choices.get("actor"),
        origin.with_metadata(choices.get("metadata")),
    )


def _store_of(store: GraphStore, choices: EmbedChoices) -> VectorStore:
    given = choices.get("cache")
    place = f"{store.root}{CACHE}/x_{new_ulid()}" if choices.get("no_cache") else given and os.fspath(given)
    return VectorStore.beside(store.root, place or None, store.storage_options)


def embed_targets(catalog: Catalog, request: EmbedRequest) -> list[EmbedTarget]:
    """The properties that a request means, in name order. NotFoundError and BadRequestError where it means none."""
    nodes = list(catalog.nodes.values())
    if request.type_name is not None:
        catalog.require(f"node:{request.type_name}")
        nodes = [catalog.nodes[request.type_name]]
    elif request.prop_name is not None or request.source is not None or request.fields:
        raise BadRequestError("name the type too, since a property and the source of its texts are a type's")
    found = [
        _target(node, prop, request)
        for node in nodes
        for prop in node.properties
        if (prop.name == request.prop_name if request.prop_name is not None else embedding_source(prop) is not None)
    ]
    if request.prop_name is not None and not found:
        names = [prop.name for prop in nodes[0].properties]
        raise NotFoundError(f"{nodes[0].name} has no property '{request.prop_name}'{nearest(request.prop_name, names)}")
    if not found:
        of = f"{request.type_name} has" if request.type_name is not None else "the schema has"
        raise BadRequestError(f"{of} no property with @embed: name a vector property, and a source or fields")
    return found


def _target(node: NodeType, prop: Property, request: EmbedRequest) -> EmbedTarget:
    name = f"{node.name}.{prop.name}"
    if not prop.type.is_vector or prop.type.dimension is None:
        raise BadRequestError(f"'{name}' is {prop.type.display()}, not a vector")
    if request.mode is EmbedMode.CLEAN:
        if not prop.type.nullable:
            raise BadRequestError(f"'{name}' must have a value, so its vectors cannot be taken away")
        return EmbedTarget(node, prop.name, prop.type.dimension, ())
    columns = request.fields or (request.source or embedding_source(prop) or "",)
    known = {each.name: each for each in node.properties}
    for column in columns:
        if not column:
            raise BadRequestError(f"'{name}' has no @embed: say by source or fields what its texts are")
        if column not in known:
            raise NotFoundError(f"{node.name} has no property '{column}'{nearest(column, known)}")
        if known[column].type.scalar is Scalar.BLOB or known[column].type.is_vector:
            raise BadRequestError(f"'{node.name}.{column}' is {known[column].type.display()}, of which no text is made")
        if not request.fields and (known[column].type.scalar is not Scalar.STRING or known[column].type.is_list):
            raise BadRequestError(f"'{node.name}.{column}' is {known[column].type.display()}; a source is a String")
    _refuse_model(name, embedding_model(prop), request)
    return EmbedTarget(node, prop.name, prop.type.dimension, columns, bool(request.fields))


def _refuse_model(name: str, recorded: str | None, request: EmbedRequest) -> None:
    """What is asked about vectors later is asked of the model that the schema names."""
    embedder = request.embedder()
    if recorded is not None and recorded != embedder.model:
        raise BadRequestError(
            f"'{name}' is to be embedded with model '{recorded}', but the provider resolves to '{embedder.model}': "
            f"{way_to_model(recorded, embedder.identity)}"
        )
