"""`describe`: what a graph holds, as plain values."""

from __future__ import annotations

from spark_omnigraph.branch.control import display, list_branches
from spark_omnigraph.catalog.types import Catalog, EntityType, Index, NodeType, Unique
from spark_omnigraph.graph.maintain.index import table_status
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.index import coverage


def describe_graph(store: GraphStore, catalog: Catalog, snapshot: Snapshot) -> dict[str, object]:
    """Types with their properties, constraints, row counts, table versions and index coverage; branches."""
    return {
        "graph": store.root,
        "branch": display(snapshot.branch),
        "manifest_version": snapshot.version,
        "schema_hash": catalog.ir_hash,
        "branches": list_branches(store),
        "nodes": {n.name: _node(store, n, snapshot) for n in catalog.nodes.values()},
        "edges": {
            e.name: {
                "from": e.from_type,
                "to": e.to_type,
                "cardinality": e.cardinality.display(),
                **_table(store, e, snapshot),
            }
            for e in catalog.edges.values()
        },
    }


def _node(store: GraphStore, node: NodeType, snapshot: Snapshot) -> dict[str, object]:
    return {"key": list(node.key) if node.key is not None else None, **_table(store, node, snapshot)}


def _table(store: GraphStore, entity: EntityType, snapshot: Snapshot) -> dict[str, object]:
    facts: dict[str, object] = {"properties": {p.name: p.type.display() for p in entity.properties}}
    unique = [list(c.columns) for c in entity.constraints if isinstance(c, Unique)]
    index = [list(c.columns) for c in entity.constraints if isinstance(c, Index)]
    if unique:
        facts["unique"] = unique
    if index:
        facts["index"] = index
    entry = snapshot.entries.get(entity.table_key)
    if entry is not None:
        total = entry.row_count
        covered = {
            c.name: {"columns": list(c.columns), "kind": c.kind, "rows": c.rows, "total": total}
            for c in coverage(store.open_table(entry))
        }
        pending = [s for s in table_status(store, entity, entry) if s.name is None and total]
        facts |= {
            "rows": entry.row_count,
            "version": entry.version,
            "table_branch": display(entry.branch),
            "path": entry.location,
            "indexes": covered,
            "indexes_pending": {s.column: str(s.progress) for s in pending},
        }
    return facts
