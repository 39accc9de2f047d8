"""Mode `changes`: what records say they do, and which of several changes of one row counts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_omnigraph import BadRequestError
from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.records.changes.ranks import (
    DELETE,
    INSERT,
    NO_VERSION,
    PREIMAGE,
    UPDATE,
    WORDS,
    RecordChanges,
    netted,
)
from spark_omnigraph.records.frames.changed_columns import changes_in_columns, without_changes
from spark_omnigraph.records.jsonl.changed_lines import changes_in_lines
from spark_omnigraph.records.jsonl.decode import LineChunk, RecordDecoder
from spark_omnigraph.records.jsonl.row_decoder import RowDecoder
from spark_omnigraph.records.mode import DecodeOptions

CATALOG = compile_schema("node Person { name: String @key  op: String? } node City { name: String @key }")
FILM = {"type": "Film", "data": {"title": "Heat"}}


def chunk(*lines: bytes) -> LineChunk:
    return LineChunk(lines, np.arange(len(lines), dtype=np.int64) * 100, 7)


def read(**told: Any) -> tuple[object, int, int] | tuple[str | None, Rule, str]:
    """What is left of a record, its rank and version; or the mistake."""
    plain, changes, refused = changes_in_lines(chunk(json.dumps({**told, **FILM}).encode()))
    if refused:
        [row] = refused
        assert (row.line, row.offset, row.record_type, plain.lines[0]) == (7, 0, "Film", b"")
        return row.field, row.rule, row.message
    return json.loads(plain.lines[0] or b"null"), int(changes.ranks[0]), int(changes.versions[0])


@pytest.mark.parametrize(
    ("told", "rank", "version"),
    [
        ({"op": "u"}, UPDATE, NO_VERSION),
        ({"op": "d", "_commit_version": 0}, DELETE, 0),
        ({"_change_type": "insert", "_commit_version": 2**63 - 1}, INSERT, 2**63 - 1),
        (
            {"_change_type": "update_postimage", "op": None, "_commit_id": "x", "_commit_timestamp": 3},
            UPDATE,
            NO_VERSION,
        ),
        ({"op": "delete", "_commit_version": None}, DELETE, NO_VERSION),
    ],
)
def test_members_of_a_line_are_taken_out(told: dict[str, Any], rank: int, version: int) -> None:
    assert read(**told) == (FILM, rank, version)


def test_former_images_comments_and_blank_lines_are_nothing() -> None:
    image = json.dumps({"_change_type": "update_preimage", **FILM}).encode()
    plain, changes, refused = changes_in_lines(chunk(image, b"// op", b"  "))
    assert (list(plain.lines), refused, changes.ranks[0]) == ([b"", b"// op", b""], [], PREIMAGE)


@pytest.mark.parametrize(
    ("told", "field", "message"),
    [
        ({}, "op", "mode changes needs 'op'"),
        ({"op": None}, "op", "mode changes needs 'op'"),
        ({"op": "U"}, "op", "'op' is 'U'; it must be one of u, d, insert"),
        ({"op": 1}, "op", "'op' is 1; it must be one of"),
        ({"_change_type": "upsert"}, "_change_type", "'_change_type' is 'upsert'"),
        ({"op": "u", "_change_type": "insert"}, "op", "'op' or '_change_type', not both"),
        ({"op": "u", "_commit_version": -1}, "_commit_version", "'_commit_version' is -1, and no whole number"),
        ({"op": "u", "_commit_version": 1.5}, "_commit_version", "'_commit_version' is 1.5"),
        ({"op": "u", "_commit_version": True}, "_commit_version", "'_commit_version' is True"),
        ({"op": "u", "_commit_version": 2**63}, "_commit_version", "no whole number"),
    ],
)
def test_records_that_do_not_say_what_they_do_are_bad(told: dict[str, Any], field: str, message: str) -> None:
    found = read(**told)
    assert found[:2] == (field, Rule.INVALID_ENVELOPE)
    assert message in str(found[2])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"op": "u", "op": "d", "type": "Film"}', "invalid JSON: member 'op' is repeated"),
        (b'{"\\u006fp": "u", "op": "d", "type": "Film"}', "invalid JSON: member 'op' is repeated"),
        (b'{"op": "u", "type": "Film"', "invalid JSON: Expecting ',' delimiter"),
        (b"[1]", "invalid JSON: a line must hold one JSON object, got [1]"),
    ],
)
def test_lines_that_are_no_record(line: bytes, message: str) -> None:
    [row] = changes_in_lines(chunk(line))[2]
    assert row.rule is Rule.INVALID_JSON
    assert row.message.startswith(message)


def test_other_repeated_members_are_left_to_decoding() -> None:
    line = b'{"op": "u", "type": "Film", "type": "Film"}'
    plain, changes, refused = changes_in_lines(chunk(line))
    assert (plain.lines[0], refused, changes.ranks[0]) == (line, [], UPDATE)


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


DELETES: list[dict[str, Any]] = [
    {"type": "Person", "data": {"name": "a"}},
    {"type": "Person", "data": {"id": "b"}},
    {"type": "Person", "data": {"id": "c", "name": "c", "age": None}},
    {"type": "Person", "data": {"id": "d", "name": "e"}},
    {"type": "Person", "data": {"name": "f", "age": "no number"}},
    {"type": "Person", "data": {"name": "g", "height": 3}},
    {"type": "Person", "data": {"name": None}},
    {"type": "Person", "data": {"name": 7}},
    {"type": "Person", "data": {}},
    {"type": "Person"},
    {"type": "Place", "data": {"shop": "s", "number": 1}},
    {"type": "Place", "data": {"shop": "s"}},
    {"type": "Place", "data": {"shop": "s", "id": '["s","1"]'}},
    {"type": "Place", "data": {"number": 2, "shop": "s", "id": '["s","1"]'}},
    {"type": "Note", "data": {"id": "n", "text": None}},
    {"type": "Note", "data": {"text": "no id"}},
    {"edge": "Knows", "data": {"id": "k"}},
    {"edge": "Knows", "from": "a", "to": None, "data": {"id": "k2"}},
    {"edge": "Knows", "from": 3, "to": [1], "data": {"id": "k3", "since": "x"}},
    {"edge": "Knows", "from": "a", "to": "b", "data": {}},
    {"edge": "Knows", "from": "a", "to": "b", "data": {"id": "k5", "since": 4}},
]
DELETED = compile_schema(
    "node Person { name: String @key  age: I32  born: Date? } node Note { text: String }"
    "node Place { shop: String  number: I32  @key(shop, number) } edge Knows: Person -> Person { since: I32 }"
)


@pytest.mark.parametrize("edge_id", [None, (), ("since",)])
def test_deletes_are_read_in_columns_as_one_by_one(edge_id: tuple[str, ...] | None) -> None:
    lines = [json.dumps(record).encode() for record in DELETES]
    changes = RecordChanges.of(DELETE, len(lines))
    options = DecodeOptions(changes=True, edge_id=edge_id)
    by_row, by_column = (
        RecordDecoder(DELETED, options, columns_from=size).decode(chunk(*lines), changes) for size in (999, 1)
    )
    assert by_column.rejected == by_row.rejected
    assert by_column.read == by_row.read
    for found, expected in zip(by_column.tables, by_row.tables, strict=True):
        assert (found.table_key, found.lines.tolist()) == (expected.table_key, expected.lines.tolist())
        assert found.named.tolist() == expected.named.tolist()
        named = pa.array(found.named)  # the others get new ids, and later those that follow from their ends
        assert found.table.column("id").filter(named) == expected.table.column("id").filter(named)


def test_many_deletes_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b'{"type": "Person", "data": {"name": "n%d"}}' % at for at in range(50)]
    monkeypatch.setattr(RowDecoder, "decode", lambda *_: pytest.fail("read by itself"))
    decoder = RecordDecoder(DELETED, DecodeOptions(changes=True))
    [table] = decoder.decode(chunk(*lines), RecordChanges.of(DELETE, 50)).tables
    assert table.table.column("id").to_pylist() == [f"n{at}" for at in range(50)]


def test_columns_say_the_same_as_members() -> None:
    rows = batch(
        name=["a"] * 6,
        op=["u", "d", "insert", "update_preimage", None, "x"],
        _commit_version=pa.array([1, None, 2**40, 4, 5, 6], pa.int64()),
    )
    changes, mistakes = changes_in_columns(rows)
    assert changes.ranks[:4].tolist() == [UPDATE, DELETE, INSERT, PREIMAGE]
    assert changes.versions[:4].tolist() == [1, NO_VERSION, 2**40, 4]
    assert {row: (m.field, m.rule) for row, m in mistakes.items()} == dict.fromkeys(
        (4, 5), ("op", Rule.INVALID_ENVELOPE)
    )
    assert "must be one of" in mistakes[5].message


def test_versions_as_texts_and_as_unsigned_numbers() -> None:
    changes, mistakes = changes_in_columns(batch(op=["u"] * 5, _commit_version=["7", None, "-1", "1e3", "9" * 40]))
    assert (changes.versions[:2].tolist(), sorted(mistakes)) == ([7, NO_VERSION], [2, 3, 4])
    changes, mistakes = changes_in_columns(batch(op=["u"] * 2, _commit_version=pa.array([3, 2**64 - 1], pa.uint64())))
    assert (changes.versions[0], sorted(mistakes)) == (3, [1])


def test_op_is_a_property_beside_change_type() -> None:
    rows = batch(op=["x"], _change_type=["delete"])
    assert changes_in_columns(rows)[0].ranks.tolist() == [DELETE]
    assert without_changes(rows.schema, CATALOG.nodes.values()).names == ["op"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": pa.string()}, "the table has neither column"),
        ({"op": pa.int32()}, "column 'op' must hold the kinds of changes as texts, not int32"),
        (
            {"_change_type": pa.string(), "_commit_version": pa.float64()},
            "'_commit_version' must hold the numbers of versions",
        ),
        (
            {"op": pa.string()},
            "column 'op' may be the property 'Person.op' or tell of changes; name the kind of change",
        ),
    ],
)
def test_columns_that_cannot_tell_are_refused_before_a_row_is_read(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        without_changes(pa.schema(columns), CATALOG.nodes.values())


Row = tuple[int, str, int]
"""Group, word, version."""
ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["insert", "u", "d"]), st.integers(-1, 2)), max_size=12)


def counted(rows: list[Row], last_wins: bool) -> tuple[set[int], set[int]]:
    """Rows that count, and bad ones, by the words of the specification, row by row."""
    counting: set[int] = set()
    bad: set[int] = set()
    for group in {group for group, _, _ in rows}:
        of = [at for at, row in enumerate(rows) if row[0] == group]
        if all(rows[at][2] != NO_VERSION for at in of):
            best = max((rows[at][2], WORDS[rows[at][1]]) for at in of)
            of = [at for at in of if (rows[at][2], WORDS[rows[at][1]]) == best]
        deletes = [at for at in of if rows[at][1] == "d"]
        if deletes and len(deletes) < len(of):
            bad |= {*of}
        elif deletes or last_wins:
            counting.add(of[-1])
        else:
            counting.add(of[0])
            bad |= {*of[1:]}
    return counting, bad


@given(ROWS, st.booleans(), st.randoms(use_true_random=False))
def test_netting_is_what_the_specification_says(rows: list[Row], last_wins: bool, dice: Any) -> None:
    """Whatever the order in which rows are held: their place in the input counts."""
    order = np.arange(len(rows), dtype=np.int64)
    held = list(range(len(rows)))
    dice.shuffle(held)
    changes = RecordChanges(
        np.array([WORDS[rows[at][1]] for at in held], dtype=np.int8),
        np.array([rows[at][2] for at in held], dtype=np.int64),
    )
    groups = np.array([rows[at][0] for at in held], dtype=np.int64)
    net = netted(groups, changes, order[held], last_wins)
    places = np.array(held, dtype=np.int64)
    counting, bad = counted(rows, last_wins)
    superseded, repeats = {*places[net.superseded].tolist()}, {*places[net.repeats].tolist()}
    assert (repeats, {*range(len(rows))} - superseded - repeats) == (bad, counting)
    assert len(superseded) == len(net.superseded)
    assert superseded.isdisjoint(repeats)
    holders = places[net.holders].tolist()
    assert all(at != row and rows[at][0] == rows[row][0] for row, at in zip(places[net.repeats].tolist(), holders))
    taken = [(changes.versions[at], changes.ranks[at]) for at in net.superseded.tolist()]
    if NO_VERSION not in changes.versions:
        assert taken == sorted(taken) or len({rows[int(places[at])][0] for at in net.superseded}) > 1
