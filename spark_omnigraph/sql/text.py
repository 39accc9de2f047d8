"""What a statement and its parameters may be before DataFusion sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from spark_omnigraph.errors import BadRequestError, ParameterError
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.sql.shape import refuse_shape

LONGEST = 4 << 20
"""Bytes of a statement."""


def check_text(text: object) -> str:
    """The text of a statement. BadRequestError for one that cannot be planned safely."""
    if not isinstance(text, str):
        raise BadRequestError(f"a statement is a text, not {as_shown(text)}")
    if "\0" in text:
        raise BadRequestError("a statement holds no NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadRequestError("a statement is UTF-8 text, and this is not") from None
    if size > LONGEST:
        raise BadRequestError(f"the statement is too long: at most {LONGEST:,} bytes")
    refuse_shape(text)
    return text


def bound_values(text: str, params: Mapping[str, object] | None) -> dict[str, pa.Scalar]:
    """Values of the parameters `$name`, as Arrow has them. ParameterError for one that the text does not name, and for
    a value that Arrow does not have.
    """
    if params is not None and not isinstance(params, Mapping):
        raise ParameterError(f"params is a dictionary of values by name, not {as_shown(params)}")
    return {str(name): _scalar(text, str(name), value) for name, value in (params or {}).items()}


def _scalar(text: str, name: str, value: object) -> pa.Scalar:
    if not re.search(rf"\${re.escape(name)}(?!\w)", text):
        other = re.search(rf"(?<![:\w])[:@]{re.escape(name)}(?!\w)", text)
        instead = f": write {other.group()} as ${name}" if other is not None else ""
        raise ParameterError(f"the statement has no parameter ${name}{instead}")
    if isinstance(value, Mapping):
        raise ParameterError(f"parameter ${name} is a single value or a list, not an object")
    try:
        return value if isinstance(value, pa.Scalar) else pa.scalar(value)
    except (pa.ArrowException, OverflowError, ValueError, TypeError, RecursionError) as error:
        raise ParameterError(f"parameter ${name} has a value that SQL has no type for: {as_shown(value)}") from error
