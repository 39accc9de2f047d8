"""The schema IR, its text and its hash: how an accepted schema is recorded beside the graph.

    types ──assemble──▶ Catalog ──ir_text──▶ `_schema.ir.json` ──catalog_from_ir──▶ Catalog

The format has one quirk: it records the range `..N` as a minimum. A catalog compiled from the schema text holds the
maximum that was written; one read back from the IR holds the minimum. Enforce what was written: take the catalog
of a graph from `_schema.pg` and use the IR to check that both are the same schema.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace

import msgspec

from spark_omnigraph.catalog.canonical import canonical_edge, canonical_interface, canonical_node
from spark_omnigraph.catalog.consistency import contradictions
from spark_omnigraph.catalog.ir_document import IR_VERSION, Json, compact, document, pretty
from spark_omnigraph.catalog.ir_shape import Document, Version
from spark_omnigraph.catalog.types import Catalog, EdgeType, InterfaceType, NodeType
from spark_omnigraph.errors import CatalogError, DamagedError
from spark_omnigraph.stored import decode


def assemble(interfaces: Iterable[InterfaceType], nodes: Iterable[NodeType], edges: Iterable[EdgeType]) -> Catalog:
    """The catalog of types that do not contradict each other: in canonical order, with its hash."""
    catalog = Catalog(
        nodes={n.name: canonical_node(n) for n in sorted(nodes, key=_name)},
        edges={e.name: canonical_edge(e) for e in sorted(edges, key=_name)},
        interfaces={i.name: canonical_interface(i) for i in sorted(interfaces, key=_name)},
        ir_hash="",
    )
    return replace(catalog, ir_hash=ir_hash(catalog))


def ir_text(catalog: Catalog) -> str:
    """The content of `_schema.ir.json`, which ends without a line break."""
    return pretty(_document(catalog))


def ir_hash(catalog: Catalog) -> str:
    """`sha256:…` of the compact IR, computed anew; equals `catalog.ir_hash`."""
    return _hash(_document(catalog))


def catalog_from_ir(text: str) -> Catalog:
    """The catalog that `_schema.ir.json` records.

    Raises `CatalogError` for another `ir_version` and for types that contradict each other, `DamagedError` for a text
    that no writer of this format produces.
    """
    try:
        content = text.encode()
        version = decode(content, Version, "it").ir_version
        if version != IR_VERSION:
            raise CatalogError(f"catalog error: unsupported schema ir_version {version} (expected {IR_VERSION})")
        read = decode(content, Document, "it")
        interfaces, nodes, edges = read.interface_types(), read.node_types(), read.edge_types()
    except (DamagedError, msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _damaged(str(error)) from error
    for found in contradictions(interfaces, nodes, edges):
        raise CatalogError(f"catalog error: {found.message}")
    catalog = assemble(interfaces, nodes, edges)
    try:
        recorded = _hash(json.loads(text))
    except (ValueError, RecursionError) as error:  # in a member that the shape passes over
        raise _damaged(str(error)) from error
    if recorded != catalog.ir_hash:
        raise _damaged("it is not in canonical form, or an id is not that of its name")
    return catalog


def _damaged(why: str) -> DamagedError:
    return DamagedError(f"_schema.ir.json is damaged: {why}. Put back the one that belongs to _schema.pg")


def _name(entry: InterfaceType | NodeType | EdgeType) -> str:
    return entry.name


def _document(catalog: Catalog) -> Json:
    return document(catalog.interfaces.values(), catalog.nodes.values(), catalog.edges.values())


def _hash(ir: Json) -> str:
    return f"sha256:{hashlib.sha256(compact(ir).encode()).hexdigest()}"
