"""Months of a graph whose types are exported now and then: made-up days, of which some have no commit and some many."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from spark_omnigraph import Graph, LoadOptions, VersionExpiredError
from spark_omnigraph.graph.export.tables import ExportOutcome, WrittenTable

SCHEMA = """
node P { name: String @key  n: U64?  at: DateTime?  tags: [String]? }
node Q { code: I32 @key }
edge E: P -> Q { w: F64? }
"""
EXTRA = SCHEMA.replace("n: U64?", "n: U64?  more: String?")
TABLES = {"node:P": "nodes/P", "node:Q": "nodes/Q", "edge:E": "edges/E"}
PLAIN = LoadOptions(build_indexes=False)
NAMES, CODES = "abcdefghij", range(6)
INSTANTS = ("9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z", "2026-01-31T12:00:00.000Z")

Export = Callable[[bool, int | None], dict[str, WrittenTable]]
"""An export: whether incremental, and of which version."""
Stored = Callable[[str], list[dict[str, Any]]]
"""Rows of a table by its place below the output, in order of ids."""


class Months:
    """Days of a graph, by a seed."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self.graph, self.dice = graph, random.Random(seed)
        self.seen: Counter[str] = Counter()

    def day(self) -> None:
        """No commit, or some."""
        for _ in range(self.dice.choice((0, 1, 1, 2, 3))):
            self.dice.choice((self._load, self._load, self._load, self._delete, self._overwrite, self._other))()

    def export(self, export: Export, stored: Stored) -> None:
        """An export, and what must hold behind it: the tables are the graph. Sometimes it is repeated."""
        incremental = self.dice.random() < 0.9
        try:
            done = export(incremental, None)
        except VersionExpiredError:
            if not incremental:
                raise
            self.seen["expired"] += 1
            done = export(False, None)
        self.check(stored)
        self.seen.update(str(each.outcome) for each in done.values())
        if self.dice.random() < 0.3:
            newest = self.graph.snapshot().version
            for version in (None, max(1, newest - 1)):  # a retry, and one that is late
                again = export(incremental, version) if self._is_shown(version) else {}
                assert {each.outcome for each in again.values()} <= {ExportOutcome.SAME}
            self.check(stored)
            self.seen["repeat"] += 1

    def check(self, stored: Stored) -> None:
        shown = rows_of(self.graph)
        for key, place in TABLES.items():
            assert [_plain(row) for row in stored(place)] == shown[key], (key, self.graph.snapshot().version)

    def _is_shown(self, version: int | None) -> bool:
        try:
            self.graph.snapshot(version=version)
        except VersionExpiredError:
            return False
        return True

    def _load(self) -> None:
        people = self.dice.sample(NAMES, 3)
        lines = [self._person(name) for name in people]
        lines += [json.dumps({"type": "Q", "data": {"code": self.dice.choice(CODES)}})]
        code = json.loads(lines[-1])["data"]["code"]
        edge = {"id": f"e{self.dice.randrange(8)}", "w": self.dice.choice((None, 0.5, -2.0))}
        lines += [json.dumps({"edge": "E", "from": people[0], "to": str(code), "data": edge})]
        self.graph.load(lines, "merge", options=PLAIN)

    def _person(self, name: str) -> str:
        values = {
            "n": self.dice.choice((None, 0, 2**64 - 1)),
            "at": self.dice.choice((None, *INSTANTS)),
            "tags": self.dice.choice((None, [], ["x", ""])),
        }
        return json.dumps({"type": "P", "data": {"name": name, **values}})

    def _delete(self) -> None:
        self.graph.delete("node:P", self.dice.sample(NAMES, 2))

    def _overwrite(self) -> None:
        if not self.graph.count("edge:E"):
            self.graph.load([self._person(name) for name in self.dice.sample(NAMES, 4)], "overwrite", options=PLAIN)

    def _other(self) -> None:
        what = self.dice.choice(("optimize", "branch", "schema", "cleanup"))
        self.seen[what] += 1
        if what == "optimize":
            self.graph.optimize()
        elif what == "branch":
            self.graph.create_branch("night")
            self.graph.load([self._person(self.dice.choice(NAMES))], "merge", branch="night", options=PLAIN)
            self.graph.merge_branch("night")
            self.graph.delete_branch("night")
        elif what == "schema":
            self.graph.apply_schema(SCHEMA if "more" in self.graph.schema() else EXTRA)
        else:
            self.graph.cleanup(timedelta(0), keep=3, confirm=True, force=True)


def rows_of(graph: Graph) -> dict[str, list[dict[str, Any]]]:
    """The rows of all types, in order of ids."""
    found: dict[str, list[dict[str, Any]]] = {key: [] for key in TABLES}
    for record in map(json.loads, graph.export()):
        key = f"node:{record['type']}" if "type" in record else f"edge:{record['edge']}"
        ends = {"src": record["from"], "dst": record["to"]} if "edge" in record else {}
        found[key].append({**record["data"], **ends})
    return {key: sorted(rows, key=lambda row: str(row["id"])) for key, rows in found.items()}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with instants as an export of lines writes them."""
    at = row.get("at")
    text = at.astimezone(dt.timezone.utc).isoformat(timespec="milliseconds") if at is not None else None
    return {**row, "at": text.replace("+00:00", "Z") if text else None} if "at" in row else row


def expire_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that states which a test has let go expire."""
    monkeypatch.setattr("spark_omnigraph.commit.owners.SKEW", 0.0)
