"""Types of properties: `String`, `[I32]`, `enum(a, b)`, `Vector(3)`, each with an optional `?`."""

from __future__ import annotations

import re

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.lang.scanner import ENUM_VALUE, INTEGER, Scanner
from spark_omnigraph.lang.source import Name

_SCALARS = [s.value for s in Scalar if s is not Scalar.VECTOR]
_SCALAR = re.compile("|".join(sorted(_SCALARS, key=len, reverse=True)))  # DateTime before Date
_MAX_DIMENSION = 2**31 - 1


def prop_type(scanner: Scanner) -> PropType:
    """The type that has to come next."""
    if scanner.take("["):
        return _list(scanner)
    if scanner.take("enum"):
        return _enum(scanner)
    if scanner.take("Vector"):
        return _vector(scanner)
    scalar = scanner.match(_SCALAR)
    if scalar is None:
        raise scanner.unexpected(f"a type ({', '.join(_SCALARS)}, Vector(n), enum(…) or a list such as [String])")
    return PropType(Scalar(scalar.text), nullable=scanner.take("?"))


def _list(scanner: Scanner) -> PropType:
    item = scanner.match(_SCALAR)
    if item is None:
        raise scanner.unexpected(f"the type of the list's items, one of {', '.join(_SCALARS)}")
    if item.text == Scalar.BLOB.value:
        raise scanner.error(item.region, "list of Blob is not supported")
    if not scanner.take("]"):
        scanner.skip()
        glued = scanner.glued()
        if glued is not None:
            raise scanner.error(glued.region, f"unknown type '{glued.text}'")
        raise scanner.unexpected("']' after the type of the list's items")
    return PropType(Scalar(item.text), nullable=scanner.take("?"), is_list=True)


def _enum(scanner: Scanner) -> PropType:
    scanner.expect("(", "after enum")
    values = [_enum_value(scanner)]
    while scanner.take(","):
        values.append(_enum_value(scanner))
    scanner.expect(")", "or ',' after an enum value")
    seen: set[str] = set()
    for value in values:
        if value.text in seen:
            raise scanner.error(value.region, f"enum type cannot include duplicate values: '{value.text}'")
        seen.add(value.text)
    return PropType(Scalar.STRING, nullable=scanner.take("?"), enum_values=tuple(sorted(seen)))


def _enum_value(scanner: Scanner) -> Name:
    value = scanner.match(ENUM_VALUE)
    if value is None:
        raise scanner.unexpected("an enum value: letters, digits, '_' and '-', without quotes")
    return value


def _vector(scanner: Scanner) -> PropType:
    scanner.expect("(", "after Vector, with the dimension: Vector(3)")
    number = scanner.match(INTEGER)
    if number is None:
        raise scanner.unexpected("the dimension of the vector")
    scanner.expect(")", "after the dimension of the vector")
    return PropType(Scalar.VECTOR, nullable=scanner.take("?"), dimension=_dimension(scanner, number))


def _dimension(scanner: Scanner, number: Name) -> int:
    digits = number.text.lstrip("0")
    if not digits:
        raise scanner.error(number.region, "Vector dimension must be greater than zero")
    if len(digits) > 10 or int(digits) > _MAX_DIMENSION:
        shown = digits if len(digits) <= 40 else f"{digits[:40]}…"
        raise scanner.error(number.region, f"Vector dimension {shown} exceeds maximum supported {_MAX_DIMENSION}")
    return int(digits)
