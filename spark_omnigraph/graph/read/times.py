"""Times that a caller names a state of the past by. Imports nothing that the command line's help would wait for."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from spark_omnigraph.errors import BadRequestError

_FRACTION = re.compile(r"[.,](\d+)")
_UTC = re.compile(r"[zZ]$")
_ZONE = re.compile(r"(:\d{2}(?:\.\d{6})?[+-]\d{2})(\d{2})$")


def time_micros(moment: datetime | str) -> int:
    """Microseconds since the epoch of a time; BadRequestError for a text that is none."""
    try:
        parsed = datetime.fromisoformat(_spelled_out(moment)) if isinstance(moment, str) else moment
    except ValueError as error:
        raise BadRequestError(f"'{moment}' is not a time: use ISO 8601, such as 2026-01-31T12:00:00Z") from error
    aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=timezone.utc)
    delta = aware - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _spelled_out(text: str) -> str:
    """A time as Python 3.10 reads it, too: microseconds in six digits, zones with a colon."""
    whole = _FRACTION.sub(lambda found: f".{found[1]:0<6.6}", text.strip())
    return _ZONE.sub(r"\1:\2", _UTC.sub("+00:00", whole))
