"""Writes that are made to stop at every named point, and what may be there afterwards."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from deltalake import write_deltalake

from spark_omnigraph import Graph, LoadOptions, LoadReport, MergeReport, StorageError
from spark_omnigraph.commit import protocol
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.publisher import Publication, PublishedVersion, publish
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.graph.delete.by_id import DeleteReport
from spark_omnigraph.graph.embed.report import EmbedReport
from spark_omnigraph.graph.load.frame import finish_frame_load, frame_request, plan_frame_load, staged_part
from spark_omnigraph.graph.mutate.mutate import MutationResult
from spark_omnigraph.graph.restore.restore import RestoreReport
from spark_omnigraph.graph.sync.sync import SyncReport
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.rebase import rebased
from tests.support.delta_tables import FEED

SCHEMA = """
node Person { name: String @key  age: I32?  vec: Vector(2)? @embed("name") }
node City { name: String @key  vec: Vector(2)? @embed("name") }
edge Knows: Person -> Person
"""


def person(name: str, age: int = 0) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def city(name: str) -> str:
    return json.dumps({"type": "City", "data": {"name": name}})


def knows(source: str, target: str, edge_id: str) -> str:
    return json.dumps({"edge": "Knows", "from": source, "to": target, "data": {"id": edge_id}})


def told(change: str, line: str) -> str:
    """A record that says what it does: `u` or `d`."""
    return json.dumps({"op": change, **json.loads(line)})


@dataclass(frozen=True)
class Writer:
    """A kind of write: its name, how it is made, and the state before and after it.

    The mode is that of a load of the lines, or `mutate`: then the lines are one query.
    """

    name: str
    mode: str
    lines: tuple[str, ...]
    after: frozenset[str]
    branch: str | None = None


BEFORE = frozenset({"Person:a=1", "Person:b=2", "Knows:k"})

WRITERS = {
    w.name: w
    for w in (
        Writer(
            "append",
            "append",
            (person("c", 3), knows("c", "a", "k2")),
            BEFORE | {"Person:c=3", "Knows:k2"},
        ),
        Writer(
            "merge",
            "merge",
            (person("a", 9), person("c", 3), knows("b", "a", "k")),
            frozenset({"Person:a=9", "Person:b=2", "Person:c=3", "Knows:k"}),
        ),
        Writer(
            "update",
            "update",
            (person("a", 9), json.dumps({"type": "City", "data": {"name": "rome", "vec": [0.5, 1]}})),
            frozenset({"Person:a=9", "Person:b=2", "Knows:k", "vector:rome"}),
        ),
        Writer(
            "overwrite",
            "overwrite",
            (person("x", 7), knows("x", "x", "kx")),
            frozenset({"Person:x=7", "Knows:kx"}),
        ),
        Writer(
            "changes",
            "changes",
            (
                told("u", person("a", 9)),
                told("u", knows("c", "a", "k2")),
                told("d", person("b")),
                told("u", person("c", 3)),
            ),
            frozenset({"Person:a=9", "Person:c=3", "Knows:k2"}),
        ),
        Writer(
            "branch",
            "append",
            (person("c", 3), knows("c", "a", "k2")),
            BEFORE | {"Person:c=3", "Knows:k2"},
            "draft",
        ),
        Writer(
            "mutation",
            "mutate",
            (
                'query q() { insert Person { name: "c", age: 3 } insert Knows { from: "c", to: "a" }',
                'update Person set { age: 9 } where name = "a" }',
            ),
            frozenset({"Person:a=9", "Person:b=2", "Person:c=3", "Knows:k", "Knows:c-a"}),
        ),
        Writer("delete", "mutate", ('query q() { delete Person where name = "a" }',), frozenset({"Person:b=2"})),
        Writer("delete by id", "delete", ("a",), frozenset({"Person:b=2"})),
        Writer(
            "frame",
            "frame",
            (person("a", 9), person("c", 3), knows("b", "a", "k")),
            frozenset({"Person:a=9", "Person:b=2", "Person:c=3", "Knows:k"}),
        ),
        Writer("tables", "tables", (), frozenset({"Person:a=9", "Person:b=2", "Person:c=3", "Knows:k", "Knows:k2"})),
        Writer("sync", "sync", ("a", "c"), frozenset({"Person:a=9", "Person:b=2", "Person:c=9", "Knows:k"})),
        Writer("embed", "embed", (), BEFORE | {"vector:a", "vector:b", "vector:rome"}),
        Writer(
            "branch merge",
            "merge_branch",
            ("review",),
            frozenset({"Person:a=9", "Person:b=2", "Person:c=3", "Knows:k", "Knows:k2"}),
        ),
        Writer(
            "restore",
            "restore",
            ("review",),
            frozenset({"Person:a=9", "Person:b=2", "Person:c=3", "Knows:k", "Knows:k2"}),
        ),
    )
}

UNTIDY = BEFORE | {"Person:x=1", "Knows:kx"}
"""What a graph shows whose tables consist of two files each."""
PLAIN = LoadOptions(build_indexes=False, on_duplicate=OnDuplicate.ERROR)
PLAIN_MERGE = LoadOptions(build_indexes=False)


@cache
def _template() -> Path:
    """The graph that `make_graph` copies: making one costs more than most writes."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-crash-"))
    atexit.register(shutil.rmtree, folder)
    _fill(Graph.init(folder / "g", SCHEMA))
    return folder / "g"


