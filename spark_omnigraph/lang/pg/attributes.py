"""Everything that begins with `@`: annotations, and the constraints of a body."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from spark_omnigraph.catalog.types import Bound
from spark_omnigraph.errors import InputError
from spark_omnigraph.lang.pg.ast import (
    AnnotationUse,
    Argument,
    CheckConstraint,
    ColumnsConstraint,
    ConstraintDecl,
    RangeConstraint,
)
from spark_omnigraph.lang.pg.near_miss import FORMS, advice, resembles
from spark_omnigraph.lang.scanner import BOOLEAN, IDENTIFIER, NUMBER, SIGNED, STRING, WORD, Scanner
from spark_omnigraph.lang.source import Name, Region

_CONSTRAINT = re.compile("key|unique|index|range|check")
_I64 = range(-(2**63), 2**63)


_Kind = Literal["name", "string", "bounds", "literal"]


@dataclass(frozen=True, slots=True)
class _Argument:
    """One argument of a constraint: a property name, a string, `min..max`, or a literal that no constraint takes."""

    kind: _Kind
    region: Region
    token: Name | None = None
    min: Bound | None = None
    max: Bound | None = None


def constraint_name(scanner: Scanner) -> Name | None:
    """The name of the constraint at the position, which stays where it is."""
    start = scanner.skip()
    name = scanner.match(_CONSTRAINT) if scanner.take("@") else None
    opened = name is not None and scanner.peek("(")
    scanner.pos = start
    return name if opened else None


def parse_annotations(scanner: Scanner) -> tuple[AnnotationUse, ...]:
    """The annotations that come next; constraints of a body are none."""
    found: list[AnnotationUse] = []
    while scanner.peek("@") and constraint_name(scanner) is None:
        found.append(_annotation(scanner))
    return tuple(found)


def parse_constraint(scanner: Scanner) -> ConstraintDecl | None:
    """The constraint that comes next, if one does."""
    start = scanner.skip()
    name = constraint_name(scanner)
    if name is None:
        return None
    scanner.pos = name.region.end
    scanner.expect("(", f"after @{name.text}")
    arguments = [_argument(scanner)]
    while scanner.take(","):
        arguments.append(_argument(scanner))
    end = scanner.expect(")", f"or ',' after an argument of @{name.text}")
    region = Region(start, end.end)
    match name.text:
        case "key" | "unique" | "index" as rule:
            return ColumnsConstraint(rule, tuple(_column(scanner, a) for a in arguments), region)
        case "range":
            return _range(scanner, arguments, region)
        case _:
            return _check(scanner, arguments, region)


def _range(scanner: Scanner, arguments: list[_Argument], region: Region) -> RangeConstraint:
    if len(arguments) < 2:
        raise scanner.error(region, "@range requires property name and bounds: @range(prop, min..max)")
    column, bounds = _column(scanner, arguments[0]), arguments[1]
    if bounds.kind != "bounds":
        raise scanner.error(bounds.region, "expected range bounds (min..max) in @range constraint")
    return RangeConstraint(column, bounds.min, bounds.max, region, _surplus(arguments))


def _check(scanner: Scanner, arguments: list[_Argument], region: Region) -> CheckConstraint:
    if len(arguments) < 2:
        raise scanner.error(region, '@check requires property name and pattern: @check(prop, "regex")')
    column, pattern = _column(scanner, arguments[0]), arguments[1]
    if pattern.kind != "string" or pattern.token is None:
        raise scanner.error(pattern.region, "expected string argument in constraint: the pattern of @check")
    return CheckConstraint(column, scanner.decode(pattern.token), region, _surplus(arguments))


def _surplus(arguments: list[_Argument]) -> Region | None:
    return arguments[2].region.to(arguments[-1].region) if len(arguments) > 2 else None


def _column(scanner: Scanner, argument: _Argument) -> Name:
    if argument.kind != "name" or argument.token is None:
        raise scanner.error(argument.region, "expected property name in constraint")
    return argument.token


def _argument(scanner: Scanner) -> _Argument:
    bounds = _bounds(scanner)
    if bounds is not None:
        return bounds
    string = scanner.match(STRING)
    if string is not None:
        return _Argument("string", string.region, string)
    literal = _plain_literal(scanner)
    if literal is not None:
        return _Argument("literal", literal.region)
    name = scanner.match(IDENTIFIER)
    if name is None:
        raise scanner.unexpected("a property name, bounds such as 0..10, or a string")
    return _Argument("name", name.region, name)


def _bounds(scanner: Scanner) -> _Argument | None:
    """`min..max`, `min..` or `..max` if it comes next."""
    start = scanner.skip()
    low = scanner.match(SIGNED)
    if not scanner.take(".."):
        scanner.pos = start
        return None
    dots = scanner.pos
    high = scanner.match(SIGNED)
    if low is None and high is None:
        raise scanner.unexpected("a number after '..'")
    region = Region(start, dots if high is None else high.region.end)
    return _Argument("bounds", region, min=_bound(scanner, low), max=_bound(scanner, high))


def _bound(scanner: Scanner, number: Name | None) -> Bound | None:
    """An integer of 64 bits where the text is one, else the nearest float."""
    if number is None:
        return None
    digits = number.text.lstrip("-0")
    if "." not in digits and len(digits) < 20 and int(number.text) in _I64:
        return int(number.text)
    value = float(number.text)
    if math.isinf(value):
        raise scanner.error(number.region, "this bound is too large for a 64-bit float")
    return value


def _plain_literal(scanner: Scanner) -> Name | None:
    """A number or truth value if it comes next."""
    found = scanner.match(NUMBER) or scanner.match(BOOLEAN)
    if found is not None and found.text in ("true", "false"):
        glued = scanner.glued()
        if glued is not None:
            reason = f"'{found.text}' is read as a value here, so '{glued.text}' cannot be named"
            raise scanner.error(glued.region, f"{reason}; write the constraint after its property, or quote the text")
    return found


def _annotation(scanner: Scanner) -> AnnotationUse:
    start = scanner.expect("@", "")
    name = scanner.match(IDENTIFIER)
    if name is None:
        raise _not_a_name(scanner)
    try:
        value, arguments, end = _annotation_arguments(scanner, name)
    except InputError as error:
        known = name.text if name.text in FORMS else resembles(name.text)
        if known is None:
            raise
        problem = f"@{known} is not written like this" if known == name.text else _did_you_mean(name.text, known)
        raise scanner.error(name.region, f"{problem}; {advice(known)}") from error
    return AnnotationUse(name, value, arguments, Region(start.start, end))


def _annotation_arguments(scanner: Scanner, name: Name) -> tuple[str | None, tuple[Argument, ...], int]:
    """Value, keyword arguments, and where the annotation ends."""
    if not scanner.take("("):
        return None, (), name.region.end
    value = _literal(scanner)
    if value is None:
        word = scanner.match(IDENTIFIER)
        if word is None:
            raise scanner.unexpected(f"the value of @{name.text}: a string, a number, true, false or a name")
        value = word.text
    arguments: list[Argument] = []
    while scanner.take(","):
        arguments.append(_keyword_argument(scanner, name))
    end = scanner.expect(")", f"after the value of @{name.text}")
    return value, tuple(arguments), end.end


def _keyword_argument(scanner: Scanner, name: Name) -> Argument:
    key = scanner.match(IDENTIFIER)
    if key is None:
        raise scanner.unexpected(f'a keyword argument of @{name.text}, such as key="value"')
    scanner.expect("=", f"after '{key.text}': @{name.text} takes one value, then keyword arguments")
    value = _literal(scanner)
    if value is None:
        raise scanner.unexpected(f"a string, a number, true or false for '{key.text}'")
    return Argument(key, value)


def _literal(scanner: Scanner) -> str | None:
    """The text of the literal that comes next, if one does."""
    string = scanner.match(STRING)
    if string is not None:
        return scanner.decode(string)
    plain = _plain_literal(scanner)
    return None if plain is None else plain.text


def _not_a_name(scanner: Scanner) -> InputError:
    word = scanner.match(WORD)
    known = None if word is None else resembles(word.text)
    if word is not None and known is not None:
        return scanner.error(word.region, f"{_did_you_mean(word.text, known)}; {advice(known)}")
    if word is not None:
        scanner.pos = word.region.start
    return scanner.unexpected("the name of an annotation, which begins with a lower-case letter")


def _did_you_mean(name: str, known: str) -> str:
    return f"unknown annotation @{name}, did you mean @{known}?"
