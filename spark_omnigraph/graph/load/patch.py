"""Patches: what the records of an update make of the stored rows, one row for each id.

    PatchedRows    staged patches and the rows that they are for, applied in input order      driver
    refused        those that name no row, or another one than their ends say, or repeat one
    stage_changes  what the rows get, as columns or whole rows                                executors

A patch is applied to what is stored in the version that the commit is made for; so two writers who patch different
properties of a row both keep what they wrote. The patches of a row stand or fall together where the row breaks a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import END_MEMBERS, GIVEN, EdgeType, EntityType
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.mode import OnDuplicate, OnMissing
from spark_omnigraph.redaction import cut
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.keys import find_rows
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.storage.tables.stored_rows import StoredRows
from spark_omnigraph.storage.values.staged import Places, StagedColumn
from spark_omnigraph.write.checker import Finding
from spark_omnigraph.write.distinct import same_rows
from spark_omnigraph.write.executor import Executor
from spark_omnigraph.write.staged_files import StagedFiles
from spark_omnigraph.write.staged_table import Rows, StagedTable
from spark_omnigraph.write.values import (
    LEFT_ALONE,
    ValueChange,
    WriteContext,
    change_of,
    new_rows,
    parts_of,
    write_part,
)

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PatchRules:
    """What is done with a patch of a row that is not stored, with a second one of a row, and with one that says the
    same again (`distinct`).
    """

    missing: OnMissing
    on_duplicate: OnDuplicate
    distinct: bool = False


class _Named:
    """The rows that patches name: `codes` gives the row of each patch, `rank` its place in the input."""

    def __init__(self, staged: StagedTable, options: Mapping[str, str]) -> None:
        encoded = staged.column("id").combine_chunks().dictionary_encode()
        self.ids: pa.Array = encoded.dictionary
        self.codes = np.asarray(encoded.indices).astype(np.int64)
        self.rank = staged.input_rank
        self.hit = np.zeros(len(self.ids), dtype=bool)
        self.row_ids, self.addresses = (np.zeros(len(self.ids), dtype=np.uint64) for _ in range(2))
        if staged.target.row_count:
            matches = find_rows(staged.target.open(options), self.ids)
            self.hit = matches.hit
            self.row_ids[self.hit], self.addresses[self.hit] = matches.row_ids, matches.addresses

    def first(self, patches: Rows) -> Rows:
        """By row, the first of some patches in the input; -1 where there is none."""
        found = np.full(len(self.ids), -1, dtype=np.int64)
        backwards = patches[np.argsort(-self.rank[patches])]
        found[self.codes[backwards]] = backwards
        return found


class PatchedRows:
    """The rows of one table as they are afterwards, for the checks. `findings` are of the patches themselves."""

    def __init__(self, entity: EntityType, staged: StagedTable, rules: PatchRules, options: Mapping[str, str]) -> None:
        self.target = staged.target
        self.given_ids = True
        self.unit = staged.unit
        self._entity, self._staged, self._options = entity, staged, options
        self._schema = physical_schema(entity)
        staged.load(["id", *(GIVEN + p.name for p in entity.properties)])
        self._named = _Named(staged, options)
        refusals = _Refusals(entity, staged, self._named, self._stored)
        self.findings = list(refusals.run(rules))
        self._live = ~refusals.refused
        live = np.flatnonzero(self._live)
        named = np.zeros(len(self._named.ids), dtype=bool)
        named[self._named.codes[live]] = True
        self._codes = np.flatnonzero(named)
        self._row_of = np.full(len(self._named.ids), -1, dtype=np.int64)
        self._row_of[self._codes] = np.arange(len(self._codes))
        self._order = live[np.argsort(self._named.rank[live])]
        self._last = np.zeros(len(self._codes), dtype=np.int64)
        self._last[self._row_of[self._named.codes[self._order]]] = self._order
        self.values = self._folded()
        self.dropped = np.zeros(len(self._codes), dtype=bool)
        self._columns: dict[str, pa.ChunkedArray] = {}

    def _folded(self) -> dict[str, Places]:
        """For each column that patches give, the patch whose value a row gets: the last that has one."""
        new = ~self._hit
        folded = {"id": np.where(new, self._last, LEFT_ALONE)}
        if isinstance(self._entity, EdgeType):
            ends = np.where(new, self._named.first(self._order)[self._codes], LEFT_ALONE)
            folded |= {"src": ends, "dst": ends}
        key = set(self._entity.key or ())
        for prop in self._entity.properties:
            given = np.asarray(self._staged.column(GIVEN + prop.name))
            patches = self._order[given[self._order]]
            places = np.full(len(self._codes), LEFT_ALONE, dtype=np.int64)
            places[self._row_of[self._named.codes[patches]]] = patches
            if prop.name in key:
                places[self._hit] = LEFT_ALONE  # which is what they are found by
            folded[prop.name] = places
        return {name: places for name, places in folded.items() if (places != LEFT_ALONE).any()}

    @property
    def _hit(self) -> Bools:
        return self._named.hit[self._codes]

    @property
    def table_key(self) -> TableKey:
        return self.target.table_key

    @cached_property
    def changed(self) -> frozenset[str] | None:
        """Columns in which rows may differ from those that are stored; None with new rows."""
        return frozenset(self.values) if self._hit.all() else None

    @property
    def keeps_ends(self) -> bool:
        """Whether no edge is new: the others have the ends that they had."""
        return bool(self._hit.all())

    @property
    def input_rank(self) -> Rows:
        return self._named.rank[self._last]

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of all rows as it is afterwards."""
        if name not in self._columns:
            self._columns[name] = pa.chunked_array([self._column(name)])
        return self._columns[name]

    def _column(self, name: str) -> pa.Array:
        if name == "id":
            return self._named.ids.take(pa.array(self._codes))
        places = self.values.get(name, np.full(len(self._codes), LEFT_ALONE, dtype=np.int64))
        found = self._source(name).reader().take(np.maximum(places, -1))
        kept = np.flatnonzero((places == LEFT_ALONE) & self._hit)
        if not len(kept):
            return found
        at = np.arange(len(places))
        at[kept] = len(places) + np.arange(len(kept))
        return pa.concat_arrays([found, self._stored(name, self._codes[kept])]).take(pa.array(at))

    def _stored(self, name: str, codes: Rows) -> pa.Array:
        rows = StoredRows.open(self._pinned, [name]).take(pa.array(self._named.row_ids[codes]))
        return rows.column(name).combine_chunks()

    def files(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        yield 0, pa.table({name: self.column(name) for name in names})

    def load(self, names: Iterable[str]) -> None:
        """Columns are made when they are asked for."""

    def drop(self, rows: Rows) -> None:
        self.dropped[rows] = True

    def take_back(self, rows: Rows) -> None:
        self.dropped[rows] = False

    def by_patch(self, finding: Finding) -> Finding:
        """What was found of rows, of all the patches that made them so."""
        of_row = np.full(len(self._codes), -1, dtype=np.int64)
        of_row[finding.rows] = np.arange(len(finding.rows))
        patches = self._order[of_row[self._row_of[self._named.codes[self._order]]] >= 0]
        place = of_row[self._row_of[self._named.codes[patches]]]
        holders = None if finding.holders is None else self._last[finding.holders[place]]

        def message(i: int) -> str:
            return finding.message(int(place[i]))

        return replace(finding, rows=patches, message=message, holders=holders, ids=self._staged.column("id"))

    @property
    def _writes(self) -> Bools:
        """Rows that are written: of a patch that gives no property nothing is."""
        gives = np.zeros(len(self._codes), dtype=bool)
        for places in self.values.values():
            gives |= places != LEFT_ALONE
        return gives & ~self.dropped

    @property
    def inserted(self) -> int:
        return int((self._writes & ~self._hit).sum())

    @property
    def updated(self) -> int:
        return int((self._writes & self._hit).sum())

    @property
    def _pinned(self) -> PinnedTable:
        return PinnedTable(self.target.uri, self.target.version, self._options)

    def _source(self, name: str) -> StagedColumn:
        files = tuple(fragment.file for _, fragment in self._staged.parts)
        return StagedColumn(files, name, self._schema.field(name).type, self._options)

    def stage_change(self, executor: Executor, files: StagedFiles) -> TableChange:
        """Writes what the rows get; nothing refers to the files yet."""
        sources = {name: self._source(name) for name in self._schema.names}
        context = WriteContext(self._entity, self.target, self._pinned, sources, self._options)
        old, new = (np.flatnonzero(self._writes & which) for which in (self._hit, ~self._hit))
        old = old[np.argsort(self._named.addresses[self._codes[old]])]
        codes = self._codes[old]
        change = ValueChange(
            self._named.row_ids[codes], self._named.addresses[codes], {n: p[old] for n, p in self.values.items()}
        ).given()
        nothing = np.full(len(self._codes), -1, dtype=np.int64)
        values = {name: np.maximum(self.values.get(name, nothing)[new], -1) for name in self._schema.names}
        parts = [*parts_of(context, change), *new_rows(context, values)]
        written = []
        for part in executor.map(partial(write_part, context), parts):
            files.add(part.staged)
            written.append(part)
        return change_of(written)


def by_patch(tables: Mapping[str, PatchedRows], findings: Iterable[Finding]) -> list[Finding]:
    """What is wrong with patches, and what was found of the rows that they make, of all patches of these."""
    own = [finding for table in tables.values() for finding in table.findings]
    return own + [tables[finding.table_key].by_patch(finding) for finding in findings]


class _Refusals:
    """What is wrong with patches by themselves; `refused` marks those that are not applied."""

    def __init__(
        self, entity: EntityType, staged: StagedTable, named: _Named, stored: Callable[[str, Rows], pa.Array]
    ) -> None:
        self._entity, self._staged, self._named, self._stored = entity, staged, named, stored
        self.refused = np.zeros(staged.rows, dtype=bool)

    def run(self, rules: PatchRules) -> Iterator[Finding]:
        """Rule by rule; each looks at the patches that are left."""
        yield from self._missing(rules.missing)
        if isinstance(self._entity, EdgeType):
            for column in END_MEMBERS:
                yield from self._moved(column)
        if rules.distinct or rules.on_duplicate is OnDuplicate.ERROR:
            yield from self._repeated(rules.distinct)

    def _found(self, field: str | None, rule: Rule, bad: Bools, told: str) -> Iterator[Finding]:
        rows, ids, name = np.flatnonzero(bad), self._staged.column("id"), self._entity.name

        def message(i: int) -> str:
            return f"{name} '{cut(ids[int(rows[i])].as_py())}' {told}"

        if len(rows):
            self.refused |= bad
            yield Finding(self._staged.table_key, field, rule, rows, message, ids=ids)

    def _missing(self, missing: OnMissing) -> Iterator[Finding]:
        """Patches whose row is not stored; those before the first whole record of it, where one is inserted."""
        lost = ~self._named.hit[self._named.codes]
        if missing is OnMissing.ERROR:
            told = "is not stored, so there is nothing to change; with --missing insert (missing) it becomes a row"
            yield from self._found("id", Rule.NOT_STORED, lost, told)
            return
        if not lost.any():
            return
        required = [p.name for p in self._entity.properties if not p.type.nullable]
        required += END_MEMBERS if isinstance(self._entity, EdgeType) else []
        self._staged.load(required)
        lacks = {column: np.asarray(self._staged.column(column).is_null()) & lost for column in required}
        partial_ = np.logical_or.reduce([np.zeros(len(lost), dtype=bool), *lacks.values()])
        first = self._named.first(np.flatnonzero(lost & ~partial_))[self._named.codes]
        early = partial_ & ((first < 0) | (self._named.rank < self._named.rank[first]))
        for column, lacking in lacks.items():
            field = END_MEMBERS.get(column, column)
            rule = Rule.MISSING_ENDPOINT if column in END_MEMBERS else Rule.REQUIRED
            told = f"is not stored, and a record of a new row needs '{field}'"
            yield from self._found(field, rule, early & lacking, told)

    def _moved(self, column: str) -> Iterator[Finding]:
        """Patches that give an edge another end than it has."""
        named, ends = self._named, self._staged.column(column).combine_chunks()
        giving = np.flatnonzero(np.asarray(ends.is_valid()) & ~self.refused)
        if not len(giving):
            return
        codes = np.unique(named.codes[giving])
        old, new = codes[named.hit[codes]], codes[~named.hit[codes]]
        first = named.first(np.flatnonzero(~self.refused))
        have = [self._stored(column, old) if len(old) else pa.array([], pa.string()), ends.take(pa.array(first[new]))]
        place = np.zeros(len(named.ids), dtype=np.int64)
        place[np.concatenate([old, new])] = np.arange(len(codes))
        expected = pa.concat_arrays(have).take(pa.array(place[named.codes[giving]]))
        other = np.zeros(len(self.refused), dtype=bool)
        other[giving] = np.asarray(pc.not_equal(ends.take(pa.array(giving)), expected))
        field = END_MEMBERS[column]
        told = f"has another '{field}', which a patch does not change: delete the edge, and load it anew"
        yield from self._found(field, Rule.ID_MISMATCH, other, told)

    def _repeated(self, distinct: bool) -> Iterator[Finding]:
        """All patches of a row but its first; where equal ones count once, those that differ from it."""
        left = np.flatnonzero(~self.refused)
        first = self._named.first(left)[self._named.codes[left]]
        later, holders = left[first != left], first[first != left]
        differs = ""
        if distinct and len(later):
            unequal = ~same_rows(self._staged, self._entity, later, holders)
            later, holders, differs = later[unequal], holders[unequal], ", and differs from it"
        order = np.argsort(self._named.rank[later])
        later, holders = later[order], holders[order]
        if not len(later):
            return
        ids, name, field = self._staged.column("id"), self._entity.name, (self._entity.key or ("id",))[0]
        self.refused[later] = True

        def message(i: int) -> str:
            return f"{name} '{cut(ids[int(later[i])].as_py())}' repeats an earlier record of the input{differs}"

        yield Finding(self._staged.table_key, field, Rule.KEY_DUPLICATE, later, message, holders, ids)
