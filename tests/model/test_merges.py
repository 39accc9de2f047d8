"""Merges of random histories against a merge in plain Python: three sets of rows and the rules (branches of branches,
merges that are repeated, criss-cross and back again, deletes and re-inserts, cascades, parallel edges, composite keys).

The model knows commits as a graph of its own and searches merge bases by brute force; nothing of the product's way is
used. The seed of a failing history is in the name of its test.
"""

from __future__ import annotations

import json
import random
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions, MergeConflictsError
from tests.support.cases import Json
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
        if self.is_contained(source, target):
            return None
        theirs, ours = self.state(source), self.state(target)
        merged, keys, _ = self.outcome(source, target)
        conflicts = {(*key, conflict_kind(theirs.get(key), ours.get(key))) for key in keys}
        if not conflicts:
            conflicts = {(*key, "orphan_edge") for key in self.orphans(merged)}
        if not conflicts:
            self.commit(target, merged, self.heads[source])
        return conflicts

    def is_contained(self, source: str, target: str) -> bool:
        return self.heads[source] in ancestors(dict(enumerate(self.parents)), self.heads[target])

    def outcome(self, source: str, target: str) -> tuple[State, set[Key], list[State]]:
        """The merged state, rows in conflict, which are the target's there, and the states of the bases."""
        parents = dict(enumerate(self.parents))
        bases = [self.states[base] for base in merge_bases(parents, self.heads[source], self.heads[target])]
        return *merge_rows(self.state(source), self.state(target), bases), bases

    def orphans(self, state: State) -> set[Key]:
        rooms = {name for table, name in state if table == "node:Room"}
        return {k for k, row in state.items() if k[0] == "edge:Door" and not {row[0], row[1]} <= rooms}


class History:
    """One random history, played on the graph and on the model at once."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
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
            self.settle,
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

    def write(self, where: str | None = None) -> None:
        branch = where or self.any_branch()
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
        branch, what = self.any_branch(), self.random.random()
        if what < 0.4:
            self.graph.optimize(branch=branch)
        elif what < 0.7:
            self.graph.ensure_indices(branch=branch)
        else:
            self.graph.cleanup(timedelta(hours=1), confirm=True)

    def settle(self) -> None:
        """A merge in which one side wins every conflict: what it discards is in the file of conflicts, with its rows,
        and the preview, after which the target moves, has promised nothing.
        """
        source, target = self.any_branch(), self.any_branch()
        side, file = self.random.choice(["source", "target"]), self.root / "conflicts.jsonl"
        if source == target or self.model.is_contained(source, target):
            return
        choices = {"on_conflict": side, "conflicts": file}
        with suppress(MergeConflictsError):
            self.graph.merge_branch(source, target, dry_run=True, **choices)  # type: ignore[arg-type]  # a path and a text
        if self.random.random() < 0.5:
            self.write(target)
        merged, disputed, bases = self.model.outcome(source, target)
        theirs, ours = self.model.state(source), self.model.state(target)
        if side == "source":
            taken = {key: theirs[key] for key in disputed if key in theirs}
            merged = {key: row for key, row in merged.items() if key not in disputed} | taken
        lost = self.model.orphans(merged)
        if lost:
            with pytest.raises(MergeConflictsError) as caught:
                self.graph.merge_branch(source, target, **choices)  # type: ignore[arg-type]  # a path and a text
            assert {(c.table_key, str(c.row_id)) for c in caught.value.conflicts} == lost
            return
        self.graph.merge_branch(source, target, **choices)  # type: ignore[arg-type]  # a path and a text
        lines = [json.loads(line) for line in file.read_text().split("\n") if line]
        told = {(line["table"], line["id"]): [line[name] for name in ("source", "target", "base")] for line in lines}
        assert told.keys() == disputed
        for key, (one, other, base) in told.items():
            rows = [None if each is None else row_of(each) for each in (one, other, base)]
            assert rows[:2] == [theirs.get(key), ours.get(key)]
            assert rows[2] in [each.get(key) for each in bases]
            assert {line["decided"] for line in lines} == {side}
        self.model.commit(target, merged, self.model.heads[source])

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
            table = "edge:Door" if "edge" in record else "node:Room"
            state[table, record["data"]["id"]] = row_of(record)
        return state


def row_of(record: Json) -> Row:
    """The values of a record, in which nulls may be left out."""
    data = record["data"]
    if "edge" in record:
        return record["from"], record["to"], data.get("width")
    return data.get("note"), repr(data.get("size")), repr(data.get("shape")), data.get("plan")


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
