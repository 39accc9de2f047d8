"""Bytes that are no UTF-8 in columns of text: found in every layout, named by column and row, and never stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.records import legible as legible_module
from spark_omnigraph.records.frames.decode import FrameDecoder, plan_frame
from spark_omnigraph.records.jsonl.decode import DecodedChunk
from spark_omnigraph.records.legible import legible, legible_batch
from spark_omnigraph.records.mode import DecodeOptions

CATALOG = compile_schema("""
node T { k: String @key  s: String?  l: [String]?  n: I32?  e: enum(x, y)? }
node Free { s: String? }
edge E: T -> T { s: String? }
""")
BAD = [b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf4\x90\x80\x80", b"ab\xe2\x82", b"\x80"]
Layout = Callable[[list[bytes | None]], pa.Array]


def plain(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


def dictionary(values: list[bytes | None]) -> pa.Array:
    encoded = pa.array(values, pa.binary()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.view(pa.string()))


LAYOUTS: dict[str, Layout] = {
    "string": plain,
    "large_string": lambda v: pa.array(v, pa.large_binary()).view(pa.large_string()),
    "string_view": lambda v: pa.array(v, pa.binary_view()).view(pa.string_view()),
    "dictionary": dictionary,
    "part of a longer array": lambda v: plain([b"\xff", *v, b"\xff"]).slice(1, len(v)),
}


def lists(values: list[list[bytes | None] | None]) -> pa.Array:
    given = pa.array(values, pa.list_(pa.binary()))
    mask = given.is_null() if given.null_count else None
    return pa.ListArray.from_arrays(given.offsets, given.values.view(pa.string()), mask=mask)


LAYOUTS["list"] = lambda v: lists([None if b is None else [b"ok", b] for b in v])


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_every_layout(layout: Layout, bad: bytes) -> None:
    column = layout([b"fine", bad, None, "é".encode(), b"x" + bad])
    clean, rows = legible(column)
    assert rows is not None
    assert rows.tolist() == [False, True, False, False, True]
    clean.validate(full=True)
    assert clean.is_null().to_pylist() == [False, False, True, False, False]
    value = clean[1].as_py()
    assert (value[1] if isinstance(value, list) else value) == bad.decode(errors="backslashreplace")


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_good_text_is_handed_on_as_it_is(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legible_module, "_bytes", lambda column: pytest.fail("texts were read one by one"))
    batch = pa.record_batch({"a": layout(["é".encode(), None, b"", "\U0001f600".encode()]), "n": [1, 2, 3, 4]})
    assert legible_batch(batch).batch is batch
    assert not legible_batch(batch).bad_rows.any()


def decode(key: str | None, **columns: pa.Array) -> tuple[DecodedChunk, Callable[[int], str]]:
    batch = pa.record_batch({name.rstrip("_"): column for name, column in columns.items()})
    return FrameDecoder(
        CATALOG, DecodeOptions(), plan_frame(CATALOG, TableKey(key) if key else None, batch.schema)
    ).decode(batch, 100)


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("name", ["k", "s", "l", "e", "id"])
def test_a_row_of_any_column_is_bad_and_the_others_go_in(name: str, bad: bytes) -> None:
    values: dict[str, pa.Array] = {"k": pa.array(["a", "b", "c"]), "n": pa.array([1, 2, 2**40], pa.int64())}
    one = [None, bad, None]
    if name == "k":
        values["k"] = plain([b"a", bad, b"c"])
    else:
        values[name] = lists([None, [b"x", bad], None]) if name == "l" else plain(one)
    chunk, text = decode("node:T", **values)
    assert chunk.tables[0].table.column("k").to_pylist() == ["a"]
    assert chunk.tables[0].lines.tolist() == [100]
    assert [(r.line, r.field, r.rule, r.record_type, r.is_edge) for r in chunk.rejected] == [
        (101, name, Rule.INVALID_TEXT, "T", False),
        (102, "n", Rule.OUT_OF_RANGE, "T", False),
    ]
    shown = bad.decode(errors="backslashreplace")
    assert chunk.rejected[0].message == f"column '{name}' holds bytes that are no UTF-8 text: '{shown}'"
    assert json.loads(chunk.rejected[0].raw)["data"]["n"] == 2
    assert json.loads(text(100)) == {"type": "T", "data": {"k": "a", "n": 1}}
    assert chunk.read == {"node:T": 3}


@pytest.mark.parametrize(("name", "field"), [("src", "from"), ("to", "to"), ("id", "id"), ("s", "s")])
def test_edges(name: str, field: str) -> None:
    good = {"src": pa.array(["a", "b"]), "to": pa.array(["a", "b"]), "id": pa.array(["e", "f"])}
    chunk, _ = decode("edge:E", **{**good, name: plain([b"a", b"\xff"])})
    assert chunk.tables[0].table.column("src").to_pylist() == ["a"]
    assert [(r.line, r.field, r.rule, r.is_edge) for r in chunk.rejected] == [(101, field, Rule.INVALID_TEXT, True)]


def test_a_row_that_is_bad_in_two_columns_names_both() -> None:
    chunk, _ = decode("node:T", k=plain([b"\xff"]), s=plain([b"\xfe"]))
    assert chunk.rejected[0].message == "columns 'k', 's' hold bytes that are no UTF-8 text: '\\xff'"
    assert not any(t.table.num_rows for t in chunk.tables)


@pytest.mark.parametrize("name", ["type", "edge", "from", "to", "data"])
def test_records(name: str) -> None:
    good = {
        "type": pa.array(["T", None, None, "T"]),
        "edge": pa.array([None, "E", "E", None]),
        "from": pa.array([None, "a", "a", None]),
        "to": pa.array([None, "a", "a", None]),
        "data": pa.array(['{"k": "a"}', None, '{"s": "x"}', '{"k": 1}']),
    }
    raw = [None if v is None else v.encode() for v in good[name].to_pylist()]
    raw[2] = b"{\xed\xa0\x80"
    chunk, _ = decode(None, **{**good, name: plain(raw)})
    assert {t.table_key: t.lines.tolist() for t in chunk.tables} == {"node:T": [100], "edge:E": [101]}
    assert [(r.line, r.rule) for r in chunk.rejected] == [(102, Rule.INVALID_TEXT), (103, Rule.WRONG_TYPE)]
    assert chunk.rejected[0].field == name
    assert json.loads(chunk.rejected[0].raw)[name] == "{\\xed\\xa0\\x80"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_an_array_of_no_texts_has_its_offset(kind: pa.DataType, tmp_path: Path) -> None:
    """Arrow for Java leaves it out up to Spark 4.1, and Lance reads what stands in memory there."""
    none = pa.Array.from_buffers(kind, 0, [None, pa.py_buffer(b"\xf7" * 16).slice(0, 0), pa.py_buffer(b"")])
    listed = pa.list_(pa.field("item", kind, nullable=False))
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), none, type=listed, mask=pa.array([False, True]))
    made = legible_batch(pa.record_batch({"n": [1, 2], "l": lists})).batch
    assert made.to_pydict() == {"n": [1, 2], "l": [[], None]}
    assert made.schema == pa.schema({"n": pa.int64(), "l": listed})
    assert lance.write_dataset(pa.Table.from_batches([made]), tmp_path / "t").count_rows() == 2
