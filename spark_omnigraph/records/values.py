"""One JSON value → the value a property stores, exactly, or the rule it breaks."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Sequence
from functools import partial

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.dates import DATE_MAX, DATE_MIN, INSTANT_MAX, INSTANT_MIN, parse_date, parse_datetime
from spark_omnigraph.catalog.numbers import Real, float_value, integral
from spark_omnigraph.catalog.types import ARROW_NAMES, INTEGER_RANGES, Property, PropType, Scalar
from spark_omnigraph.records.json_line import show
from spark_omnigraph.records.json_numbers import whole_number
from spark_omnigraph.records.json_texts import value_of_text
from spark_omnigraph.records.mode import BLOB_SCHEMES, REMOTE_SCHEMES
from spark_omnigraph.redaction import cut

BASE64_PREFIX = "base64:"
_BLOB_URI = re.compile(
    rf"(?:{'|'.join(BLOB_SCHEMES)})://[\w.~%!$&'()*+,;=@-]*(?::\d{{1,4}})?(?:/(?:[^\x00-\x1f]*[^\x00-\x20])?)?",
    re.ASCII | re.IGNORECASE,
)


class BadValueError(ValueError):
    """A value that its property cannot store: the broken rule and the message of the report."""

    def __init__(self, rule: Rule, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message


Reader = Callable[[object], object]


def value_reader(prop: Property, blob_schemes: Sequence[str] = REMOTE_SCHEMES, coerce: bool = False) -> Reader:
    """Function from a JSON value to what a property stores; it raises BadValueError. A missing member is null.

    Dates are days, points in time milliseconds, vectors and lists are lists, blobs a dict of `data` and `uri`. With
    `coerce` a text may also spell the value.
    """
    read = _reader(prop, blob_schemes, coerce)
    nullable, required = prop.type.nullable, _required(prop)

    def read_or_null(value: object) -> object:
        if value is not None:
            return read(value)
        if nullable:
            return None
        raise BadValueError(Rule.REQUIRED, required)

    return read_or_null


def _reader(prop: Property, blob_schemes: Sequence[str], coerce: bool) -> Reader:
    ptype = prop.type
    if ptype.scalar is Scalar.BLOB:
        return partial(read_blob, prop.name, schemes=blob_schemes)
    read: Reader = partial(_vector, prop)
    if not ptype.is_vector:
        read = partial(_READERS[ptype.scalar], _Place(prop.name, ptype))
        if ptype.is_list:
            read = partial(_list, prop.name, _spelt(PropType(ptype.scalar), read) if coerce else read)
    return _spelt(ptype, read) if coerce else read


def _spelt(ptype: PropType, read: Reader) -> Reader:
    """A reader that takes the value which a text spells, and of other texts says what it says of texts."""
    return lambda value: read(value_of_text(ptype, value) if isinstance(value, str) else value)


def _required(prop: Property) -> str:
    if prop.type.is_vector:
        return f"non-nullable vector property '{prop.name}' has null values"
    if prop.type.scalar is Scalar.BLOB:
        return f"non-nullable blob property '{prop.name}' has null values"
    return f"non-nullable property '{prop.name}' has null or invalid values: it is missing or null"


def read_blob(name: str, value: object, schemes: Sequence[str] = REMOTE_SCHEMES) -> dict[str, object]:
    """Children of a blob value: the bytes behind `base64:`, any other text as a reference of one of the schemes."""
    expected = f"blob property '{name}' must be a URI string or base64: prefixed data"
    if not isinstance(value, str):
        raise BadValueError(Rule.INVALID_BLOB, expected)
    if not value.startswith(BASE64_PREFIX):
        if _BLOB_URI.fullmatch(value) is None:
            raise BadValueError(Rule.INVALID_BLOB, f"{expected}; storage cannot refer to {show(value)}")
        scheme = value.partition(":")[0].lower()
        if scheme not in schemes:
            raise BadValueError(
                Rule.INVALID_BLOB,
                f"blob property '{name}' refers to '{scheme}:', which this load does not allow "
                f"({', '.join(schemes) or 'it allows no references'}); blob_schemes (blobSchemes in Spark) does",
            )
        return {"data": None, "uri": value}
    text = value.removeprefix(BASE64_PREFIX)
    try:
        data = base64.b64decode(text.encode(), validate=True)
    except binascii.Error as error:
        reason = str(error)
    else:
        if base64.b64encode(data).decode() == text:
            return {"data": data, "uri": None}
        reason = "the last character has bits that belong to no byte"
    raise BadValueError(Rule.INVALID_BLOB, f"invalid base64 blob data: {reason}")


class _Place:
    """Where a scalar stands, for messages."""

    def __init__(self, name: str, ptype: PropType) -> None:
        self.name = name
        self.scalar = ptype.scalar
        self.is_item = ptype.is_list
        self.nullable = ptype.nullable

    def wrong_type(self, value: object) -> BadValueError:
        return BadValueError(Rule.WRONG_TYPE, f"{self._expects()}, got {show(value)}")

    def out_of_range(self, value: object) -> BadValueError:
        return BadValueError(Rule.OUT_OF_RANGE, f"{self._subject()} {show(value)} exceeds {self._stored()} range")

    def not_a_number(self, value: object) -> BadValueError:
        return BadValueError(
            Rule.OUT_OF_RANGE, f"{self._subject()} {show(value)} is not finite, which no record can carry"
        )

    def inexact(self, value: object) -> BadValueError:
        return BadValueError(Rule.OUT_OF_RANGE, f"{self._subject()} {show(value)} has no exact {self._stored()} value")

    def _expects(self) -> str:
        if self.is_item:
            return f"list property '{self.name}' expects {self.scalar} items"
        hint = {Scalar.DATE: " (text or whole days)", Scalar.DATETIME: " (text or whole milliseconds)"}
        expects = f"expects {self.scalar}{hint.get(self.scalar, '')}"
        if self.nullable:
            return f"property '{self.name}' {expects}"
        return f"non-nullable property '{self.name}' has null or invalid values: {expects}"

    def _subject(self) -> str:
        return "list value" if self.is_item else f"property '{self.name}': value"

    def _stored(self) -> str:
        return ARROW_NAMES[self.scalar]


def _string(place: _Place, value: object) -> object:
    if not isinstance(value, str):
        raise place.wrong_type(value)
    return value


def _bool(place: _Place, value: object) -> object:
    if not isinstance(value, bool):
        raise place.wrong_type(value)
    return value


def _integer(place: _Place, value: object) -> object:
    whole = integral(value)
    if whole is None:
        raise place.wrong_type(value)
    low, high = INTEGER_RANGES[place.scalar]
    if not low <= whole <= high:
        raise place.out_of_range(value)
    return whole


def _float(place: _Place, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise place.wrong_type(value)
    stored = float_value(value, place.scalar)
    if stored is None:
        raise place.inexact(value)
    if math.isnan(stored):
        raise place.not_a_number(value)
    if math.isinf(stored):
        raise place.out_of_range(value)
    return stored


def _date(place: _Place, value: object) -> object:
    bounds = (DATE_MIN, DATE_MAX)
    if isinstance(value, str):
        return _in_years(value, parse_date(value), bounds, "Date")
    return _whole(place, value, bounds)


def _datetime(place: _Place, value: object) -> object:
    bounds = (INSTANT_MIN, INSTANT_MAX)
    if isinstance(value, str):
        return _in_years(value, parse_datetime(value), bounds, "DateTime")
    return _whole(place, value, bounds)


_TAKEN = {
    "Date": "2024-01-31, 20240131 and whole days since 1970",
    "DateTime": "2024-01-31, 2024-01-31T10:30:00 with .123, Z or +01:00 (no zone: UTC), whole milliseconds since 1970",
}


def _in_years(text: str, stored: int | None, bounds: tuple[int, int], kind: str) -> int:
    if stored is None:
        raise BadValueError(Rule.INVALID_DATE, f"invalid {kind} literal '{cut(text)}'; taken are {_TAKEN[kind]}")
    if not bounds[0] <= stored <= bounds[1]:
        raise BadValueError(Rule.INVALID_DATE, f"invalid {kind} literal '{cut(text)}': outside the years 1 to 9999")
    return stored


def _whole(place: _Place, value: object, bounds: tuple[int, int]) -> int:
    stored = whole_number(value)
    if stored is None:
        if isinstance(value, Real) and not value.text.strip("-0123456789"):
            raise BadValueError(Rule.OUT_OF_RANGE, f"{place.scalar} value out of range: {show(value)}")
        raise place.wrong_type(value)
    if not bounds[0] <= stored <= bounds[1]:
        raise BadValueError(Rule.OUT_OF_RANGE, f"{place.scalar} value out of range: {show(value)}")
    return stored


_READERS: dict[Scalar, Callable[[_Place, object], object]] = {
    Scalar.STRING: _string,
    Scalar.BOOL: _bool,
    Scalar.I32: _integer,
    Scalar.I64: _integer,
    Scalar.U32: _integer,
    Scalar.U64: _integer,
    Scalar.F32: _float,
    Scalar.F64: _float,
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
}


def _list(name: str, read: Reader, value: object) -> list[object]:
    if not isinstance(value, list):
        raise BadValueError(Rule.WRONG_TYPE, f"list property '{name}' expects a JSON array, got {show(value)}")
    return [None if item is None else read(item) for item in value]


def _vector(prop: Property, value: object) -> list[float]:
    name, dimension = prop.name, prop.type.dimension
    if not isinstance(value, list):
        message = f"vector property '{name}' expects a JSON array, got {show(value)}"
        raise BadValueError(Rule.WRONG_TYPE, message)
    if len(value) != dimension:
        message = f"vector property '{name}' expects {dimension} dimensions, got {len(value)}"
        raise BadValueError(Rule.VECTOR_LENGTH, message)
    return [_component(name, item) for item in value]


def _component(name: str, item: object) -> float:
    if isinstance(item, bool) or not isinstance(item, (int, float)):
        message = f"vector property '{name}' expects numbers, got {show(item)}"
        raise BadValueError(Rule.WRONG_TYPE, message)
    stored = float_value(item, Scalar.F32)
    if stored is None or not math.isfinite(stored):
        message = f"vector property '{name}': value {show(item)} has no finite Float32 value"
        raise BadValueError(Rule.OUT_OF_RANGE, message)
    return stored
