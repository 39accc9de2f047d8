"""Bad rows of all tasks and checks → one report in input order, with exact file and line, and counts per rule."""

from __future__ import annotations

import heapq
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np

from spark_omnigraph.errors import BadRequestError, BadRow, BadRowSummary, StorageError
from spark_omnigraph.graph.check import Finding
from spark_omnigraph.graph.second_pass import SecondPass
from spark_omnigraph.graph.staged_table import Rows, StagedTable
from spark_omnigraph.records.decode import Rejected
from spark_omnigraph.staging.receipt import LocatedRow, RangeReceipt
from spark_omnigraph.storage.lines import InputFile, InputRange
from spark_omnigraph.storage.object_file import put_file
from spark_omnigraph.storage.uri import has_scheme, locate, plain

SAMPLE = 20
"""Bad rows kept in the error and the summary; the report has all."""


class LineNumbers:
    """1-based line numbers of a file from 0-based ones in a range: the lines of earlier ranges come first."""

    def __init__(self, ranges: Sequence[InputRange], receipts: Sequence[RangeReceipt]) -> None:
        lines = {r.index: r.lines for r in receipts}
        self._first: dict[int, int] = {}
        before: Counter[str] = Counter()
        for range_ in ranges:
            self._first[range_.index] = before[range_.file.name]
            before[range_.file.name] += lines[range_.index]

    def line(self, range_index: int, line: int) -> int:
        return self._first[range_index] + line + 1


def check_report_path(path: str | None, inputs: Iterable[InputFile]) -> None:
    """BadRequestError when a report could not be written, or would replace an input of the load."""
    if path is None:
        return
    path = plain(path)
    if has_scheme(path):
        _check_report_uri(path, inputs)
        return
    target = Path(path).absolute()
    if target.is_dir():
        raise BadRequestError(f"the bad-row report '{path}' is a folder: name a file in it")
    if any(target.exists() and Path(f.name).exists() and target.samefile(f.name) for f in inputs):
        raise BadRequestError(
            f"the bad-row report '{path}' is an input of this load and would replace it: name another file"
        )


def _check_report_uri(uri: str, inputs: Iterable[InputFile]) -> None:
    locate(uri)  # refuses a scheme that cannot be written to
    if uri.endswith("/"):
        raise BadRequestError(f"the bad-row report '{uri}' is a folder: name a file in it")
    if any(f.name == uri for f in inputs):
        raise BadRequestError(
            f"the bad-row report '{uri}' is an input of this load and would replace it: name another file"
        )


def write_report(
    ranges: Sequence[InputRange],
    receipts: Sequence[RangeReceipt],
    found: Mapping[int, list[BadRow]],
    path: str | None,
    storage_options: Mapping[str, str] | None = None,
) -> BadRowSummary:
    """Counts and samples all bad rows, and writes them as JSON lines to `path`, a file or `s3://…`, when one is given.

    `found` holds rows from the checks of the whole graph by range. One range is in memory at a time.
    """
    per_rule: Counter[str] = Counter()
    total = 0
    for receipt in receipts:
        per_rule.update(receipt.per_rule)
        total += receipt.bad_total
    for rows in found.values():
        per_rule.update(str(row.rule) for row in rows)
        total += len(rows)
    sample: list[BadRow] = []
    if total:
        sample = _write(_in_order(ranges, receipts, found), path, storage_options)
    elif path is not None:
        _write(iter(()), path, storage_options)
    return BadRowSummary(total, dict(sorted(per_rule.items())), tuple(sample), path)


def locate_findings(
    again: SecondPass,
    ranges: Sequence[InputRange],
    receipts: Sequence[RangeReceipt],
    staged: Mapping[str, StagedTable],
    findings: Sequence[Finding],
) -> dict[int, list[BadRow]]:
    """Findings as bad rows by range, from a second pass over what has any."""
    wanted = _wanted(staged, findings)
    if not wanted:
        return {}
    indexes = sorted(wanted)
    located = again.locate(wanted)
    numbers = LineNumbers(ranges, receipts)
    rows: dict[int, list[BadRow]] = {i: [] for i in indexes}
    for finding in findings:
        origin = staged[finding.table_key].origin
        name = finding.table_key.partition(":")[2]
        for i, row in enumerate(finding.rows.tolist()):
            index, ordinal = int(origin.ranges[row]), int(origin.ordinals[row])
            where = _at(located[index], finding.table_key, ordinal)
            line = numbers.line(index, where.line)
            file, text = ranges[index].file.name, finding.message(i)
            rows[index].append(BadRow(file, line, where.offset, name, finding.field, finding.rule, text, where.raw))
    return rows


def _at(located: Mapping[str, Mapping[int, LocatedRow]], key: str, ordinal: int) -> LocatedRow:
    where = located[key].get(ordinal)
    if where is None:
        raise StorageError(f"storage: the input changed while it was loaded (record {ordinal} of '{key}' is gone)")
    return where


def _wanted(staged: Mapping[str, StagedTable], findings: Sequence[Finding]) -> dict[int, dict[str, Rows]]:
    wanted: dict[int, dict[str, list[int]]] = {}
    for finding in findings:
        origin = staged[finding.table_key].origin
        for row in finding.rows.tolist():
            by_table = wanted.setdefault(int(origin.ranges[row]), {})
            by_table.setdefault(finding.table_key, []).append(int(origin.ordinals[row]))
    return {i: {k: _array(v) for k, v in tables.items()} for i, tables in wanted.items()}


def _array(values: list[int]) -> Rows:
    return np.array(values, dtype=np.int64)


def _in_order(
    ranges: Sequence[InputRange], receipts: Sequence[RangeReceipt], found: Mapping[int, list[BadRow]]
) -> Iterator[BadRow]:
    numbers = LineNumbers(ranges, receipts)
    for receipt in sorted(receipts, key=lambda r: r.index):
        file = ranges[receipt.index].file.name
        decoded = (_bad_row(file, numbers.line(receipt.index, r.line), r) for r in receipt.unpack_rejected())
        checked = sorted(found.get(receipt.index, ()), key=lambda row: row.line)
        yield from heapq.merge(decoded, checked, key=lambda row: row.line)


def _bad_row(file: str, line: int, row: Rejected) -> BadRow:
    return BadRow(file, line, row.offset, row.record_type, row.field, row.rule, row.message, row.raw)


def _write(rows: Iterable[BadRow], path: str | None, options: Mapping[str, str] | None) -> list[BadRow]:
    """Writes all rows, whole or not at all, and returns the first ones."""
    sample: list[BadRow] = []
    if path is None:
        return list(islice(rows, SAMPLE))
    path = plain(path)
    try:
        if path.startswith("s3://"):
            with TemporaryFile() as out:
                _write_lines(rows, out, sample)
                out.seek(0)
                put_file(path, out, options or {})
        else:
            _write_file(rows, Path(path).absolute(), sample)
    except OSError as error:
        raise StorageError(f"storage: the bad-row report {path} cannot be written: {error}") from error
    return sample


def _write_file(rows: Iterable[BadRow], target: Path, sample: list[BadRow]) -> None:
    part = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as out:
            _write_lines(rows, out, sample)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _write_lines(rows: Iterable[BadRow], out: IO[bytes], sample: list[BadRow]) -> None:
    for row in rows:
        if len(sample) < SAMPLE:
            sample.append(row)
        out.write(json.dumps(row.to_dict(), ensure_ascii=False).encode() + b"\n")