def _fill(graph: Graph) -> Graph:
    graph.load([person("a", 1), person("b", 2), knows("a", "b", "k"), city("rome")], options=PLAIN)
    graph.create_branch("draft")
    graph.create_branch("review")
    graph.load([person("a", 9), person("c", 3), knows("c", "a", "k2")], "merge", branch="review", options=PLAIN_MERGE)
    return graph


def make_graph(root: Path | str, storage_options: Mapping[str, str] | None = None) -> Graph:
    """The state that `BEFORE` describes, with a branch `draft` that shows the same, and `review`, which has more."""
    if isinstance(root, str):
        return _fill(Graph.init(root, SCHEMA, storage_options=storage_options))
    shutil.copytree(_template(), root)
    for path in Path(root).rglob("*.manifest"):  # forks lead to where they were made
        location = str(path.relative_to(root)).partition("/_versions/")[0].partition("/tree/")[0]
        path.write_bytes(rebased(path.read_bytes(), location, str(root)))
    return Graph.open(root)


def make_untidy(root: Path | str, storage_options: Mapping[str, str] | None = None) -> Graph:
    """The same with whole indexes and two files in each table: the state `UNTIDY`."""
    graph = make_graph(root, storage_options)
    graph.load([person("x", 1), knows("x", "x", "kx")], options=PLAIN)
    graph.ensure_indices()
    return graph


def run(
    graph: Graph, writer: Writer
) -> LoadReport | MutationResult | DeleteReport | MergeReport | EmbedReport | RestoreReport | SyncReport:
    if writer.mode == "embed":
        return graph.embed(embedder=MockEmbedder("m"), branch=writer.branch)
    if writer.mode == "restore":
        return graph.restore(branch=writer.branch, snapshot=graph.commits(branch=writer.lines[0])[0].id)
    if writer.mode == "merge_branch":
        return graph.merge_branch(writer.lines[0], writer.branch or "main")
    if writer.mode == "mutate":
        return graph.mutate(" ".join(writer.lines), branch=writer.branch)
    if writer.mode == "delete":
        return graph.delete("node:Person", writer.lines, branch=writer.branch)
    if writer.mode == "sync":
        return graph.sync(people(graph, *writer.lines), mapping=PEOPLE, options=PLAIN)
    if writer.mode == "frame":
        return _write_frame(graph, writer)
    if writer.mode == "tables":
        return graph.load(mode="merge", mapping={"inputs": _tables()}, branch=writer.branch, options=PLAIN)
    return graph.load(list(writer.lines), writer.mode, branch=writer.branch, options=PLAIN)


