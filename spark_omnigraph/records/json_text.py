"""Values as JSON text that keeps every digit of a decimal."""

from __future__ import annotations

import json
from decimal import Decimal


def json_text(value: object) -> str:
    """What `json.dumps` writes, and decimals digit by digit instead of as floats.

    >>> json_text({"a": [Decimal("9007199254740993.5"), "é", None]})
    '{"a": [9007199254740993.5, "é", null]}'
    """
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        members = (f"{json.dumps(name, ensure_ascii=False)}: {json_text(member)}" for name, member in value.items())
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(json_text, value))}]"
    return json.dumps(value, ensure_ascii=False)
