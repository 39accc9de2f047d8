"""Bad rows of all tasks and checks → one report in input order, with exact file and line, and counts per rule."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from itertools import groupby, islice
from tempfile import TemporaryFile
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from spark_omnigraph.bad_rows import MISTAKES, BadRow, BadRowSummary, Mistake
from spark_omnigraph.errors import BadRequestError, IoError
from spark_omnigraph.graph.load.second_pass import Located, SecondPass
from spark_omnigraph.records.jsonl.decode import Rejected
from spark_omnigraph.staging.located import TEXTS, LocatedRows
from spark_omnigraph.staging.receipt import RangeReceipt
from spark_omnigraph.storage.delta_append import append_once
from spark_omnigraph.storage.input.ranges import InputFile, InputRange
from spark_omnigraph.storage.objects.whole_file import whole_path
from spark_omnigraph.storage.targets import why_not
from spark_omnigraph.storage.uri import DELTA, has_scheme, locate, plain
from spark_omnigraph.write.checker import Finding
from spark_omnigraph.write.staged_table import Rows, StagedTable

SAMPLE = 20
"""Bad rows kept in the error and the summary; the report has all."""


_TOGETHER = 4096
_DELTA_ROWS = pa.schema(
    [
        *((name, pa.string()) for name in ("run_id", "graph", "branch")),
        ("loaded_at", pa.timestamp("us", "UTC")),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("offset", pa.int64()),
        *((name, pa.string()) for name in ("record_type", "field", "rule", "message", "raw", "id")),
        ("further", pa.list_(pa.struct([(name, pa.string()) for name in ("field", "rule", "message")]))),
    ]
)
"""Columns of bad rows in a Delta table."""


@dataclass(frozen=True, slots=True)
class ReportTarget:
    """Where bad rows go: a file or an object of JSON lines, or a Delta table (`delta:…`), to which each run adds its
    own once. A stream numbers its batches.
    """

    path: str | None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    graph: str | None = None
    branch: str | None = None
    run_id: str = field(default_factory=lambda: uuid4().hex)
    number: int = 1


class LineNumbers:
    """1-based line numbers of a file from 0-based ones in a range: the lines of earlier ranges come first."""

    def __init__(self, ranges: Sequence[InputRange], receipts: Sequence[RangeReceipt]) -> None:
        lines = {r.index: r.lines for r in receipts}
        self._files = {r.index: r.file.name for r in ranges}
        self._first: dict[int, int] = {}
        before: Counter[str] = Counter()
        for range_ in ranges:
            self._first[range_.index] = before[range_.file.name]
            before[range_.file.name] += lines[range_.index]

    def line(self, range_index: int, line: int) -> int:
        return self._first[range_index] + line + 1

    def place(self, range_index: int, line: int) -> str:
        """File and line as messages show them."""
        return f"{self._files[range_index]}:{self.line(range_index, line)}"


def check_report_path(
    path: str | None, inputs: Iterable[InputFile], root: str | None = None, what: str = "bad-row report"
) -> None:
    """BadRequestError when a report could not be written, or would replace an input of the load or a file of the graph
    of that root.
    """
    if path is None:
        return
    reason = why_not(path, root or "", (file.name for file in inputs))
    if reason is not None:
        raise BadRequestError(f"the {what} '{path}' {reason}")
    place = plain(path.removeprefix(DELTA))
    if has_scheme(place):
        locate(place)  # refuses a scheme that cannot be written to


def write_report(
    ranges: Sequence[InputRange],
    receipts: Sequence[RangeReceipt],
    found: FoundRows,
    target: ReportTarget,
) -> BadRowSummary:
    """Counts and samples all bad rows, and writes them to the target.

    `found` are rows from the checks of the whole graph. Of what tasks refused, one range is in memory at a time.
    """
    per_rule: Counter[str] = Counter()
    total = 0
    for receipt in receipts:
        per_rule.update(receipt.per_rule)
        total += receipt.bad_total
    for finding in found.findings:
        per_rule[str(finding.rule)] += len(finding.rows)
    total += sum(bad_rows(found.findings).values())
    sample: list[BadRow] = []
    if total:
        sample = write_rows(_in_order(ranges, receipts, found), target)
    elif target.path is not None:
        write_rows(iter(()), target)
    return BadRowSummary(total, dict(sorted(per_rule.items())), tuple(sample), target.path)


def bad_rows(findings: Iterable[Finding]) -> dict[str, int]:
    """Rows per table that some finding names; a row of two findings counts once."""
    rows: dict[str, list[Rows]] = {}
    for finding in findings:
        rows.setdefault(finding.table_key, []).append(finding.rows)
    return {key: len(np.unique(np.concatenate(parts))) for key, parts in rows.items()}


class FoundRows:
    """Rows that the checks of the whole graph found bad, packed; they become values one by one, in input order.

    All are looked up in a second pass over the input, or, for who shows no more, so many of the first ones (`most`).
    """

    def __init__(self, staged: Mapping[str, StagedTable], findings: Sequence[Finding], most: int | None = None) -> None:
        self.findings = findings
        self._staged = staged
        self._parts = _by_range(staged, findings)
        if most is not None:
            self._parts = _first(self._parts, most)
        self._located: dict[int, Located] = {}

    def locate(self, again: SecondPass) -> None:
        """Looks the rows up."""
        sought: dict[int, dict[str, list[Rows]]] = {}
        for index, parts in self._parts.items():
            for part in parts:
                finding = self.findings[part.finding]
                sought.setdefault(index, {}).setdefault(finding.table_key, []).append(part.ordinals)
                if finding.holders is not None:
                    self._seek(sought, finding.table_key, finding.holders[part.rows])
        wanted = {
            i: {key: np.unique(np.concatenate(rows)) for key, rows in tables.items()} for i, tables in sought.items()
        }
        self._located = again.locate(wanted) if wanted else {}

    def _seek(self, sought: dict[int, dict[str, list[Rows]]], table_key: str, rows: Rows) -> None:
        origin = self._staged[table_key].origin
        ranges, ordinals = origin.ranges[rows], origin.ordinals[rows]
        for index in np.unique(ranges).tolist():
            sought.setdefault(index, {}).setdefault(table_key, []).append(ordinals[ranges == index])

    def of_range(self, index: int, file: str, numbers: LineNumbers) -> Iterator[BadRow]:
        """Those of one range by line, each record once: a line may have several. IoError when the input changed since
        it was staged.
        """
        for _, mistakes in groupby(self._mistakes(index, file, numbers), lambda each: each[1].line):
            records: dict[tuple[str, int], list[BadRow]] = {}
            for record, row in mistakes:
                records.setdefault(record, []).append(row)
            for first, *others in records.values():
                further = tuple(Mistake(row.field, row.rule, row.message) for row in others[: MISTAKES - 1])
                yield replace(first, further=further)

    def _mistakes(self, index: int, file: str, numbers: LineNumbers) -> Iterator[tuple[tuple[str, int], BadRow]]:
        """What is wrong in order of the lines, each with its record: a table, and which of its staged rows it is."""
        parts = self._parts.get(index)
        if parts is None:
            return
        located = self._located[index]
        places = [_places(located[self.findings[part.finding].table_key], part, self.findings) for part in parts]
        keys = [self.findings[part.finding].table_key for part in parts]
        lines = np.concatenate([located[key].lines[at] for key, at in zip(keys, places, strict=True)])
        owners = np.repeat(np.arange(len(parts)), [len(at) for at in places])
        rows = np.concatenate([part.rows for part in parts])
        texts = {key: _Texts(located[key]) for key in keys}
        everywhere = np.concatenate(places)
        for i in np.argsort(lines, kind="stable").tolist():
            part, at, row = int(owners[i]), int(everywhere[i]), int(rows[i])
            finding, key = self.findings[parts[part].finding], keys[part]
            told = BadRow(
                file,
                numbers.line(index, int(lines[i])),
                int(located[key].offsets[at]),
                key.type_name,
                finding.field,
                finding.rule,
                finding.message(row) + self._first_place(finding, row, numbers),
                texts[key].at(at),
                None if finding.ids is None else finding.ids[int(finding.rows[row])].as_py(),
            )
            yield (key, int(finding.rows[row])), told

    def _first_place(self, finding: Finding, row: int, numbers: LineNumbers) -> str:
        """Where the row stands that was there first."""
        if finding.holders is None:
            return ""
        origin, holder = self._staged[finding.table_key].origin, finding.holders[row]
        index = int(origin.ranges[holder])
        located = self._located[index][finding.table_key]
        at = int(np.searchsorted(located.ordinals, origin.ordinals[holder]))
        return f" ({numbers.place(index, int(located.lines[at]))})"


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Rows of one finding that lie in one range: their places in the finding, and their ordinals."""

    finding: int
    rows: Rows
    ordinals: Rows


