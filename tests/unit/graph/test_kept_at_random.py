"""Writes at random, and what handles that stay open find between them, against a model of the rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from spark_omnigraph import ConflictError, Graph, NotFoundError
from spark_omnigraph.memory import Memory
from spark_omnigraph.storage.tables.reader import ReadCache
from tests.unit.graph.test_kept_states import BACK, FAR, HOP, ONE, PLAIN, SCHEMA, edge, person

NAMES = ("a", "b", "é", "𝄞", "n'1", "x" * 300)
READS = 5
MUTATION = """query m($n: String, $city: String) {
  insert P { name: $n, city: "first" }
  update P set { city: $city } where name = $n
}"""


@dataclass
class Rows:
    """What a branch shows: cities by names, and edges."""

    cities: dict[str, str] = field(default_factory=dict)
    edges: set[tuple[str, str]] = field(default_factory=set)

    def copy(self) -> Rows:
        return Rows({**self.cities}, {*self.edges})

    def found(self, name: str) -> list[list[str]]:
        """What the four questions find; a walk comes back to its start by an edge to itself alone."""
        near, far = {name}, set[str]()
        for _ in range(3):
            near = {to for start, to in self.edges if start in near}
            far |= near
        far = far if (name, name) in self.edges else far - {name}
        hop, back = self._ends(name), [start for start, to in self.edges if to == name]
        return [[self.cities[name]] if name in self.cities else [], hop, sorted(far), sorted(back)]

    def _ends(self, name: str) -> list[str]:
        return sorted(to for start, to in self.edges if start == name)


class World:
    """A graph, the model of its branches and of their versions, and handles that stay open."""

    def __init__(self, uri: str, chance: random.Random) -> None:
        self.uri, self.chance = uri, chance
        self.writer = Graph.init(uri, SCHEMA)
        self.rows: dict[str, Rows] = {"main": Rows()}
        self.past: dict[tuple[str, int], Rows] = {}
        self.pinned: dict[tuple[str, int], Graph] = {}
        self.kept = [Graph.open(uri, mode="r") for _ in range(2)]
        for graph, memory in zip(self.kept, (Memory(), Memory(chance.choice((0, 4_000, 1 << 16)))), strict=True):
            graph.store.reads = ReadCache(memory)
        self._note("main")

    def _note(self, branch: str) -> None:
        self.past[branch, Graph.open(self.uri, mode="r").snapshot(branch=branch).version] = self.rows[branch].copy()

    def write(self) -> str:
        """One write of any kind on any branch, by the handle that stays or by another one."""
        branch = self.chance.choice(list(self.rows))
        graph = self.chance.choice((self.writer, Graph.open(self.uri)))
        often: tuple[Callable[[Graph, str], str], ...] = (self._load, self._load, self._delete, self._mutate)
        work = self.chance.choice(
            (*often, *often, self._optimize, self._fork, self._drop, self._expire, self._make_anew)
        )
        changed = work(graph, branch)
        if changed:
            self._note(changed)
        return f"{work.__name__} {branch}"

    def _load(self, graph: Graph, branch: str) -> str:
        rows, names = self.rows[branch], self.chance.sample(NAMES, 2)
        city, there = str(self.chance.random()), [*{*self.rows[branch].cities, *names}]
        ends = {(self.chance.choice(there), self.chance.choice(there)) for _ in range(2)} - rows.edges
        graph.load(
            [*(person(n, city) for n in names), *(edge(*e) for e in ends)], "merge", branch=branch, options=PLAIN
        )
        rows.cities.update(dict.fromkeys(names, city))
        rows.edges |= ends
        return branch

    def _delete(self, graph: Graph, branch: str) -> str:
        rows = self.rows[branch]
        if not rows.cities:
            return ""
        name = self.chance.choice(list(rows.cities))
        graph.delete("node:P", [name], branch=branch)
        del rows.cities[name]
        rows.edges = {ends for ends in rows.edges if name not in ends}
        return branch

    def _mutate(self, graph: Graph, branch: str) -> str:
        """The second statement is of a row that the first one has written."""
        name, city = self.chance.choice(NAMES), str(self.chance.random())
        graph.mutate(MUTATION, params={"n": name, "city": city}, branch=branch)
        self.rows[branch].cities[name] = city
        return branch

    def _optimize(self, graph: Graph, branch: str) -> str:
        graph.optimize(branch=branch)
        return branch

    def _fork(self, graph: Graph, branch: str) -> str:
        name = self.chance.choice(("draft", "review"))
        if name in self.rows:
            return ""
        graph.create_branch(name, base=branch)
        self.rows[name] = self.rows[branch].copy()
        return name

    def _drop(self, graph: Graph, branch: str) -> str:
        """Of a branch that no other comes from, which the model does not know: the graph says so."""
        if branch == "main":
            return ""
        try:
            graph.delete_branch(branch)
        except ConflictError:
            return ""
        del self.rows[branch]
        self._forget(branch)
        return ""

    def _expire(self, graph: Graph, branch: str) -> str:
        graph.cleanup(timedelta(0), keep=1, confirm=True, force=True)
        self.past.clear()
        self.pinned.clear()
        for name in self.rows:
            self._note(name)
        return ""

    def _make_anew(self, graph: Graph, branch: str) -> str:
        self.writer = Graph.init(self.uri, SCHEMA, force=True)
        for name in self.rows:
            self._forget(name)
        self.rows = {"main": Rows()}
        return "main"

    def _forget(self, branch: str) -> None:
        """States of a branch that is gone, which no handle shows any more."""
        self.past = {key: rows for key, rows in self.past.items() if key[0] != branch}
        for key in [key for key in self.pinned if key[0] == branch]:
            with pytest.raises(NotFoundError):
                found(self.pinned.pop(key), "a")

    def differences(self) -> Iterator[object]:
        """Reads of states of now and of before by handles that stay, where they are not what the model has."""
        for _ in range(READS):
            graph, name = self.chance.choice(self.kept), self.chance.choice(NAMES)
            branch, key = self.chance.choice(list(self.rows)), self.chance.choice(list(self.past))
            if key not in self.pinned:
                self.pinned[key] = graph.at(branch=key[0], version=key[1])
            now, then = self.rows[branch].found(name), self.past[key].found(name)
            states = (found(graph, name, branch), now), (found(self.pinned[key], name), then)
            yield from ((branch, key, name, got, wanted) for got, wanted in states if got != wanted)


def found(graph: Graph, name: str, branch: str | None = None) -> list[list[str]]:
    """What the four questions find."""
    asked = (graph.query(text, params={"n": name}, branch=branch) for text in (ONE, HOP, FAR, BACK))
    return [sorted(str(row["found"]) for row in answer.to_pylist()) for answer in asked]


def play(uri: str, seed: int, writes: int) -> None:
    """Writes, and reads after each of them."""
    print(f"seed {seed}")
    world, done = World(uri, random.Random(seed)), list[str]()
    for _ in range(writes):
        done.append(world.write())
        assert not list(world.differences()), (seed, done)


def test_handles_that_stay_open_find_what_is_there(tmp_path: Path) -> None:
    play(str(tmp_path / "g"), 17, 20)


@pytest.mark.long
def test_handles_that_stay_open_find_what_is_there_whatever_is_written(tmp_path: Path) -> None:
    play(str(tmp_path / "g"), random.randrange(1 << 32), 200)
