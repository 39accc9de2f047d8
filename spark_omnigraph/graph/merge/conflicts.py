"""Conflicts as data: with the rows of all sides, as JSON lines, as Parquet, or in batches."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_omnigraph.branch.conflicts import MESSAGES, STALE, ConflictKind, digest_of
from spark_omnigraph.errors import MergeConflict, MergeConflictsError
from spark_omnigraph.graph.merge.decisions import MEMBERS
from spark_omnigraph.graph.merge.rows import SideRows, TableDelta, open_rows, text_rows
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.storage.objects.whole_file import whole_path

SCHEMA = pa.schema([(name, pa.string()) for name in MEMBERS])
_SIDES = ("base", "source", "target")
_AT_ONCE = 1 << 16
"""Conflicts that are in memory at once."""


@dataclass(frozen=True, slots=True)
class Conflicts:
    """All that a merge found: rows on which the branches disagree, by table, rules that the merged graph would break,
    and the heads that were compared.
    """

    deltas: Mapping[str, TableDelta]
    broken: Sequence[MergeConflict]
    source_commit: str
    target_commit: str
    notes: tuple[str, ...] = ()
    """What is no conflict, and worth a warning."""

    def refuse(self) -> None:
        """MergeConflictsError for what is left open."""
        counts, sample = open_rows_of(self.deltas)
        counts.update(each.kind for each in self.broken)
        if counts:
            raise MergeConflictsError([*sample, *self.broken], counts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where a decision was made on other rows, and it was decided otherwise."""
        late = sum(pc.sum(each.conflicts.column("is_stale")).as_py() or 0 for each in self.deltas.values())
        told = f"decisions of {late} row{'s' * (late > 1)} were made on other rows: on_conflict decided instead"
        return (*self.notes, *((told,) if late else ()))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """`SCHEMA`: tables and ids in order, then broken rules; `base`, `source` and `target` are records that could be
        loaded (JSON), null where there is none. A bounded number at a time.
        """
        for key, delta in self.deltas.items():
            yield from self._rows(key, delta)
        if self.broken:
            told = [
                {"table": c.table_key, "id": c.row_id, "kind": c.kind, "message": c.message, **self._heads()}
                for c in self.broken
            ]
            yield pa.RecordBatch.from_pylist(told, SCHEMA)

    def _heads(self) -> dict[str, str]:
        return {"source_commit": self.source_commit, "target_commit": self.target_commit}

    def _rows(self, key: str, delta: TableDelta) -> Iterator[pa.RecordBatch]:
        conflicts, sides = delta.conflicts, delta.sides
        if not conflicts.num_rows:
            return
        names = physical_schema(sides.entity).names
        stored = [open_rows(table, names) for table in (sides.bases[0], sides.source, sides.target)]
        size = text_rows(sides.entity)
        for start in range(0, conflicts.num_rows, size):
            part = conflicts.slice(start, size)
            at = np.arange(part.num_rows)
            base, source, target = (
                SideRows(rows, part.column(name)).records(sides.entity, at)
                for rows, name in zip(stored, _SIDES, strict=True)
            )
            facts = [
                {"table": key, "message": message_of(row), "digest": digest_of(ours, theirs), **self._heads()}
                for row, ours, theirs in zip(_facts(part), source, target, strict=True)
            ]
            found = pa.Table.from_pylist(facts, pa.schema([(name, pa.string()) for name in facts[0]]))
            for name, texts in zip(_SIDES, (base, source, target), strict=True):
                found = found.append_column(name, pa.array(texts, pa.string()))
            for name in ("id", "kind", "decided"):
                found = found.append_column(name, part.column(name))
            yield from found.select(SCHEMA.names).cast(SCHEMA).combine_chunks().to_batches()


def _facts(rows: pa.Table | pa.RecordBatch) -> list[dict[str, object]]:
    facts: list[dict[str, object]] = rows.select(["id", "kind", "is_stale"]).to_pylist()
    return facts


def message_of(row: Mapping[str, object]) -> str:
    """The text of a row in conflict."""
    return MESSAGES[ConflictKind(row["kind"])].format(row["id"]) + (STALE if row["is_stale"] else "")


def open_rows_of(deltas: Mapping[str, TableDelta]) -> tuple[Counter[str], list[MergeConflict]]:
    """Rows in conflict that nothing was decided about: how many of each kind, and the first of them."""
    counts: Counter[str] = Counter()
    sample: list[MergeConflict] = []
    for key, delta in deltas.items():
        for batch in delta.conflicts.to_batches(_AT_ONCE):
            left = batch.filter(pc.is_null(batch.column("decided")))
            counts.update({each["values"]: each["counts"] for each in left.column("kind").value_counts().to_pylist()})
            for row in _facts(left.slice(0, MergeConflictsError.SAMPLE - len(sample))):
                sample.append(MergeConflict(key, str(row["id"]), str(row["kind"]), message_of(row)))
    return counts, sample


def off_memory(rows: pa.Table) -> pa.Table:
    """The same rows (`CONFLICTS`); many are kept in a file without a name, and take no memory for long."""
    if rows.num_rows < _AT_ONCE:
        return rows
    with suppress(OSError), tempfile.NamedTemporaryFile(prefix="omnigraph-conflicts-") as file:
        with pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
        file.flush()
        return pa.ipc.open_file(pa.memory_map(file.name)).read_all()
    return rows  # no room there, and it is here


def write_conflicts(path: str, batches: Iterable[pa.RecordBatch], options: Mapping[str, str]) -> None:
    """Writes conflicts to a file or an `s3://` object: Parquet when its name says so, else a JSON object a line, with
    records as objects. IoError when it cannot be written.
    """
    with whole_path(path, options) as part:
        if path.endswith(".parquet"):
            with pq.ParquetWriter(part, SCHEMA) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            return
        with open(part, "w", encoding="utf-8") as file:
            for batch in batches:
                file.writelines(map(_line, batch.to_pylist()))


def _line(row: Mapping[str, str | None]) -> str:
    members = (f'"{name}": {_json(name, value)}' for name, value in row.items())
    return f"{{{', '.join(members)}}}\n"


def _json(name: str, value: str | None) -> str:
    return value or "null" if name in _SIDES else json.dumps(value, ensure_ascii=False)
