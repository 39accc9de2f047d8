"""The list of deliberate differences from the reference engine, and the page of the documentation made from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "conformance" / "differences.json"
PAGE = ROOT / "docs" / "deliberate-differences.md"

_HEAD = """\
# Deliberate differences from the reference engine

A conformance suite describes how the reference engine (revision 0.7.1) answers. Where its answer would lose or bend
data without a word, this project answers differently on purpose. Every difference is listed here, with the case of the
suite that shows it and the cases that pin down what we do instead. The list is checked both ways: a case that stands
here and passes all the same fails the test run, and so does a case that fails without standing here.

This page is made from `tests/conformance/differences.json` by `python -m tests.conformance`.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    name: str
    """The case of the suite that does not hold for us."""
    topic: str
    reference: str
    we: str
    reason: str
    ours: tuple[str, ...]
    """Names of our own cases that show what we do."""


def read_differences(path: Path = LIST) -> dict[str, Difference]:
    document = json.loads(path.read_text(encoding="utf-8"))
    listed = [Difference(**{**raw, "ours": tuple(raw["ours"])}) for raw in document["differences"]]
    by_name = {difference.name: difference for difference in listed}
    if len(by_name) != len(listed):
        raise ValueError(f"{path}: a case is listed twice")
    return by_name


def page(differences: dict[str, Difference]) -> str:
    """The Markdown text of the page, by topic and then in list order."""
    parts = [_HEAD]
    for topic in dict.fromkeys(difference.topic for difference in differences.values()):
        parts.append(f"\n## {topic}\n")
        for difference in differences.values():
            if difference.topic == topic:
                parts.append(_section(difference))
    return "".join(parts)


def _section(difference: Difference) -> str:
    shown = ", ".join(f"`{name}`" for name in difference.ours)
    return (
        f"\n### `{difference.name}`\n\n"
        f"- Reference: {difference.reference}\n"
        f"- Here: {difference.we}\n"
        f"- Why: {difference.reason}\n"
        f"- Shown by: {shown}\n"
    )
