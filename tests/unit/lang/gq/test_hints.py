"""Names that are wrong by a letter are answered with the right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph.errors import QueryParseError, QueryTypeError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.syntax.parser import parse_queries, pick_query
from spark_omnigraph.lang.pg import compile_schema

CATALOG = compile_schema(
    "node Movie { name: String @key  age: I32?  seen: DateTime?  day: Date? }\n"
    "edge ActedWith: Movie -> Movie { since: I32? }"
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("match { $film: Movei } return { $film.name }", "T1: unknown node type `Movei`; did you mean 'Movie'?"),
        ('match { $film: Movie { nam: "x" } } return { $film.name }',
         "T2: type `Movie` has no property `nam`; did you mean 'name'?"),
        ("match { $film: Movie $film actedWit $b } return { $b.name }",
         "T4: unknown edge type `actedWit`; did you mean 'actedWith'?"),
        ("match { $film: Movie } return { $film.nam }", "T6: type `Movie` has no property `nam`; did you mean 'name'?"),
        ("match { $film: Movie $flim.age = 1 } return { $film.name }",
         "T6: variable `$flim` is not bound; did you mean '$film'?"),
        ("match { $film: Movie $film.age = $oldst } return { $film.name }",
         "T6: variable `$oldst` is not bound; did you mean '$oldest'?"),
        ("match { $film: Movie { age: $oldst } } return { $film.name }",
         "T6: variable `$oldst` is not bound and not a declared query parameter; did you mean '$oldest'?"),
        ("match { $film: Movie } return { $flim }", "variable `$flim` is not bound; did you mean '$film'?"),
        ("match { $film: Movie $film.zzz = 1 } return { $film.name }", "T6: type `Movie` has no property `zzz`"),
        ('match { $film: Movie } return { count("M") }',
         "T8: count needs a property or a variable, as in `count($film)`"),
        ('match { $film: Movie $film.seen > "2024-01-01" } return { $film.name }',
         'T7: cannot compare DateTime? with String; write it as datetime("2026-01-31T12:00:00Z")'),
        ('match { $film: Movie { day: "2024-01-01" } } return { $film.name }',
         'T3: property `day` has type Date? but got String; write it as date("2026-01-31")'),
        ("match { $film: Movie $film.age != null } return { $film.name }",
         "T7: filter comparisons require scalar operands, got I32? and null (`$film.age = $film.age` holds where there "
         "is a value, `not { $film.age = $film.age }` where there is none)"),
        ('match { $film: Movie } return { sum("M") }', "T8: sum needs a property or a variable"),
    ],
)  # laid out as a table  # fmt: skip
def test_the_nearest_name_is_told(body: str, message: str) -> None:
    query = pick_query(parse_queries(f"query q($oldest: I32) {{ {body} }}"), None)
    with pytest.raises(QueryTypeError) as raised:
        check_read(CATALOG, query)
    assert str(raised.value).splitlines()[0] == f"type error: {message}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("match { $film: Movie $film.age is null } return { $film.name }",
         "expected a comparison: =, !=, <, <=, >, >=, contains or starts_with (`$film.age = $film.age` holds where "
         "there is a value, `not { $film.age = $film.age }` where there is none), found 'is'"),
        ("match { $film: Movie { age: null } } return { $film.name }",
         "expected a literal, a $variable or now() (null is passed as a parameter), found 'null'"),
    ],
)  # laid out as a table  # fmt: skip
def test_who_writes_null_is_told_what_to_write(body: str, message: str) -> None:
    with pytest.raises(QueryParseError, match="parse error") as raised:
        parse_queries(f"query q() {{ {body} }}")
    assert str(raised.value).splitlines()[0] == f"parse error: {message}"


def test_a_property_compared_with_itself_asks_for_a_value(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Movie { name: String @key  age: I32? }")
    graph.load(['{"type":"Movie","data":{"name":"a","age":1}}', '{"type":"Movie","data":{"name":"b"}}'])
    some = "query q() { match { $f: Movie $f.age = $f.age } return { $f.name } }"
    none = "query q() { match { $f: Movie not { $f.age = $f.age } } return { $f.name } }"
    assert [graph.query(text).to_pylist() for text in (some, none)] == [[{"f.name": "a"}], [{"f.name": "b"}]]
