"""A schema as it is drawn, and a graph as its handle shows it."""

from __future__ import annotations

from collections.abc import Mapping

from spark_omnigraph.branch.control import list_branches
from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.catalog.types import Catalog, EntityType, Unique
from spark_omnigraph.commit.contract import view
from spark_omnigraph.draw.card import Card
from spark_omnigraph.draw.picture import DrawnEdge, DrawnNode, DrawnProperty, SchemaPicture
from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.graph.read.history import ReadTarget, list_commits, resolve
from spark_omnigraph.storage.graph_store import GraphStore

SHOWN_BRANCHES = 20
"""Names of branches that a handle shows."""


def picture_of(catalog: Catalog, rows: Mapping[str, int] | None = None) -> SchemaPicture:
    """The types of a schema; `rows` by table key, where they are known."""
    counts = rows or {}
    return SchemaPicture(
        tuple(DrawnNode(n.name, _properties(n), counts.get(n.table_key)) for n in catalog.nodes.values()),
        tuple(
            DrawnEdge(e.name, e.from_type, e.to_type, e.cardinality.display(), _properties(e), counts.get(e.table_key))
            for e in catalog.edges.values()
        ),
    )


def graph_card(store: GraphStore, target: ReadTarget, line: str) -> Card:
    """What a handle shows, from the manifest and the commit log alone: no table is opened. What cannot be read is said
    instead.
    """
    try:
        contract, snapshot = view(store, lambda: resolve(store, target))
        counts = {key: entry.row_count for key, entry in snapshot.entries.items()}
        head = next(
            (c for c in reversed(list_commits(store, target.branch)) if c.manifest_version <= snapshot.version), None
        )
        branches = list_branches(store)
    except OmnigraphError as error:
        return Card("Graph", line, notes=(error.message,))
    more = f", and {len(branches) - SHOWN_BRANCHES:,} more" if len(branches) > SHOWN_BRANCHES else ""
    return Card(
        "Graph",
        line,
        {
            "manifest version": snapshot.version,
            "head": None if head is None else f"{head.id}, {moment_text(head.created_at)}",
            "by": None if head is None else head.actor,
            "branches": f"{', '.join(branches[:SHOWN_BRANCHES])}{more}",
        },
        picture=picture_of(contract.catalog, counts),
    )


def _properties(entity: EntityType) -> tuple[DrawnProperty, ...]:
    unique = {c.columns[0] for c in entity.constraints if isinstance(c, Unique) and len(c.columns) == 1}
    key = set(entity.key or ())
    marks = ((p, "key" if p.name in key else "unique" if p.name in unique else "") for p in entity.properties)
    return tuple(DrawnProperty(p.name, p.type.display(), mark) for p, mark in marks)
