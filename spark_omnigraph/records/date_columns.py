"""Date and DateTime text, a column at a time.

The usual spellings are read with arithmetic on the bytes of all rows at once; whatever looks different goes through
`dates` value by value, so both accept the same text.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.dates import MS_PER_DAY, days_from_civil, parse_date, parse_datetime

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
_Bytes = npt.NDArray[np.uint8]

_DATE_LENGTH = 10
_TIME_LENGTH = 19
_LONGEST = 35
"""Characters of the longest text that is worth reading in bulk: nine fraction digits and a zone."""

_YEARS = np.arange(10_000)
_LEAP = ((_YEARS % 4 == 0) & ((_YEARS % 100 != 0) | (_YEARS % 400 == 0))).astype(np.int8) * np.int8(16)
"""16 for leap years, else 0: where the tables of months begin."""
_YEAR_START = (_YEARS * 365 + np.cumsum(_LEAP // 16) - _LEAP // 16 + days_from_civil(0, 1, 1)).astype(np.int32)


def _month_table(february: int) -> list[int]:
    return [0, 31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0]


_MONTH_DAYS = np.array(_month_table(28) + _month_table(29), dtype=np.int32)
"""Days of month m of a common year, and of a leap year 16 places further; 0 where there is no such month."""
_MONTH_START = np.concatenate([np.cumsum(_MONTH_DAYS[at : at + 16]) - _MONTH_DAYS[at : at + 16] for at in (0, 16)])


def read_dates(text: pa.Array) -> tuple[Int64s, Bools]:
    """Days of each row, and which rows hold text that is no date. Null rows are neither."""
    return _read(text, parse_date, in_days=True)


def read_datetimes(text: pa.Array) -> tuple[Int64s, Bools]:
    """Milliseconds of each row, and which rows hold text that is no point in time. Null rows are neither."""
    return _read(text, parse_datetime, in_days=False)


def _read(text: pa.Array, parse: Callable[[str], int | None], in_days: bool) -> tuple[Int64s, Bools]:
    count = len(text)
    values = np.zeros(count, dtype=np.int64)
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int32)[text.offset : text.offset + count + 1].astype(np.int64)
    data = np.frombuffer(text.buffers()[2] or b"", dtype=np.uint8)
    present = text.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.diff(offsets)
    todo = present.copy()
    in_use = np.bincount(np.minimum(lengths[present], _LONGEST + 1), minlength=_LONGEST + 2)
    for length in (_DATE_LENGTH, *range(_TIME_LENGTH, _LONGEST + 1)):
        if not in_use[length]:
            continue
        rows = np.flatnonzero(present & (lengths == length))
        found, good = _read_equal_lengths(_matrix(data, offsets, rows, length), in_days)
        values[rows] = found
        todo[rows[good]] = False
    bad = np.zeros(count, dtype=bool)
    seen: dict[str, int | None] = {}
    for row in np.flatnonzero(todo).tolist():
        value = text[row].as_py()
        if value not in seen:
            seen[value] = parse(value)
        result = seen[value]
        bad[row] = result is None
        values[row] = result or 0
    return values, bad


def _matrix(data: _Bytes, offsets: Int64s, rows: Int64s, length: int) -> _Bytes:
    """Characters of rows that have equal lengths: one row of the result per position, one column per text."""
    start, stop = int(offsets[rows[0]]), int(offsets[rows[-1] + 1])
    if stop - start == length * len(rows):
        block = data[start:stop].reshape(len(rows), length)
    else:
        block = data[offsets[rows][:, None] + np.arange(length)]
    return np.ascontiguousarray(block.T)


def _read_equal_lengths(chars: _Bytes, in_days: bool) -> tuple[Int64s, Bools]:
    """Values, and which of them are sure; the others may still be text that `dates` understands."""
    days, good = _calendar_days(chars)
    if len(chars) == _DATE_LENGTH:
        return (days if in_days else days * MS_PER_DAY), good
    good &= (chars[10] == ord("T")) | (chars[10] == ord(" ")) | (chars[10] == ord("t"))
    hours, minutes, seconds = (_number(chars[at : at + 2], good) for at in (11, 14, 17))
    good &= (chars[13] == ord(":")) & (chars[16] == ord(":")) & (hours < 24) & (minutes < 60) & (seconds < 60)
    millis, offset = _tail(chars[_TIME_LENGTH:], good)
    total = days * MS_PER_DAY + (((hours * 60 + minutes - offset) * 60 + seconds) * 1000 + millis)
    return (total // MS_PER_DAY if in_days else total), good


def _calendar_days(chars: _Bytes) -> tuple[Int64s, Bools]:
    good = (chars[4] == ord("-")) & (chars[7] == ord("-"))
    year, month, day = _number(chars[0:4], good), _number(chars[5:7], good), _number(chars[8:10], good)
    # Rows that are not good may have any value here: keep them inside the tables.
    year = np.minimum(year, 9999)
    month = np.minimum(month, 15) + _LEAP[year]
    good &= (day >= 1) & (day <= _MONTH_DAYS[month])
    return (_YEAR_START[year] + _MONTH_START[month] + (day - 1)).astype(np.int64), good


def _tail(chars: _Bytes, good: Bools) -> tuple[Int32s, Int32s]:
    """Milliseconds and zone offset in minutes from what follows the seconds; clears `good` where it looks different.

    All rows are read as the first one looks: rows of one length hardly ever differ.
    """
    none = np.zeros(chars.shape[1], dtype=np.int32)
    offset = none
    if len(chars) and chars[-1][0] in b"Zz":
        good &= (chars[-1] == ord("Z")) | (chars[-1] == ord("z"))
        chars = chars[:-1]
    elif len(chars) >= 6 and chars[-6][0] in b"+-":
        sign, hours, minutes = chars[-6], _number(chars[-5:-3], good), _number(chars[-2:], good)
        good &= ((sign == ord("+")) | (sign == ord("-"))) & (chars[-3] == ord(":")) & (hours < 24) & (minutes < 60)
        offset = (hours * 60 + minutes) * np.where(sign == ord("-"), np.int32(-1), np.int32(1))
        chars = chars[:-6]
    if not len(chars):
        return none, offset
    if len(chars) == 1:
        good[:] = False
        return none, offset
    good &= chars[0] == ord(".")
    digits = chars[1:]
    for further in digits[3:]:
        good &= further - np.uint8(ord("0")) <= 9
    millis = _number(digits[:3], good) * np.int32(10 ** max(0, 3 - len(digits)))
    return millis, offset


def _number(chars: _Bytes, good: Bools) -> Int32s:
    """Decimal value of the digits of each column; clears `good` where a character is no digit."""
    value = np.zeros(chars.shape[1], dtype=np.int32)
    for digits in chars - np.uint8(ord("0")):
        good &= digits <= 9
        value *= 10
        value += digits
    return value
