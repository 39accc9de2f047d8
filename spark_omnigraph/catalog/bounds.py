"""Spellings of numeric bounds: the schema hash depends on every character of them."""

from __future__ import annotations

from decimal import Decimal

from spark_omnigraph.catalog.types import Bound


def json_float(value: float) -> str:
    """A finite float as the reference engine's JSON writer prints it.

    Shortest digits that read back to the same float; plain notation from 1e-5 to below 1e16, else an exponent
    with its sign.

    >>> json_float(0.5), json_float(0.00001), json_float(0.000001), json_float(1e16)
    ('0.5', '0.00001', '1e-6', '1e+16')
    """
    return _spell(value, lowest=-5, plus="+")


def debug_bound(bound: Bound | None) -> str:
    """A bound in the debug notation that constraints are sorted by.

    >>> debug_bound(0), debug_bound(-1.5), debug_bound(0.00001), debug_bound(None)
    ('Some(Integer(0))', 'Some(Float(-1.5))', 'Some(Float(1e-5))', 'None')
    """
    if bound is None:
        return "None"
    if isinstance(bound, int):
        return f"Some(Integer({bound}))"
    return f"Some(Float({_spell(bound, lowest=-4, plus='')}))"


def _spell(value: float, lowest: int, plus: str) -> str:
    sign, digits, exponent = _shortest(value)
    if digits == "0":
        return f"{sign}0.0"
    if exponent < lowest or exponent >= 16:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{plus if exponent > 0 else ''}{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1], digits[exponent + 1 :]
    return f"{sign}{whole.ljust(exponent + 1, '0')}.{fraction or '0'}"


def _shortest(value: float) -> tuple[str, str, int]:
    """Sign, shortest digits without zeros at the end, and the decimal exponent of the first digit."""
    parts = Decimal(repr(value)).as_tuple()
    if not isinstance(parts.exponent, int):
        raise ValueError(f"not a finite number: {value}")
    written = "".join(map(str, parts.digits))
    digits = written.rstrip("0") or "0"
    return ("-" if parts.sign else ""), digits, len(written) - 1 + parts.exponent
