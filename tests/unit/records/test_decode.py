from __future__ import annotations

import json
import math

import numpy as np
import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.jsonl.decode import DecodedTable, LineChunk, RecordDecoder
from spark_omnigraph.records.jsonl.lines import TextLines
from spark_omnigraph.records.mode import DecodeOptions, UnknownFields
from tests.unit.records.builders import ALL_BY_ROW, CATALOG, chunk, decode, edge, node, rows

paths = pytest.mark.parametrize("columns_from", [1, ALL_BY_ROW])
ULID = 26


def reed(tag: str = "x", **data: object) -> str:
    return node("Reed", tag=tag, **data)


def table(decoded_tables: tuple[DecodedTable, ...], key: str) -> DecodedTable:
    return next(t for t in decoded_tables if t.table_key == key)


VALUES = [
    ("a", "2147483647", 2147483647),
    ("a", "-2147483648", -2147483648),
    ("a", "2.0", 2),
    ("a", "1e3", 1000),
    ("a", "-0", 0),
    ("b", "9223372036854775807", 9223372036854775807),
    ("b", "1e18", 10**18),
    ("b", "9007199254740993.0", 9007199254740993),
    ("c", "4294967295", 4294967295),
    ("d", "18446744073709551615", 18446744073709551615),
    ("d", "9007199254740993", 9007199254740993),
    ("e", "3", 3.0),
    ("e", "0.1", 0.10000000149011612),
    ("e", "16777218", 16777218.0),
    ("e", "16777217.0", 16777216.0),
    ("e", "3.4028234e38", 3.4028234663852886e38),
    ("f", "4", 4.0),
    ("f", "0.1", 0.1),
    ("f", "9007199254740992", 9007199254740992.0),
    ("f", "1e300", 1e300),
    ("f", "1e-400", 0.0),
    ("g", "true", True),
    ("h", '"2024-1-5"', 19727),
    ("h", '"2024-01-05T23:30:00-02:00"', 19728),
    ("h", "-1", -1),
    ("h", "2932896", 2932896),
    ("h", '"0001-01-01"', -719162),
    ("i", "253402300799999", 253402300799999),
    ("i", '"0001-01-01T00:00:00Z"', -62135596800000),
    ("i", "1704449472001", 1704449472001),
    ("i", '"2024-01-05 10:11:12"', 1704449472000),
    ("i", '"2024-01-05T10:11:12.9999Z"', 1704449472999),
    ("i", '"2024-01-05"', 1704412800000),
    ("k", "[]", []),
    ("k", "[1, null, 2.0]", [1, None, 2]),
    ("s", '"\\u00e9 \\ud83d\\ude00 \\" \\\\ \\n \\u0000"', 'é 😀 " \\ \n \0'),
    ("s", '""', ""),
    ("v", "[1, 2.5]", [1.0, 2.5]),
    ("p", '"base64:AAEC/w=="', {"data": b"\x00\x01\x02\xff", "uri": None}),
    ("p", '"base64:"', {"data": b"", "uri": None}),
    ("p", '"s3://bucket/key"', {"data": None, "uri": "s3://bucket/key"}),
    ("n", '"two"', "two"),
    ("n", '"not checked here"', "not checked here"),
    ("id", '"x"', "x"),
    ("id", "null", "x"),
    *[(name, "null", None) for name in "abcdefghiksvpn" if name != "j"],
]


@paths
@pytest.mark.parametrize(("field", "text", "stored"), VALUES)
def test_values(field: str, text: str, stored: object, columns_from: int) -> None:
    lines = [f'{{"type":"Reed","data":{{"tag":"x","{field}":{text}}}}}'] * 3
    decoded = decode(lines, columns_from=columns_from)
    assert decoded.rejected == ()
    assert [row[field] for row in rows(decoded, "node:Reed")] == [stored] * 3


@paths
def test_values_of_all_kinds_may_differ_from_line_to_line(columns_from: int) -> None:
    """What the first lines look like is only a guess for the others."""
    a = [None, "1", "2.0", "3", "1e0", None]
    h = ["19727", '"2024-01-05"', None, '"2024-1-5"', "19727", "-1"]
    lines = [
        f'{{"type":"Reed","data":{{"tag":"{at}"{f", {chr(34)}a{chr(34)}: {x}" if x else ""}'
        f"{f', {chr(34)}h{chr(34)}: {y}' if y else ''}}}}}"
        for at, (x, y) in enumerate(zip(a, h))
    ]
    for order in (lines, lines[::-1]):
        decoded = decode(order, columns_from=columns_from)
        found = {row["tag"]: (row["a"], row["h"]) for row in rows(decoded, "node:Reed")}
        assert found == {
            "0": (None, 19727),
            "1": (1, 19727),
            "2": (2, None),
            "3": (3, 19727),
            "4": (1, 19727),
            "5": (None, -1),
        }


