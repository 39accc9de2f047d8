"""The schema language: `.pg` text → catalog.

text ──parse──▶ syntax tree ──expand──▶ every type complete ──check──▶ ──lower──▶ Catalog
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.lang.pg.acceptance import check_new
from spark_omnigraph.lang.pg.ast import CheckConstraint, EdgeDecl, NodeDecl, Schema
from spark_omnigraph.lang.pg.check import check
from spark_omnigraph.lang.pg.expand import expand
from spark_omnigraph.lang.pg.lower import lower
from spark_omnigraph.lang.pg.parser import parse
from spark_omnigraph.lang.pg.report import parse_error
from spark_omnigraph.lang.source import SourceText

__all__ = ["compile_schema", "compile_stored_schema", "refuse_patterns"]


def compile_schema(source: str) -> Catalog:
    """The catalog of a schema that is to be accepted: a new graph, a schema change, a plan of one.

    Raises `SchemaParseError` (with the span of what is wrong) for a text that does not parse or breaks a rule, and
    `CatalogError` for types that contradict each other.

    >>> list(compile_schema("node Pier { code: String @key }").nodes)
    ['Pier']
    """
    check_new(*_complete(source))
    return compile_stored_schema(source)


def refuse_patterns(source: str, why: Callable[[str], str | None]) -> None:
    """Raises `SchemaParseError` for the first `@check` whose pattern is refused: `why` gives the reason, or None.

    What patterns there are is not for the language to know, and graphs that were accepted with one stay readable.
    """
    text = SourceText(source)
    schema = parse(text)
    declarations: tuple[NodeDecl | EdgeDecl, ...] = (*schema.nodes, *schema.edges)
    for declared in declarations:
        for constraint in declared.constraints:
            reason = why(constraint.pattern) if isinstance(constraint, CheckConstraint) else None
            if reason is not None:
                name = declared.name.text
                raise parse_error(text, constraint.region, f"the pattern of @check on {name} cannot be used: {reason}")


@lru_cache(maxsize=32)
def compile_stored_schema(source: str) -> Catalog:
    """The catalog of a schema that a graph has already, `_schema.pg`, whichever engine accepted it.

    The rules of the format hold; those that this package asks of new schemas alone (`acceptance`) do not. Catalogs are
    values, so that one text needs to be compiled once, also where it is accepted first and stored then.
    """
    return lower(*_complete(source))


@lru_cache(maxsize=1)
def _complete(source: str) -> tuple[SourceText, Schema]:
    """A text and what it declares, each type with all that it has, by the rules of the format."""
    text = SourceText(source)
    schema = expand(text, parse(text))
    check(text, schema)
    return text, schema
