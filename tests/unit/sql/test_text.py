"""What a statement and its parameters may be before DataFusion sees them."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from spark_omnigraph.errors import BadRequestError, ParameterError
from spark_omnigraph.sql.shape import MOST_OPERATORS
from spark_omnigraph.sql.text import LONGEST, bound_values, check_text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (7, "a statement is a text, not 7"),
        ("SELECT 1\0", "no NUL character"),
        ("SELECT '\ud800'", "UTF-8"),
        (f"SELECT '{'x' * LONGEST}'", "too long"),
        ("SELECT " + " + ".join("1" * (MOST_OPERATORS + 2)), "1,001 operators, and at most 1,000"),
        ("SELECT " + "-".join("1" * (MOST_OPERATORS + 2)), "1,001 operators"),
        ("SELECT 1 WHERE " + " AND ".join(["true"] * (MOST_OPERATORS + 2)), "1,001 operators"),
        ("SELECT 1 WHERE a" + " or a" * (MOST_OPERATORS + 1), "1,001 operators"),
        ("SELECT 'a'" + "||'b'" * (MOST_OPERATORS + 1), "1,001 operators"),
        (" UNION ".join(["SELECT 1"] * (MOST_OPERATORS + 2)), "1,001 operators"),
        (" UNION ".join(["SELECT 1, 2"] * (MOST_OPERATORS + 2)), "1,001 operators"),
        ("SELECT 1" + " |> EXTEND 2, 3" * (MOST_OPERATORS + 1), "1,001 operators"),
    ],
    ids=lambda value: str(value)[:20].replace("\0", "NUL").replace("\ud800", "?"),
)
def test_texts_that_cannot_be_planned_safely(text: object, says: str) -> None:
    with pytest.raises(BadRequestError, match=says):
        check_text(text)


def test_operators_in_texts_names_comments_and_signs_are_none() -> None:
    plus = "+" * 2_000
    signs = ", ".join(["-1"] * 5_000)
    check_text(f"SELECT '{plus}''{plus}', \"{plus}\" -- {plus}\n /* {plus} */ FROM T WHERE i IN ({signs})")


def test_operators_of_many_columns_and_branches_are_no_chain() -> None:
    columns = ", ".join(f"coalesce(a, 1) * b + {i} - c AS d{i}" for i in range(MOST_OPERATORS))
    branches = " ".join(f"WHEN a >= {i} AND a < {i + 1} THEN b || 'x'" for i in range(MOST_OPERATORS))
    check_text(f"SELECT {columns}, CASE {branches} ELSE '' END FROM T")
    check_text(f"WITH t AS (SELECT * FROM T) SELECT {columns} FROM t")


def test_values_are_scalars_of_what_the_text_names() -> None:
    text = "SELECT $name, $none, $list"
    found = bound_values(text, {"name": "x'; DROP", "none": None, "list": [1, 2]})
    assert {name: value.as_py() for name, value in found.items()} == {"name": "x'; DROP", "none": None, "list": [1, 2]}
    assert found["list"].type == pa.list_(pa.int64())
    assert bound_values(text, None) == {}


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"nam": 1}, r"no parameter \$nam"),
        ({"name": 2**70}, r"\$name has a value that SQL has no type for"),
        ({"name": object()}, r"\$name has a value that SQL has no type for"),
        ({"name": {"a": 1}}, r"\$name is a single value or a list, not an object"),
        ({"name": [1, "a"]}, r"\$name has a value that SQL has no type for"),
        ([1], "params is a dictionary"),
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", str(value)),
)
def test_values_that_are_none(params: object, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        bound_values("SELECT $name", params)  # type: ignore[arg-type]  # what a caller may give


@pytest.mark.parametrize(
    ("text", "hint"),
    [("SELECT :y", ": write :y as $y"), ("SELECT @y", ": write @y as $y"), ("SELECT a::y", ""), ("SELECT :yes", "")],
)
def test_other_spellings_of_a_parameter_are_named(text: str, hint: str) -> None:
    with pytest.raises(ParameterError) as raised:
        bound_values(text, {"y": 3})
    assert raised.value.message.endswith(f"the statement has no parameter $y{hint}")
