"""What one write, one open and one point read ask of the object store. Every request is counted by the proxy.

The figures are bounds: one that rises fails here. With the maintenance that
docs/jobs.md prescribes, indexes that are brought up to date now and then, they hardly depend on the number of commits:
writers compact the manifest and the commit log by themselves. Without it, checks and reads by id open every data file
of a table, of which each load leaves one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.plan import Identity, PreparedCommit, TableWrite, WriterKind
from spark_omnigraph.commit.protocol import commit
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin, RowFacts
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.staged import TableTarget, stage_rows
from tests.crash.worlds import SCHEMA, person
from tests.faults.proxy import Proxy, running_proxy
from tests.support.deep import deepen, widen
from tests.support.memory_store import memory_server
from tests.support.object_store import BUCKET

pytestmark = pytest.mark.timeout(900)

OPTIONS = LoadOptions(build_indexes=False)
FACTS = CommitFacts(
    "load", "append", {"node:Person": RowFacts(1)}, origin=CommitOrigin("job", metadata={"n": "x" * 900})
)
"""Large ones: they may cost bytes, and no request."""
INDEX_EVERY = 100
"""Commits after which the indexes are brought up to date."""


@dataclass(frozen=True)
class Cost:
    """Requests of an open, of an embedded write of one row, and of a read of one row by id."""

    opening: int
    write: int
    read: int


def write(graph: Graph, number: int) -> None:
    graph.load([person(f"p{number}", number)], options=OPTIONS)


def commits(graph: Graph, numbers: range) -> None:
    """What loads of one row each leave, by the commit protocol alone: neither input nor checks cost time."""
    store, key, schema_hash = graph.store, "node:Person", graph.catalog().ir_hash
    columns = store.open_table(graph.snapshot().entry(key)).schema
    for number in numbers:
        entry, name = store.snapshot(None).entry(key), f"p{number}"
        rows = pa.Table.from_pylist([{"id": name, "name": name, "age": number}], columns)
        target = TableTarget(TableKey(key), store.table_uri(entry.location, None), entry.version, entry.row_count)
        change = TableChange((stage_rows(target, rows, None, {}),))
        writes = (TableWrite(entry, None, change),)
        identity = Identity(new_ulid(), new_ulid(), None, WriterKind.LOAD)
        commit(store, PreparedCommit(identity, None, schema_hash, writes, facts=FACTS))


def measure(uri: str, proxy: Proxy, options: dict[str, str], depth: int) -> Cost:
    """The costs for a handle that has written before."""
    proxy.reset()
    graph = Graph.open(uri, storage_options=options)
    opening = len(proxy.requests)
    write(graph, depth)
    proxy.reset()
    write(graph, depth + 1)
    writing = len(proxy.requests)
    proxy.reset()
    assert graph.entity("node:Person", f"p{depth // 2}") is not None
    return Cost(opening, writing, len(proxy.requests))


def cost(folder: Path, depth: int, maintained: bool) -> Cost:
    """What is asked of a graph of so many commits. It is made on a disk: that takes a tenth of the time."""
    graph = Graph.init(folder / "g", SCHEMA)
    for start in range(0, depth, INDEX_EVERY):
        commits(graph, range(start, min(start + INDEX_EVERY, depth)))
        if maintained and start + INDEX_EVERY <= depth:
            graph.ensure_indices()
    with memory_server(folder / "g", "g") as store, running_proxy(store) as proxy:
        return measure(f"s3://{BUCKET}/g", proxy, proxy.server(store).storage_options, depth)


def above(found: Cost, bound: Cost) -> dict[str, tuple[int, int]]:
    """Figures that are above their bounds, each with its bound. Lance asks for one more or less, as its reads meet."""
    pairs = {name: (value, asdict(bound)[name]) for name, value in asdict(found).items()}
    return {name: pair for name, pair in pairs.items() if pair[0] > pair[1]}


def test_costs_at_a_depth_of_ten_commits(tmp_path: Path) -> None:
    assert above(cost(tmp_path, 10, maintained=True), Cost(opening=18, write=85, read=22)) == {}


def test_costs_at_a_depth_of_three_hundred_commits(tmp_path: Path) -> None:
    assert above(cost(tmp_path, 300, maintained=True), Cost(opening=18, write=90, read=17)) == {}


@pytest.mark.long
def test_costs_at_a_depth_of_a_thousand_commits(tmp_path: Path) -> None:
    assert above(cost(tmp_path, 1000, maintained=True), Cost(opening=18, write=106, read=17)) == {}


@pytest.mark.long
def test_costs_at_a_depth_of_a_thousand_commits_without_maintenance(tmp_path: Path) -> None:
    assert above(cost(tmp_path, 1000, maintained=False), Cost(opening=18, write=1203, read=1013)) == {}


def test_a_handle_that_asks_again_looks_before_it_reads(tmp_path: Path) -> None:
    """A listing and a stamp for the newest state and three schema files; a stamp alone for a pinned state."""
    commits(Graph.init(tmp_path / "g", SCHEMA), range(3))
    with memory_server(tmp_path / "g", "g") as store, running_proxy(store) as proxy:
        uri, options = f"s3://{BUCKET}/g", proxy.server(store).storage_options
        kept = Graph.open(uri, mode="r", storage_options=options)

        def ages(graph: Graph, name: str) -> list[object]:
            text = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age as age } }"
            return [row["age"] for row in graph.query(text, params={"n": name}).to_pylist()]

        assert [ages(kept, "p2") for _ in range(6)] == [[2]] * 6
        proxy.reset()
        assert ages(kept, "p1") == [1]
        assert len(proxy.requests) <= 5
        pinned = kept.at()
        assert ages(pinned, "p2") == [2]
        proxy.reset()
        assert ages(pinned, "p1") == [1]
        assert len(proxy.requests) <= 1
        write(Graph.open(uri, storage_options=options), 3)
        assert [ages(kept, "p3") for _ in range(6)] == [[3]] * 6
        assert ages(pinned, "p3") == []


def test_ten_thousand_commits_cost_what_ten_do(tmp_path: Path) -> None:
    """With the upkeep that the documents prescribe; the commits are fabricated, and their states have expired."""
    found = {}
    for depth in (10, 10_000):
        graph = Graph.init(tmp_path / str(depth) / "g", SCHEMA)
        commits(graph, range(10))
        deepen(graph, "node:Person", depth - 10)
        graph.optimize()
        assert len(graph.commits()) >= depth
        with memory_server(tmp_path / str(depth) / "g", "g") as store, running_proxy(store) as proxy:
            found[depth] = measure(f"s3://{BUCKET}/g", proxy, proxy.server(store).storage_options, 10)
    print({depth: asdict(each) for depth, each in found.items()})
    few, many = found.values()
    assert many.write <= 1.5 * few.write
    assert many.opening <= 1.5 * few.opening
    assert many.read <= 1.5 * few.read


@pytest.mark.parametrize("branches", [50, pytest.param(1000, marks=pytest.mark.long)])
def test_a_list_of_branches_opens_each_once(tmp_path: Path, branches: int) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    commits(graph, range(1))
    widen(graph, branches)
    with memory_server(tmp_path / "g", "g") as store, running_proxy(store) as proxy:
        remote = Graph.open(f"s3://{BUCKET}/g", storage_options=proxy.server(store).storage_options)
        proxy.reset()
        infos = remote.branch_infos()
        asked = Counter(request.path for request in proxy.requests if ".manifest" in request.path)
        references = Counter(request.path for request in proxy.requests if request.path.endswith(".json"))
    print(branches, len(proxy.requests))
    assert [info.name for info in infos] == ["main", *(f"b{number:04d}" for number in range(branches))]
    assert {info.parent for info in infos[1:]} == {"main"}
    opened = {path: times for path, times in asked.items() if "/tree/b" in path}
    assert len(opened) == 2 * branches, "the manifest of each, and its log"
    assert set(opened.values()) == {1}
    assert max(references.values()) <= 2, "Lance looks at a reference and reads it"
