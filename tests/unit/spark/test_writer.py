"""Writers as Spark drives them: attempts that it forgets, and batches that it repeats. No session is needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import from_arrow_schema

from spark_omnigraph import CommitOrigin, Graph, LoadOptions, RowFacts
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.spark.errors import CodedError
from spark_omnigraph.spark.write import deleter, writer
from spark_omnigraph.spark.write.options import parse_write_options
from spark_omnigraph.spark.write.writer import GraphStreamWriter, plan_stream_write, plan_write
from spark_omnigraph.storage.graph_store import GraphStore
from tests.crash.matrix import expire_leases

SCHEMA = """
node Mail { address: String @key  size: I32?  body: Blob? }
edge Reply: Mail -> Mail
"""
QUERY = "9f1c"
"""Id of the query whose tasks these are."""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    lines = [json.dumps({"type": "Mail", "data": {"address": name, "size": 0}}) for name in "ab"]
    g.load(lines, options=LoadOptions(build_indexes=False))
    g.create_branch("dev")
    return g


@pytest.fixture(autouse=True)
def _in_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (writer, deleter):
        monkeypatch.setattr(module, "current_query", lambda: QUERY)


def mails(*names: str, size: int = 1, body: bytes = b"") -> pa.Table:
    columns = {"address": pa.array(names, pa.string()), "size": pa.array([size] * len(names), pa.int32())}
    return pa.table(columns | ({"body": pa.array([body] * len(names))} if body else {}))


def records(*names: str) -> pa.Table:
    """Mails and an answer to each of them, as records."""
    rows: list[dict[str, str | None]] = []
    for name in names:
        rows.append({"type": "Mail", "edge": None, "from": None, "to": None, "data": json.dumps({"address": name})})
        rows.append({"type": None, "edge": "Reply", "from": name, "to": "a", "data": None})
    return pa.Table.from_pylist(rows, pa.schema([(n, pa.string()) for n in ("type", "edge", "from", "to", "data")]))


def sizes(graph: Graph, branch: str = "main") -> dict[str, int | None]:
    found = (json.loads(line)["data"] for line in graph.export(types=["Mail"], branch=branch))
    return {row["address"]: row.get("size") for row in found}


def files(graph: Graph) -> set[Path]:
    """Data files of tables, blobs included."""
    root = Path(graph.uri)
    return {
        p for p in root.glob("*/**/data/**/*") if p.is_file() and p.relative_to(root).parts[0] in ("nodes", "edges")
    }


def residue(graph: Graph) -> set[Path]:
    """Files of tables that nothing names."""
    found = (item.path for item in graph.cleanup(timedelta(0)).items)
    return {Path(graph.uri, path) for path in found if path.startswith(("nodes/", "edges/")) and "/data/" in path}


def attempt(planned: DataSourceArrowWriter | DataSourceStreamArrowWriter, table: pa.Table) -> WriterCommitMessage:
    """One attempt at a partition: the writer and its message travel through pickles, as between Spark's processes."""
    there = cloudpickle.loads(cloudpickle.dumps(planned))
    batches: Iterator[pa.RecordBatch] = iter(table.to_batches(max_chunksize=2))
    message: WriterCommitMessage = cloudpickle.loads(cloudpickle.dumps(there.write(batches)))
    return message


def planned(graph: Graph, table: pa.Table, **options: str) -> DataSourceArrowWriter:
    return plan_write(
        {"path": graph.uri, "index": "false", **options}, from_arrow_schema(table.schema), overwrite=False
    )


