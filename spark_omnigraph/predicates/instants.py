"""Texts of instants, as filters write them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_TEXT = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<clock>\d{2}:\d{2})(?::(?P<seconds>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"\s?(?P<zone>Z|z|[+-]\d{2}:?\d{2})?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def parse_instant(text: str) -> datetime | None:
    """Time of `2020-01-31`, `2020-01-31 05:00:00.5`, `2020-01-31T05:00:00Z` and the like; None for other texts.

    Without a zone the result has none. Digits below a microsecond must be zeros.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        return None
    fraction = (found["fraction"] or "").ljust(9, "0")
    if fraction[6:].strip("0"):
        return None
    seconds = found["seconds"] or "00"
    plain = f"{found['day']}T{found['clock'] or '00:00'}:{seconds}.{fraction[:6]}{_zone(found['zone'])}"
    try:
        return datetime.fromisoformat(plain)
    except ValueError:
        return None


def instant_micros(instant: datetime) -> int:
    """Microseconds since the epoch of a time with a zone."""
    return (instant - _EPOCH) // timedelta(microseconds=1)


def _zone(text: str | None) -> str:
    if text is None:
        return ""
    if text in ("Z", "z"):
        return "+00:00"
    return text if ":" in text else f"{text[:3]}:{text[3:]}"
