"""Answers the probes of a write over staged plus pinned rows, reading key columns only.

Node tables come first, since rows dropped there are endpoints that edges lose; then edges: ids, uniqueness,
endpoints, cardinality. Rows found bad are dropped from the staged tables and reported as findings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType
from spark_omnigraph.errors import ConstraintError, InternalError
from spark_omnigraph.records.keys import id_form
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.redaction import cut
from spark_omnigraph.storage.tables.keys import any_of, rows_among, scan_columns, scan_where, stored_among
from spark_omnigraph.storage.tables.staged import TableTarget
from spark_omnigraph.validate.key_index import KeyIndex, all_distinct
from spark_omnigraph.validate.probes import (
    CardinalityProbe,
    DanglingProbe,
    EndpointProbe,
    UniqueProbe,
    cardinality_probes,
    dangling_probes,
    endpoint_probes,
    unique_probes,
)
from spark_omnigraph.write.distinct import same_rows
from spark_omnigraph.write.executor import available_cores
from spark_omnigraph.write.repeats import held_by_live, one_zero, repeats
from spark_omnigraph.write.staged_table import Rows, RowsToCheck

_DANGLING_NAMED = 5
_RETURNS = 100
"""Times that the checks of a table start again because a superseded record took the place of a refused one."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Rows of one table that break one rule; `message(i)` is the text for `rows[i]`.

    `holders`, where there are some, are the rows of the table that were there first, one for each of `rows`. `ids` are
    those of all rows of the table, None where the input gives none.
    """

    table_key: TableKey
    field: str | None
    rule: Rule
    rows: Rows
    message: Callable[[int], str]
    holders: Rows | None = None
    ids: pa.ChunkedArray | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Bad rows by rule, and how many records later ones superseded per table."""

    findings: list[Finding]
    superseded: dict[str, int]


