"""Every way in which a line is refused: rule, field and message, on both paths."""

from __future__ import annotations

import json

import pytest

from spark_omnigraph.bad_rows import RAW_LIMIT, Rule
from spark_omnigraph.records.mode import UnknownFields
from tests.unit.records.builders import ALL_BY_ROW, decode, edge, node, only_reject, rows

paths = pytest.mark.parametrize("columns_from", [1, ALL_BY_ROW])
DATES = "taken are 2024-01-31, 20240131 and whole days since 1970"
INSTANTS = (
    "taken are 2024-01-31, 2024-01-31T10:30:00 with .123, Z or +01:00 (no zone: UTC), whole milliseconds since 1970"
)
GOOD_BOLT = {
    "tag": "x",
    "len": 1.5,
    "made": "2024-01-05",
    "ok": True,
    "hue": ["a"],
    "vec": [1, 2, 3],
    "pic": "s3://b/k",
    "n": "x",
}


def reed(**data: object) -> str:
    return node("Reed", tag="x", **data)


VALUES = [
    ("a", "7", Rule.WRONG_TYPE, "property 'a' expects I32, got \"7\""),
    ("a", 2.5, Rule.WRONG_TYPE, "property 'a' expects I32, got 2.5"),
    ("a", True, Rule.WRONG_TYPE, "property 'a' expects I32, got true"),
    ("a", [1], Rule.WRONG_TYPE, "property 'a' expects I32, got [1]"),
    ("a", 2147483648, Rule.OUT_OF_RANGE, "property 'a': value 2147483648 exceeds Int32 range"),
    ("a", -2147483649, Rule.OUT_OF_RANGE, "property 'a': value -2147483649 exceeds Int32 range"),
    ("a", 1e10, Rule.OUT_OF_RANGE, "property 'a': value 10000000000.0 exceeds Int32 range"),
    ("b", 9223372036854775808, Rule.OUT_OF_RANGE, "property 'b': value 9223372036854775808 exceeds Int64 range"),
    ("c", -1, Rule.OUT_OF_RANGE, "property 'c': value -1 exceeds UInt32 range"),
    ("c", 4294967296, Rule.OUT_OF_RANGE, "property 'c': value 4294967296 exceeds UInt32 range"),
    ("d", -1, Rule.OUT_OF_RANGE, "property 'd': value -1 exceeds UInt64 range"),
    ("d", 2**64, Rule.OUT_OF_RANGE, "property 'd': value 18446744073709551616 exceeds UInt64 range"),
    ("e", "1.5", Rule.WRONG_TYPE, "property 'e' expects F32, got \"1.5\""),
    ("e", False, Rule.WRONG_TYPE, "property 'e' expects F32, got false"),
    ("e", 1e39, Rule.OUT_OF_RANGE, "property 'e': value 1e+39 exceeds Float32 range"),
    ("e", 16777217, Rule.OUT_OF_RANGE, "property 'e': value 16777217 has no exact Float32 value"),
    ("f", 9007199254740993, Rule.OUT_OF_RANGE, "property 'f': value 9007199254740993 has no exact Float64 value"),
    ("g", "true", Rule.WRONG_TYPE, "property 'g' expects Bool, got \"true\""),
    ("g", 1, Rule.WRONG_TYPE, "property 'g' expects Bool, got 1"),
    ("s", 12, Rule.WRONG_TYPE, "property 's' expects String, got 12"),
    ("s", {"a": 1}, Rule.WRONG_TYPE, "property 's' expects String, got {\"a\": 1}"),
    ("n", 1, Rule.WRONG_TYPE, "property 'n' expects String, got 1"),
    ("h", "05/01/2024", Rule.INVALID_DATE, f"invalid Date literal '05/01/2024'; {DATES}"),
    ("h", "2020-02-30", Rule.INVALID_DATE, f"invalid Date literal '2020-02-30'; {DATES}"),
    ("h", 2147483648, Rule.OUT_OF_RANGE, "Date value out of range: 2147483648"),
    ("h", 2932897, Rule.OUT_OF_RANGE, "Date value out of range: 2932897"),
    ("h", -719163, Rule.OUT_OF_RANGE, "Date value out of range: -719163"),
    ("h", "+10000-01-01", Rule.INVALID_DATE, "invalid Date literal '+10000-01-01': outside the years 1 to 9999"),
    ("h", "0000-12-31", Rule.INVALID_DATE, "invalid Date literal '0000-12-31': outside the years 1 to 9999"),
    ("i", "0000-12-31", Rule.INVALID_DATE, "invalid DateTime literal '0000-12-31': outside the years 1 to 9999"),
    (
        "i",
        "9999-12-31T23:59:59-00:01",
        Rule.INVALID_DATE,
        "invalid DateTime literal '9999-12-31T23:59:59-00:01': outside the years 1 to 9999",
    ),
    ("i", 253402300800000, Rule.OUT_OF_RANGE, "DateTime value out of range: 253402300800000"),
    ("i", -62135596800001, Rule.OUT_OF_RANGE, "DateTime value out of range: -62135596800001"),
    ("h", 1.0, Rule.WRONG_TYPE, "property 'h' expects Date (text or whole days), got 1.0"),
    ("h", True, Rule.WRONG_TYPE, "property 'h' expects Date (text or whole days), got true"),
    ("i", "2024-01-05T10:11Z", Rule.INVALID_DATE, f"invalid DateTime literal '2024-01-05T10:11Z'; {INSTANTS}"),
    ("i", 2**63, Rule.OUT_OF_RANGE, "DateTime value out of range: 9223372036854775808"),
    ("i", [], Rule.WRONG_TYPE, "property 'i' expects DateTime (text or whole milliseconds), got []"),
    ("k", 5, Rule.WRONG_TYPE, "list property 'k' expects a JSON array, got 5"),
    ("k", "[1]", Rule.WRONG_TYPE, "list property 'k' expects a JSON array, got \"[1]\""),
    ("k", [1, "2"], Rule.WRONG_TYPE, "list property 'k' expects I32 items, got \"2\""),
    ("k", [1, 3.5], Rule.WRONG_TYPE, "list property 'k' expects I32 items, got 3.5"),
    ("k", [1, 2147483648], Rule.OUT_OF_RANGE, "list value 2147483648 exceeds Int32 range"),
    ("k", [[1]], Rule.WRONG_TYPE, "list property 'k' expects I32 items, got [1]"),
    ("v", [1], Rule.VECTOR_LENGTH, "vector property 'v' expects 2 dimensions, got 1"),
    ("v", [], Rule.VECTOR_LENGTH, "vector property 'v' expects 2 dimensions, got 0"),
    ("v", [1, 2, 3], Rule.VECTOR_LENGTH, "vector property 'v' expects 2 dimensions, got 3"),
    ("v", [1, "a"], Rule.WRONG_TYPE, "vector property 'v' expects numbers, got \"a\""),
    ("v", [1, None], Rule.WRONG_TYPE, "vector property 'v' expects numbers, got null"),
    ("v", [1, True], Rule.WRONG_TYPE, "vector property 'v' expects numbers, got true"),
    ("v", [1, 1e39], Rule.OUT_OF_RANGE, "vector property 'v': value 1e+39 has no finite Float32 value"),
    ("v", 5, Rule.WRONG_TYPE, "vector property 'v' expects a JSON array, got 5"),
    ("p", 5, Rule.INVALID_BLOB, "blob property 'p' must be a URI string or base64: prefixed data"),
    (
        "p",
        "cat.png",
        Rule.INVALID_BLOB,
        "blob property 'p' must be a URI string or base64: prefixed data; storage cannot refer to \"cat.png\"",
    ),
    ("zzz", 1, Rule.UNKNOWN_FIELD, "unknown field 'zzz' of Reed"),
    ("tagg", 1, Rule.UNKNOWN_FIELD, "unknown field 'tagg' of Reed; did you mean 'tag'?"),
    ("id", "y", Rule.ID_MISMATCH, "node Reed has explicit id 'y' that does not match @key property 'tag' value 'x'"),
    ("id", 5, Rule.WRONG_TYPE, "property 'id' expects String, got 5"),
]


