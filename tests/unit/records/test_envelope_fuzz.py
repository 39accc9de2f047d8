"""Records made at random, judged by a few lines that say what an envelope may hold, at every door.

A record is a list of members with their texts, so that what was given is known without reading it again. Lines read in
bulk, lines read one by one and frames of records must give the verdict of `_expected`, and what they take must be what
was given. A failure names the seed and the record.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.records.frames.decode import FrameDecoder, plan_frame
from spark_omnigraph.records.jsonl.decode import DecodedChunk, RecordDecoder
from spark_omnigraph.records.jsonl.envelope import ENVELOPE
from spark_omnigraph.records.mode import DecodeOptions, UnknownFields
from tests.unit.records.builders import ALL_BY_ROW, chunk

CATALOG = compile_schema("""
node P { k: String @key  v: I64?  s: String?  l: [String]?  from: String? }
node Type { k: String @key  to: I64? }
edge E: P -> P { w: F64?  type: String? }
""")
PROPERTIES = {
    "node:P": {"k": "text", "v": "whole", "s": "text", "l": "texts", "from": "text"},
    "node:Type": {"k": "text", "to": "whole"},
    "edge:E": {"w": "real", "type": "text"},
}
GIVEN: dict[str, list[object]] = {
    "text": ["", "x", 'a"b\\', "é蜂😀", "\x00\x1f", "null", '"type"', "\u2028", "{}"],
    "whole": [0, -1, 7, 2**63 - 1, -(2**63), 2**53 + 1],
    "real": [0.5, -2.0, 1e300, 5e-324, 0.1],
    "texts": [[], ["a", None], ["[", "\\"]],
}
WRONG: dict[str, list[str]] = {
    "text": ["5", "true", "[]", "{}", r'"\ud800"'],
    "whole": ['"7"', "1.5", "1e-400", "9223372036854775808", "1e400", "4503599627370497.5"],
    "real": ['"1"', "1e400", "9007199254740993", "true"],
    "texts": ['"a"', "[5]", '{"a":[]}', "[[]]"],
}
STRANGE = ["Type", "data ", "properties", "K", "V", "ts", "", "é", "edge_", "DATA"]
KINDS = ["1", '"x"', "[]", "{}", "true", "false"]

Member = tuple[str, str, object]
"""Name, text, and value of a member; the value is `_BAD` where its text is no value for its place."""
_BAD = object()


@dataclass
class Record:
    """Members of the envelope and of `data`, as they are written; `data` None when there is none."""

    around: list[Member]
    data: list[Member] | None = None
    data_text: str | None = None
    table: str | None = None
    notes: list[str] = field(default_factory=list)


def _written(value: object, rng: random.Random) -> str:
    return json.dumps(value, ensure_ascii=rng.random() < 0.5)


def _name(name: str, rng: random.Random) -> str:
    """A member's name, now and then with an escape."""
    if name and rng.random() < 0.06:
        return f'"\\u{ord(name[0]):04x}{name[1:]}"' if ord(name[0]) < 0x10000 else json.dumps(name)
    return json.dumps(name, ensure_ascii=False)


def _object(members: list[Member], rng: random.Random) -> str:
    comma, colon = rng.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])
    return "{" + comma.join(f"{_name(name, rng)}{colon}{text}" for name, text, _ in members) + "}"


def _made(rng: random.Random) -> Record:
    """A record with mostly nothing wrong, and now and then one or two things."""
    table = rng.choice(list(PROPERTIES))
    kind, _, name = table.partition(":")
    around: list[Member] = [("type" if kind == "node" else "edge", json.dumps(name), name)]
    if kind == "edge":
        around += [(end, json.dumps(end[0]), end[0]) for end in ("from", "to")]
    record = Record(around, _data(table, rng), table=table)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        rng.choice([_repeat, _null, _add, _drop, _misplace, _other_kind, _spoil_data])(record, rng)
    if rng.random() < 0.3:
        rng.shuffle(record.around)
    return record


