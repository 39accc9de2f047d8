"""Decoding by columns gives what decoding by rows gives: the same rows, the same rejects, for any lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_omnigraph.catalog.types import EntityType, NodeType, Property, Scalar
from spark_omnigraph.records.jsonl import parse
from spark_omnigraph.records.jsonl.decode import DecodedChunk, RecordDecoder
from spark_omnigraph.records.mode import DecodeOptions, UnknownFields
from tests.unit.records.builders import ALL_BY_ROW, CATALOG, chunk, with_plain_dates

TYPES = list(CATALOG.tables())


def _tokens(text: str) -> list[str]:
    return text.split()


NASTY = _tokens("""
null true false 0 -0 1 2.0 2.5 1e3 -1 1e400 -1e400 1e-400 NaN Infinity -Infinity Inf 01 1. .5 +1 0e0 -0.0 0.1 3.5e38
2147483647 2147483648 -2147483649 4294967295 4294967296 9223372036854775807 9223372036854775808 -9223372036854775809
18446744073709551615 18446744073709551616 9007199254740993 9007199254740992 16777217 16777216 16777217.0 1e18 1e39
9007199254740993.0 123456789012345678901234567890 1.7976931348623157e308 5e-324 19000 -719528 4294967296.0
"x" "" "7" "true" "one" "2024-01-05" "2024-1-5" "20240105" "+10999-12-31" "2024-02-30" "2024-01-05T10:11:12Z" "19000"
"2024-01-05T10:11Z" "2024-01-05T23:30:00-02:00" "1969-12-31T23:59:59.9999Z" "2024-01-05T24:00:00" "0000-01-01" "-5"
"\\ud83d\\ude00" "\\ud800" "\\u0000" "a\\"b\\\\" "é" "蜂" "base64:AAEC" "base64:AAE" "base64:AAF=" "base64:" "s3://x/y"
[] [1,2] [1,2.5] [1,null] [null] [1,"2"] ["a","b"] ["n",1] ["n","1"] [1] [[1]] [1,2,3] [1,2147483648] [true,false]
["2024-01-05","x"] ["2024-01-05",19000] [1.5,1e39] [NaN] ["2024-01-05",2,true] ["19727","2","true"] [19000]
{} {"a":1} {"a":NaN} "}" "]}"
""")
GOOD: dict[Scalar, list[str]] = {
    Scalar.STRING: ['"x"', '"y"', '"a\\"b"', '"é"'],
    Scalar.BOOL: ["true", "false"],
    Scalar.I32: ["1", "-5", "2147483647"],
    Scalar.I64: ["1", "9223372036854775807"],
    Scalar.U32: ["0", "4294967295"],
    Scalar.U64: ["0", "18446744073709551615"],
    Scalar.F32: ["1", "0.1", "2.5e3", "-0.0", "16777218"],
    Scalar.F64: ["1", "0.1", "1e300", "3"],
    Scalar.DATE: ['"2024-01-05"', '"2024-1-5"', "19000", '"2021-12-31"'],
    Scalar.DATETIME: ['"2024-01-05T10:11:12Z"', '"2024-01-05 10:11:12.123"', "1704449472001", '"2024-01-05"'],
    Scalar.BLOB: ['"base64:AAEC"', '"s3://x/y"'],
    Scalar.VECTOR: ["1", "2.5", "-3e2", "0"],
}
ENDS = {
    "Lot": ['["n",1]', '["n","1"]', '"[\\"n\\",\\"1\\"]"'],
    "Nth": ["5", '"5"', "18446744073709551615"],
    "Day": ["19000", '"2024-01-05"', '"19000"', "-0"],
    "Moment": ["5", '"2024-01-05T10:11:12Z"', '"5"'],
    "Real": ["0.1", "2", '"2"', "16777217"],
    "Flag": ["true", '"true"'],
    "Pair": ['["2024-01-05",2,true]', '["19727","2","true"]'],
    "Reed": ['"x"', '"y"'],
    "Free": ['"f"'],
}
INSERTS = [
    b"",
    *(bytes([c]) for c in b'"}{,:[]\\1e \t\r\x00\xff'),
    b"null",
    b"}{",
    b"}null}",
    b'{"type":"Reed","data":{}}',
]


@st.composite
def values(draw: st.DrawFn, prop: Property) -> str:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(NASTY))
    items = GOOD[prop.type.scalar]
    if prop.type.enum_values is not None:
        items = [json.dumps(value) for value in prop.type.enum_values]
    if prop.type.is_vector:
        size = prop.type.dimension or 0
        return f"[{','.join(draw(st.lists(st.sampled_from(items), min_size=size, max_size=size)))}]"
    if prop.type.is_list:
        return f"[{','.join(draw(st.lists(st.sampled_from([*items, 'null']), max_size=3)))}]"
    return draw(st.sampled_from(items))


ODDITIES = ["", "", "", "", "", "id", "unknown", "repeat", "data", "envelope", "order", "bytes", "cut", "end"]


@st.composite
def records(draw: st.DrawFn, entity: EntityType) -> bytes:
    """A record that is mostly right, with now and then one thing odd about it."""
    odd = draw(st.sampled_from(ODDITIES))
    comma, colon = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    data = draw(st.sampled_from(NASTY)) if odd == "data" else _object(draw(members(entity, odd)), comma, colon)
    if isinstance(entity, NodeType):
        envelope = [("type", f'"{entity.name}"')]
    else:
        name = draw(st.sampled_from([entity.name, entity.name.lower()]))
        envelope = [("edge", f'"{name}"')]
        for member, node in (("from", entity.from_type), ("to", entity.to_type)):
            envelope.append((member, draw(st.sampled_from(ENDS[node]))))
    envelope.append(("data", data))
    if odd == "envelope":
        name = draw(st.sampled_from(["x", "type", "edge", "from", "to", "data"]))
        envelope.append((name, draw(st.sampled_from([*NASTY, '"Reed"', '"Tied"']))))
    if odd == "order":
        envelope = draw(st.permutations(envelope))
    return draw(damaged(_object(envelope, comma, colon).encode(), odd)).replace(b"\n", b"")


@st.composite
def members(draw: st.DrawFn, entity: EntityType, odd: str) -> list[tuple[str, str]]:
    """Members of `data`."""
    found = [
        (prop.name, draw(values(prop)))
        for prop in entity.properties
        if not prop.type.nullable or draw(st.integers(0, 2))
    ]
    if odd == "id":
        found.append(("id", draw(st.sampled_from(['"x"', "null", "5", '"19727"', '"1"']))))
    if odd == "unknown":
        found.append((draw(st.sampled_from(["zzz", "\\u0061", "tag"])), draw(st.sampled_from(NASTY))))
    if odd == "repeat" and found:
        found.append(draw(st.sampled_from(found)))
    return found


@st.composite
def damaged(draw: st.DrawFn, line: bytes, odd: str) -> bytes:
    """The line with other bytes somewhere, or cut, or with something around it."""
    at = draw(st.integers(0, len(line)))
    if odd == "bytes":
        return line[:at] + draw(st.sampled_from(INSERTS)) + line[at + draw(st.integers(0, 4)) :]
    if odd == "cut":
        return line[:at]
    if odd == "end":
        return draw(st.sampled_from([b"", b" ", b"//", b"\xef\xbb\xbf"])) + line + draw(st.sampled_from(INSERTS))
    return line


def _object(members: list[tuple[str, str]], comma: str, colon: str) -> str:
    return "{" + comma.join(f'"{name}"{colon}{value}' for name, value in members) + "}"


@st.composite
def inputs(draw: st.DrawFn) -> list[bytes]:
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
    line = st.sampled_from(kinds).flatmap(records)
    return draw(st.lists(line, min_size=1, max_size=12))


def _answers(decoded: DecodedChunk) -> object:
    tables = []
    for found in decoded.tables:
        rows = with_plain_dates(found.table).to_pylist()
        for row in rows:
            # New ids differ from run to run.
            if len(row["id"]) == 26:
                row["id"] = "new"
        # As text, so that -0.0 differs from 0.0.
        tables.append((found.table_key, repr(rows), found.lines.tolist(), found.offsets.tolist(), found.named.tolist()))
    return tables, decoded.rejected, decoded.read


def _compare(unknown_fields: UnknownFields, examples: int) -> None:
    options = DecodeOptions(unknown_fields)
    columns, by_row = RecordDecoder(CATALOG, options, 1), RecordDecoder(CATALOG, options, ALL_BY_ROW)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(inputs())
    def same(lines: list[bytes]) -> None:
        assert _answers(columns.decode(chunk(lines))) == _answers(by_row.decode(chunk(lines)))

    same()


@pytest.mark.parametrize("unknown_fields", UnknownFields)
def test_any_lines(unknown_fields: UnknownFields) -> None:
    _compare(unknown_fields, 120)


@pytest.mark.parametrize("unknown_fields", UnknownFields)
def test_any_lines_in_tiny_blocks(unknown_fields: UnknownFields, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "_BLOCK", 3)
    monkeypatch.setattr(parse, "_LEAF", 1)
    _compare(unknown_fields, 60)


@pytest.mark.long
@pytest.mark.parametrize("unknown_fields", UnknownFields)
def test_very_many_lines(unknown_fields: UnknownFields) -> None:
    _compare(unknown_fields, 3000)