@paths
@pytest.mark.parametrize(("field", "value", "rule", "message"), VALUES)
def test_values(field: str, value: object, rule: Rule, message: str, columns_from: int) -> None:
    line = reed(**{field: value})
    reject = only_reject(decode([reed(), line, reed()], columns_from=columns_from))
    assert (reject.line, reject.record_type, reject.is_edge) == (1, "Reed", False)
    assert (reject.field, reject.rule, reject.message) == (field, rule, message)
    assert reject.raw == line


@paths
@pytest.mark.parametrize(
    "text", ["base64:AAE", "base64:AA E=", "base64:AAF=", "base64:A", "base64:AAE=AAE=", "base64:é"]
)
def test_base64_must_be_standard_padded_and_canonical(text: str, columns_from: int) -> None:
    reject = only_reject(decode([reed(p=text)], columns_from=columns_from))
    assert reject.rule is Rule.INVALID_BLOB
    assert reject.message.startswith("invalid base64 blob data: ")


@paths
@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("len", "non-nullable property 'len' has null or invalid values"),
        ("made", "non-nullable property 'made' has null or invalid values"),
        ("ok", "non-nullable property 'ok' has null or invalid values"),
        ("hue", "non-nullable property 'hue' has null or invalid values"),
        ("n", "non-nullable property 'n' has null or invalid values"),
        ("vec", "non-nullable vector property 'vec' has null values"),
        ("pic", "non-nullable blob property 'pic' has null values"),
    ],
)
def test_required_properties(field: str, message: str, columns_from: int) -> None:
    lines = [
        node("Bolt", **GOOD_BOLT),
        node("Bolt", **{name: value for name, value in GOOD_BOLT.items() if name != field}),
        node("Bolt", **{**GOOD_BOLT, field: None}),
    ]
    decoded = decode(lines, columns_from=columns_from)
    assert [(r.line, r.field, r.rule, r.message) for r in decoded.rejected] == [
        (1, field, Rule.REQUIRED, message),
        (2, field, Rule.REQUIRED, message),
    ]
    assert [row["id"] for row in rows(decoded, "node:Bolt")] == ["x"]