@pytest.mark.parametrize("winner", [0, 1])
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("append", {"a": 0, "b": 0, "c": 1, "d": 1, "e": 1}),
        ("merge", {"a": 7, "b": 0, "c": 1, "d": 1, "e": 1}),
        ("overwrite", {"c": 1, "d": 1, "e": 1}),
    ],
)
def test_of_two_attempts_at_a_partition_the_one_that_spark_names_counts(
    graph: Graph, mode: str, expected: dict[str, int], winner: int
) -> None:
    first = mails("a", size=7) if mode == "merge" else mails()
    write = planned(graph, first, node="Mail", loadMode=mode)
    before = files(graph)
    rows = pa.concat_tables([first, mails("c", "d", "e")])
    attempts, others = [], []
    for _ in range(2):
        known = files(graph)
        attempts.append(attempt(write, rows))
        others.append(files(graph) - known)
    write.commit([attempt(write, mails()), attempts[winner]])
    assert sizes(graph) == expected
    assert graph.count("node:Mail") == len(expected)
    # What the other attempt staged is named by nothing, hurts nobody, and goes with the next clean-up.
    lost = others[1 - winner]
    assert (len(lost), lost & files(graph), others[winner] <= files(graph), residue(graph)) == (1, lost, True, lost)
    graph.cleanup(timedelta(0), confirm=True)
    assert not lost & files(graph)
    assert sizes(graph) == expected
    assert before - files(graph) == set()


def test_an_attempt_that_ends_after_the_commit_changes_nothing(graph: Graph) -> None:
    write = planned(graph, records("c"))
    message = attempt(write, records("c", "d"))
    write.commit([message])
    before, commits = graph.snapshot(), len(graph.commits())
    late = files(graph)
    attempt(write, records("c", "d"))
    assert (graph.snapshot(), set(sizes(graph))) == (before, {"a", "b", "c", "d"})
    assert residue(graph) == files(graph) - late != set()
    # A commit whose answer was lost, so that Spark's `abort` follows, is not taken back.
    write.abort([message])
    assert (len(graph.commits()), graph.count("edge:Reply")) == (commits, 2)


STREAMS: list[tuple[dict[str, str], Callable[[str], pa.Table]]] = [
    ({"node": "Mail"}, mails),
    ({"node": "Mail", "loadMode": "merge"}, lambda name: mails(name, "a")),
    ({"node": "Mail", "loadMode": "merge", "branch": "dev"}, lambda name: mails(name, "a")),
    ({"node": "Mail", "loadMode": "merge"}, lambda name: mails(name, body=b"x" * 100_000)),
    ({"loadMode": "merge"}, records),
]


@pytest.mark.parametrize(("options", "batch"), STREAMS, ids=["append", "merge", "branch", "blobs", "records"])
@pytest.mark.parametrize("named", [False, True], ids=["same checkpoint", "new checkpoint"])
def test_a_batch_that_comes_again_leaves_no_file(
    graph: Graph,
    options: dict[str, str],
    batch: Callable[[str], pa.Table],
    named: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"path": graph.uri, "index": "false", **options, **({"txnAppId": "mails"} if named else {})}
    branch = options.get("branch", "main")

    def run(number: int, name: str) -> None:
        """A batch of two partitions by a query that has just begun, or begun anew."""
        sink = plan_stream_write(given, from_arrow_schema(batch(name).schema), overwrite=False)
        sink.commit([attempt(sink, batch(name)), attempt(sink, batch(name).slice(0, 0))], number)

    run(0, "c")
    run(1, "d")
    stored, before, commits = sizes(graph, branch), files(graph), graph.commits(branch=branch)
    assert {"c", "d"} <= stored.keys()
    if named:  # with the checkpoint the query has lost its id; the name is the application's
        monkeypatch.setattr(writer, "current_query", lambda: "another")
    for number, name in ((0, "c"), (1, "d")):
        run(number, name)
        assert (files(graph), graph.commits(branch=branch)) == (before, commits)
    assert (sizes(graph, branch), residue(graph)) == (stored, set())
    assert not list(Path(graph.uri, "__recovery").glob("*"))
    run(2, "e")
    assert sizes(graph, branch).keys() - stored.keys() == {"e"}


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_clean_up_leaves_alone_what_a_batch_has_staged(graph: Graph, branch: str) -> None:
    given = {"path": graph.uri, "index": "false", "node": "Mail", "branch": branch}
    sink = plan_stream_write(given, from_arrow_schema(mails().schema), overwrite=False)
    message = attempt(sink, mails("c"))
    report = graph.cleanup(timedelta(0), confirm=True)
    again = attempt(sink, mails("d"))  # a task of the same batch that begins later
    assert [item.path for item in report.items if item.path.startswith("nodes/")] == []
    sink.commit([message, again], 0)
    assert sizes(graph, branch) == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert not list(Path(graph.uri, "__recovery").glob("*"))
    # A batch that fails is not spared for long.
    sink.abort([attempt(sink, mails("e")), None], 1)
    assert not list(Path(graph.uri, "__recovery").glob("*"))