@paths
def test_the_sign_of_zero_survives(columns_from: int) -> None:
    lines = ['{"type":"Reed","data":{"tag":"x","e":-0,"f":-0.0}}']
    [row] = rows(decode(lines, columns_from=columns_from), "node:Reed")
    for name in ("e", "f"):
        assert isinstance(row[name], float)
        assert math.copysign(1, float(str(row[name]))) == -1


@paths
def test_lists(columns_from: int) -> None:
    data: dict[str, object] = {
        "bools": [True, None, False],
        "wholes": [0, 2**64 - 1],
        "reals": [0.1, 1, None],
        "doubles": [0.1, 1e300],
        "texts": ["", "é", None],
        "days": ["2024-01-05", "2024-1-5", None],
        "times": ["2024-01-05T10:11:12.001Z", None],
    }
    lines = [node("Lists", **data), node("Lists"), node("Lists", days=[], times=[19727], wholes=[])]
    decoded = decode(lines, columns_from=columns_from)
    full, empty, third = ({k: v for k, v in row.items() if k != "id"} for row in rows(decoded, "node:Lists"))
    assert full == {
        **data,
        "reals": [0.10000000149011612, 1.0, None],
        "days": [19727, 19727, None],
        "times": [1704449472001, None],
    }
    assert set(empty.values()) == {None}
    assert (third["days"], third["times"], third["wholes"]) == ([], [19727], [])


@paths
def test_tables_have_exactly_the_stored_schema(columns_from: int) -> None:
    lines = [
        reed(v=[1, 2], p="base64:AAE="),
        reed(v=None),
        node("Lists", days=["2024-01-05"]),
        edge("Tied", "x", "y", w=1),
        edge("HeldBy", "x", "f"),
    ]
    decoded = decode(lines, columns_from=columns_from)
    assert [t.table_key for t in decoded.tables] == ["edge:HeldBy", "edge:Tied", "node:Lists", "node:Reed"]
    for found in decoded.tables:
        entity = CATALOG.table(found.table_key)
        assert entity is not None
        assert found.table.schema.equals(physical_schema(entity), check_metadata=True)
        found.table.validate()


@paths
def test_null_vectors_have_null_children(columns_from: int) -> None:
    decoded = decode([reed(v=[1, 2]), reed(v=None), reed(), reed(v=[3, 4])], columns_from=columns_from)
    column = table(decoded.tables, "node:Reed").table["v"].combine_chunks()
    assert column.to_pylist() == [[1.0, 2.0], None, None, [3.0, 4.0]]
    assert column.values.is_null().to_pylist() == [False, False, True, True, True, True, False, False]


@paths
def test_ids(columns_from: int) -> None:
    lines = [
        node("Nth", n=2**64 - 1),
        node("Flag", on=True),
        node("Day", day="2024-01-05"),
        node("Moment", at="2024-01-05T10:11:12.001Z"),
        node("Real", x=0.1),
        node("Real", x=-0.0),
        node("Lot", num=1, area='n"'),
        node("Pair", a="2024-01-05", b=2, c=True),
        node("Free", id="f1"),
    ]
    decoded = decode(lines, columns_from=columns_from)
    assert decoded.rejected == ()
    assert {t.table_key: t.table["id"].to_pylist() for t in decoded.tables} == {
        "node:Nth": ["18446744073709551615"],
        "node:Flag": ["true"],
        "node:Day": ["19727"],
        "node:Moment": ["1704449472001"],
        "node:Real": ["0.1", "0"],
        "node:Lot": ['["n\\"","1"]'],
        "node:Pair": ['["19727","2","true"]'],
        "node:Free": ["f1"],
    }
    assert all(t.named.any() for t in decoded.tables)


@paths
def test_rows_without_an_id_get_ascending_new_ones(columns_from: int) -> None:
    lines = [node("Free", name=str(n)) for n in range(40)] + [edge("HeldBy", "x", "f")] * 40
    decoded = decode(lines, columns_from=columns_from)
    for found in decoded.tables:
        ids = found.table["id"].to_pylist()
        assert len(set(ids)) == 40
        assert ids == sorted(ids)
        assert {len(i) for i in ids} == {ULID}
        assert not found.named.any()


@paths
def test_given_ids_among_new_ones(columns_from: int) -> None:
    lines = [node("Free"), node("Free", id="f1"), node("Free", id=None), edge("HeldBy", "x", "f", id="e1")]
    decoded = decode(lines, columns_from=columns_from)
    first, second, third = table(decoded.tables, "node:Free").table["id"].to_pylist()
    assert (len(first), second, len(third)) == (ULID, "f1", ULID)
    assert all(t.named.any() for t in decoded.tables)
    assert table(decoded.tables, "edge:HeldBy").table["id"].to_pylist() == ["e1"]


