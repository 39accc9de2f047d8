"""JSON values of parameters → values of their declared types."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from spark_omnigraph.catalog.types import PropType
from spark_omnigraph.errors import BadRequestError, ParameterError
from spark_omnigraph.lang.gq.params import bind_params, milliseconds
from spark_omnigraph.lang.gq.plan import Value
from spark_omnigraph.lang.gq.syntax.parser import parse_queries

NOON = datetime(2026, 1, 31, 12, 0, 0, 1_999, tzinfo=timezone.utc)
NAIVE = datetime(1970, 1, 2, 23, 59)  # noqa: DTZ001 - a caller may give one; it is taken for UTC


def declared(of: str) -> PropType:
    (query,) = parse_queries(f"query q($x: {of}) {{ delete A where b = $x }}").queries
    return query.params[0].type


def bound(of: str, value: object) -> Value:
    return bind_params("q", {"x": declared(of)}, {"x": value}, NOON)["x"]


ACCEPTED = [
    ("String", "", ""),
    ("String", "7", "7"),
    ("Blob", "base64:aGk=", "base64:aGk="),
    ("Bool", False, False),
    ("I32", -(2**31), -(2**31)),
    ("I32", "2147483647", 2**31 - 1),
    ("I64", "-9223372036854775808", -(2**63)),
    ("I64", 2**63 - 1, 2**63 - 1),
    ("U32", "007", 7),
    ("U32", 2**32 - 1, 2**32 - 1),
    ("U64", "18446744073709551615", 2**64 - 1),
    ("F32", 1, 1.0),
    ("F64", 0.1, 0.1),
    ("Date", "2024-02-29", 19_782),
    ("Date", "2024-2-9", 19_762),
    ("Date", "2024-02-29T23:30:00-01:00", 19_783),
    ("Date", date(1970, 1, 2), 1),
    ("Date", NAIVE, 1),
    ("Date", datetime(1970, 1, 2, 23, 59, tzinfo=timezone(timedelta(hours=-1))), 2),
    ("DateTime", "1970-01-01", 0),
    ("DateTime", "1970-01-01T00:00:01.2349+01:00", -3_598_766),
    ("DateTime", NAIVE, 172_740_000),
    ("[String]", ["a", "b"], ("a", "b")),
    ("[I64]", ["1", 2], (1, 2)),
    ("[Date]", [], ()),
    ("Vector(2)", [1, 2.5], (1.0, 2.5)),
    ("Vector(2)", (1, 2), (1.0, 2.0)),
    ("String?", None, None),
    ("[I32]?", None, None),
]

REFUSED = [
    ("String", 1, "expected string, got number"),
    ("String", ["a"], "expected string, got array"),
    ("Blob", True, "expected blob URI string, got boolean"),
    ("Bool", 1, "expected boolean, got number"),
    ("Bool", "true", "expected boolean, got string"),
    ("I32", 1.0, "expected integer number"),
    ("I32", "1.5", "expected integer string, got '1.5'"),
    ("I32", " 1", "expected integer string, got ' 1'"),
    ("I32", "१", "expected integer string, got '१'"),
    ("I32", "", "expected integer string, got ''"),
    ("I32", True, "expected integer, got boolean"),
    ("I32", {}, "expected integer, got object"),
    ("I32", 2**31, "value 2147483648 exceeds I32"),
    ("I32", "-2147483649", "value -2147483649 exceeds I32"),
    ("I64", 2**63, "value 9223372036854775808 exceeds I64"),
    ("I64", "9" * 6_000, "exceeds I64"),
    ("U32", -1, "expected unsigned integer number"),
    ("U32", "-1", "expected unsigned integer string, got '-1'"),
    ("U32", 2**32, "value 4294967296 exceeds U32"),
    ("U64", 1.5, "expected unsigned integer number"),
    ("U64", [], "expected unsigned integer, got array"),
    ("F64", "1.5", "expected float, got string"),
    ("F64", True, "expected float, got boolean"),
    ("F64", 10**400, "value is too large for F64"),
    ("Date", 19_000, "expected date string, got number"),
    ("DateTime", None, "null is not accepted for non-nullable parameter"),
    ("DateTime", 0, "expected datetime string, got number"),
    ("[I32]", 1, "expected array for [I32]"),
    ("[I32]", [1, None], "null is not accepted for non-nullable parameter"),
    ("[I32]", [1, "x"], "expected integer string, got 'x'"),
    ("Vector(2)", "x", "expected array for Vector(2)"),
    ("Vector(2)", [1], "expected 2 values for Vector(2), got 1"),
    ("Vector(2)", [1, "2"], "vector element is not numeric"),
    ("Vector(2)", [1, None], "vector element is not numeric"),
    ("Vector(2)", [1, True], "vector element is not numeric"),
    ("Vector(2)", [1, math.inf], "vector element is not finite"),
    ("Vector(2)", [1, 10**400], "value is too large for F32"),
]


@pytest.mark.parametrize(("of", "value", "expected"), ACCEPTED)
def test_values(of: str, value: object, expected: Value) -> None:
    found = bound(of, value)
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(found, tuple) and isinstance(expected, tuple):
        assert [type(one) for one in found] == [type(one) for one in expected]


@pytest.mark.parametrize(("of", "value", "said"), REFUSED)
def test_refusals(of: str, value: object, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        bound(of, value)
    assert caught.value.message.startswith("param 'x': ")
    assert said in caught.value.message
    assert len(caught.value.message) < 2_000


def test_a_number_too_long_to_print() -> None:
    with pytest.raises(ParameterError, match="value of 19932 bits exceeds I64"):
        bound("I64", 10**6_000)


@pytest.mark.parametrize(
    ("of", "text"),
    [("Date", "2024-02-30"), ("Date", "29.02.2024"), ("DateTime", "2024-02-29 12:00"), ("DateTime", "1709164800")],
)
def test_text_that_is_no_date(of: str, text: str) -> None:
    with pytest.raises(BadRequestError, match=f"invalid {of} literal '{text}'"):
        bound(of, text)


def test_now_is_the_instant_of_the_query() -> None:
    at = 1_769_860_800_001
    assert bind_params("q", {}, None, NOON) == {"__nanograph_now": at}
    assert milliseconds(NOON.astimezone(timezone(timedelta(hours=9)))) == at
    assert milliseconds(NOON.replace(tzinfo=None)) == at
    assert milliseconds(datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=timezone.utc)) == -1


def test_what_may_be_left_out() -> None:
    values = bind_params("q", {"a": declared("I32?"), "b": declared("I32")}, {"b": 1}, NOON)
    assert (values["a"], values["b"]) == (None, 1)
    with pytest.raises(BadRequestError) as caught:
        bind_params("find", {"a": declared("Vector(3)")}, {}, NOON)
    assert caught.value.message == "parameter 'a' not provided (query 'find' declares it as Vector(3))"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"y": 1}, "param 'y': it is not declared by query 'q' (parameters: x)"),
        ({"y": {}}, "param 'y': object is not supported; it is not declared by query 'q' (parameters: x)"),
        ({"__nanograph_now": 0}, "param '__nanograph_now': it is not declared by query 'q' (parameters: x)"),
        ([1], "params must be a JSON object"),
        ("x", "params must be a JSON object"),
    ],
)
def test_what_is_not_declared(given: Any, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        bind_params("q", {"x": declared("I32?")}, given, NOON)
    assert caught.value.message == said
