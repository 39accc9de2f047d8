"""Errors of a schema text: each shows the line it is about."""

from __future__ import annotations

from spark_omnigraph.errors import CatalogError, SchemaParseError
from spark_omnigraph.lang.source import Region, SourceText, render

MESSAGE_LIMIT = 1_000
"""Characters of a message: names in a text may be of any length."""


def parse_error(source: SourceText, region: Region, message: str) -> SchemaParseError:
    """The error for a text that does not parse or breaks a rule."""
    span = source.span(region)
    return SchemaParseError(render(f"parse error: {_clip(message)}", span), span)


def catalog_error(source: SourceText, region: Region, message: str) -> CatalogError:
    """The error for declarations that contradict each other."""
    return CatalogError(render(f"catalog error: {_clip(message)}", source.span(region)))


def _clip(message: str) -> str:
    return message if len(message) <= MESSAGE_LIMIT else f"{message[:MESSAGE_LIMIT]}…"