def _data(table: str, rng: random.Random) -> list[Member]:
    members: list[Member] = []
    for name, kind in PROPERTIES[table].items():
        if name == "k" or rng.random() < 0.5:
            value = f"k{rng.randrange(10**9)}" if name == "k" else rng.choice([None, *GIVEN[kind]])
            members.append((name, _written(value, rng), value))
    rng.shuffle(members)
    return members


def _repeat(record: Record, rng: random.Random) -> None:
    where = record.data if record.data and rng.random() < 0.5 else record.around
    if where:
        where.append(rng.choice(where))


def _null(record: Record, rng: random.Random) -> None:
    where = record.data if record.data and rng.random() < 0.5 else record.around
    names = [*ENVELOPE[:4], "id", "v", "zzz"] if where is record.around else ["id", "v", "w", "zzz"]
    where.append((rng.choice(names), "null", None))


def _add(record: Record, rng: random.Random) -> None:
    where = record.data if record.data is not None and rng.random() < 0.5 else record.around
    text = rng.choice([*KINDS, '[{"a":1,"a":2}]', '{"data":{"k":"x"}}'])
    where.append((rng.choice(STRANGE), text, _BAD))


def _drop(record: Record, rng: random.Random) -> None:
    if record.around:
        record.around.pop(rng.randrange(len(record.around)))


def _misplace(record: Record, rng: random.Random) -> None:
    names = sorted({"id", "type", "edge", "from", "to", *(PROPERTIES[record.table] if record.table else ())})
    record.around.append((rng.choice(names), '"E"', "E"))


def _other_kind(record: Record, rng: random.Random) -> None:
    if record.around:
        at = rng.randrange(len(record.around))
        record.around[at] = (record.around[at][0], rng.choice([*KINDS[:1], *KINDS[2:], "null"]), _BAD)


def _spoil_data(record: Record, rng: random.Random) -> None:
    if rng.random() < 0.4:
        record.data, record.data_text = None, rng.choice([*KINDS[:3], "true", "null", "[{}]", '"{}"'])
    elif record.data:
        at = rng.randrange(len(record.data))
        name = record.data[at][0]
        kind = PROPERTIES[record.table or ""].get(name)
        if kind is not None:
            record.data[at] = (name, rng.choice(WRONG[kind]), _BAD)


def _once(members: list[Member], known: set[str], ignore: bool) -> bool:
    """Whether no member that matters is repeated."""
    return not any(n > 1 and (not ignore or name in known) for name, n in Counter(m[0] for m in members).items())


def _expected(record: Record, ignore: bool) -> dict[str, object] | None:
    """The row that a record must become, None when it must be refused; `id` of an edge aside unless it is given."""
    around = {name: (text, value) for name, text, value in record.around}
    named = [(name, around[name]) for name in ("type", "edge") if around.get(name, ("null",))[0] != "null"]
    if len(named) != 1:
        return None
    kind = "node" if named[0][0] == "type" else "edge"
    table = f"{kind}:{named[0][1][1]}"
    if table not in PROPERTIES:
        return None
    declared = {"id", *PROPERTIES[table]}
    if not _once(record.around, {*ENVELOPE, *declared}, ignore):
        return None
    if any(_is_lost(name, text, kind, declared, ignore) for name, (text, _) in around.items()):
        return None
    row: dict[str, object] = {"table": table}
    if kind == "edge":
        row |= {"src": around.get("from", ("", None))[1], "dst": around.get("to", ("", None))[1]}
        if not all(isinstance(row[column], str) for column in ("src", "dst")):
            return None
    return _with_data(record, row, declared, ignore)


