"""Parameters of a query: JSON values → values of the declared types."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone

from spark_omnigraph.catalog.numbers import float_value
from spark_omnigraph.catalog.types import INTEGER_RANGES, PropType, Scalar
from spark_omnigraph.errors import ParameterError
from spark_omnigraph.lang.gq.check.scope import instant
from spark_omnigraph.lang.gq.check.typed import NOW
from spark_omnigraph.lang.gq.plan import Value
from spark_omnigraph.lang.gq.report import request_error
from spark_omnigraph.lang.source import clip

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_DAY = 86_400_000


def bind_params(
    query: str, declared: Mapping[str, PropType], given: Mapping[str, object] | None, at: datetime
) -> dict[str, Value]:
    """Values of all declared parameters and of `now()`, the instant `at`.

    ParameterError for a value of the wrong type or an undeclared name; BadRequestError for a missing parameter that is
    not nullable and for text that is no date. Besides JSON values, `datetime.date` and `datetime.datetime` are taken.

    >>> bind_params("q", {"x": PropType(Scalar.I32)}, {"x": "7"}, _EPOCH)
    {'x': 7, '__nanograph_now': 0}
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise ParameterError("params must be a JSON object")
    for name, value in given.items():
        if name not in declared:
            raise _misfit(name, f"{_undeclared(query, value, declared)}")
    values: dict[str, Value] = {}
    for name, of in declared.items():
        if name in given:
            values[name] = _value(name, of, given[name])
        elif of.nullable:
            values[name] = None
        else:
            raise request_error(f"parameter '{name}' not provided (query '{query}' declares it as {of.display()})")
    values[NOW] = milliseconds(at)
    return values


def milliseconds(at: datetime) -> int:
    """Milliseconds since the epoch; an instant without a zone is in UTC, fractions are cut off."""
    aware = at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)
    return (aware - _EPOCH) // _MILLISECOND


def _misfit(name: str, message: str) -> ParameterError:
    return ParameterError(clip(f"param '{name}': {message}"))


def _digits(value: int) -> str:
    """A number; Python refuses to print very long ones."""
    return str(value) if value.bit_length() <= 128 else f"of {value.bit_length()} bits"


def _undeclared(query: str, value: object, declared: Mapping[str, PropType]) -> str:
    known = ", ".join(declared) or "none"
    reason = "object is not supported; it" if isinstance(value, Mapping) else "it"
    return f"{reason} is not declared by query '{query}' (parameters: {known})"


def _value(name: str, of: PropType, value: object) -> Value:
    if value is None:
        if of.nullable:
            return None
        raise _misfit(name, "null is not accepted for non-nullable parameter")
    if of.is_vector:
        return _vector(name, of, value)
    if not of.is_list:
        return _SCALARS[of.scalar](name, of.scalar, value)
    if not isinstance(value, list | tuple):
        raise _misfit(name, f"expected array for {PropType(of.scalar, is_list=True).display()}")
    item = PropType(of.scalar)
    return tuple(_value(name, item, one) for one in value)


def _vector(name: str, of: PropType, value: object) -> Value:
    shown = f"Vector({of.dimension})"
    if not isinstance(value, list | tuple):
        raise _misfit(name, f"expected array for {shown}")
    if len(value) != of.dimension:
        raise _misfit(name, f"expected {of.dimension} values for {shown}, got {len(value)}")
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in value):
        raise _misfit(name, "vector element is not numeric")
    numbers = tuple(_float(name, Scalar.F32, one) for one in value)
    if not all(map(math.isfinite, numbers)):
        raise _misfit(name, "vector element is not finite")
    return numbers


def _text(name: str, scalar: Scalar, value: object) -> Value:
    if isinstance(value, str):
        return _written(name, value)
    what = "blob URI string" if scalar is Scalar.BLOB else "string"
    raise _misfit(name, f"expected {what}, got {_json_type(value)}")


def _written(name: str, text: str) -> str:
    """Text that can be stored and compared; half of a surrogate pair stands for no character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ord(text[error.start])
        raise _misfit(name, f"half of a surrogate pair (\\u{half:04x}) at character {error.start + 1}") from None
    return text


def _integer(name: str, scalar: Scalar, value: object) -> Value:
    signed = scalar in (Scalar.I32, Scalar.I64)
    kind = "integer" if signed else "unsigned integer"
    if isinstance(value, str):
        digits = value.removeprefix("-") if signed else value
        if not (digits.isascii() and digits.isdigit()):
            raise _misfit(name, f"expected {kind} string, got '{value}'")
        value = int(value) if len(digits) <= 20 else INTEGER_RANGES[scalar][1] + 1
    if isinstance(value, float):
        raise _misfit(name, f"expected {kind} number")
    if not isinstance(value, int) or isinstance(value, bool):
        raise _misfit(name, f"expected {kind}, got {_json_type(value)}")
    low, high = INTEGER_RANGES[scalar]
    if not signed and value < 0:
        raise _misfit(name, f"expected {kind} number")
    if not low <= value <= high:
        raise _misfit(name, f"value {_digits(value)} exceeds {scalar}")
    return value


def _float(name: str, scalar: Scalar, value: object) -> float:
    if isinstance(value, float):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise _misfit(name, f"expected float, got {_json_type(value)}")
    stored = float_value(value, scalar)
    if stored is None:
        raise _misfit(name, f"value {_digits(value)} has no exact {scalar} value")
    if math.isinf(stored):
        raise _misfit(name, f"value is too large for {scalar}")
    return stored


def _boolean(name: str, scalar: Scalar, value: object) -> Value:
    if isinstance(value, bool):
        return value
    raise _misfit(name, f"expected boolean, got {_json_type(value)}")


def _date(name: str, scalar: Scalar, value: object) -> Value:
    if isinstance(value, date):
        return milliseconds(value) // _DAY if isinstance(value, datetime) else (value - _EPOCH.date()).days
    return instant(_dated(name, scalar, value), scalar)


def _datetime(name: str, scalar: Scalar, value: object) -> Value:
    if isinstance(value, datetime):
        return milliseconds(value)
    return instant(_dated(name, scalar, value), scalar)


def _dated(name: str, scalar: Scalar, value: object) -> str:
    if not isinstance(value, str):
        raise _misfit(name, f"expected {str(scalar).lower()} string, got {_json_type(value)}")
    return value


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    for kind, types in _JSON_TYPES.items():
        if isinstance(value, types):
            return kind
    return type(value).__name__


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "number": (int, float),
    "string": (str,),
    "array": (list, tuple),
    "object": (Mapping,),
}

_SCALARS: dict[Scalar, Callable[[str, Scalar, object], Value]] = {
    Scalar.STRING: _text,
    Scalar.BLOB: _text,
    Scalar.BOOL: _boolean,
    Scalar.I32: _integer,
    Scalar.I64: _integer,
    Scalar.U32: _integer,
    Scalar.U64: _integer,
    Scalar.F32: _float,
    Scalar.F64: _float,
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
}
