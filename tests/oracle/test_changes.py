"""Random changes of nodes and edges, as lines and as tables, against the oracle."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spark_omnigraph import BadRowsError, Graph, LoadOptions, LoadReport, OnDuplicate
from tests.oracle.changes import EDGE, NODE, RANKS, Change, State, apply

SCHEMA = "node Person { name: String @key  value: I32 } edge Knows: Person -> Person { value: I32 }"
PEOPLE = ("a", "b", "c", "d")
BEFORE = State(
    {name: place for place, name in enumerate(PEOPLE)},
    {"ab": (("a", "b"), 1), "ba": (("b", "a"), 2), "cc": (("c", "c"), 3), "da": (("d", "a"), 4)},
)
VERSIONS: list[list[int | None]] = [[None], [1, 2, 3], [1, 2, 3], [None, 1]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("changes") / "g"
    graph = Graph.init(root, SCHEMA)
    stored = [Change(NODE, name, "u", None, value) for name, value in BEFORE.people.items()]
    stored += [Change(EDGE, name, "u", None, value, ends) for name, (ends, value) in BEFORE.edges.items()]
    graph.load([line(each) for each in stored], "changes", options=LoadOptions(build_indexes=False))
    return root


def line(change: Change) -> str:
    told: dict[str, object] = {"_change_type" if "e" in change.word else "op": change.word}
    if change.version is not None:
        told["_commit_version"] = change.version
    data: dict[str, object] = {} if change.deletes else {"value": change.value}
    if change.table == NODE:
        return json.dumps({"type": NODE, **told, "data": {"name": change.id, **data}})
    ends = {} if change.ends is None else {"from": change.ends[0], "to": change.ends[1]}
    return json.dumps({"edge": EDGE, **ends, "data": {"id": change.id, **data}, **told})


@st.composite
def changes(draw: st.DrawFn) -> list[Change]:
    versions = draw(st.sampled_from(VERSIONS))
    found = []
    for _ in range(draw(st.integers(1, 8))):
        word, version = draw(st.sampled_from(sorted(RANKS))), draw(st.sampled_from(versions))
        value, person = draw(st.integers(10, 99)), st.sampled_from([*PEOPLE, "new"])
        if draw(st.booleans()):
            found.append(Change(NODE, draw(person), word, version, value))
            continue
        ends = None if RANKS[word] == 0 else (draw(person), draw(person))
        found.append(Change(EDGE, draw(st.sampled_from([*BEFORE.edges, "xy"])), word, version, value, ends))
    return found


def load(graph: Graph, records: Sequence[Change], as_table: bool, on_duplicate: str) -> LoadReport:
    options = LoadOptions(build_indexes=False, on_duplicate=OnDuplicate(on_duplicate))
    if not as_table:
        return graph.load([line(record) for record in records], "changes", options=options)
    told = [json.loads(line(record)) for record in records]
    rows = {name: pa.array([each.get(name) for each in told], pa.string()) for name in ("type", "edge", "from", "to")}
    rows["data"] = pa.array([json.dumps(each["data"]) for each in told])
    rows["op"] = pa.array([record.word for record in records])
    rows["_commit_version"] = pa.array([record.version for record in records], pa.int64())
    return graph.load(pa.table(rows), "changes", options=options)


def found(graph: Graph) -> State:
    people, edges = {}, {}
    for record in map(json.loads, graph.export()):
        data = record["data"]
        if "edge" in record:
            edges[data["id"]] = ((record["from"], record["to"]), data["value"])
        else:
            people[data["id"]] = data["value"]
    return State(people, edges)


@pytest.mark.timeout(600)
@settings(max_examples=40, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
@given(records=changes(), as_table=st.booleans(), on_duplicate=st.sampled_from(["last", "error"]))
def test_changes(
    template: Path,
    tmp_path_factory: pytest.TempPathFactory,
    records: list[Change],
    as_table: bool,
    on_duplicate: str,
) -> None:
    root = tmp_path_factory.mktemp("copy") / "g"
    shutil.copytree(template, root)
    graph, expected = Graph.open(root), apply(BEFORE, records, on_duplicate)
    if expected.bad:
        with pytest.raises(BadRowsError) as caught:
            load(graph, records, as_table, on_duplicate)
        bad = {row.line - 1: str(row.rule) for row in caught.value.summary.sample}
        if "key_duplicate" in expected.bad.values():  # what else is wrong may hang on which of them counts
            bad = {place: rule for place, rule in bad.items() if rule == "key_duplicate"}
        assert bad == expected.bad
    else:
        report = load(graph, records, as_table, on_duplicate)
        tables = report.tables.values()
        assert (sum(t.deleted for t in tables), sum(t.cascaded for t in tables)) == (
            expected.deleted,
            expected.cascaded,
        )
    assert found(graph) == expected.state
    shutil.rmtree(root)
