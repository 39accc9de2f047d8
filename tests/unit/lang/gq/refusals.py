"""Query texts that are refused, with the place of the fault marked: `match { $p: «Nobody» }`."""

from __future__ import annotations

import pytest

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import SourceError
from spark_omnigraph.lang.gq.check.mutation import check_mutation
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.lower import lower
from spark_omnigraph.lang.gq.syntax.parser import parse_queries
from spark_omnigraph.lang.pg import compile_schema

POTTERY = compile_schema(
    """
    node Pot { label: String @key  vol: I32?  big: U64?  heat: F64?  fired: Date?  sold: DateTime?  glazed: Bool?
               tags: [String]?  grade: enum(a, b)?  v: Vector(3)?  photo: Blob? }
    node Shelf { code: String @key  room: String?  req: I32  e: Vector(2) @embed("code") }
    edge Rests: Pot -> Shelf
    edge Mimics: Pot -> Pot { note: String?  force: F64?  must: I32  print: Blob? }
    """
)


def check(text: str, catalog: Catalog = POTTERY) -> None:
    """Checks and lowers every query of a text."""
    for query in parse_queries(text).queries:
        if query.is_mutation:
            check_mutation(catalog, query)
        else:
            lower(catalog, check_read(catalog, query))


def refusal(marked: str, kind: type[SourceError]) -> str:
    """What is said about a marked text, without its prefix; fails unless the error points at the mark."""
    before, _, rest = marked.partition("«")
    inside, _, after = rest.partition("»")
    with pytest.raises(kind) as caught:
        check(before + inside + after)
    error = caught.value
    assert error.span is not None
    at = (before + inside + after).encode()[error.span.start : error.span.end].decode()
    assert (at, error.span.start) == (inside, len(before.encode())), error.message
    assert error.span.line == before.count("\n") + 1
    headline, *picture = error.message.split("\n")
    assert picture[0].strip() == f"--> line {error.span.line}, column {error.span.column}"
    prefix, colon, said = headline.partition(": ")
    assert (prefix, colon) == ("type error" if error.kind == "type" else "parse error", ": ")
    return said
