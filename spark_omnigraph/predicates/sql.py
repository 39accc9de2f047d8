"""Names and literals as Lance's filter language reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from spark_omnigraph.catalog.types import Scalar

NO_ROW = "false"
"""Predicate that no row meets."""

_DAYS = {Scalar.DATE: "Date32", Scalar.DATETIME: "Date64"}


def quote_name(name: str) -> str:
    """Identifier, whatever its letters; double quotes would make it a text."""
    return f"`{name}`"


def quote_text(text: str) -> str:
    """Text literal: only the single quote needs care."""
    return "'" + text.replace("'", "''") + "'"


def boolean(value: bool) -> str:
    """Literal of a Bool."""
    return "true" if value else "false"


def number(scalar: Scalar, value: int | float) -> str:
    """Literal of a number that a column of this type can hold; dates are days, instants milliseconds since the epoch.

    A `timestamp` literal has nanoseconds, which do not reach the years that an instant may have.

    >>> number(Scalar.I64, -(2**63)), number(Scalar.DATETIME, 5), number(Scalar.F32, 0.5)
    ('(-9223372036854775807 - 1)', "arrow_cast(5, 'Date64')", '0.5')
    """
    if isinstance(value, float):
        return (
            repr(value)
            if math.isfinite(value)
            else f"CAST('{value}' AS {'FLOAT' if scalar is Scalar.F32 else 'DOUBLE'})"
        )
    # The digits are read before the sign, and those of the negative limit do not fit 64 bits without it.
    text = str(value) if value > -(2**63) else f"({value + 1} - 1)"
    return f"arrow_cast({text}, '{_DAYS[scalar]}')" if scalar in _DAYS else text


def one_of(name: str, literals: Iterable[str]) -> str:
    """`name IN (…)`, which an index serves at once; no row where there is no literal."""
    listed = ", ".join(literals)
    return f"{quote_name(name)} IN ({listed})" if listed else NO_ROW


def is_text_of(name: str, texts: Iterable[str]) -> str:
    """Rows of which a text column holds one of these."""
    return one_of(name, map(quote_text, texts))


def not_null(name: str) -> str:
    """Rows that have a value."""
    return f"{quote_name(name)} IS NOT NULL"
