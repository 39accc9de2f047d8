"""Texts that spell a value: fields of CSV, and other texts where the caller asks for it (`coerce`)."""

from __future__ import annotations

import re

from spark_omnigraph.catalog.numbers import COUNT_DIGITS, Real
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.records.json_line import InvalidJsonError, parse_value

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""How numbers are spelt; zeros may lead, and a point may begin or end them."""
_NUMBER = re.compile(NUMBER, re.ASCII)
_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{COUNT_DIGITS}}}", re.ASCII)
BOOLS = {"true": True, "false": False}
_TEXTS = (Scalar.STRING, Scalar.DATE, Scalar.DATETIME, Scalar.BLOB)


def value_of_text(ptype: PropType, text: str) -> object:
    """The JSON value that a text spells for a property; the text itself where it spells none.

    >>> value_of_text(PropType(Scalar.I32), "007"), value_of_text(PropType(Scalar.I32), "7 "), value_of_text(
    ...     PropType(Scalar.BOOL), "TRUE"), value_of_text(PropType(Scalar.STRING), "7")
    (7, '7 ', True, '7')
    """
    if ptype.is_list or ptype.is_vector:
        return _array(text)
    if ptype.scalar in _TEXTS:
        return text
    if ptype.scalar is Scalar.BOOL:
        return BOOLS.get(text.lower(), text)
    if _WHOLE.fullmatch(text):
        return 0.0 if float(text) == 0 and text[0] == "-" and not ptype.scalar.is_integer else int(text)
    return Real(text) if _NUMBER.fullmatch(text) else text


def _array(text: str) -> object:
    try:
        found = parse_value(text)
    except InvalidJsonError:
        return text
    return found if isinstance(found, list) else text