@paths
def test_endpoints(columns_from: int) -> None:
    since = "2024-01-05"
    lines = [
        edge("Placed", ["n", 1], 5, since=since),
        edge("Placed", ["n", "1"], "5", since=since),
        edge("Placed", '["n","1"]', 2**64 - 1, since=since),
        edge("Dated", "2024-01-05", "2024-01-05T10:11:12.001Z"),
        edge("Dated", 19727, 1704449472001),
        edge("Dated", "19727", "1704449472001"),
        edge("Odd", 0.1, True),
        edge("Odd", "0.1", "true"),
        edge("Odd", 2, False),
        edge("Paired", ["2024-01-05", 2, True], ["n", 1]),
    ]
    for order in (lines, lines[::-1]):
        decoded = decode(order, columns_from=columns_from)
        assert decoded.rejected == ()
        found = {
            t.table_key: sorted(zip(t.table["src"].to_pylist(), t.table["dst"].to_pylist())) for t in decoded.tables
        }
        lot = '["n","1"]'
        assert found == {
            "edge:Placed": [(lot, "18446744073709551615"), (lot, "5"), (lot, "5")],
            "edge:Dated": [("19727", "1704449472001")] * 3,
            "edge:Odd": [("0.1", "true"), ("0.1", "true"), ("2", "false")],
            "edge:Paired": [('["19727","2","true"]', lot)],
        }


@paths
def test_edge_names_without_case_and_data_left_out(columns_from: int) -> None:
    lines = [
        '{"edge":"tied","from":"x","to":"y"}',
        '{"edge":"TIED","from":"y","to":"x","data":null}',
        '{"edge":"Tied","from":"y","to":"x","data":{}}',
        '{"type":"Free"}',
        '{"type":"Free","data":null}',
    ]
    decoded = decode(lines, columns_from=columns_from)
    assert decoded.rejected == ()
    assert decoded.read == {"edge:Tied": 3, "node:Free": 2}


@paths
def test_unknown_members_beside_data_are_ignored_when_asked(columns_from: int) -> None:
    lines = [
        '{"type":"Reed","ts":1,"data":{"tag":"a"}}',
        '{"ts":{"x":[1]},"data":{"tag":"b"},"type":"Reed"}',
        '{"edge":"Tied","from":"a","to":"b","type":null}',
        '{"type":"Reed","from":"x","to":"y","data":{"tag":"c"}}',
        '{ "edge" : "Tied" , "note": "}" , "to" : "b" , "from" : "a" , "data" : { "w" : 1 } }',
    ]
    decoded = decode(lines, columns_from=columns_from, unknown_fields=UnknownFields.IGNORE)
    assert decoded.rejected == ()
    assert [row["tag"] for row in rows(decoded, "node:Reed")] == ["a", "b", "c"]
    assert [(row["src"], row["dst"], row["w"]) for row in rows(decoded, "edge:Tied")] == [
        ("a", "b", None),
        ("a", "b", 1),
    ]


@paths
@pytest.mark.parametrize("unknown_fields", UnknownFields)
def test_repeated_members_are_refused_outside_data(columns_from: int, unknown_fields: UnknownFields) -> None:
    lines = [
        '{"type":"Free","type":"Reed","data":{"tag":"a"}}',
        '{"type":"Reed","data":5,"data":{"tag":"b"}}',
        '{"edge":"Tied","from":"x","from":"y","to":"z"}',
        '{"data":{"tag":"a"},"d\\u0061ta":{"tag":"b"},"type":"Reed"}',
        '{"data":{"tag":"a"},"data":{"tag":"a"},"type":"Reed"}',
    ]
    decoded = decode(lines, columns_from=columns_from, unknown_fields=unknown_fields)
    assert decoded.tables == ()
    assert [(r.rule, r.field, r.message) for r in decoded.rejected] == [
        (Rule.INVALID_JSON, field, f"invalid JSON: member '{field}' is repeated")
        for field in ("type", "data", "from", "data", "data")
    ]


@paths
def test_blank_lines_comments_and_carriage_returns(columns_from: int) -> None:
    lines: list[str | bytes] = [
        "// a comment",
        "",
        "   \t",
        reed("a") + "\r",
        "\r",
        '  // {"type":"Zed"}',
        "  " + reed("b") + "  ",
        b"// \xff",
        reed("c", s="// no comment"),
        "/ no comment",
    ]
    decoded = decode(lines, columns_from=columns_from)
    found = table(decoded.tables, "node:Reed")
    assert found.table["tag"].to_pylist() == ["a", "b", "c"]
    assert found.lines.tolist() == [3, 6, 8]
    assert [r.line for r in decoded.rejected] == [9]
    assert decoded.read == {"node:Reed": 3, "": 1}


