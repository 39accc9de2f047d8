"""Decisions of conflicts, row by row: what a caller says becomes of rows on which the branches disagree.

Each is tied by a digest to the two rows on which it was made. When these are others by now it counts as not made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_omnigraph.branch.conflicts import Take
from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.json_text import json_text
from spark_omnigraph.records.jsonl.decode import LineChunk, RecordDecoder
from spark_omnigraph.records.mode import DecodeOptions
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.input.found import list_inputs
from spark_omnigraph.storage.input.ranges import InputFile, cut, read_chunks
from spark_omnigraph.storage.objects.files import open_object
from spark_omnigraph.validate.batch import BatchChecker
from spark_omnigraph.words import nearest

MEMBERS = (
    "table", "id", "kind", "message", "decided", "base", "source", "target", "digest", "source_commit", "target_commit",
)  # laid out as a table  # fmt: skip
"""What a conflict has as data."""
_KNOWN = (*MEMBERS, "type", "take", "row")
_NAMED = 3
_AT_ONCE = 1 << 16
"""Conflicts that are looked at as texts at once."""
_TAKE = "take must be source or target, or row must be a record as a load reads it"
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class GivenDecision:
    """A decision as it was given, and where. `record` is the row (JSON) that is to take the place of both."""

    place: str
    table: str
    id: str
    take: Take
    digest: str
    record: str = ""

    @property
    def name(self) -> str:
        return f"{self.table} '{self.id}'"


@dataclass(frozen=True, slots=True)
class RowDecision:
    """What becomes of a row in conflict, as long as the digest is that of its two rows."""

    take: Take
    digest: str


@dataclass(frozen=True, slots=True, eq=False)
class TableDecisions:
    """Decisions of one table by id, and rows that were given, as stored, with the place of each by id. Picklable."""

    by_id: Mapping[str, RowDecision] = field(default_factory=dict)
    rows: pa.Table | None = None
    places: Mapping[str, int] = field(default_factory=dict)

    def rows_of(self, names: Sequence[str]) -> pa.Table:
        """Given rows by id, in that order."""
        assert self.rows is not None
        return self.rows.take(pa.array([self.places[name] for name in names], pa.int64()))


def read_decisions(given: object, options: Mapping[str, str]) -> tuple[GivenDecision, ...]:
    """Decisions from a file (JSON lines, or Parquet by its name), a frame (Arrow, pandas, Spark, or what hands over
    Arrow), or dicts. What has no `take` and no `row` is left out: it decides nothing.

    BadRequestError names what is no decision and a row that is decided twice.
    """
    found: dict[tuple[str, str], GivenDecision] = {}
    for place, members in _records(given, options):
        each = _decision(place, members)
        if each is None:
            continue
        before = found.setdefault((each.table, each.id), each)
        if before is not each:
            raise BadRequestError(f"{place} decides {each.name} once more, after {before.place}: leave one")
    return tuple(found.values())


def _records(given: Any, options: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(given, (str, os.PathLike)):
        for file in list_inputs(given, options).files:
            yield from _of_parquet(file, options) if file.name.endswith(".parquet") else _of_lines(file, options)
        return
    if type(given).__module__.startswith("pyspark.sql."):  # asked by name: its frames answer to any attribute
        given = given.toArrow()
    if hasattr(given, "iloc"):  # pandas, whose index and attributes are no members
        given = given.astype(object).where(given.notna(), None).to_dict("records")
    elif hasattr(given, "__arrow_c_stream__"):
        given = pa.table(given).to_pylist()
    if not isinstance(given, Iterable):
        raise BadRequestError(f"decisions are a file, a frame or dicts, not {type(given).__name__}")
    for i, each in enumerate(given):
        if not isinstance(each, Mapping):
            raise BadRequestError(f"decision {i + 1} is {type(each).__name__}, not a dict")
        yield f"decision {i + 1}", each


def _of_parquet(file: InputFile, options: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, object]]]:
    is_remote = file.name.startswith("s3://")
    with reading(f"read {file.name}"):
        source = open_object(file.name, file.stamp, options, buffered=False) if is_remote else file.name
        try:
            rows = pq.read_table(source)
        except pa.ArrowInvalid as error:
            raise BadRequestError(f"'{file.name}' is no Parquet file: {error}") from None
    # pandas writes its index beside the columns.
    rows = rows.select([name for name in rows.column_names if not name.startswith("__index_level_")])
    for i, row in enumerate(rows.to_pylist()):
        yield f"{file.name}: row {i + 1}", row


def _of_lines(file: InputFile, options: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, object]]]:
    number = 0
    for range_ in cut([file], 1):
        for chunk in read_chunks(range_, dict(options)):
            for line in chunk.lines:
                number += 1
                if not line.strip() or line.lstrip().startswith(b"//"):
                    continue
                place = f"{file.name}:{number}"
                try:
                    yield place, {name: _member(raw) for name, raw in _MEMBERS.decode(line).items()}
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                    raise BadRequestError(f"{place} is no JSON object: {error}") from None


def _member(raw: msgspec.Raw) -> object:
    """A value; an object stays as it is written, so that every digit of a record is kept."""
    text = bytes(raw)
    return text.decode() if text.startswith(b"{") else msgspec.json.decode(text)


def _decision(place: str, members: Mapping[str, object]) -> GivenDecision | None:
    unknown = [name for name in members if name not in _KNOWN]
    if unknown:
        raise BadRequestError(f"{place} has the unknown member '{unknown[0]}'{nearest(str(unknown[0]), _KNOWN)}")
    take, row = members.get("take"), members.get("row")
    if take is None and row is None:
        return None
    if row is None and take not in tuple(Take):
        take, row = Take.ROW, take
    wanted = Take.ROW if take is None else take
    if wanted not in tuple(Take) or (wanted == Take.ROW) != (row is not None):
        raise BadRequestError(f"{place}: {_TAKE}")
    table, name, digest = (members.get("table") or members.get("type"), members.get("id"), members.get("digest"))
    if not isinstance(table, str) or not isinstance(name, str):
        raise BadRequestError(f"{place} decides no row: only rows, by 'table' and 'id', can be decided")
    if not isinstance(digest, str):
        raise BadRequestError(f"{place} has no digest: copy the one that the conflict was shown with")
    return GivenDecision(place, table, name, Take(str(wanted)), digest, "" if row is None else _record(place, row))


def _record(place: str, row: object) -> str:
    """A row as one line of JSON; the decoder of records says whether it is one."""
    if isinstance(row, str) and row.lstrip().startswith("{"):
        return row.replace("\n", " ")
    if isinstance(row, Mapping):
        try:
            return json_text(dict(row))
        except (TypeError, ValueError, RecursionError) as error:
            raise BadRequestError(f"{place}: its row cannot be written as JSON: {error}") from None
    raise BadRequestError(f"{place}: {_TAKE}")


def check_decisions(catalog: Catalog, given: Sequence[GivenDecision]) -> dict[str, TableDecisions]:
    """Decisions by table key, with rows as they are stored. BadRequestError for an unknown type, and for rows that a
    load would refuse or that are another one.
    """
    entities = {str(entity.table_key): entity for entity in catalog.tables()}
    by_table: dict[str, list[GivenDecision]] = {}
    for each in given:
        if each.table not in entities:
            raise BadRequestError(f"{each.place}: there is no type '{each.table}'{nearest(each.table, entities)}")
        by_table.setdefault(each.table, []).append(each)
    return {key: _checked(catalog, entities[key], decisions) for key, decisions in by_table.items()}


def _checked(catalog: Catalog, entity: EntityType, given: Sequence[GivenDecision]) -> TableDecisions:
    by_id = {each.id: RowDecision(each.take, each.digest) for each in given}
    rows = [each for each in given if each.take is Take.ROW]
    if not rows:
        return TableDecisions(by_id)
    lines = [each.record.encode("utf-8", "surrogatepass") for each in rows]
    decoded = RecordDecoder(catalog, DecodeOptions()).decode(LineChunk(lines, np.zeros(len(lines), np.int64), 0))
    wrong = [(rows[bad.line], bad.message) for bad in decoded.rejected]
    table = next((each for each in decoded.tables if each.table_key == entity.table_key), None)
    for other in decoded.tables:
        if other is not table:
            wrong += [(rows[line], f"its row is one of {other.table_key}") for line in other.lines]
    if table is not None:
        of_row = [rows[line] for line in table.lines]
        names = table.table.column("id").to_pylist()
        wrong += [(e, "its row has another id") for e, name in zip(of_row, names, strict=True) if e.id != name]
        wrong += [(of_row[broken.row], broken.message) for broken in BatchChecker(entity).check(table.table)]
    if wrong or table is None:
        told = "; ".join(f"{each.place} for {each.name}: {message}" for each, message in wrong[:_NAMED])
        more = f"; and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        raise BadRequestError(f"rows that were given cannot be stored: {told}{more}")
    return TableDecisions(by_id, table.table, {each.id: i for i, each in enumerate(of_row)})


def refuse_unused(given: Sequence[GivenDecision], in_conflict: Mapping[str, pa.Table]) -> None:
    """BadRequestError for decisions about rows on which the branches do not disagree."""
    left = {(each.table, each.id): each for each in given}
    for key, rows in in_conflict.items() if given else ():
        for batch in rows.select(["id"]).to_batches(_AT_ONCE):
            for name in batch.column(0).to_pylist():
                left.pop((key, name), None)
    unused = list(left.values())
    if unused:
        told = ", ".join(f"{each.name} ({each.place})" for each in unused[:_NAMED])
        more = f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else ""
        raise BadRequestError(
            f"decisions for rows that are not in conflict: {told}{more}: leave them out, or ask for the conflicts anew"
        )
