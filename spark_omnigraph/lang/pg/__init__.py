"""The schema language: `.pg` text → catalog.

text ──parse──▶ syntax tree ──expand──▶ every type complete ──check──▶ ──lower──▶ Catalog
"""

from __future__ import annotations

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.lang.pg.check import check
from spark_omnigraph.lang.pg.expand import expand
from spark_omnigraph.lang.pg.house import check_new
from spark_omnigraph.lang.pg.lower import lower
from spark_omnigraph.lang.pg.parser import parse
from spark_omnigraph.lang.source import SourceText

__all__ = ["compile_schema", "compile_stored_schema"]


def compile_schema(source: str) -> Catalog:
    """The catalog of a schema that is to be accepted: a new graph, a schema change, a plan of one.

    Raises `SchemaParseError` (with the span of what is wrong) for a text that does not parse or breaks a rule, and
    `CatalogError` for types that contradict each other.

    >>> list(compile_schema("node Pier { code: String @key }").nodes)
    ['Pier']
    """
    text = SourceText(source)
    schema = expand(text, parse(text))
    check(text, schema)
    check_new(text, schema)
    return lower(text, schema)


def compile_stored_schema(source: str) -> Catalog:
    """The catalog of a schema that a graph has already, `_schema.pg`, whichever engine accepted it.

    The rules of the format hold; those that this package asks of new schemas alone (`house`) do not.
    """
    text = SourceText(source)
    schema = expand(text, parse(text))
    check(text, schema)
    return lower(text, schema)