@paths
def test_a_byte_order_mark_may_begin_any_line_as_of_joined_files(columns_from: int) -> None:
    mark = b"\xef\xbb\xbf"
    lines = [mark + reed("a").encode(), mark + reed("b").encode(), reed("c").encode()]
    decoder = RecordDecoder(CATALOG, DecodeOptions(), columns_from)
    at_start = decoder.decode(chunk(lines))
    assert [row["tag"] for row in rows(at_start, "node:Reed")] == ["a", "b", "c"]
    assert table(at_start.tables, "node:Reed").offsets.tolist() == [i * (len(lines[0]) + 1) for i in range(3)]
    later = decoder.decode(chunk(lines, first_offset=100))
    assert [row["tag"] for row in rows(later, "node:Reed")] == ["a", "b", "c"]
    nothing = decoder.decode(chunk([mark + b"// x", mark, b"", mark + b"// y", mark]))
    assert (nothing.tables, nothing.rejected) == ((), ())
    inside = decoder.decode(chunk([lines[2] + mark + lines[2]]))
    assert [r.message for r in inside.rejected] == [
        f"invalid JSON: a byte order mark at character {len(lines[2]) + 1}: were files joined without a line break?"
    ]


@paths
def test_lines_and_offsets_of_rows_and_rejects(columns_from: int) -> None:
    lines = [reed("é"), "", reed(a="x"), node("Free", name="n"), reed("b"), "{", node("Free")]
    given = chunk(lines, first_line=1000, first_offset=5000)
    decoded = RecordDecoder(CATALOG, DecodeOptions(), columns_from).decode(given)
    reeds, frees = table(decoded.tables, "node:Reed"), table(decoded.tables, "node:Free")
    assert reeds.lines.tolist() == [1000, 1004]
    assert frees.lines.tolist() == [1003, 1006]
    assert [r.line for r in decoded.rejected] == [1002, 1005]
    content = "\n".join(lines).encode()
    for found, at in ((reeds, [0, 4]), (frees, [3, 6])):
        for offset, line in zip(found.offsets.tolist(), at):
            assert content[offset - 5000 :].split(b"\n")[0].decode() == lines[line]
    assert content[decoded.rejected[0].offset - 5000 :].decode().startswith(lines[2])
    assert decoded.read == {"node:Reed": 3, "node:Free": 2, "": 1}


def test_rows_keep_input_order_where_the_two_paths_meet() -> None:
    lines = [reed(str(n), a=n if n % 3 else 2.0**31 if n % 2 else 4.0) for n in range(300)]
    decoded = decode(lines)
    good = [n for n in range(300) if n % 3 or n % 2 == 0]
    assert [row["tag"] for row in rows(decoded, "node:Reed")] == [str(n) for n in good]
    assert table(decoded.tables, "node:Reed").lines.tolist() == good
    assert [r.line for r in decoded.rejected] == [n for n in range(300) if n % 3 == 0 and n % 2]


def test_nothing_to_decode() -> None:
    inputs: list[list[str | bytes]] = [[], [""], ["// x"]]
    for lines in inputs:
        decoded = decode(lines)
        assert (decoded.tables, decoded.rejected, decoded.read) == ((), (), {})


def test_lists_of_lines_and_blocks_of_text_give_the_same() -> None:
    lines = [reed("a"), "", reed("b") + "\r", "x", edge("Tied", "a", "b")]
    text = "\n".join(lines).encode()
    block = TextLines(text)
    decoder = RecordDecoder(CATALOG, DecodeOptions(), 1)
    as_list, as_block = decoder.decode(chunk(lines)), decoder.decode(LineChunk(block, block.starts, 0))
    assert as_list.rejected == as_block.rejected
    assert as_list.read == as_block.read
    for one, other in zip(as_list.tables, as_block.tables, strict=True):
        assert np.array_equal(one.lines, other.lines)
        assert np.array_equal(one.offsets, other.offsets)


def test_a_decoder_serves_many_chunks_and_types_of_one_name() -> None:
    decoder = RecordDecoder(CATALOG, DecodeOptions(), 1)
    for start in (0, 10, 20):
        lines = [json.dumps({"type": "Reed", "data": {"tag": str(start + n)}}) for n in range(10)]
        found = decoder.decode(chunk(lines, first_line=start))
        assert table(found.tables, "node:Reed").lines.tolist() == list(range(start, start + 10))