def test_tasks_of_a_stream_only_stage_and_the_driver_heals(graph: Graph) -> None:
    given = {"path": graph.uri, "index": "false", "node": "Mail", "branch": "dev"}
    schema = from_arrow_schema(mails().schema)
    sink = plan_stream_write(given, schema, overwrite=False)
    with pytest.raises(Crashed), stop_at(CrashPoint.LANDED_FIRST):
        graph.load([json.dumps({"type": "Mail", "data": {"address": "z"}})], options=LoadOptions(build_indexes=False))
    expire_leases(graph)
    root = Path(graph.uri)
    before = set(root.rglob("*"))
    message = attempt(sink, mails("c"))
    changed = {path.relative_to(root).parts for path in set(root.rglob("*")) - before if path.is_file()}
    assert {"__recovery" if parts[0] == "__recovery" else parts[-2] for parts in changed} == {"__recovery", "data"}
    assert list(root.glob("__recovery/*.json")), "what another writer left is not touched by a task"
    sink = plan_stream_write(given, schema, overwrite=False)  # as Spark does before it commits
    assert not list(root.glob("__recovery/*.json"))
    sink.commit([message], 0)
    assert sizes(graph, "dev") == {"a": 0, "b": 0, "c": 1}


def test_a_task_whose_fork_is_gone_forks_nothing(graph: Graph) -> None:
    given = {"path": graph.uri, "index": "false", "node": "Mail", "branch": "dev"}
    sink = plan_stream_write(given, from_arrow_schema(mails().schema), overwrite=False)
    graph.cleanup(timedelta(0), confirm=True)  # no batch has begun, so nobody seems to need it
    with pytest.raises(CodedError, match="OMNIGRAPH_CONFLICT: 'node:Mail' has lost its fork for branch 'dev'"):
        attempt(sink, mails("c"))
    sink = plan_stream_write(given, from_arrow_schema(mails().schema), overwrite=False)
    sink.commit([attempt(sink, mails("c"))], 0)
    assert sizes(graph, "dev") == {"a": 0, "b": 0, "c": 1}


def test_an_abort_needs_no_plan(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"path": graph.uri, "index": "false", "node": "Mail"}
    sink, known = plan_stream_write(given, from_arrow_schema(mails().schema), overwrite=False), files(graph)
    message = attempt(sink, mails("c"))
    assert len(files(graph) - known) == 1
    monkeypatch.setattr(GraphStore, "snapshot_with_rows", lambda *_: pytest.fail("looks at what stands"))
    sink.abort([message, None], 0)
    assert (files(graph), list(Path(graph.uri, "__recovery").glob("*"))) == (known, [])


def test_each_batch_with_bad_rows_has_a_report_of_its_own(graph: Graph, tmp_path: Path) -> None:
    given = {
        "path": graph.uri,
        "index": "false",
        "node": "Mail",
        "maxBadRows": "9",
        "badRowsPath": str(tmp_path / "out" / "bad.jsonl"),
    }
    for number, table in enumerate((mails("a", "c"), mails("d"), mails("b", "c", "e"))):
        sink = plan_stream_write(given, from_arrow_schema(table.schema), overwrite=False)
        sink.commit([attempt(sink, table)], number)
    reports = {path.name: path.read_text().splitlines() for path in (tmp_path / "out").iterdir()}
    found = {
        name: [json.loads(json.loads(line)["raw"])["data"]["address"] for line in lines]
        for name, lines in reports.items()
    }
    assert found == {"bad-0.jsonl": ["a"], "bad-2.jsonl": ["b", "c"]}
    assert sizes(graph).keys() == {"a", "b", "c", "d", "e"}


def test_a_batch_is_read_by_the_schema_of_its_time(graph: Graph) -> None:
    given = {"path": graph.uri, "index": "false", "node": "Mail"}
    sink = plan_stream_write(given, from_arrow_schema(mails().schema), overwrite=False)
    assert isinstance(sink, GraphStreamWriter)
    stale = GraphStreamWriter(sink.write_options, pa.schema([("adress", pa.string())]))  # as before a change
    with pytest.raises(CodedError, match=r"OMNIGRAPH_BAD_REQUEST: .*'address' is missing"):
        attempt(stale, pa.table({"adress": ["z"]}))


