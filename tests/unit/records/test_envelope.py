"""Members beside `data`: as strict as those in it, in lines and in frames of records, on both paths."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.frames.decode import FrameDecoder, plan_frame
from spark_omnigraph.records.mode import DecodeOptions, UnknownFields
from tests.unit.records.builders import ALL_BY_ROW, CATALOG, decode, node, rows

paths = pytest.mark.parametrize("columns_from", [1, ALL_BY_ROW])
IN_DATA = "; write it in data"

LOST = [
    ('{"type":"Reed","s":"lost"}', "s", f"unknown field 's' beside 'data'{IN_DATA}"),
    ('{"type":"Reed","data":{"tag":"x"},"s":"lost"}', "s", f"unknown field 's' beside 'data'{IN_DATA}"),
    ('{"s":"lost","type":"Reed","data":{"tag":"x"}}', "s", f"unknown field 's' beside 'data'{IN_DATA}"),
    ('{"edge":"Tied","from":"a","to":"a","w":5.0}', "w", f"unknown field 'w' beside 'data'{IN_DATA}"),
    ('{"edge":"Tied","from":"a","to":"a","id":"e1"}', "id", f"unknown field 'id' beside 'data'{IN_DATA}"),
    ('{"type":"Reed","Data":{"tag":"x"}}', "Data", "unknown field 'Data' beside 'data'; did you mean 'data'?"),
    (
        '{"edge":"Tied","From":"a","from":"a","to":"b"}',
        "From",
        "unknown field 'From' beside 'data'; did you mean 'from'?",
    ),
]


@paths
@pytest.mark.parametrize("unknown_fields", UnknownFields)
@pytest.mark.parametrize(("line", "field", "message"), LOST)
def test_what_would_be_lost_is_refused(
    line: str, field: str, message: str, unknown_fields: UnknownFields, columns_from: int
) -> None:
    good = [node("Reed", tag=f"t{i}") for i in range(3)]
    decoded = decode([*good, line, *good], columns_from=columns_from, unknown_fields=unknown_fields)
    assert [(r.line, r.field, r.rule, r.message) for r in decoded.rejected] == [(3, field, Rule.UNKNOWN_FIELD, message)]
    assert len(rows(decoded, "node:Reed")) == 6
    assert rows(decoded, "edge:Tied") == []


@paths
@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"type":"Reed","properties":{"tag":"x"},"data":{"tag":"y"}}', "properties"),
        ('{"type":"Reed","ts":null,"data":{"tag":"y"}}', "ts"),
        ('{"type":"Reed","from":"x","data":{"tag":"y"}}', "from"),
    ],
)
def test_other_members_are_refused_unless_ignored(line: str, field: str, columns_from: int) -> None:
    refused = decode([line], columns_from=columns_from)
    assert [(r.field, r.rule) for r in refused.rejected] == [(field, Rule.UNKNOWN_FIELD)]
    taken = decode([line], columns_from=columns_from, unknown_fields=UnknownFields.IGNORE)
    assert [row["tag"] for row in rows(taken, "node:Reed")] == ["y"]


@paths
@pytest.mark.parametrize("unknown_fields", UnknownFields)
def test_nulls_of_known_members_lose_nothing(unknown_fields: UnknownFields, columns_from: int) -> None:
    lines = [
        '{"type":"Reed","edge":null,"from":null,"to":null,"data":{"tag":"x"}}',
        '{"edge":"Tied","type":null,"from":"a","to":"b","data":null}',
    ]
    decoded = decode(lines, columns_from=columns_from, unknown_fields=unknown_fields)
    assert decoded.rejected == ()
    assert [row["tag"] for row in rows(decoded, "node:Reed")] == ["x"]
    assert [row["src"] for row in rows(decoded, "edge:Tied")] == ["a"]


@paths
@pytest.mark.parametrize("unknown_fields", UnknownFields)
def test_repeats_in_data_are_refused_behind_an_ignored_one_too(
    unknown_fields: UnknownFields, columns_from: int
) -> None:
    line = '{"type":"Reed","data":{"zz":1,"zz":2,"tag":"x","a":5,"a":null}}'
    decoded = decode([line], columns_from=columns_from, unknown_fields=unknown_fields)
    [reject] = decoded.rejected
    assert ("a", Rule.INVALID_JSON) in [(m.field, m.rule) for m in reject.mistakes]


def test_all_mistakes_of_a_record_are_told_up_to_a_bound() -> None:
    line = (
        '{"type":"Bolt","K":1,"data":{"Tag":"x","len":"3","made":"05.01.2025","ok":1,"hue":"a","vec":[1],"n":"x",'
        '"id":7}}'
    )
    [reject] = decode([line]).rejected
    assert [(m.field, m.rule) for m in reject.mistakes] == [
        ("K", Rule.UNKNOWN_FIELD),
        ("Tag", Rule.UNKNOWN_FIELD),
        ("id", Rule.WRONG_TYPE),
        ("tag", Rule.KEY_MISSING),
        ("hue", Rule.WRONG_TYPE),
        ("len", Rule.WRONG_TYPE),
        ("made", Rule.INVALID_DATE),
        ("ok", Rule.WRONG_TYPE),
        ("pic", Rule.REQUIRED),
        ("vec", Rule.VECTOR_LENGTH),
    ]
    assert reject.mistakes[1].message == "unknown field 'Tag' of Bolt; did you mean 'tag'?"
    [many] = decode([node("Reed", tag="x", **{f"odd{i}": i for i in range(40)})]).rejected
    assert len(many.mistakes) == 16


def test_frames_of_records_are_read_as_strictly() -> None:
    columns = {"type": ["Reed", "Reed", "Reed"], "edge": [None, "Tied", None], "from": [None, "a", "a"]}
    data = ['{"tag":"x","a":1,"a":2}', '{"tag":"y"}', '{"tag":"z"}']
    batch = pa.record_batch({**columns, "to": pa.array([None, "b", None], pa.string()), "data": data})
    plan = plan_frame(CATALOG, None, batch.schema)
    decoded, _ = FrameDecoder(CATALOG, DecodeOptions(), plan).decode(batch, 0)
    assert [(r.rule, r.field) for r in decoded.rejected] == [
        (Rule.INVALID_JSON, "a"),
        (Rule.INVALID_ENVELOPE, "edge"),
        (Rule.UNKNOWN_FIELD, "from"),
    ]
    with pytest.raises(BadRequestError, match="no column 'Data'; did you mean 'data'"):
        plan_frame(CATALOG, None, pa.schema({"type": pa.string(), "Data": pa.string()}))


def test_numbers_of_a_frame_that_are_not_finite_name_their_column() -> None:
    batch = pa.record_batch({"tag": ["x", "y"], "f": [float("nan"), 1.0], "e": [1.0, float("-inf")]})
    plan = plan_frame(CATALOG, TableKey.node("Reed"), batch.schema)
    decoded, _ = FrameDecoder(CATALOG, DecodeOptions(), plan).decode(batch, 0)
    assert [(r.line, r.id, r.field, r.rule) for r in decoded.rejected] == [
        (0, "x", "f", Rule.OUT_OF_RANGE),
        (1, "y", "e", Rule.OUT_OF_RANGE),
    ]
    assert decoded.rejected[0].message == "property 'f': value NaN is not finite, which no record can carry"
    assert json.loads(decoded.rejected[0].raw or "{}")["type"] == "Reed"


@paths
@pytest.mark.parametrize("unknown_fields", UnknownFields)
@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"type":"Reed","type":null,"data":{"tag":"x"}}', "type"),
        ('{"edge":"Tied","edge":null,"from":"a","to":"b"}', "edge"),
    ],
)
def test_a_second_type_is_one_too_many_though_it_is_null(
    line: str, field: str, unknown_fields: UnknownFields, columns_from: int
) -> None:
    decoded = decode([line] * 3, columns_from=columns_from, unknown_fields=unknown_fields)
    twice = f"invalid JSON: member '{field}' is repeated"
    assert [[m.message for m in r.mistakes] for r in decoded.rejected] == [
        ["expected 'type' or 'edge' field", twice]
    ] * 3
