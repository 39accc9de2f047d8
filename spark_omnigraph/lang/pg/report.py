"""Errors of a schema text: each shows the line it is about."""

from __future__ import annotations

from spark_omnigraph.errors import CatalogError, SchemaParseError
from spark_omnigraph.lang.source import Region, SourceText, clip, render


def parse_error(source: SourceText, region: Region, message: str) -> SchemaParseError:
    """The error for a text that does not parse or breaks a rule."""
    span = source.span(region)
    return SchemaParseError(render(f"parse error: {clip(message)}", span), span)


def catalog_error(source: SourceText, region: Region, message: str) -> CatalogError:
    """The error for declarations that contradict each other."""
    return CatalogError(render(f"catalog error: {clip(message)}", source.span(region)))