def test_a_stream_of_whole_results_overwrites_with_each_batch(graph: Graph) -> None:
    given = {"path": graph.uri, "index": "false", "node": "Mail"}
    for number, table in enumerate((mails("c", "d"), mails("d", size=2), mails("e"))):
        sink = plan_stream_write(given, from_arrow_schema(table.schema), overwrite=True)
        sink.commit([attempt(sink, table)], min(number, 1))  # the third comes again as the second
    assert sizes(graph) == {"d": 2}


@pytest.mark.parametrize("mode", ["merge", "append", "delete"])
@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (True, "outputMode('complete') and loadMode '{}' contradict each other; use foreachBatch"),
        (False, "mode('overwrite') and loadMode '{}' contradict each other; use mode('append')"),
    ],
)
def test_whole_results_contradict_other_modes(mode: str, stream: bool, text: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        parse_write_options({"path": "/g", "node": "Mail", "loadMode": mode}, True, stream)
    assert caught.value.message == text.format(mode)


def test_a_deletion_that_comes_again_leaves_rows_that_came_later(graph: Graph) -> None:
    ids = pa.table({"id": ["a", "nobody"]})
    for number in (0, 0, 1):
        sink = plan_stream_write(
            {"path": graph.uri, "node": "Mail", "loadMode": "delete"}, from_arrow_schema(ids.schema), overwrite=False
        )
        message = attempt(sink, ids)
        sink.commit([message, attempt(sink, ids.slice(0, 0))], number)
        if number == 0:
            graph.load(['{"type": "Mail", "data": {"address": "a", "size": 5}}'], "merge")
            assert sizes(graph) == {"a": 5, "b": 0}
    assert sizes(graph) == {"b": 0}


def test_a_write_that_left_bad_rows_out_says_so_in_one_line(
    graph: Graph, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    rows, report = mails("a", "c", "d"), str(tmp_path / "bad.jsonl")
    write = planned(graph, rows, node="Mail", maxBadRows="1", job="nightly", userMetadata="release 5", runId="r1")
    write.commit([attempt(write, rows)])
    newest = graph.commits()[0]
    assert [r.getMessage() for r in caplog.records] == [
        f"1 bad row was left out of commit {newest.id} (1 key_conflict)"
    ]
    assert newest.facts is not None
    assert newest.facts.tables == {"node:Mail": RowFacts(inserted=2, bad=1)}
    assert newest.facts.origin == CommitOrigin("nightly", "r1", metadata={"userMetadata": "release 5"})
    caplog.clear()
    write = planned(graph, rows, node="Mail", maxBadRows="100%", badRowsPath=report)
    write.commit([attempt(write, rows)])
    assert [r.getMessage() for r in caplog.records] == [
        f"3 bad rows were left out of a load (3 key_conflict); they are in {report}"
    ]


def test_a_batch_of_a_stream_has_facts_under_the_name_of_its_query(graph: Graph) -> None:
    rows = mails("c", "d")
    given = {"path": graph.uri, "node": "Mail", "userMetadata": '{"k": "v"}'}
    write = plan_stream_write(given, from_arrow_schema(rows.schema), overwrite=False)
    write.commit([write.write(iter(rows.to_batches()))], 7)
    facts = graph.commits()[0].facts
    assert facts is not None
    assert (facts.transaction, facts.tables) == (Transaction(QUERY, 7), {"node:Mail": RowFacts(inserted=2)})
    assert facts.origin == CommitOrigin(metadata={"k": "v"})
    gone = pa.table({"id": ["c"]})
    delete = plan_stream_write({**given, "loadMode": "delete"}, from_arrow_schema(gone.schema), overwrite=False)
    delete.commit([delete.write(iter(gone.to_batches()))], 8)
    facts = graph.commits()[0].facts
    assert facts is not None
    assert (facts.operation, facts.transaction) == ("delete", Transaction(QUERY, 8))
    assert (facts.tables, facts.origin) == ({"node:Mail": RowFacts(deleted=1)}, CommitOrigin(metadata={"k": "v"}))
