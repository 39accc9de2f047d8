"""Merges of random histories against a merge in plain Python: three sets of rows and the rules (branches of branches,
merges that are repeated, criss-cross and back again, deletes and re-inserts, cascades, parallel edges, composite keys).

The model knows commits as a graph of its own and searches merge bases by brute force; nothing of the product's way is
used. The seed of a failing history is in the name of its test.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions, MergeConflictsError
from tests.support.three_way import ancestors, conflict_kind, merge_bases, merge_rows

SCHEMA = """
node Room { house: String  name: String  note: String?  size: F64?  shape: Vector(2)?  plan: Blob?  @key(house, name) }
edge Door: Room -> Room { width: I32? }
"""
PLAIN = LoadOptions(build_indexes=False)
Row = tuple[object, ...]
Key = tuple[str, str]
State = dict[Key, Row]
"""(table, id) → values; of an edge its ends come first."""


@dataclass
class Model:
    """Branches as heads of a graph of commits, each with its whole state."""

    states: list[State] = field(default_factory=lambda: [{}])
    parents: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    heads: dict[str, int] = field(default_factory=lambda: {"main": 0})

    def state(self, branch: str) -> State:
        return self.states[self.heads[branch]]

    def commit(self, branch: str, state: State, *merged: int) -> None:
        self.states.append(state)
        self.parents.append((self.heads[branch], *merged))
        self.heads[branch] = len(self.states) - 1

    def merge(self, source: str, target: str) -> set[tuple[str, str, str]] | None:
        """Merges, or gives the conflicts; None when there was nothing to do."""
        one, other = self.heads[source], self.heads[target]
        parents = dict(enumerate(self.parents))
        if one in ancestors(parents, other):
            return None
        theirs, ours = self.states[one], self.states[other]
        merged, keys = merge_rows(theirs, ours, [self.states[base] for base in merge_bases(parents, one, other)])
        conflicts = {(*key, conflict_kind(theirs.get(key), ours.get(key))) for key in keys}
        if not conflicts:
            rooms = {name for table, name in merged if table == "node:Room"}
            lost = (k for k, row in merged.items() if k[0] == "edge:Door" and not {row[0], row[1]} <= rooms)
            conflicts = {(*key, "orphan_edge") for key in lost}
        if not conflicts:
            self.commit(target, merged, one)
        return conflicts


class History:
    """One random history, played on the graph and on the model at once."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.graph = Graph.init(root / "g", SCHEMA)
        self.model = Model()

    def step(self) -> None:
        work = (
            self.write,
            self.write,
            self.write,
            self.delete,
            self.merge,
            self.merge,
            self.merge,
            self.branch,
            self.tidy,
        )
        self.random.choice(work)()

    def any_branch(self) -> str:
        return self.random.choice(list(self.model.heads))

    def branch(self) -> None:
        if len(self.model.heads) < 5:
            name, base = f"b{len(self.model.heads)}", self.any_branch()
            self.graph.create_branch(name, base)
            self.model.heads[name] = self.model.heads[base]

    def write(self) -> None:
        branch = self.any_branch()
        state = dict(self.model.state(branch))
        lines = []
        for _ in range(self.random.randint(1, 3)):
            lines.append(self.door(state) if self.random.random() < 0.4 and self.rooms(state) else self.room(state))
        before = self.model.state(branch)
        report = self.graph.load(lines, "merge", branch=branch, options=PLAIN)
        assert report.commit is not None
        assert state or not before
        self.model.commit(branch, state)

    def rooms(self, state: State) -> list[str]:
        return [name for table, name in state if table == "node:Room"]

    def room(self, state: State) -> str:
        house, name = self.random.choice("ab"), self.random.choice("xyz")
        size = self.random.choice([None, 0.0, -0.0, 1.5])
        shape = self.random.choice([None, [1.0, 2.0], [1.0, 3.0]])
        plan = self.random.choice([None, "base64:QUFB", "base64:QkJC", "base64:"])
        note = self.random.choice([None, "", "x", "x\u001fy"])
        data = {"house": house, "name": name, "note": note, "size": size, "shape": shape, "plan": plan}
        key = json.dumps([house, name], separators=(",", ":"))
        state["node:Room", key] = (note, repr(size), repr(shape), plan)
        return json.dumps({"type": "Room", "data": data})

    def door(self, state: State) -> str:
        ends = [self.random.choice(self.rooms(state)) for _ in range(2)]
        name, width = f"d{self.random.randint(0, 3)}", self.random.choice([None, 1, 2])
        state["edge:Door", name] = (*ends, width)
        return json.dumps({"edge": "Door", "from": ends[0], "to": ends[1], "data": {"id": name, "width": width}})

    def delete(self) -> None:
        branch = self.any_branch()
        state = self.model.state(branch)
        if not state:
            return
        table, name = self.random.choice(list(state))
        self.graph.delete(table, [name], branch=branch)
        left = {k: row for k, row in state.items() if k != (table, name)}
        if table == "node:Room":
            left = {k: row for k, row in left.items() if k[0] == "node:Room" or name not in row[:2]}
        self.model.commit(branch, left)

    def tidy(self) -> None:
        branch = self.any_branch()
        if self.random.random() < 0.5:
            self.graph.optimize(branch=branch)
        else:
            self.graph.ensure_indices(branch=branch)

    def merge(self) -> None:
        source, target = self.any_branch(), self.any_branch()
        if source == target:
            return
        expected = self.model.merge(source, target)
        try:
            report = self.graph.merge_branch(source, target)
        except MergeConflictsError as error:
            found = {(c.table_key, str(c.row_id), c.kind) for c in error.conflicts}
            told = {(t, i, "divergent" if kind.startswith("divergent") else kind) for t, i, kind in found}
            assert told == expected
            return
        assert not expected
        assert (str(report.outcome) == "already_up_to_date") is (expected is None)

    def check(self) -> None:
        for branch in self.model.heads:
            assert self.stored(branch) == self.model.state(branch), branch

    def stored(self, branch: str) -> State:
        state: State = {}
        for line in self.graph.export(branch=branch):
            record = json.loads(line)
            data = record["data"]
            if "edge" in record:
                state["edge:Door", data["id"]] = (record["from"], record["to"], data["width"])
            else:
                values = (data["note"], repr(data["size"]), repr(data["shape"]), data["plan"])
                state["node:Room", data["id"]] = values
        return state


def play(root: Path, seed: int, steps: int) -> None:
    history = History(root, seed)
    for _ in range(steps):
        history.step()
    history.check()


@pytest.mark.parametrize("seed", range(6))
def test_merges_are_those_of_the_model(tmp_path: Path, seed: int) -> None:
    play(tmp_path, seed, 25)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(100, 400))
def test_merges_are_those_of_the_model_in_many_histories(tmp_path: Path, seed: int) -> None:
    play(tmp_path, seed, 40)