@paths
def test_required_properties_of_the_wrong_kind(columns_from: int) -> None:
    lines = [node("Bolt", **{**GOOD_BOLT, "len": "3"}), node("Bolt", **{**GOOD_BOLT, "made": 1.5})]
    assert [(r.field, r.rule, r.message) for r in decode(lines, columns_from=columns_from).rejected] == [
        ("len", Rule.WRONG_TYPE, "non-nullable property 'len' has null or invalid values: expects F64, got \"3\""),
        (
            "made",
            Rule.WRONG_TYPE,
            "non-nullable property 'made' has null or invalid values: expects Date (text or whole days), got 1.5",
        ),
    ]


@paths
def test_missing_keys_come_before_other_problems(columns_from: int) -> None:
    lines = [node("Reed", a="7"), node("Reed", tag=None), '{"type":"Reed"}', node("Lot", area="n"), node("Lot")]
    assert [(r.rule, r.field, r.message) for r in decode(lines, columns_from=columns_from).rejected] == [
        (Rule.KEY_MISSING, "tag", "node Reed missing @key property 'tag'"),
        (Rule.KEY_MISSING, "tag", "node Reed missing @key property 'tag'"),
        (Rule.KEY_MISSING, "tag", "node Reed missing @key property 'tag'"),
        (Rule.KEY_MISSING, "num", "node Lot missing @key property 'num'"),
        (Rule.KEY_MISSING, "area", "node Lot missing @key property 'area'"),
    ]


@paths
def test_ids_of_composite_keys_must_be_the_whole_array(columns_from: int) -> None:
    lines = [node("Lot", id='["n","1"]', area="n", num=1), node("Lot", id="n", area="n", num=1)]
    reject = only_reject(decode(lines, columns_from=columns_from))
    assert reject.line == 1
    assert reject.message == (
        "node Lot has explicit id 'n' that does not match @key property 'area, num' value '[\"n\",\"1\"]'"
    )


