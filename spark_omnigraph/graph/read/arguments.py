"""Arguments that are texts, as calls, the command line and Spark's options read them alike: times and JSON objects.

Imports nothing that the command line's help would wait for.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone

from spark_omnigraph.catalog.dates import instant_micros, parse_instant
from spark_omnigraph.errors import BadRequestError


def time_micros(moment: datetime | str) -> int:
    """Microseconds since the epoch of a time, UTC where it names no zone; BadRequestError for a text that is none."""
    if isinstance(moment, datetime):
        return instant_micros(moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc))
    found = parse_instant(moment)
    if found is None:
        raise BadRequestError(f"'{moment}' is not a time: use ISO 8601, such as 2026-01-31T12:00:00Z")
    return found[0] // 1000


def json_value(text: str) -> object:
    """A JSON value. ValueError with the end of a sentence for any other text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError:
        raise ValueError("has a number of too many digits") from None


def json_object(text: str) -> dict[str, object]:
    """The members of a JSON object. ValueError with the end of a sentence for any other text."""
    found = json_value(text)
    if not isinstance(found, dict):
        raise ValueError('must be a JSON object, such as {"name": "Ada"}')
    return found