def _is_lost(name: str, text: str, kind: str, declared: set[str], ignore: bool) -> bool:
    """Whether a member beside `data` must be refused lest it be passed over."""
    if name in ENVELOPE:
        return text != "null" and name in ("from", "to") and kind == "node" and (not ignore or name in declared)
    return not ignore or name.lower() in ENVELOPE or (text != "null" and name in declared)


def _with_data(record: Record, row: dict[str, object], declared: set[str], ignore: bool) -> dict[str, object] | None:
    data = record.data
    if data is None:
        if record.data_text not in (None, "null"):
            return None
        data = []
    if not _once(data, declared, ignore):
        return None
    properties = PROPERTIES[str(row["table"])]
    row |= dict.fromkeys(properties)
    for name, _, value in data:
        if name not in declared:
            if not ignore:
                return None
        elif value is _BAD:
            return None
        elif name != "id":
            row[name] = value
    return None if "k" in properties and row["k"] is None else row


def _line(record: Record, rng: random.Random) -> bytes:
    members = list(record.around)
    text = record.data_text if record.data is None else _object(record.data, rng)
    if text is not None:
        members.insert(rng.choice([len(members), rng.randrange(len(members) + 1)]), ("data", text, None))
    return _object(members, rng).encode()


def _taken(decoded: DecodedChunk) -> dict[int, dict[str, object]]:
    """Rows by line, the made-up ids left out."""
    found: dict[int, dict[str, object]] = {}
    for table in decoded.tables:
        for line, row in zip(table.lines.tolist(), table.table.to_pylist(), strict=True):
            assert line not in found
            found[line] = {"table": table.table_key, **{n: v for n, v in row.items() if n != "id"}}
    refused = [r.line for r in decoded.rejected]
    assert len(set(refused)) == len(refused)
    assert not set(refused) & set(found)
    assert all(r.message and r.mistakes for r in decoded.rejected)
    return found


def _as_frame(records: list[Record], lines: list[bytes]) -> tuple[pa.RecordBatch, list[int]]:
    """The records that a frame of records can hold: no other members, none twice, and only texts."""
    rows, places = [], []
    for place, (record, line) in enumerate(zip(records, lines, strict=True)):
        names = [name for name, _, _ in record.around]
        texts = all(value is None or (isinstance(value, str) and text != "null") for _, text, value in record.around)
        if texts and len(set(names)) == len(names) and set(names) <= set(ENVELOPE[:4]):
            data = record.data_text if record.data is None else _object(record.data, random.Random(place))
            rows.append({**{name: value for name, _, value in record.around}, "data": data})
            places.append(place)
        assert line
    columns = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in ENVELOPE}
    return pa.record_batch(columns), places


def _check(seed: int, size: int) -> None:
    rng = random.Random(seed)
    records = [_made(rng) for _ in range(size)]
    lines = [_line(record, rng) for record in records]
    batch, places = _as_frame(records, lines)
    for unknown_fields in UnknownFields:
        ignore = unknown_fields is UnknownFields.IGNORE
        expected = [_expected(record, ignore) for record in records]
        options = DecodeOptions(unknown_fields)
        for door, minimum in (("in bulk", 1), ("one by one", ALL_BY_ROW)):
            found = _taken(RecordDecoder(CATALOG, options, minimum).decode(chunk(lines)))
            for place, row in enumerate(expected):
                assert found.get(place) == row, f"seed {seed}, {unknown_fields}, {door}: {lines[place]!r}"
        decoded, _ = FrameDecoder(CATALOG, options, plan_frame(CATALOG, None, batch.schema)).decode(batch, 0)
        found = _taken(decoded)
        for line, place in enumerate(places):
            told = f"seed {seed}, {unknown_fields}, as a frame: {lines[place]!r}"
            assert found.get(line) == expected[place], told


@pytest.mark.parametrize("seed", range(6))
def test_every_door_judges_as_the_rules_do(seed: int) -> None:
    _check(seed, 150)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_every_door_judges_very_many_as_the_rules_do(seed: int) -> None:
    _check(seed, 2000)