ENVELOPES = [
    ('{"kind":"Reed"}', None, False, None, Rule.INVALID_ENVELOPE, "expected 'type' or 'edge' field"),
    ("{}", None, False, None, Rule.INVALID_ENVELOPE, "expected 'type' or 'edge' field"),
    ('{"type":5,"data":{}}', None, False, None, Rule.INVALID_ENVELOPE, "expected 'type' or 'edge' field"),
    ('{"type":null,"edge":["Tied"]}', None, False, None, Rule.INVALID_ENVELOPE, "expected 'type' or 'edge' field"),
    (
        '{"type":"Reid","data":{}}',
        "Reid",
        False,
        "type",
        Rule.UNKNOWN_TYPE,
        "unknown node type 'Reid'; did you mean 'Reed'?",
    ),
    ('{"type":"Tied","data":{}}', "Tied", False, "type", Rule.UNKNOWN_TYPE, "unknown node type 'Tied'"),
    ('{"type":"reed","data":{}}', "reed", False, "type", Rule.UNKNOWN_TYPE, None),
    (
        '{"edge":"Tid","from":"x","to":"y"}',
        "Tid",
        True,
        "edge",
        Rule.UNKNOWN_TYPE,
        "unknown edge type 'Tid'; did you mean 'Tied'?",
    ),
    ('{"edge":"Tied","from":"x"}', "Tied", True, "to", Rule.MISSING_ENDPOINT, "edge missing 'to'"),
    ('{"edge":"Tied","to":"x","data":{}}', "Tied", True, "from", Rule.MISSING_ENDPOINT, "edge missing 'from'"),
    ('{"edge":"tied","from":null,"to":"x"}', "tied", True, "from", Rule.MISSING_ENDPOINT, "edge missing 'from'"),
    (
        '{"edge":"Tied","from":5,"to":"x"}',
        "Tied",
        True,
        "from",
        Rule.MISSING_ENDPOINT,
        "edge missing 'from': 5 cannot be the id of a Reed",
    ),
    (
        '{"edge":"Placed","from":["n"],"to":1}',
        "Placed",
        True,
        "from",
        Rule.MISSING_ENDPOINT,
        "edge missing 'from': [\"n\"] cannot be the id of a Lot; an id of Lot is the array of its key in the order of"
        " names, as [area, num]",
    ),
    (
        '{"type":"Reed","data":5}',
        "Reed",
        False,
        "data",
        Rule.INVALID_ENVELOPE,
        "'data' must be a JSON object, got 5",
    ),
    (
        '{"edge":"Tied","from":"x","to":"y","data":[]}',
        "Tied",
        True,
        "data",
        Rule.INVALID_ENVELOPE,
        "'data' must be a JSON object, got []",
    ),
    (
        '{"edge":"Tied","from":"x","to":"y","data":{"w":"1"}}',
        "Tied",
        True,
        "w",
        Rule.WRONG_TYPE,
        "property 'w' expects I32, got \"1\"",
    ),
]


@paths
@pytest.mark.parametrize(("line", "record_type", "is_edge", "field", "rule", "message"), ENVELOPES)
def test_envelopes(
    line: str,
    record_type: str | None,
    is_edge: bool,
    field: str | None,
    rule: Rule,
    message: str | None,
    columns_from: int,
) -> None:
    reject = only_reject(decode([line], columns_from=columns_from))
    assert (reject.record_type, reject.is_edge, reject.field, reject.rule) == (record_type, is_edge, field, rule)
    if message is not None:
        assert reject.message == message


INVALID = [
    b'{"type":"Reed","data":{"tag":"x"}',
    b'{"type":"Reed","data":{"tag":"x"}}}',
    b'{"type":"Reed","data":{"tag":"x"}} {"type":"Reed","data":{"tag":"y"}}',
    b'{"type":"Reed","data":{"tag":"x"}}{"type":"Reed","data":{"tag":"y"}}',
    b'{"type":"Reed","data":{"tag":"x"}}null}',
    b'{"type":"Reed","data":{"tag":"x"}} null',
    b'{"type":"Reed","data":{"tag":"x"},}',
    b'{"type":"Reed","data":{"tag":"x","f":NaN}}',
    b'{"type":"Reed","data":{"tag":"x","f":Infinity}}',
    b'{"type":"Reed","data":{"tag":"x","e":-Infinity}}',
    b'{"type":"Reed","data":{"tag":"x","v":[NaN,1]}}',
    b'{"type":"Reed","data":{"tag":"x","f":01}}',
    b'{"type":"Reed","data":{"tag":"\xff"}}',
    b'{"type":"Reed","data":{"tag":"x\ty"}}',
    b'{"type":"Reed","data":{"tag":"\\ud800"}}',
    b'{"type":"Reed","data":{"tag":"x","a":1,"a":1}}',
    b'{"type":"Reed","data":{"tag":"x","a":1,"\\u0061":1}}',
    b'{"type":"Reed","data":{"tag":"x","zzz":1,"zzz":1}}',
    b'{"type":"Reed","note":NaN,"data":{"tag":"x"}}',
    b'{"note":"\xff","type":"Reed","data":{"tag":"x"}}',
    b'{"note":' + b"[" * 200 + b"]" * 200 + b',"type":"Reed","data":{"tag":"x"}}',
    b"[1]",
    b"null",
    b'"x"',
    b"/ comment",
    b"{",
    b"}",
]