def _by_range(staged: Mapping[str, StagedTable], findings: Sequence[Finding]) -> dict[int, list[_Part]]:
    parts: dict[int, list[_Part]] = {}
    for number, finding in enumerate(findings):
        origin = staged[finding.table_key].origin
        ranges, ordinals = origin.ranges[finding.rows], origin.ordinals[finding.rows]
        order = np.argsort(ranges, kind="stable")
        present, first = np.unique(ranges[order], return_index=True)
        for index, rows in zip(present.tolist(), np.split(order, first[1:]), strict=True):
            parts.setdefault(index, []).append(_Part(number, rows, ordinals[rows]))
    return parts


def _first(parts: Mapping[int, list[_Part]], most: int) -> dict[int, list[_Part]]:
    """Parts with the first `most` rows of the input, and perhaps more."""
    kept: dict[int, list[_Part]] = {}
    for index in sorted(parts):
        if sum(len(part.rows) for some in kept.values() for part in some) >= most:
            break
        kept[index] = [_head(part, most) for part in parts[index]]
    return kept


def _head(part: _Part, most: int) -> _Part:
    order = np.argsort(part.ordinals)[:most]
    return _Part(part.finding, part.rows[order], part.ordinals[order])


def _places(located: LocatedRows, part: _Part, findings: Sequence[Finding]) -> Rows:
    places = np.searchsorted(located.ordinals, part.ordinals)
    there = places < len(located.ordinals)
    there[there] = located.ordinals[places[there]] == part.ordinals[there]
    if not there.all():
        record, key = int(part.ordinals[~there][0]), findings[part.finding].table_key
        raise IoError(
            f"storage: the input changed while it was loaded (record {record} of '{key}' is gone); load it again"
        )
    return places


