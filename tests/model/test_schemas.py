"""A graph whose schema changes, against a dictionary: loads, changes of columns, deaths in the middle, former states.

The graph has no branch besides main, which a schema change refuses; `test_machine` has them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spark_omnigraph import FromColumn, Graph, LoadOptions
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from tests.crash.matrix import crashed, expire_leases
from tests.model.test_machine import play

KEYS = ["a", "b", "c"]
NAMES = ["p", "q", "r"]
WIDER = {"I32": "I64", "F32": "F64"}
OPTIONS = LoadOptions(build_indexes=False)
DEATHS = [CrashPoint.STAGED, CrashPoint.ARMED, CrashPoint.LANDED_ALL, CrashPoint.SCHEMA_STAGED, CrashPoint.PUBLISHED]

Row = Mapping[str, object]


@dataclass(frozen=True)
class World:
    """Types of the properties besides the key, and the rows by key."""

    types: Mapping[str, str]
    rows: Mapping[str, Row]

    def schema(self, former: Mapping[str, str] | None = None) -> str:
        renames = former or {}
        props = "".join(
            f"  {name}: {kind}?" + (f' @rename_from("{renames[name]}")' if name in renames else "")
            for name, kind in self.types.items()
        )
        return f"node Thing {{ key: String @key{props} }}"


def shown(graph: Graph, snapshot: str | None = None) -> dict[str, Row]:
    """Rows by key, without what is null."""
    found: dict[str, Row] = {}
    for line in graph.export(snapshot=snapshot):
        data = json.loads(line)["data"]
        key = data["key"]
        assert key not in found
        found[key] = {name: value for name, value in data.items() if name not in ("key", "id") and value is not None}
    return found


class SchemaMachine(RuleBasedStateMachine):
    """`world` is what readers must see, `commits` what each commit showed."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="omnigraph-schemas-"))
        self.world = World({"p": "I32"}, {})
        self.graph = Graph.init(self._folder / "g", self.world.schema())
        self.commits: dict[str, Mapping[str, Row]] = {}

    def teardown(self) -> None:
        shutil.rmtree(self._folder)

    @rule(
        keys=st.sets(st.sampled_from(KEYS), min_size=1),
        value=st.integers(0, 9),
        mode=st.sampled_from(["merge", "overwrite"]),
    )
    def load(self, keys: set[str], value: int, mode: str) -> None:
        """Rows with the value in each property."""
        new = {key: dict.fromkeys(self.world.types, value) for key in sorted(keys)}
        lines = [json.dumps({"type": "Thing", "data": {"key": key, **row}}) for key, row in new.items()]
        commit = self.graph.load(lines, mode, options=OPTIONS).commit
        self._done(commit, World(self.world.types, new if mode == "overwrite" else {**self.world.rows, **new}))

    @precondition(lambda self: len(self.world.types) < len(NAMES))
    @rule(
        kind=st.sampled_from(sorted(WIDER)),
        value=st.integers(0, 9),
        how=st.sampled_from(["nothing", "value", "column"]),
        death=st.sampled_from([None, None, *DEATHS]),
    )
    def add(self, kind: str, value: int, how: str, death: CrashPoint | None) -> None:
        """A property that comes empty, with one value, or with that of another column."""
        name = next(each for each in NAMES if each not in self.world.types)
        source = next((each for each, other in self.world.types.items() if other == kind), None)
        rows = self.world.rows
        values: dict[str, object] = {}
        if how == "value":
            values = {f"Thing.{name}": value}
            rows = {key: {**row, name: value} for key, row in rows.items()}
        elif how == "column" and source is not None:
            values = {f"Thing.{name}": FromColumn(source)}
            rows = {key: {**row, **({name: row[source]} if source in row else {})} for key, row in rows.items()}
        self._apply(World({**self.world.types, name: kind}, rows), death, values=values)

    @precondition(lambda self: 0 < len(self.world.types) < len(NAMES))
    @rule(number=st.integers(0, 5), death=st.sampled_from([None, None, *DEATHS]))
    def rename(self, number: int, death: CrashPoint | None) -> None:
        old = self._one(number)
        new = next(each for each in NAMES if each not in self.world.types)
        types = {new if name == old else name: kind for name, kind in self.world.types.items()}
        rows = {
            key: {new if name == old else name: value for name, value in row.items()}
            for key, row in self.world.rows.items()
        }
        self._apply(World(types, rows), death, {new: old})

    @precondition(lambda self: any(kind in WIDER for kind in self.world.types.values()))
    @rule(number=st.integers(0, 5), death=st.sampled_from([None, None, *DEATHS]))
    def widen(self, number: int, death: CrashPoint | None) -> None:
        narrow = [name for name, kind in self.world.types.items() if kind in WIDER]
        name = narrow[number % len(narrow)]
        self._apply(replace(self.world, types={**self.world.types, name: WIDER[self.world.types[name]]}), death)

    @precondition(lambda self: self.world.types)
    @rule(number=st.integers(0, 5), for_good=st.booleans(), death=st.sampled_from([None, None, *DEATHS]))
    def drop(self, number: int, for_good: bool, death: CrashPoint | None) -> None:
        gone = self._one(number)
        types = {name: kind for name, kind in self.world.types.items() if name != gone}
        rows = {key: {n: v for n, v in row.items() if n != gone} for key, row in self.world.rows.items()}
        self._apply(World(types, rows), death, allow_data_loss=for_good)
        if for_good:
            self.commits.clear()  # older states of the table are gone with it

    @rule()
    def optimize(self) -> None:
        self.graph.optimize()

    @precondition(lambda self: self.commits)
    @rule(number=st.integers(0, 200))
    def travel(self, number: int) -> None:
        """A former state has the columns and the values that it had."""
        commit = list(self.commits)[number % len(self.commits)]
        assert shown(Graph.open(self.graph.uri, mode="r"), snapshot=commit) == self.commits[commit]

    @invariant()
    def readers_see_the_model(self) -> None:
        assert shown(Graph.open(self.graph.uri, mode="r")) == self.world.rows

    def _one(self, number: int) -> str:
        return list(self.world.types)[number % len(self.world.types)]

    def _apply(
        self, after: World, death: CrashPoint | None, former: Mapping[str, str] | None = None, **choices: object
    ) -> None:
        """A change that comes to its end, or dies: then the graph is recovered, to the old state or the new one, and
        the change is made again, which finds it done or does it.
        """
        text = after.schema(former)
        if death is not None:
            with stop_at(death):
                died = crashed(lambda: self.graph.apply_schema(text, **choices))  # type: ignore[arg-type]  # choices of one call
            if died:
                expire_leases(self.graph)
                self.graph = Graph.open(self.graph.uri)
                assert shown(self.graph) in (self.world.rows, after.rows)
        report = self.graph.apply_schema(text, **choices)  # type: ignore[arg-type]  # choices of the one call, as above
        assert report.applied or death is not None
        self._done(report.commit, after)

    def _done(self, commit: str | None, world: World) -> None:
        self.world = world
        if commit is not None:
            self.commits[commit] = world.rows


@pytest.mark.timeout(600)
def test_short_sequences() -> None:
    play(examples=4, steps=20, derandomize=True, machine=SchemaMachine)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_long_sequences() -> None:
    play(examples=150, steps=40, machine=SchemaMachine)