@paths
@pytest.mark.parametrize("line", INVALID)
def test_invalid_json(line: bytes, columns_from: int) -> None:
    decoded = decode([reed(), line, reed(a=1)], columns_from=columns_from)
    reject = only_reject(decoded)
    assert (reject.line, reject.rule) == (1, Rule.INVALID_JSON)
    assert reject.message.startswith("invalid JSON: ")
    assert reject.raw == line.decode("utf-8", "backslashreplace")
    assert len(rows(decoded, "node:Reed")) == 2


@paths
def test_damaged_lines_that_add_up_are_not_read_as_rows(columns_from: int) -> None:
    """One line without a record and one with two make two rows of two lines: none of them may get in."""
    lines = [
        reed(),
        '{"type":"Reed","data":',
        '{"type":"Reed","tag":"y"}}',
        '{"type":"Reed","data":{"tag":"z"}}{"data":{"tag":"z"}}',
        '{"type":"Reed","data":{"tag":"w"}}null}',
    ]
    for unknown_fields in UnknownFields:
        decoded = decode(lines, columns_from=columns_from, unknown_fields=unknown_fields)
        assert [row["tag"] for row in rows(decoded, "node:Reed")] == ["x"]
        assert [reject.line for reject in decoded.rejected] == [1, 2, 3, 4]


@paths
def test_raw_text_is_bounded_and_shows_bytes_that_are_no_text(columns_from: int) -> None:
    line = b'{"type":"Reed","data":{"tag":"\xff' + "é".encode() * 5000 + b'"}}\r'
    reject = only_reject(decode([line], columns_from=columns_from))
    assert len(reject.raw) == RAW_LIMIT
    assert reject.raw.startswith('{"type":"Reed","data":{"tag":"\\xffééé')


@paths
def test_one_reject_a_line_and_the_first_problem_by_name(columns_from: int) -> None:
    line = json.dumps({"type": "Reed", "data": {"tag": "x", "s": 1, "g": 1, "a": "1"}})
    assert only_reject(decode([line], columns_from=columns_from)).field == "a"


@paths
def test_ignoring_unknown_fields(columns_from: int) -> None:
    lines = [
        reed(zzz=1, a=3),
        '{"type":"Reed","data":{"tag":"y","zzz":[{"a":"NaN"}],"zzz":2}}',
        '{"type":"Reed","data":{"tag":"z","zzz":NaN}}',
        '{"type":"Reed","data":{"tag":"z","zzz":' + "[" * 200 + "]" * 200 + "}}",
        '{"type":"Reed","data":{"tag":"z","a":1,"a":1}}',
        '{"type":"Reed","data":{"tag":"z","a":"1","zzz":2}}',
        edge("Tied", "x", "y", zzz=None, w=1),
    ]
    decoded = decode(lines, columns_from=columns_from, unknown_fields=UnknownFields.IGNORE)
    assert [(row["tag"], row["a"]) for row in rows(decoded, "node:Reed")] == [("x", 3), ("y", None)]
    assert [(r.line, r.rule) for r in decoded.rejected] == [
        (2, Rule.INVALID_JSON),
        (3, Rule.INVALID_JSON),
        (4, Rule.INVALID_JSON),
        (5, Rule.WRONG_TYPE),
    ]
    assert [row["w"] for row in rows(decoded, "edge:Tied")] == [1]


@paths
def test_a_second_type_is_refused_also_where_unknown_members_are_ignored(columns_from: int) -> None:
    lines = [
        '{"type":"Free","data":{"name":"a"},"type":"Lists"}',
        '{"type":"Free","data":{"name":"a"},"type":null}',
        '{"type":"Free","data":{"name":"a"},"\\u0074ype":"Lists"}',
        '{"edge":"Tied","from":"x","to":"y","type":"Lists"}',
    ]
    decoded = decode(lines, columns_from=columns_from, unknown_fields=UnknownFields.IGNORE)
    assert decoded.tables == ()
    assert [Rule.INVALID_JSON in {m.rule for m in r.mistakes} for r in decoded.rejected] == [True, True, True, False]
    assert (decoded.rejected[3].rule, decoded.rejected[3].message) == (
        Rule.INVALID_ENVELOPE,
        "a record has 'type' or 'edge', not both",
    )
