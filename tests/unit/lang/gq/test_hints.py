"""Names that are wrong by a letter are answered with the right one."""

from __future__ import annotations

import pytest

from spark_omnigraph.errors import QueryTypeError
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.syntax.parser import parse_queries, pick_query
from spark_omnigraph.lang.pg import compile_schema

CATALOG = compile_schema("node Movie { name: String @key  age: I32? }\nedge ActedWith: Movie -> Movie { since: I32? }")


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
        ('match { $film: Movie } return { sum("M") }', "T8: sum needs a property or a variable"),
    ],
)  # laid out as a table  # fmt: skip
def test_the_nearest_name_is_told(body: str, message: str) -> None:
    query = pick_query(parse_queries(f"query q($oldest: I32) {{ {body} }}"), None)
    with pytest.raises(QueryTypeError) as raised:
        check_read(CATALOG, query)
    assert str(raised.value).splitlines()[0] == f"type error: {message}"