@cache
def _tables() -> list[dict[str, str]]:
    """People in a CSV and a Parquet file, and edges in one of Arrow."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-tables-"))
    atexit.register(shutil.rmtree, folder)
    (folder / "a.csv").write_text("name,age\na,9\n")
    pq.write_table(pa.table({"name": ["c"], "age": [3]}), folder / "c.parquet")
    edges = pa.table({"id": ["k", "k2"], "from": ["b", "c"], "to": ["a", "a"]})
    with ipc.new_file(folder / "k.arrow", edges.schema) as out:
        out.write_table(edges)
    people = [{"path": str(folder / name), "node": "Person"} for name in ("a.csv", "c.parquet")]
    return [*people, {"path": str(folder / "k.arrow"), "edge": "Knows"}]


PEOPLE = {"rows": [{"node": "Person"}, {"node": "City", "columns": {"town": "name"}}]}
"""How rows of the table below are read."""


def people(graph: Graph, *names: str) -> str:
    """A Delta table of people beside the graph, made the first time."""
    place = f"{graph.uri}-people"
    ages = pa.array([9] * len(names), pa.int32())
    rows = pa.table({"name": list(names), "age": ages, "town": [f"town of {name}" for name in names]})
    options = graph.store.storage_options or None
    write_deltalake(place, rows, mode="ignore", configuration=FEED, storage_options=options)
    return place


def _write_frame(graph: Graph, writer: Writer) -> LoadReport:
    """A merge of a frame of records, without Spark: one task stages it."""
    records = [json.loads(line) for line in writer.lines]
    texts = {name: pa.array([r.get(name) for r in records], pa.string()) for name in ("type", "edge", "from", "to")}
    frame = pa.table({**texts, "data": [json.dumps(record["data"]) for record in records]})
    with staging(graph.store) as stage:
        request = replace(frame_request(writer.branch, LoadMode.MERGE, None, PLAIN), stages=(stage,))
        plan = plan_frame_load(graph.store, request, None)
        receipt = stage_frame(plan.context, TableInput.of_type(None), frame.to_batches(), 0)
        return finish_frame_load(graph.store, request, plan, [staged_part(plan.context, receipt)])


@contextmanager
def refused_first_publish() -> Iterator[None]:
    """The first publish fails before it takes effect, so that the writer undoes what it landed."""
    refusals = iter([StorageError("storage: refused by the test")])

    def refuse(whole: WholeBranch, publication: Publication) -> PublishedVersion:
        for refusal in refusals:
            raise refusal
        return publish(whole, publication)

    with patch.object(protocol, "publish", refuse):
        yield


def state(graph: Graph, branch: str | None = None) -> frozenset[str]:
    """All people and edges of a branch as short texts, and who has a vector."""
    found = set()
    for line in graph.export(branch=branch or "main"):
        record = json.loads(line)
        data = record["data"]
        if data.get("vec") is not None:
            found.add(f"vector:{data['name']}")
        if record.get("type") == "Person":
            found.add(f"Person:{data['name']}={data['age']}")
        elif "edge" in record:
            given = data["id"].startswith("k")
            found.add(f"Knows:{data['id'] if given else '-'.join((record['from'], record['to']))}")
    return frozenset(found)


def assert_whole(graph: Graph) -> None:
    """No sidecar or lease is left, and HEAD is the published version of every table on every branch."""
    left = [n for n in graph.store.objects.list("__recovery") if n.endswith((".json", ".lease"))]
    assert left == [], left
    for branch in graph.branches():
        for entry in graph.snapshot(branch=branch).entries.values():
            if entry.branch == (None if branch == "main" else branch):
                head = graph.store.head_version(entry.location, entry.branch)
                assert head == entry.version, (branch, entry)
            assert graph.store.open_table(entry).count_rows() == entry.row_count
