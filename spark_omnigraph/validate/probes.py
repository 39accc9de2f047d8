"""Probes: the questions about the whole graph that a write must have answered, derived from the schema alone.

Which rows answer them is the business of the rooms above; this module only says what must be asked, so that load,
mutation and merge ask the same.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Cardinality, Catalog, EdgeType, EntityType, Unique


@dataclass(frozen=True, slots=True)
class UniqueProbe:
    """No two rows of a table, stored or new, share this tuple; a tuple with a null is exempt."""

    table_key: TableKey
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndpointProbe:
    """Every `column` value of an edge table is the id of a row of a node table."""

    table_key: TableKey
    column: str
    node_key: TableKey


@dataclass(frozen=True, slots=True)
class CardinalityProbe:
    """Each source for which an edge is written ends with a number of edges inside the bounds."""

    table_key: TableKey
    cardinality: Cardinality


@dataclass(frozen=True, slots=True)
class DanglingProbe:
    """Stored edges of a table that is not replaced still find their `column` in a node table that is."""

    table_key: TableKey
    column: str
    node_key: TableKey


def unique_probes(entity: EntityType) -> tuple[UniqueProbe, ...]:
    """One probe per `@unique` group; a group equal to the key is answered by the id already."""
    groups = dict.fromkeys(c.columns for c in entity.constraints if isinstance(c, Unique))
    return tuple(UniqueProbe(entity.table_key, group) for group in groups if group != entity.key)


def endpoint_probes(edge: EdgeType) -> tuple[EndpointProbe, ...]:
    """Both endpoints of an edge type."""
    return (
        EndpointProbe(edge.table_key, "src", TableKey.node(edge.from_type)),
        EndpointProbe(edge.table_key, "dst", TableKey.node(edge.to_type)),
    )


def cardinality_probes(edge: EdgeType) -> tuple[CardinalityProbe, ...]:
    """One probe unless any number of edges is fine."""
    if edge.cardinality.is_open:
        return ()
    return (CardinalityProbe(edge.table_key, edge.cardinality),)


def dangling_probes(catalog: Catalog, replaced: Collection[str]) -> tuple[DanglingProbe, ...]:
    """For an overwrite of these tables: edges that stay although nodes of theirs are replaced."""
    probes = []
    for edge in catalog.edges.values():
        if edge.table_key in replaced:
            continue
        for probe in endpoint_probes(edge):
            if probe.node_key in replaced:
                probes.append(DanglingProbe(probe.table_key, probe.column, probe.node_key))
    return tuple(probes)


def tables_read(catalog: Catalog, written: Collection[str], replacing: bool) -> set[str]:
    """Tables that the probes of a write look at, beside those it writes."""
    read: set[str] = set()
    for key in written:
        entity = catalog.table(key)
        if isinstance(entity, EdgeType):
            read |= {probe.node_key for probe in endpoint_probes(entity)}
    if replacing:
        read |= {probe.table_key for probe in dangling_probes(catalog, written)}
    return read - set(written)
