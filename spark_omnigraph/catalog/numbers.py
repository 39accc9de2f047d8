"""Numbers as they were written, judged by their digits instead of by the nearest float, and 32-bit floats."""

from __future__ import annotations

import math
import re
import struct

from spark_omnigraph.catalog.types import Scalar

_NUMBER = re.compile(r"([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?)0*(\d*))?", re.ASCII)
_LONGEST = 400
"""Digits; longer integers exceed every type, and spelling them out takes time that grows with the square."""
_LONGEST_EXPONENT = 18
"""Digits of an exponent; a text of so many digits before or after its point fits in no memory."""
COUNT_DIGITS = 18
"""Digits of the largest count or version that a text gives: what fits into 64 bits, and turns from text at once."""
BEYOND: int = 10**_LONGEST
"""Stands for every integer that is so large, with their sign."""
_FLOAT32 = struct.Struct("<f")


class Real(float):
    """A number written with a fraction or an exponent (or too long, or `-0`), and how it was written."""

    text: str

    def __new__(cls, text: str) -> Real:
        real = super().__new__(cls, text)
        real.text = text
        return real


def integer_of(text: str) -> int | None:
    """The integer that a decimal number means; None for one with a fraction, however small, and for other text.

    Never takes longer than reading the text: integers of more than 400 digits are all `BEYOND`, or its negative.

    >>> integer_of("2.50e1"), integer_of("1e-400"), integer_of("9007199254740993.0"), integer_of("-0")
    (25, None, 9007199254740993, 0)
    """
    found = _NUMBER.fullmatch(text)
    if found is None or not (found[2] or found[3]):
        return None
    digits = (found[2] + found[3]).lstrip("0")
    if not digits:
        return 0
    significant = digits.rstrip("0")
    zeros = len(digits) - len(significant) - len(found[3]) + _exponent(found[4], found[5])
    if zeros < 0:
        return None
    whole: int = BEYOND if len(significant) + zeros > _LONGEST else int(significant) * 10**zeros
    return -whole if found[1] == "-" else whole


def count_of(text: str) -> int | None:
    """The number that ASCII digits alone mean; None for other texts, and for more than COUNT_DIGITS besides zeros
    before them.

    >>> count_of("0042"), count_of("-1"), count_of("\u00b2"), count_of("9" * 19)
    (42, None, None, None)
    """
    digits = text.lstrip("0")
    return int(digits or "0") if text.isascii() and text.isdigit() and len(digits) <= COUNT_DIGITS else None


def integral(value: object) -> int | None:
    """The integer that a JSON number means: integers, and numbers whose fraction is zero. None for anything else.

    A number that was read from text is judged by its digits: the nearest float may have lost its fraction.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, Real):
        return integer_of(value.text)
    if not isinstance(value, float):
        return None
    if math.isinf(value):
        return BEYOND if value > 0 else -BEYOND
    return int(value) if value.is_integer() else None


def single(value: float) -> float:
    """The 32-bit float next to a number, infinity above the largest."""
    try:
        return float(_FLOAT32.unpack(_FLOAT32.pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def float_value(value: int | float, scalar: Scalar) -> float | None:
    """The stored float of a number; infinite when it overflows, None for an integer that no such float equals."""
    if isinstance(value, int):
        if abs(value) > 2**128 and scalar is Scalar.F32:
            return math.inf
        try:
            wide = float(value)
        except OverflowError:
            return math.inf
        stored = single(wide) if scalar is Scalar.F32 else wide
        return stored if math.isinf(stored) or int(stored) == value else None
    return single(value) if scalar is Scalar.F32 else float(value)


def _exponent(sign: str | None, digits: str | None) -> int:
    if not digits:
        return 0
    size = int(digits) if len(digits) <= _LONGEST_EXPONENT else 10**_LONGEST_EXPONENT
    return -size if sign == "-" else size
