"""Schema and records of the race tests."""

from __future__ import annotations

import json

SCHEMA = """
node Part { code: String @key  tag: String  note: String? }
node Bin { code: String @key  tag: String }
edge In: Part -> Bin { tag: String }
"""


def records(tag: str, keys: list[str]) -> list[str]:
    """For each key one node of either type and one edge, all with the tag: a load that is seen in part shows."""
    lines = []
    for key in keys:
        lines.append(json.dumps({"type": "Part", "data": {"code": key, "tag": tag}}))
        lines.append(json.dumps({"type": "Bin", "data": {"code": key, "tag": tag}}))
        lines.append(json.dumps({"edge": "In", "from": key, "to": key, "data": {"id": f"in-{key}", "tag": tag}}))
    return lines
