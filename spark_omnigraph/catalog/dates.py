"""Date and DateTime text, one value at a time: what is accepted, what it means, and how an instant is shown."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

MS_PER_DAY = 86_400_000
DATE_MIN, DATE_MAX = -719_162, 2_932_896
"""Days of the years 1 to 9999: what a property stores. Only these have a text and a value in Spark and in Python."""
INSTANT_MIN, INSTANT_MAX = DATE_MIN * MS_PER_DAY, (DATE_MAX + 1) * MS_PER_DAY - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_ZONE = r" ?(?:(?P<utc>[Zz])|(?P<sign>[+-])(?P<zone_hour>\d\d):(?P<zone_minute>\d\d))"
_DATE = re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})", re.ASCII)
_BASIC_DATE = re.compile(r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)", re.ASCII)
_EXTENDED_DATE = re.compile(r"(?P<year>[+-]\d{4,6})-(?P<month>\d{1,2})-(?P<day>\d{1,2})", re.ASCII)
_DATETIME = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[Tt ]"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d+))?"
    rf"(?:{_ZONE})?",
    re.ASCII,
)
_INSTANT = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[Tt ](?P<hour>\d\d)(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?)?)?"
    r"(?P<zone> ?(?:[Zz]|(?P<sign>[+-])(?P<zone_hour>\d\d):?(?P<zone_minute>\d\d)))?",
    re.ASCII,
)
_LONGEST_DATE = 10
"""Characters; longer text is a point in time, unless it has a signed year."""
_NANO_DIGITS = 9
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_date(text: str) -> int | None:
    """Days since 1970-01-01 of a date, or of a point in time in UTC; None for any other text.

    >>> parse_date("1970-1-2"), parse_date("2024-01-05T23:30:00-02:00"), parse_date("05/01/2024")
    (1, 19728, None)
    """
    if len(text) > _LONGEST_DATE and not _EXTENDED_DATE.fullmatch(text):
        instant = parse_datetime(text)
        return None if instant is None else instant // MS_PER_DAY
    return parse_day(text)


def parse_day(text: str) -> int | None:
    """Days since 1970-01-01 of a date; None for any other text, points in time too."""
    match = _EXTENDED_DATE.fullmatch(text) or _DATE.fullmatch(text) or _BASIC_DATE.fullmatch(text)
    return None if match is None else _days(match)


def parse_datetime(text: str) -> int | None:
    """Milliseconds since the epoch of a point in time (no zone means UTC), or of a date at midnight.

    >>> parse_datetime("1970-01-01T00:00:01.9999Z"), parse_datetime("2024-01-05T10:11Z")
    (1999, None)
    """
    if len(text) <= _LONGEST_DATE:
        days = parse_date(text)
        return None if days is None else days * MS_PER_DAY
    match = _DATETIME.fullmatch(text)
    seconds = None if match is None else _seconds(match)
    if match is None or seconds is None:
        return None
    return seconds * 1000 + int(f"{match['fraction'] or ''}000"[:3])


def parse_instant(text: str) -> tuple[int, bool] | None:
    """Nanoseconds since the epoch of a time as people write it, and whether it names its zone (UTC is taken otherwise).

    The time of day, its minutes and its seconds may be missing, and a space may stand before the zone. None for any
    other text, and for digits below a nanosecond that are not zeros.

    >>> parse_instant("1970-01-02"), parse_instant("1970-01-01 01:00:00.5+0100"), parse_instant("yesterday")
    ((86400000000000, False), (500000000, True), None)
    """
    match = _INSTANT.fullmatch(text.strip())
    seconds = None if match is None else _seconds(match)
    if match is None or seconds is None:
        return None
    fraction = (match["fraction"] or "").rstrip("0")
    if len(fraction) > _NANO_DIGITS:
        return None
    return seconds * 10**_NANO_DIGITS + int(fraction.ljust(_NANO_DIGITS, "0")), match["zone"] is not None


def instant_micros(at: datetime) -> int:
    """Microseconds since the epoch of a time with a zone."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def _seconds(match: re.Match[str]) -> int | None:
    """Seconds since the epoch of the matched date, time of day and zone; None when no calendar or clock has them."""
    days = _days(match)
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    offset = 0
    if match["sign"]:
        zone_hour, zone_minute = int(match["zone_hour"]), int(match["zone_minute"])
        if zone_hour > 23 or zone_minute > 59:
            return None
        offset = (zone_hour * 60 + zone_minute) * (-1 if match["sign"] == "-" else 1)
    return ((days * 24 + hour) * 60 + minute - offset) * 60 + second


def moment(micros: int) -> datetime:
    """The instant of so many microseconds since the epoch, exactly, in UTC; none beyond the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=micros)


def moment_text(at: datetime) -> str:
    """The one text of an instant: ISO 8601 in UTC to the millisecond, what is below it cut off.

    >>> moment_text(moment(1_704_449_472_001_999))
    '2024-01-05T10:11:12.001Z'
    """
    return at.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def second_text(seconds: float) -> str:
    """So many seconds since the epoch, for a message.

    >>> second_text(1_704_449_472.5)
    '2024-01-05 10:11:12 UTC'
    """
    return f"{datetime.fromtimestamp(max(seconds, 0.0), timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _days(match: re.Match[str]) -> int | None:
    """Days since the epoch of the matched year, month and day; None when no calendar has it."""
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] + (month == 2 and _is_leap(year)):
        return None
    return days_from_civil(year, month, day)


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; any year.

    The year is taken to begin in March, so that the leap day is its last.
    """
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