class WriteChecker:
    """Checks of one write against one snapshot. `targets` pins every table of the graph."""

    def __init__(
        self,
        catalog: Catalog,
        mode: LoadMode,
        on_duplicate: OnDuplicate,
        staged: Mapping[str, RowsToCheck],
        targets: Mapping[str, TableTarget],
        options: Mapping[str, str],
    ) -> None:
        self.gone: Mapping[str, pa.Array] = {}
        """Ids (string[n]) of stored rows that the write deletes, by table; set before `run`."""
        self.distinct: frozenset[str] = frozenset()
        """Tables of whose staged rows equal ones count once; set before `run`."""
        self.by_ends = False
        """Whether ids of edges follow from their ends: then none of several with one id wins. Set before `run`."""
        self._catalog = catalog
        self._mode = mode
        self._last_wins = mode.replaces and on_duplicate is OnDuplicate.LAST
        self._staged = staged
        self._targets = targets
        self._options = options
        self._superseded: dict[str, Rows] = {}  # by table, what comes first also first
        self._equal: dict[str, int] = {}
        self._indexes: dict[str, KeyIndex] = {}
        self._indexing = Lock()
        self._endpoint_types = {name for e in catalog.edges.values() for name in (e.from_type, e.to_type)}

    def run(self, mentioned: frozenset[str]) -> CheckResult:
        """All findings, nodes first. `mentioned` names the tables that an overwrite replaces, empty ones included."""
        tables = list(self._staged.values())
        edges = [table for table in tables if isinstance(self._entity(table), EdgeType)]
        nodes = [table for table in tables if not isinstance(self._entity(table), EdgeType)]
        check = partial(self._check_table, mentioned=mentioned)
        # Arrow and Lance work outside the interpreter lock, so threads share the cores.
        with ThreadPoolExecutor(max_workers=available_cores()) as pool:
            findings = list(pool.map(check, nodes))
            self._nodes_checked()
            findings += pool.map(check, edges)
        superseded = {key: len(rows) for key, rows in self._superseded.items()} | self._equal
        counts = {key: count for key, count in sorted(superseded.items()) if count}
        return CheckResult([found for of_table in findings for found in of_table], counts)

    def _nodes_checked(self) -> None:
        """What is to be done when all nodes are checked, and no edge is."""

    def run_alone(self, table: RowsToCheck, probe: UniqueProbe | CardinalityProbe) -> list[Finding]:
        """What breaks one rule of a type, of rows that are all there are of it; rows that other rules refuse count too.
        Asked of a checker for an overwrite.
        """
        entity = self._entity(table)
        if isinstance(probe, UniqueProbe):
            found = self._check_unique(table, probe, ())
        else:
            found = self._check_cardinality(table, entity, probe) if isinstance(entity, EdgeType) else []
        for finding in found:
            table.take_back(finding.rows)
        return found

    def refuse_dangling(self, mentioned: frozenset[str]) -> None:
        """ConstraintError naming all stored edges that an overwrite would leave without an end. Asked after `run`."""
        if self._mode is not LoadMode.OVERWRITE:
            return
        probes = list(dangling_probes(self._catalog, mentioned))
        found = [(probe, text) for probe in probes if (text := self._stored_dangling(probe))]
        if found:
            edges = ", ".join(sorted({probe.table_key.type_name for probe, _ in found}))
            nodes = ", ".join(sorted({probe.node_key.type_name for probe, _ in found}))
            raise ConstraintError(
                f"overwriting {nodes} would leave stored edges dangling: {'; '.join(text for _, text in found)}. Load "
                f"{edges} in the same overwrite, or keep those nodes."
            )

    def _check_table(self, table: RowsToCheck, mentioned: frozenset[str]) -> list[Finding]:
        """Findings of one table. Touches no other table but to read node ids, which are final by then."""
        entity = self._entity(table)
        found = self._check_ids(table, entity)
        passes = 0
        while more := self._check_rules(table, entity, mentioned, () if passes else found):
            found += more
            if not self._mode.replaces:
                break
            # A refused row gives back the stored row that it would have replaced, and with it what that row holds. An
            # earlier record that it superseded comes before that stored row.
            passes += 1
            if passes <= _RETURNS:
                self._bring_back(table, more)
        if entity.name in self._endpoint_types and not isinstance(entity, EdgeType):
            table.load(["id"])
        return found

    def _check_rules(
        self, table: RowsToCheck, entity: EntityType, mentioned: frozenset[str], refused: Sequence[Finding]
    ) -> list[Finding]:
        """Findings of one pass. Of rows that were refused just before, the ends are looked at too."""
        found: list[Finding] = []
        for unique in unique_probes(entity):
            if table.changed is None or table.changed.intersection(unique.columns):
                found += self._check_unique(table, unique, found)
        if isinstance(entity, EdgeType) and not table.keeps_ends:
            looked_at = _with_refused(table, [*refused, *found])
            found += self._check_endpoints(table, endpoint_probes(entity), mentioned, looked_at)
            for cardinality in cardinality_probes(entity):
                found += self._check_cardinality(table, entity, cardinality)
        return found

    def _entity(self, table: RowsToCheck) -> EntityType:
        entity = self._catalog.table(table.table_key)
        if entity is None:
            raise InternalError(f"rows were staged for the unknown table '{table.table_key}'")
        return entity

    def _check_ids(self, table: RowsToCheck, entity: EntityType) -> list[Finding]:
        if not table.given_ids:
            return []
        ids = table.column("id")
        if all_distinct(ids):
            return []
        distinct = table.table_key in self.distinct
        takes_last = self._takes_last(entity)
        later, holders = repeats([ids], table, keep_last=takes_last and not distinct)
        if distinct:
            same = same_rows(table, entity, later, holders)
            table.drop(later[same])
            self._equal[table.table_key] = int(same.sum())
            later, holders = later[~same], holders[~same]
        elif takes_last:
            table.drop(later)
            self._superseded[table.table_key] = later
            return []
        columns = list(entity.key or ("id",))
        label = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"

        def message(i: int) -> str:
            value = ids[int(later[i])].as_py()
            differs = ", and differs from it" if distinct else ""
            told = f"value '{cut(value)}' repeats an earlier record of the input{differs}"
            return f"@unique violation on {entity.name}.{label}: {told}"

        return _found(Finding(table.table_key, columns[0], Rule.KEY_DUPLICATE, later, message, holders), table)

    def _takes_last(self, entity: EntityType) -> bool:
        """Whether the last one of several records of one id counts."""
        return self._last_wins and not (self.by_ends and isinstance(entity, EdgeType))

    def _bring_back(self, table: RowsToCheck, refused: list[Finding]) -> None:
        """Takes, for each refused row, the last record that it superseded."""
        superseded = self._superseded.get(table.table_key)
        if superseded is None or not len(superseded):
            return
        ids = table.column("id")
        lost = ids.take(pa.array(np.concatenate([finding.rows for finding in refused]))).unique()
        earlier = ids.take(pa.array(superseded)).combine_chunks()
        place = pc.index_in(earlier, value_set=lost)
        candidates = superseded[np.asarray(place.is_valid())][::-1]
        chosen = candidates[np.unique(np.asarray(place.drop_null())[::-1], return_index=True)[1]]
        self._take_back(table, chosen)
        self._superseded[table.table_key] = superseded[~np.isin(superseded, chosen)]

    def _take_back(self, table: RowsToCheck, rows: Rows) -> None:
        table.take_back(rows)

    def _check_unique(self, table: RowsToCheck, probe: UniqueProbe, before: Sequence[Finding]) -> list[Finding]:
        """Findings of one constraint. Rows that another one refused hold no value, but may want one that is held."""
        table.load(["id", *probe.columns])
        columns = [one_zero(table.column(name)) for name in probe.columns]
        later, holders = repeats(columns, table, keep_last=False)
        earlier = self._unique_finding(table, probe, later, f"an earlier {table.unit}")
        repeated = _found(replace(earlier, holders=holders), table)
        again, kept = held_by_live(columns, table, _rows_of(before))
        if len(again):
            wanting = self._unique_finding(table, probe, again, f"an earlier {table.unit}")
            repeated += _found(replace(wanting, holders=kept), table)
        taken = self._held_by_stored(table, probe, np.flatnonzero(_with_refused(table, before)))
        return repeated + _found(self._unique_finding(table, probe, taken, "a stored row"), table)

    def _unique_finding(self, table: RowsToCheck, probe: UniqueProbe, rows: Rows, holder: str) -> Finding:
        name = table.table_key.type_name
        label = probe.columns[0] if len(probe.columns) == 1 else f"({', '.join(probe.columns)})"

        def message(i: int) -> str:
            values = [cut(table.column(c)[int(rows[i])].as_py()) for c in probe.columns]
            text = values[0] if len(values) == 1 else f"({', '.join(values)})"
            return f"@unique violation on {name}.{label}: value '{text}' is held by {holder}"

        return Finding(table.table_key, probe.columns[0], Rule.UNIQUE, rows, message)

    def _held_by_stored(self, table: RowsToCheck, probe: UniqueProbe, rows: Rows) -> Rows:
        """Those of the rows whose tuple a stored row holds that this load does not replace."""
        if self._mode is LoadMode.OVERWRITE or not table.target.row_count:
            return np.empty(0, dtype=np.int64)
        names = list(probe.columns)
        keys = [f"c{i}" for i in range(len(names))]  # a property may be called `row`
        values = pa.table({n: one_zero(table.column(n).take(pa.array(rows))) for n in names})
        new = values.rename_columns(keys).append_column("row", pa.array(rows))
        replaced = self._leaving(table)
        hits = [pa.table({"row": pa.array([], pa.int64()), "id": pa.array([], pa.string())})]
        # Of few rows only stored ones that may share a tuple are read, by an index where there is one.
        wanted = any_of(values.drop_null())
        for batch in scan_where(table.target.open(self._options), ["id", *names], wanted):
            held_here = {key: one_zero(batch.column(name)) for key, name in zip(keys, names, strict=True)}
            stored = pa.table({**held_here, "id": batch.column("id")})
            hits.append(new.join(stored, keys=keys, join_type="inner").select(["row", "id"]))
        held = pa.concat_tables(hits)
        kept = held.filter(pc.invert(pc.is_in(held.column("id"), value_set=replaced)))
        found = np.unique(np.asarray(kept.column("row"), dtype=np.int64))
        return found[np.argsort(table.input_rank[found])] if len(found) else found

    def _check_endpoints(
        self,
        table: RowsToCheck,
        probes: tuple[EndpointProbe, ...],
        mentioned: frozenset[str],
        looked_at: npt.NDArray[np.bool_],
    ) -> list[Finding]:
        """Looks at one staged file at a time: edges are many, and two passes cost less than keeping their ends."""
        unknown: dict[str, list[pa.Array]] = {probe.column: [] for probe in probes}
        for _, ends in table.files(["src", "dst"]):
            for probe in probes:
                unknown[probe.column].append(self._not_staged(ends.column(probe.column), probe.node_key))
        missing = {p.column: self._not_stored(unknown[p.column], p.node_key, mentioned) for p in probes}
        if not any(len(values) for values in missing.values()):
            return []
        findings = [self._dangling(table, probe, missing[probe.column], looked_at) for probe in probes]
        return [found for finding in findings for found in _found(finding, table)]

    def _not_staged(self, values: pa.ChunkedArray, node_key: str) -> pa.Array:
        """The distinct values that are no id of a staged row."""
        index = self._staged_ids(node_key)
        return values.unique() if index is None else values.filter(pa.array(~index.contains(values))).unique()

    def _not_stored(self, parts: list[pa.Array], node_key: str, mentioned: frozenset[str]) -> pa.Array:
        """Those of the values that are no id of a stored row either, rows that are replaced not counted."""
        values = pa.chunked_array(parts, pa.string()).unique()
        replaced = self._mode is LoadMode.OVERWRITE and node_key in mentioned
        target = self._targets.get(node_key)
        if replaced or not len(values) or target is None or not target.row_count:
            return values
        stored = stored_among(target.open(self._options), "id", values)
        missing = pc.invert(pc.is_in(values, value_set=stored))
        if node_key in self.gone:
            missing = pc.or_(missing, pc.is_in(values, value_set=self.gone[node_key]))
        return values.filter(missing)

    def _dangling(
        self, table: RowsToCheck, probe: EndpointProbe, missing: pa.Array, looked_at: npt.NDArray[np.bool_]
    ) -> Finding:
        rows: list[Rows] = []
        names: list[pa.Array] = []
        for first, ends in table.files([probe.column]):
            values = ends.column(probe.column)
            lost = np.asarray(pc.is_in(values, value_set=missing))
            bad = np.flatnonzero(lost & looked_at[first : first + len(values)])
            rows.append(bad + first)
            names += values.take(pa.array(bad)).chunks
        values = pa.chunked_array(names, pa.string())
        node = probe.node_key.type_name
        field = "from" if probe.column == "src" else "to"
        form = id_form(self._catalog.nodes[node])

        def message(i: int) -> str:
            return f"{probe.column} '{cut(values[i].as_py())}' not found in {node}{form}"

        return Finding(table.table_key, field, Rule.ENDPOINT, np.concatenate(rows), message)

    def _staged_ids(self, node_key: str) -> KeyIndex | None:
        """Index of the ids of a node table's staged rows, made once for all edge tables."""
        table = self._staged.get(node_key)
        if table is None or not table.given_ids:
            return None
        with self._indexing:
            if node_key not in self._indexes:
                ids = table.column("id")
                if table.dropped.any():
                    ids = ids.filter(pa.array(~table.dropped))
                self._indexes[node_key] = KeyIndex(ids.combine_chunks())
            return self._indexes[node_key]

    def _check_cardinality(self, table: RowsToCheck, edge: EdgeType, probe: CardinalityProbe) -> list[Finding]:
        live = np.flatnonzero(~table.dropped)
        sources = table.column("src").take(pa.array(live)).combine_chunks().dictionary_encode()
        codes = np.asarray(sources.indices)
        new = np.bincount(codes, minlength=len(sources.dictionary))
        total = new + self._stored_edges(table, sources.dictionary)
        bad, bound = self._outside(table, live, codes, total, probe)
        names = sources.dictionary

        def message(i: int) -> str:
            code = int(codes[np.searchsorted(live, bad[i])])
            return (
                f"@card violation on edge {edge.name}: source '{cut(names[code].as_py())}' has {int(total[code])} "
                f"edges ({bound(code)})"
            )

        return _found(Finding(table.table_key, "from", Rule.CARDINALITY, bad, message), table)

    def _outside(
        self,
        table: RowsToCheck,
        live: Rows,
        codes: npt.NDArray[np.int32],
        total: npt.NDArray[np.int64],
        probe: CardinalityProbe,
    ) -> tuple[Rows, Callable[[int], str]]:
        """Rows to refuse: of a source with too few edges all, of one with too many the last ones in input order.

        `live` are the rows that stay (`int64[n]`), `codes` the source of each (`int32[n]`), `total` the edges of each
        source (`int64[sources]`). Sorted by source and backwards by input, the rows of a source are a run, and how far
        a row stands from the beginning of its run is how many rows of its source come after it in the input.
        """
        low, high = probe.cardinality.min, probe.cardinality.max
        rank = table.input_rank[live]
        order = np.lexsort((-rank, codes))
        starts = np.searchsorted(codes[order], np.arange(len(total)))
        place_from_last = np.empty(len(order), dtype=np.int64)
        place_from_last[order] = np.arange(len(order)) - starts[codes[order]]
        excess = np.maximum(total - high, 0) if high is not None else np.zeros(len(total), dtype=np.int64)
        refused = (place_from_last < excess[codes]) | (total[codes] < low)
        return live[refused], lambda code: f"min {low}" if total[code] < low else f"max {high}"

    def _stored_edges(self, table: RowsToCheck, sources: pa.Array) -> npt.NDArray[np.int64]:
        """Stored edges per source that stay beside the new ones."""
        counts = np.zeros(len(sources), dtype=np.int64)
        if self._mode is LoadMode.OVERWRITE or not table.target.row_count:
            return counts
        replaced = self._leaving(table)
        for batch in rows_among(table.target.open(self._options), ["id", "src"], ["src"], sources):
            kept = batch.column("src").filter(pc.invert(pc.is_in(batch.column("id"), value_set=replaced)))
            place = pc.index_in(kept, value_set=sources).drop_null()
            counts += np.bincount(np.asarray(place), minlength=len(sources))
        return counts

    def _leaving(self, table: RowsToCheck) -> pa.Array:
        """Ids of stored rows that do not stay as they are: those that are replaced, and those that are deleted."""
        live = _live_ids(table)
        gone = self.gone.get(table.table_key)
        return live if gone is None else pa.concat_arrays([live, gone])

    def _stored_dangling(self, probe: DanglingProbe) -> str:
        """How many stored edges of one type would lack one of their ends, and the first of them; empty for none."""
        target = self._targets.get(probe.table_key)
        if target is None or not target.row_count:
            return ""
        index = self._staged_ids(probe.node_key)
        dangling: list[tuple[str, str]] = []
        total = 0
        for batch in scan_columns(target.open(self._options), ["id", probe.column]):
            lost = batch if index is None else batch.filter(pa.array(~index.contains(batch.column(probe.column))))
            total += lost.num_rows
            room = _DANGLING_NAMED - len(dangling)
            dangling += list(zip(lost.column(0)[:room].to_pylist(), lost.column(1)[:room].to_pylist(), strict=True))
        if not total:
            return ""
        node, edge = probe.node_key.type_name, probe.table_key.type_name
        named = ", ".join(f"edge '{i}' {probe.column} '{value}'" for i, value in dangling)
        return (
            f"{total} {edge} edges whose {probe.column} is not found in {node} ({named}"
            f"{', …' if total > len(dangling) else ''})"
        )


def _live_ids(table: RowsToCheck) -> pa.Array:
    """Ids of the rows that will be committed: stored rows that have them are replaced."""
    return table.column("id").filter(pa.array(~table.dropped)).combine_chunks()


def _found(finding: Finding, table: RowsToCheck) -> list[Finding]:
    """The finding, if it has rows; they are dropped from the table."""
    if not len(finding.rows):
        return []
    table.drop(finding.rows)
    return [replace(finding, ids=table.column("id") if table.given_ids else None)]


def _rows_of(findings: Sequence[Finding]) -> Rows:
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(finding.rows for finding in findings)]))


def _with_refused(table: RowsToCheck, findings: Sequence[Finding]) -> npt.NDArray[np.bool_]:
    """The rows that are not dropped, and those of the findings."""
    rows: npt.NDArray[np.bool_] = ~table.dropped
    for finding in findings:
        rows[finding.rows] = True
    return rows
