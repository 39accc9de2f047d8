"""Errors of a query text: each shows the line it is about."""

from __future__ import annotations

from spark_omnigraph.errors import BadRequestError, QueryParseError, QueryTypeError
from spark_omnigraph.lang.source import Region, SourceText, clip, render


def parse_error(source: SourceText, region: Region, message: str) -> QueryParseError:
    """The error for a text that is not in the language."""
    span = source.span(region)
    return QueryParseError(render(f"parse error: {clip(message)}", span), span)


def type_error(source: SourceText, region: Region, message: str) -> QueryTypeError:
    """The error for a query that does not fit the schema; the message starts with the rule's code where it has one."""
    span = source.span(region)
    return QueryTypeError(render(f"type error: {clip(message)}", span), span)


def request_error(message: str) -> BadRequestError:
    """The error for a query that could never be answered although it breaks no rule of the types."""
    return BadRequestError(clip(message))
