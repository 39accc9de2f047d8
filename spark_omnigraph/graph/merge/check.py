"""What a merged graph would break: the rules of the schema over what the merge changes, against the state it makes.

Only the delta is looked at; what stood there broken before bars no merge. Rows themselves were checked when they were
written, so what is asked is what rows of both sides do to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.branch.conflicts import ConflictKind
from spark_omnigraph.catalog.types import Catalog, EdgeType
from spark_omnigraph.errors import MergeConflict
from spark_omnigraph.graph.merge.rows import TableDelta
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.redaction import cut
from spark_omnigraph.staging.receipt import StagedFragment
from spark_omnigraph.storage.tables.keys import rows_among
from spark_omnigraph.storage.tables.staged import StagedFile, TableTarget
from spark_omnigraph.validate.probes import cardinality_probes
from spark_omnigraph.write.checker import Finding, WriteChecker
from spark_omnigraph.write.staged_table import StagedTable

_KINDS = {
    Rule.ENDPOINT: ConflictKind.ORPHAN_EDGE,
    Rule.CARDINALITY: ConflictKind.CARDINALITY_VIOLATION,
    Rule.UNIQUE: ConflictKind.UNIQUE_VIOLATION,
    Rule.KEY_DUPLICATE: ConflictKind.UNIQUE_VIOLATION,
}


def check_merged(
    catalog: Catalog, deltas: Mapping[str, TableDelta], targets: Mapping[str, TableTarget], options: Mapping[str, str]
) -> list[MergeConflict]:
    """What of the rules the merged graph would break, tables in key order. `targets` pins all tables of the target."""
    staged = {
        key: StagedTable(delta.into, [(i, _fragment(file)) for i, file in enumerate(delta.files)], True, options)
        for key, delta in sorted(deltas.items())
        if delta.files
    }
    for table in staged.values():
        table.unit = "row of the merge"
    gone = {key: delta.deleted for key, delta in deltas.items() if len(delta.deleted)}
    checker = WriteChecker(catalog, LoadMode.MERGE, OnDuplicate.LAST, staged, targets, options)
    checker.gone = gone
    findings = checker.run(frozenset(staged)).findings
    causes = [_without_followers(finding, findings, staged, catalog) for finding in findings]
    found = [conflict for finding in causes for conflict in _of(finding, staged[finding.table_key])]
    found += _orphans(catalog, deltas, staged, targets, options)
    found += _too_few(catalog, deltas, staged, targets, options)
    return sorted(dict.fromkeys(found), key=lambda c: (c.table_key, c.kind, c.row_id or "", c.message))


def _fragment(file: StagedFile) -> StagedFragment:
    return StagedFragment(file, 0, 0, None, None)


def _without_followers(
    finding: Finding, findings: Sequence[Finding], staged: Mapping[str, StagedTable], catalog: Catalog
) -> Finding:
    """A finding without edges that lack an end only because its node is a finding itself: the cause is told."""
    if finding.rule is not Rule.ENDPOINT:
        return finding
    edge = catalog.edges[finding.table_key.type_name]
    column, node = ("src", edge.from_type) if finding.field == "from" else ("dst", edge.to_type)
    causes = (f for f in findings if f.table_key == f"node:{node}")
    refused = [staged[cause.table_key].column("id").take(pa.array(cause.rows)) for cause in causes]
    ids = pa.chunked_array([chunk for each in refused for chunk in each.chunks], pa.string())
    ends = staged[finding.table_key].column(column).take(pa.array(finding.rows))
    kept = np.flatnonzero(~np.asarray(pc.is_in(ends, value_set=ids)))
    return replace(finding, rows=finding.rows[kept], message=lambda i: finding.message(int(kept[i])))


def _of(finding: Finding, table: StagedTable) -> Iterator[MergeConflict]:
    kind = _KINDS[finding.rule]
    ids = table.column("id")
    for i, row in enumerate(finding.rows):
        # Numbers of edges are broken by a source, not by one of its edges.
        name = None if kind is ConflictKind.CARDINALITY_VIOLATION else ids[int(row)].as_py()
        yield MergeConflict(finding.table_key, name, str(kind), finding.message(i))


def _orphans(
    catalog: Catalog,
    deltas: Mapping[str, TableDelta],
    staged: Mapping[str, StagedTable],
    targets: Mapping[str, TableTarget],
    options: Mapping[str, str],
) -> Iterator[MergeConflict]:
    """Stored edges of the target that stay, and lose an end to a deletion of the source."""
    for edge in sorted(catalog.edges.values(), key=lambda e: e.table_key):
        target = targets.get(edge.table_key)
        for column, node in (("src", edge.from_type), ("dst", edge.to_type)):
            delta = deltas.get(f"node:{node}")
            if target is None or not target.row_count or delta is None or not len(delta.deleted):
                continue
            leaving = _leaving(deltas.get(edge.table_key), staged.get(edge.table_key))
            for batch in rows_among(target.open(options), ["id", column], [column], delta.deleted.unique()):
                stay = batch.filter(pc.invert(pc.is_in(batch.column("id"), value_set=leaving)))
                for row in stay.to_pylist():
                    message = f"{column} '{row[column]}' not found in {node}"
                    yield MergeConflict(edge.table_key, row["id"], str(ConflictKind.ORPHAN_EDGE), message)


def _too_few(
    catalog: Catalog,
    deltas: Mapping[str, TableDelta],
    staged: Mapping[str, StagedTable],
    targets: Mapping[str, TableTarget],
    options: Mapping[str, str],
) -> Iterator[MergeConflict]:
    """Sources of which the merge takes edges away, and that keep some, but too few."""
    for edge in sorted(catalog.edges.values(), key=lambda e: e.table_key):
        delta, target = deltas.get(edge.table_key), targets.get(edge.table_key)
        lows = [probe.cardinality.min for probe in cardinality_probes(edge) if probe.cardinality.min]
        if not lows or delta is None or target is None or not len(delta.deleted):
            continue
        yield from _below(edge, max(lows), delta, staged.get(edge.table_key), target, options)


def _below(
    edge: EdgeType,
    low: int,
    delta: TableDelta,
    rows: StagedTable | None,
    target: TableTarget,
    options: Mapping[str, str],
) -> Iterator[MergeConflict]:
    dataset = target.open(options)
    lost = [b.column("src") for b in rows_among(dataset, ["id", "src"], ["id"], delta.deleted.unique())]
    sources = pa.chunked_array(lost, pa.string()).unique()
    leaving = _leaving(delta, rows)
    kept = [] if rows is None else [rows.column("src").filter(pc.is_in(rows.column("src"), value_set=sources))]
    for batch in rows_among(dataset, ["id", "src"], ["src"], sources):
        kept.append(batch.column("src").filter(pc.invert(pc.is_in(batch.column("id"), value_set=leaving))))
    chunks = [chunk for each in kept for chunk in (each.chunks if isinstance(each, pa.ChunkedArray) else [each])]
    counts = pa.chunked_array(chunks, pa.string()).value_counts().to_pylist()
    for each in sorted(counts, key=lambda c: str(c["values"])):
        if each["counts"] < low:
            source = cut(each["values"])
            message = f"@card violation on edge {edge.name}: source '{source}' has {each['counts']} edges (min {low})"
            yield MergeConflict(edge.table_key, None, str(ConflictKind.CARDINALITY_VIOLATION), message)


def _leaving(delta: TableDelta | None, rows: StagedTable | None) -> pa.Array:
    """Ids of stored rows that the merge replaces or deletes."""
    parts = [pa.array([], pa.string())]
    parts += [] if delta is None else [delta.deleted]
    parts += [] if rows is None else rows.column("id").chunks
    return pa.concat_arrays(parts)
