"""Records of JSON lines as texts to be embedded, and which of them are chosen."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from spark_omnigraph.errors import BadRequestError

_SELECTOR = re.compile(r"(?:([^:=]*):)?([^=]*)=(.*)", re.DOTALL)


def record_text(type_name: str, fields: Sequence[str], values: Sequence[object]) -> str:
    r"""The text of an entity: its type, then each field that has something to say, one a line.

    >>> record_text("Memo", ["title", "tags", "n"], ["  Bees ", ["a", "", "b"], 3])
    'type: Memo\ntitle: Bees\ntags: a, b\nn: 3'
    """
    told = ((field, rendered(value)) for field, value in zip(fields, values, strict=True))
    return "\n".join([f"type: {type_name}", *(f"{field}: {text}" for field, text in told if text)])


def rendered(value: object) -> str:
    """A JSON value for a reader: texts trimmed, lists by their items, objects as JSON, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return ", ".join(filter(None, map(rendered, value)))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Selector(NamedTuple):
    """Entities whose field says a text; of one type, or of any."""

    type_name: str | None
    field: str
    value: str


def parse_selector(text: str) -> Selector:
    """`field=value` or `Type:field=value`. BadRequestError for anything else."""
    found = _SELECTOR.fullmatch(text)
    if found is None:
        raise BadRequestError(f"selector must be field=value or Type:field=value, got '{text}'")
    type_name, field, value = (part.strip() for part in found.groups(""))
    if not field:
        raise BadRequestError(f"selector field cannot be empty: '{text}'")
    return Selector(type_name or None, field, value)
