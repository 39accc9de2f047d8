"""Frames: one commit by the rules of the load, though the rows are seen once."""

from __future__ import annotations

import json
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_omnigraph import (
    BadRequestError,
    BadRowsError,
    ConflictError,
    ExpectedVersionMismatch,
    Graph,
    LoadOptions,
    LoadReport,
    OmnigraphError,
    RecoveryRequiredError,
    TransactionCommittedError,
)
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.plan import PreparedCommit, Published
from spark_omnigraph.commit.protocol import commit
from spark_omnigraph.graph.load.frame import (
    StagedPart,
    discard_parts,
    finish_frame_load,
    frame_request,
    plan_frame_load,
    staged_part,
)
from spark_omnigraph.graph.load.load import LoadPlan, LoadRequest
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.write import staged_files
from spark_omnigraph.write.attempts import ATTEMPTS
from tests.unit.graph.test_embed import Scripted, vector

SCHEMA = """
node Person { name: String @key  mail: String? @unique  age: I32? @range(age, 0..150) }
node File { name: String @key  content: Blob? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def stage(
    graph: Graph,
    key: str | None,
    parts: list[pa.Table],
    mode: str = "append",
    branch: str | None = None,
    **options: Any,
) -> tuple[LoadRequest, LoadPlan, list[StagedPart]]:
    chosen = LoadOptions(**{"on_duplicate": "error", **options})
    request = frame_request(branch, LoadMode(mode), "eve", chosen)
    plan = plan_frame_load(graph.store, request, key)
    staged = []
    for index, part in enumerate(parts):
        receipt = stage_frame(
            plan.context, TableInput.of_type(TableKey(key) if key else None), part.to_batches(max_chunksize=2), index
        )
        staged.append(staged_part(plan.context, receipt))
    return request, plan, staged


def write(graph: Graph, key: str | None, *parts: pa.Table, **given: Any) -> LoadReport:
    request, plan, staged = stage(graph, key, list(parts), **given)
    return finish_frame_load(graph.store, request, plan, staged)


def people(*rows: tuple[str | None, str | None], age: int = 30) -> pa.Table:
    names, mails = [name for name, _ in rows], [mail for _, mail in rows]
    return pa.table({"mail": pa.array(mails, pa.string()), "name": names, "age": pa.array([age] * len(rows))})


def mails(graph: Graph) -> dict[str, str | None]:
    rows = (json.loads(line)["data"] for line in graph.export(types=["Person"]))
    return {row["name"]: row["mail"] for row in rows}


def data_files(graph: Graph) -> int:
    return len(list(Path(graph.uri).glob("**/data/*.lance")))


def table_files(graph: Graph) -> set[Path]:
    """Data files of nodes: a publish makes one of the manifest too."""
    return set(Path(graph.uri).glob("nodes/**/data/*.lance"))


def test_bad_rows_are_left_out_of_the_staged_files(graph: Graph) -> None:
    write(graph, "node:Person", people(("a", "1"), ("b", "2")))
    report = write(
        graph,
        "node:Person",
        people(("c", "3"), ("a", "9"), ("d", "2"), ("e", "5")),
        people(("a", "8"), (None, "6"), ("f", "5")),
        mode="merge",
        max_bad_rows=4,
    )
    found = [(row.place, str(row.rule)) for row in report.bad_rows.sample]
    assert found == [
        ("<partition 0>:3 (id 'd')", "unique"),
        ("<partition 1>:1 (id 'a')", "key_duplicate"),
        ("<partition 1>:2", "key_missing"),
        ("<partition 1>:3 (id 'f')", "unique"),
    ]
    assert report.bad_rows.sample[1].message.endswith("repeats an earlier record of the input (<partition 0>:2)")
    assert json.loads(report.bad_rows.sample[1].raw)["data"] == {"id": "a", "age": 30, "mail": "8", "name": "a"}
    assert mails(graph) == {"a": "9", "b": "2", "c": "3", "e": "5"}
    counts = report.tables["node:Person"]
    assert (counts.read, counts.inserted, counts.updated, counts.bad) == (7, 2, 1, 4)
    assert graph.count("node:Person") == 4


def test_the_first_of_two_rows_replaces_the_stored_one(graph: Graph) -> None:
    write(graph, "node:Person", people(("a", "1")))
    write(graph, "node:Person", people(("a", "2"), ("a", "3")), mode="merge", max_bad_rows=1)
    assert (mails(graph), graph.count("node:Person")) == ({"a": "2"}, 1)


def test_a_load_of_lines_agrees(graph: Graph) -> None:
    lines = [json.dumps({"type": "Person", "data": {"name": "a", "mail": mail}}) for mail in ("1", "2", "3")]
    graph.load(lines[:1])
    graph.load(lines[1:], "merge", options=LoadOptions(on_duplicate=OnDuplicate.ERROR, max_bad_rows=1))
    assert (mails(graph), graph.count("node:Person")) == ({"a": "2"}, 1)


def test_a_refused_write_leaves_nothing(graph: Graph) -> None:
    write(graph, "node:Person", people(("a", "1")))
    before = (graph.snapshot(), data_files(graph))
    with pytest.raises(BadRowsError) as caught:
        write(graph, "node:Person", people(("a", "2"), ("b", None), age=200), people(("a", "2"), ("c", None)))
    assert caught.value.summary.per_rule == {"key_conflict": 1, "range": 2}
    [conflict] = [row for row in caught.value.summary.sample if row.rule == "key_conflict"]
    assert json.loads(conflict.raw)["data"]["name"] == "a"
    assert (graph.snapshot(), data_files(graph)) == before
    with pytest.raises(BadRequestError, match="a frame has none"):
        write(graph, "node:Person", people(("d", None)), on_duplicate="last")


def test_rows_with_blobs_are_not_written_again(graph: Graph) -> None:
    files = pa.table({"name": ["x", "y", "y"], "content": [b"1", b"", None]})
    with pytest.raises(BadRequestError, match="its blobs do not allow"):
        write(graph, "node:File", files, max_bad_rows=1)
    with pytest.raises(BadRowsError, match="repeats an earlier record"):
        write(graph, "node:File", files)
    write(graph, "node:File", files.slice(0, 2))
    assert graph.entity("node:File", "x") == {"id": "x", "name": "x", "content": "base64:MQ=="}


def test_records_share_a_commit_and_keep_their_lines(graph: Graph) -> None:
    graph.create_branch("dev")
    records = pa.table(
        {
            "type": ["Person", None, "Person", None, "File"],
            "edge": [None, "Knows", None, "knows", None],
            "from": [None, "a", None, "a", None],
            "to": [None, "b", None, "zz", None],
            "data": ['{"name": "a"}', None, '{"name": "b"}', "{}", '{"name": "f"}'],
        }
    )
    report = write(graph, None, records, branch="dev", max_bad_rows=1)
    assert [(row.line, row.message) for row in report.bad_rows.sample] == [(4, "dst 'zz' not found in Person")]
    assert report.nodes_loaded == {"File": 1, "Person": 2}
    assert (graph.count("edge:Knows", branch="dev"), graph.count("edge:Knows")) == (1, 0)


def test_overwriting_with_nothing_empties_the_type(graph: Graph) -> None:
    write(graph, "node:Person", people(("a", "1")))
    write(graph, "node:Person", people(), mode="overwrite")
    assert graph.count("node:Person") == 0
    assert write(graph, "node:Person", people()).commit is None


def test_a_lost_race_is_tried_again_with_the_staged_files(graph: Graph) -> None:
    write(graph, "node:Person", people(("a", "1")))
    request, plan, staged = stage(graph, "node:Person", [people(("a", "9"), ("c", "3"))], mode="merge")
    write(graph, "node:Person", people(("a", "2"), ("b", "4")), mode="merge")
    report = finish_frame_load(graph.store, request, plan, staged)
    assert (report.tables["node:Person"].updated, report.tables["node:Person"].inserted) == (1, 1)
    assert (mails(graph), graph.count("node:Person")) == ({"a": "9", "b": "4", "c": "3"}, 3)
    assert len(list(Path(graph.uri).glob("nodes/**/data/*.lance"))) == 3  # the first attempt's file is gone


def test_rows_that_clash_with_the_winner_are_bad_rows(graph: Graph) -> None:
    request, plan, staged = stage(graph, "node:Person", [people(("a", "1"))])
    write(graph, "node:Person", people(("b", "1")))
    files = data_files(graph)
    with pytest.raises(BadRowsError, match="1 unique"):
        finish_frame_load(graph.store, request, plan, staged)
    assert data_files(graph) == files - 1


def test_an_overwrite_that_lost_a_race_is_a_conflict(graph: Graph) -> None:
    request, plan, staged = stage(graph, "node:Person", [people(("a", "1"))], mode="overwrite")
    write(graph, "node:Person", people(("b", "1")))
    files = data_files(graph)
    with pytest.raises(ConflictError):
        finish_frame_load(graph.store, request, plan, staged)
    assert (data_files(graph), mails(graph)) == (files - 1, {"b": "1"})


@pytest.mark.parametrize("allowed", [0, 1])
def test_an_append_does_not_replace_what_was_stored_meanwhile(graph: Graph, allowed: int) -> None:
    parts = [people(("b", "2"), ("a", "1"))]
    request, plan, staged = stage(graph, "node:Person", parts, max_bad_rows=allowed)
    write(graph, "node:Person", people(("a", "9")))
    with pytest.raises(BadRowsError) if not allowed else nullcontext() as caught:
        report = finish_frame_load(graph.store, request, plan, staged)
    (bad,) = report.bad_rows.sample if caught is None else caught.value.summary.sample
    assert (bad.id, str(bad.rule), bad.message.partition(";")[0]) == (
        "a",
        "key_conflict",
        "'a' exists in Person already",
    )
    assert mails(graph) == ({"a": "9", "b": "2"} if allowed else {"a": "9"})


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_blobs_that_lost_a_race_are_a_conflict(graph: Graph, mode: str) -> None:
    request, plan, staged = stage(graph, "node:File", [pa.table({"name": ["x"], "content": [b"1"]})], mode=mode)
    write(graph, "node:File", pa.table({"name": ["y"], "content": [b"2"]}))
    files = data_files(graph)
    with pytest.raises(ConflictError, match="stale view of 'node:File'"):
        finish_frame_load(graph.store, request, plan, staged)
    assert (graph.count("node:File"), data_files(graph)) == (1, files - 1)


def test_an_abort_removes_files(graph: Graph) -> None:
    files = data_files(graph)
    _, _, staged = stage(graph, "node:Person", [people(("c", "1"))])
    discard_parts(graph.store, staged)
    assert data_files(graph) == files


LOST = ExpectedVersionMismatch("node:Person", 1, 2)
ENDS = {
    "landed": ([None], 1),
    "refused before it landed": ([("unlanded", ConflictError("late"))], 0),
    "lost all races before it landed": ([("unlanded", LOST)] * ATTEMPTS, 0),
    "undone after it landed": ([("landed", LOST)] * ATTEMPTS, 1),
    "undone, then refused before it landed": ([("landed", LOST), ("unlanded", ConflictError("late"))], 1),
    "not known": ([("landed", RecoveryRequiredError("who knows"))], 1),
}


@pytest.mark.parametrize(("outcomes", "files"), ENDS.values(), ids=ENDS.keys())
def test_staged_files_go_when_the_write_ends_unless_they_may_have_landed(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, outcomes: list[tuple[str, OmnigraphError] | None], files: int
) -> None:
    request, plan, staged = stage(graph, "node:Person", [people(("a", "1"))], build_indexes=False)
    left, seen = iter(outcomes), []

    def end(store: GraphStore, prepared: PreparedCommit) -> Published:
        seen.append(len(table_files(graph)))
        outcome = next(left)
        if outcome is None:
            return commit(store, prepared)
        where, error = outcome
        again = copy(error)
        again.nothing_landed = where == "unlanded"
        raise again

    monkeypatch.setattr(staged_files, "commit", end)
    last = outcomes[-1]
    with nullcontext() if last is None else pytest.raises(type(last[1])):
        finish_frame_load(graph.store, request, plan, staged)
    assert (seen, len(table_files(graph))) == ([1] * len(outcomes), files)


def test_a_named_write_is_committed_once(graph: Graph) -> None:
    for number, names in ((7, "a"), (8, "b")):
        request, plan, staged = stage(graph, "node:Person", [people((names, None))])
        named = replace(request, transaction=Transaction("job", number))
        finish_frame_load(graph.store, named, plan, staged)
    for number in (8, 7, 3):
        request, plan, staged = stage(graph, "node:Person", [people(("z", None))])
        files = data_files(graph)
        named = replace(request, transaction=Transaction("job", number))
        with pytest.raises(TransactionCommittedError, match=rf"transaction {number} of 'job' .* \(the last is 8\)"):
            finish_frame_load(graph.store, named, plan, staged)
        assert data_files(graph) == files - 1
    other = replace(stage(graph, "node:Person", [people(("c", None))])[0], transaction=Transaction("other", 1))
    _, plan, staged = stage(graph, "node:Person", [people(("c", None))])
    finish_frame_load(graph.store, other, plan, staged)
    assert sorted(mails(graph)) == ["a", "b", "c"]


@pytest.mark.parametrize("branch", [None, "dev"])
@pytest.mark.parametrize(
    ("mode", "rows", "options"),
    [
        ("append", [], {}),
        ("merge", [], {}),
        ("overwrite", [], {}),
        ("append", [(None, "1")], {"max_bad_rows": 1}),
        ("append", [("old", "1")], {"max_bad_rows": 1}),
    ],
    ids=["append", "merge", "overwrite", "bad rows alone", "stored rows alone"],
)
def test_a_named_write_without_effect_does_not_act_when_it_comes_again(
    graph: Graph, mode: str, rows: list[tuple[str | None, str | None]], options: dict[str, object], branch: str | None
) -> None:
    if mode == "append":
        write(graph, "node:Person", people(("old", "0")))
    if branch is not None:
        graph.create_branch(branch)
    commits, files = graph.commits(branch=branch), table_files(graph)
    request, plan, staged = stage(graph, "node:Person", [people(*rows)], mode, branch, **options)
    named = replace(request, transaction=Transaction("job", 4))
    report = finish_frame_load(graph.store, named, plan, staged)
    assert report.commit is None
    assert report.manifest_version == graph.snapshot(branch=branch).version
    assert (graph.commits(branch=branch), table_files(graph)) == (commits, files)
    request, plan, staged = stage(graph, "node:Person", [people(("new", "2"))], branch=branch)
    with pytest.raises(TransactionCommittedError, match=r"transaction 4 of 'job' .* \(the last is 4\)"):
        finish_frame_load(graph.store, replace(request, transaction=Transaction("job", 4)), plan, staged)
    assert table_files(graph) == files
    later = replace(request, transaction=Transaction("job", 5))
    _, plan, staged = stage(graph, "node:Person", [people(("new", "2"))], branch=branch)
    assert finish_frame_load(graph.store, later, plan, staged).commit is not None


def test_a_named_overwrite_with_nothing_sees_rows_that_came_meanwhile(graph: Graph) -> None:
    request, plan, staged = stage(graph, "node:Person", [people()], mode="overwrite")
    write(graph, "node:Person", people(("b", "1")))
    with pytest.raises(ConflictError, match="stale view of 'node:Person'"):
        finish_frame_load(graph.store, replace(request, transaction=Transaction("job", 1)), plan, staged)
    assert mails(graph) == {"b": "1"}
    finish_frame_load(
        graph.store,
        replace(request, transaction=Transaction("job", 1)),
        *stage(graph, "node:Person", [people()], mode="overwrite")[1:],
    )
    assert mails(graph) == {}


def test_rows_that_were_checked_by_another_schema_are_not_committed(graph: Graph) -> None:
    write(graph, "node:Person", people(("a", "1")))
    request, plan, staged = stage(graph, "node:Person", [people(("b", "2")), people(("c", "3"))])
    before = (graph.snapshot(), table_files(graph))
    old = [staged[0], replace(staged[1], schema="sha256:before")]
    with pytest.raises(ConflictError, match="the schema changed after rows of this frame were staged"):
        finish_frame_load(graph.store, request, plan, old)
    assert graph.snapshot() == before[0]
    assert len(before[1] - table_files(graph)) == 2


def test_a_dry_run_keeps_no_name(graph: Graph) -> None:
    before = graph.snapshot()
    request, plan, staged = stage(graph, "node:Person", [people()], dry_run=True)
    finish_frame_load(graph.store, replace(request, transaction=Transaction("job", 1)), plan, staged)
    assert graph.snapshot() == before


def test_a_refused_row_shows_the_unique_value_behind_its_blob(tmp_path: Path) -> None:
    g = Graph.init(tmp_path / "g", "node File { name: String @key  content: Blob?  hash: String? @unique  z: I32? }")
    rows = pa.table({"name": ["x", "y"], "content": [b"1", b"2"], "hash": ["h", "h"], "z": [1, 2]})
    with pytest.raises(BadRowsError) as caught:
        write(g, "node:File", rows)
    [row] = caught.value.summary.sample
    assert json.loads(row.raw) == {"type": "File", "data": {"id": "y", "hash": "h"}}


def test_text_that_nobody_could_read_back_is_a_bad_row(graph: Graph) -> None:
    names = pa.array([b"a", b"\xff", b"c", b"d"]).view(pa.string())
    mails = pa.array([b"a@x", None, b"c\xed\xa0\x80", None]).view(pa.string())
    frame = pa.table({"name": names, "mail": mails, "age": [1, 2, 3, 4]})
    with pytest.raises(BadRowsError) as refused:
        write(graph, "node:Person", frame)
    assert [(r.line, r.field, str(r.rule)) for r in refused.value.summary.sample] == [
        (2, "name", "invalid_text"),
        (3, "mail", "invalid_text"),
    ]
    assert graph.count("node:Person") == 0
    report = write(graph, "node:Person", frame, max_bad_rows=2)
    assert report.bad_rows.per_rule == {"invalid_text": 2}
    assert [json.loads(line)["data"] for line in graph.export()] == [
        {"id": "a", "name": "a", "mail": "a@x", "age": 1},
        {"id": "d", "name": "d", "mail": None, "age": 4},
    ]
    graph.optimize()


def test_a_frame_whose_texts_are_all_answered_is_stored(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", 'node Film { slug: String @key  plot: String  vec: Vector(4)? @embed("plot") }')
    rows = pa.table({"slug": ["a", "b"], "plot": ["one", "two"]})
    report = write(graph, "node:Film", rows, embed="missing", embedder=Scripted())
    assert report.tables["node:Film"].inserted == 2
    assert (graph.entity("node:Film", "b") or {})["vec"] == vector("two")