class _Texts:
    """Texts of located rows; those that are packed together are unpacked once when they are asked for in order."""

    def __init__(self, rows: LocatedRows) -> None:
        self._rows = rows
        self._run = -1
        self._texts: list[str] = []

    def at(self, place: int) -> str:
        run, offset = divmod(place, TEXTS)
        if run != self._run:
            self._run, self._texts = run, self._rows.texts(run)
        return self._texts[offset]


def _in_order(ranges: Sequence[InputRange], receipts: Sequence[RangeReceipt], found: FoundRows) -> Iterator[BadRow]:
    numbers = LineNumbers(ranges, receipts)
    for receipt in sorted(receipts, key=lambda r: r.index):
        file = ranges[receipt.index].file.name
        decoded = (_bad_row(file, numbers.line(receipt.index, r.line), r) for r in receipt.unpack_rejected())
        yield from heapq.merge(decoded, found.of_range(receipt.index, file, numbers), key=lambda row: row.line)


def _bad_row(file: str, line: int, row: Rejected) -> BadRow:
    first = BadRow(file, line, row.offset, row.record_type, row.field, row.rule, row.message, row.raw)
    return replace(first, id=row.id, further=row.further)


def write_rows(rows: Iterable[BadRow], target: ReportTarget) -> list[BadRow]:
    """Writes all rows, whole or not at all, to the target if there is one, and returns the first ones."""
    path = target.path
    if path is None:
        return list(islice(rows, SAMPLE))
    if path.startswith(DELTA):
        return _append_rows(rows, path, target)
    sample: list[BadRow] = []
    with whole_path(plain(path), target.options) as part, open(part, "wb") as out:
        for row in rows:
            if len(sample) < SAMPLE:
                sample.append(row)
            out.write(json.dumps(row.to_dict(), ensure_ascii=False).encode() + b"\n")
    return sample


def _append_rows(rows: Iterable[BadRow], path: str, target: ReportTarget) -> list[BadRow]:
    """Adds all rows to a Delta table, once for each run."""
    kept: list[BadRow] = []
    now = datetime.now(timezone.utc)
    facts = {"run_id": target.run_id, "graph": target.graph, "branch": target.branch, "loaded_at": now}
    with TemporaryFile() as spool:
        with ipc.new_stream(spool, _DELTA_ROWS) as out:
            source = iter(rows)
            while part := list(islice(source, _TOGETHER)):
                kept += part[: SAMPLE - len(kept)]
                told = [{**row.to_dict(), **facts, "further": [asdict(each) for each in row.further]} for row in part]
                out.write_batch(pa.RecordBatch.from_pylist(told, _DELTA_ROWS))

        def again() -> Iterator[pa.RecordBatch]:
            spool.seek(0)
            yield from ipc.open_stream(spool)

        append_once(path, _DELTA_ROWS, again, f"omnigraph:bad_rows:{target.run_id}", target.number, target.options)
    return kept
