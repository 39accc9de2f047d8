"""Which write stops where, and what must be found: the matrix of all crash tests, and the page that shows it.

`python -m tests.crash.matrix` writes docs/recovery-matrix.md; a test checks that it is current.
"""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.ending import ACTOR as RECOVERY
from spark_omnigraph.commit.lease import SKEW
from spark_omnigraph.commit.process import this_process
from spark_omnigraph.errors import NotFoundError, VersionExpiredError
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMITS, MANIFEST
from spark_omnigraph.storage.manifest.table import read_facts
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import locate
from spark_omnigraph.storage.versions import lance_tags
from tests.crash.worlds import BEFORE, UNTIDY, WRITERS, Writer, assert_whole, person, run, state

PAGE = Path(__file__).parents[2] / "docs" / "recovery-matrix.md"


@dataclass(frozen=True)
class Row:
    """What is found after a write stopped at a point: by a reader at once, and by everybody after a recovery."""

    point: CrashPoint
    visible: bool
    """A reader sees the new graph before any recovery."""
    finished: bool
    """After the next read-write open everybody sees the new graph."""
    audited: bool
    """That open had something to recover, and says so in an audit row."""
    meaning: str


WRITE_ROWS = (
    Row(CrashPoint.STAGED, False, False, False, "all rows are staged; nothing refers to them"),
    Row(CrashPoint.CHECKED, False, False, False, "all rows are checked"),
    Row(CrashPoint.BOUND, False, False, False, "everything that was captured still stands"),
    Row(CrashPoint.LEASED, False, False, False, "the lease is there, the sidecar is not"),
    Row(CrashPoint.ARMED, False, False, True, "the sidecar is there, nothing has landed"),
    Row(CrashPoint.LANDED_FIRST, False, False, True, "one table has landed"),
    Row(CrashPoint.LANDED_ALL, False, True, True, "all tables have landed, nothing is published"),
    Row(CrashPoint.PUBLISHED, True, True, True, "published; no commit row yet"),
    Row(CrashPoint.RECORDED, True, True, True, "the commit row is there; sidecar and lease are, too"),
    Row(CrashPoint.DISARMED, True, True, False, "the sidecar is gone, the lease is not"),
)
MERGE_ROWS = (
    *(row for row in WRITE_ROWS if not row.finished),
    Row(CrashPoint.LANDED_ALL, False, False, True, "all tables have landed; the merge has not said what it reached"),
    Row(CrashPoint.CONFIRMED, False, True, True, "it has said what it reached; nothing is published"),
    *(row for row in WRITE_ROWS if row.visible),
)
BRANCH_ROW = Row(CrashPoint.FORKED, False, False, False, "tables of a branch are forked; nothing refers to the forks")
UNDO_ROWS = (
    Row(CrashPoint.UNDO_STARTED, False, True, True, "the publish failed; what landed is still there"),
    Row(CrashPoint.UNDO_RESTORED, False, False, True, "what landed is taken back; that is not published"),
    Row(CrashPoint.UNDO_PUBLISHED, False, False, True, "the undo is published; the sidecar is still there"),
)
INDEX_ROWS = (
    Row(CrashPoint.BOUND, False, False, False, "everything that was captured still stands"),
    Row(CrashPoint.LEASED, False, False, False, "the lease is there, the sidecar is not"),
    Row(CrashPoint.ARMED, False, False, True, "the sidecar is there, nothing has landed"),
    Row(CrashPoint.LANDED_FIRST, False, False, True, "indexes of one table have landed"),
    Row(CrashPoint.LANDED_ALL, False, True, True, "all indexes have landed, nothing is published"),
    Row(CrashPoint.PUBLISHED, True, True, True, "published; sidecar and lease are still there"),
    Row(CrashPoint.DISARMED, True, True, False, "the sidecar is gone, the lease is not"),
)
SCHEMA_ROWS = (
    Row(CrashPoint.SCHEMA_LOCKED, False, False, False, "the lock is taken"),
    Row(CrashPoint.CHECKED, False, False, False, "stored rows keep the new rules"),
    Row(CrashPoint.STAGED, False, False, False, "columns and rows are staged, new tables made; nothing refers to them"),
    Row(CrashPoint.BOUND, False, False, False, "everything that was captured still stands"),
    Row(CrashPoint.LEASED, False, False, False, "the lease is there, the sidecar is not"),
    Row(CrashPoint.ARMED, False, False, True, "the sidecar is there, nothing has landed"),
    Row(CrashPoint.LANDED_FIRST, False, False, True, "one table has landed"),
    Row(CrashPoint.LANDED_ALL, False, False, True, "all tables have landed, no schema file is staged"),
    Row(CrashPoint.SCHEMA_FILE_STAGED, False, False, True, "one schema file is staged"),
    Row(CrashPoint.SCHEMA_STAGED, False, True, True, "all schema files are staged, nothing is published"),
    Row(CrashPoint.PUBLISHED, True, True, True, "published; no schema file has its name"),
    Row(CrashPoint.SCHEMA_FILE_NAMED, True, True, True, "one schema file has its name"),
    Row(CrashPoint.SCHEMA_NAMED, True, True, True, "all schema files have their names; no commit row yet"),
    Row(CrashPoint.RECORDED, True, True, True, "the commit row is there; sidecar and lease are, too"),
    Row(CrashPoint.DISARMED, True, True, False, "the sidecar is gone, the lock and what was dropped are not"),
    Row(CrashPoint.REMOVED_FIRST, True, True, False, "what was dropped is gone of one table"),
    Row(CrashPoint.SCHEMA_UNLOCKED, True, True, False, "the lock is gone"),
)
OPTIMIZE_ROWS = (
    Row(CrashPoint.BOUND, False, False, False, "everything that was captured still stands"),
    Row(CrashPoint.LEASED, False, False, False, "the lease is there, the sidecar is not"),
    Row(CrashPoint.ARMED, False, False, True, "the sidecar is there, nothing has landed"),
    Row(CrashPoint.LANDED_FIRST, False, False, True, "joined files of one table have landed"),
    Row(CrashPoint.LANDED_ALL, False, True, True, "all joined files have landed, nothing is published"),
    Row(CrashPoint.PUBLISHED, True, True, True, "published; no commit row yet"),
    Row(CrashPoint.RECORDED, True, True, True, "the commit row is there; sidecar and lease are, too"),
    Row(CrashPoint.DISARMED, True, True, False, "the sidecar is gone, the lease is not"),
)
LINE_ROWS = {
    "create": (Row(CrashPoint.BRANCH_LOGGED, False, False, False, "the commit log has the branch, nothing else"),),
    "drop": (
        Row(CrashPoint.BRANCH_FREE, False, False, False, "nobody needs it, all of it is there"),
        Row(CrashPoint.BRANCH_GONE, True, True, False, "the manifest has it no more; its log and its tables are there"),
    ),
}
"""Of the two writers that make and delete a branch."""
KEPT_ROWS = {
    "tag": (
        Row(CrashPoint.TAG_FIRST, False, False, False, "one dataset is tagged"),
        Row(CrashPoint.TAG_ALL, False, False, False, "all datasets are tagged; the manifest does not say so"),
        Row(CrashPoint.TAG_SHOWN, True, True, False, "the manifest says so"),
    ),
    "untag": (
        Row(CrashPoint.TAG_HIDDEN, True, True, False, "the manifest has it no more; all datasets are tagged still"),
        Row(CrashPoint.TAG_UNTAGGED_FIRST, True, True, False, "one dataset is not tagged any more"),
    ),
    "expire": (
        Row(CrashPoint.EXPIRY_PLANNED, False, False, False, "what goes is known"),
        Row(CrashPoint.EXPIRY_ANNOUNCED, False, False, False, "the manifest says how far each dataset expires"),
        Row(CrashPoint.EXPIRY_FIRST_GONE, True, True, False, "old versions of one dataset are gone"),
        Row(CrashPoint.EXPIRY_MANIFESTS_GONE, True, True, False, "old states are gone; the tables are all there"),
    ),
    "copy": (
        Row(CrashPoint.COPY_STARTED, False, False, False, "the target says what is copied to it"),
        Row(CrashPoint.COPY_FIRST, False, False, False, "one file is there"),
        Row(CrashPoint.COPY_FILES, False, False, False, "all files are there"),
        Row(CrashPoint.COPY_NAMED, False, False, False, "the copy says what it is one of; the schema file is missing"),
        Row(CrashPoint.COPY_SHOWN, True, True, False, "the schema file is there"),
    ),
    "convert": (
        Row(CrashPoint.CONVERT_STARTED, False, False, False, "the target says what is converted to it"),
        Row(CrashPoint.CONVERT_TABLE, False, False, False, "one table of main is there"),
        Row(CrashPoint.CONVERT_MAIN, False, False, False, "main is there; the schema file is missing"),
        Row(CrashPoint.LANDED_ALL, False, False, False, "what a branch has otherwise has landed, nothing is published"),
        Row(CrashPoint.PUBLISHED, False, False, False, "one branch is published; no commit row yet"),
        Row(CrashPoint.CONVERT_BRANCH, False, False, False, "one branch is there"),
        Row(CrashPoint.CONVERT_COMPARED, False, False, False, "all rows are compared"),
        Row(CrashPoint.CONVERT_SHOWN, True, True, False, "the schema file is there"),
    ),
    "erase": (
        Row(CrashPoint.ERASE_DELETED, True, True, False, "the row is deleted on one branch"),
        Row(CrashPoint.ERASE_WRITTEN, True, True, False, "files and indexes of one branch are written anew"),
        Row(CrashPoint.ERASE_EXPIRED, True, True, False, "older states are gone"),
    ),
}
"""Of making and deleting a tag, of the expiry of old states, of a copy, a conversion, and an erasure."""
RECOVERY_POINTS = tuple(p for p in CrashPoint if p.name.startswith("RECOVERY_"))
DIED_AT = (CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL, CrashPoint.ARMED)
KILLED_WRITERS = ("append", "merge", "overwrite")
KILLED_AT = (CrashPoint.ARMED, CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL, CrashPoint.PUBLISHED)
S3_KILLED_AT = (CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL)
S3_WRITERS, S3_POINTS = ("merge", "branch"), (CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL)

SCHEMA_STEPS = (
    ("the lock is taken and the sidecar is there", False),
    ("new tables are made", False),
    ("tables are rewritten", False),
    ("one schema file is staged", False),
    ("two schema files are staged", False),
    ("all schema files are staged", True),
    ("published", True),
    ("one schema file has its name", True),
    ("two schema files have their names", True),
    ("all schema files have their names", True),
)
"""Steps of a schema change of the reference engine, and whether one that stopped after it is finished."""

SCHEMA_RECOVERED_AT = (3, 6, 8)
"""Numbers of steps after which its recovery is stopped as well."""
FIXTURES = (
    "Mutation",
    "Mutation, landed on one table",
    "Load",
    "EnsureIndices",
    "Optimize",
    "BranchMerge, confirmed",
    "BranchMerge, not confirmed",
)
"""Writes of the reference engine, left by fixtures: their sidecars name none of our members."""

PASSED_BY = dict.fromkeys(("delete by id", "frame", "sync"), (CrashPoint.STAGED,))
"""Points that a writer does not have: one stages nothing, the others in tasks that know nothing of each other."""
VISIBLE_AFTER = {row.point for row in WRITE_ROWS if row.visible}


def rows_of(name: str) -> tuple[Row, ...]:
    """What is found after a writer of this name stopped, by its points."""
    return MERGE_ROWS if name == "branch merge" else WRITE_ROWS


def cases() -> list[tuple[str, Row]]:
    """Every writer at every point that it passes."""
    found = [(name, row) for name in WRITERS for row in rows_of(name) if row.point not in PASSED_BY.get(name, ())]
    return [*found, ("branch", BRANCH_ROW)]


def expire_leases(graph: Graph) -> None:
    """The owner is gone for longer than its lease ran: what waiting would show, without waiting."""
    for name in graph.store.objects.list("__recovery"):
        if name.endswith(".lease"):
            content = json.dumps({"owner": "gone:1", "expires_at": time.time() - SKEW - 1}).encode()
            graph.store.objects.put(f"__recovery/{name}", content)


def expire_claims(graph: Graph) -> None:
    """Claims of processes that stand still or are gone run out."""
    for name in graph.store.objects.list("__recovery"):
        if name.endswith(".claim"):
            graph.store.objects.put(f"__recovery/{name}", json.dumps({"token": "gone", "expires_at": 0}).encode())


def seen_dead(graph: Graph) -> None:
    """A process of this machine that was killed is seen to be gone; where nobody can see that, its lease runs out."""
    if this_process() is None:
        expire_leases(graph)


def give_up(graph: Graph) -> None:
    expire_leases(graph)
    expire_claims(graph)


def check_after_crash(
    root: Path | str,
    writer: Writer,
    row: Row,
    options: Mapping[str, str] | None = None,
    end: Callable[[Graph], None] = expire_leases,
) -> None:
    """What `row` says is what readers, a read-write open and the next writer find, once the owner has come to its
    `end`.
    """
    reader = Graph.open(root, mode="r", storage_options=options)
    seen = state(reader, writer.branch)
    assert seen == (writer.after if row.visible else BEFORE), "readers see one state, before any recovery"
    end(reader)
    graph = Graph.open(root, storage_options=options)
    expected = writer.after if row.finished else BEFORE
    assert state(graph, writer.branch) == expected
    assert_whole(graph)
    kinds = [recovery.kind for recovery in graph.recoveries()]
    assert kinds == (["RolledForward" if row.finished else "RolledBack"] if row.audited else [])
    commits = graph.commits(branch=writer.branch)
    assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], "one line of commits"
    merged = writer.mode == "merge_branch" and row.finished
    assert [c.merged_parent for c in commits if c.merged_parent] == (
        [graph.commits(branch=writer.lines[0])[0].id] if merged else []
    )
    assert len({c.id for c in commits}) == len({c.manifest_version for c in commits}) == len(commits)
    told = read_facts(graph.store.manifest(parse_branch(writer.branch)))
    untold = [c for c in commits if c.facts is None]
    assert told.keys() == {c.id for c in commits} - {c.id for c in untold}, "no facts without their commit"
    assert all(c.parent is None or (c.actor == RECOVERY and not row.finished) for c in untold), "no commit without its"
    if writer.mode == "sync":
        assert (run(graph, writer).commit is None) is row.finished, "what is there already is not applied again"
        expected = writer.after
    graph.load([person("later", 1)], "merge", branch=writer.branch)
    assert state(graph, writer.branch) == expected | {"Person:later=1"}
    assert_whole(graph)


def indexes(graph: Graph) -> set[str]:
    """`table.column` of every index that a snapshot shows."""
    return {f"{i.table_key}.{i.column}" for i in graph.indexes() if i.name is not None}


def check_after_index_crash(
    root: Path | str,
    row: Row,
    options: Mapping[str, str] | None = None,
    end: Callable[[Graph], None] = expire_leases,
) -> None:
    """Indexes are all there or none is, rows never change, and the next build makes what is missing."""
    reader = Graph.open(root, mode="r", storage_options=options)
    wanted = {f"{i.table_key}.{i.column}" for i in reader.indexes()}
    assert (state(reader), indexes(reader)) == (BEFORE, wanted if row.visible else set())
    end(reader)
    graph = Graph.open(root, storage_options=options)
    assert (state(graph), indexes(graph)) == (BEFORE, wanted if row.finished else set())
    assert_whole(graph)
    audits = [(audit.kind, audit.writer_kind) for audit in graph.recoveries()]
    kind = "RolledForward" if row.finished else "RolledBack"
    assert audits == ([(kind, "EnsureIndices")] if row.audited else [])
    graph.ensure_indices()
    assert (state(graph), indexes(graph)) == (BEFORE, wanted)
    assert_whole(graph)


def files(graph: Graph) -> dict[str, int]:
    """Files of the tables that are written again and again, as main shows them."""
    entries = graph.snapshot().entries
    counts = {key: len(graph.store.open_table(entry).get_fragments()) for key, entry in entries.items()}
    return {key: counts[key] for key in ("edge:Knows", "node:Person")}


def check_after_optimize_crash(
    root: Path | str,
    row: Row,
    options: Mapping[str, str] | None = None,
    end: Callable[[Graph], None] = expire_leases,
) -> None:
    """All tables are compacted or none is, rows never change, and the next run does what is left."""
    old, new = {"edge:Knows": 2, "node:Person": 2}, {"edge:Knows": 1, "node:Person": 1}
    reader = Graph.open(root, mode="r", storage_options=options)
    assert (state(reader), files(reader)) == (UNTIDY, new if row.visible else old)
    end(reader)
    graph = Graph.open(root, storage_options=options)
    assert (state(graph), files(graph)) == (UNTIDY, new if row.finished else old)
    assert_whole(graph)
    kind = "RolledForward" if row.finished else "RolledBack"
    audits = [(audit.kind, audit.writer_kind) for audit in graph.recoveries()]
    assert audits == ([(kind, "Optimize")] if row.audited else [])
    graph.optimize()
    assert (state(graph), files(graph)) == (UNTIDY, new)
    made = [commit.facts.operation for commit in graph.commits() if commit.facts is not None]
    assert made.count("optimize") == 1
    assert_whole(graph)


def line_cases() -> list[tuple[str, Row]]:
    """Making and deleting a branch, at every point."""
    return [(name, row) for name, rows in LINE_ROWS.items() for row in rows]


def begin_line(graph: Graph, name: str) -> None:
    """A branch with a commit of its own, where one is to be deleted."""
    if name == "drop":
        graph.create_branch("side")
        graph.load([person("s", 7)], "merge", branch="side")


def change_line(graph: Graph, name: str) -> None:
    if name == "drop":
        graph.delete_branch("side")
    else:
        graph.create_branch("side")


def check_after_line_crash(root: Path | str, name: str, row: Row, options: Mapping[str, str] | None = None) -> None:
    """The branch is there whole or not at all; it can be made and deleted again; clean-up leaves nothing of it."""
    there = (name == "drop") is not row.visible
    reader = Graph.open(root, mode="r", storage_options=options)
    assert ("side" in reader.branches()) is there
    if there:
        assert state(reader, "side") == BEFORE | {"Person:s=7"}
    graph = Graph.open(root, storage_options=options)
    expire_claims(graph)
    if there:
        graph.delete_branch("side")
    graph.create_branch("side")
    graph.load([person("t", 8)], "merge", branch="side")
    assert (state(graph), state(graph, "side")) == (BEFORE, BEFORE | {"Person:t=8"})
    assert_whole(graph)
    graph.delete_branch("side")
    graph.cleanup(timedelta(0), confirm=True)
    stores = [entry.location for entry in graph.snapshot().entries.values()] + [MANIFEST, COMMITS]
    assert [each.path for store in stores for each in graph.store.objects.walk(store) if "side" in each.path] == []


def kept_cases() -> list[tuple[str, Row]]:
    """Tags and expiry, at every point."""
    return [(name, row) for name, rows in KEPT_ROWS.items() for row in rows]


def begin_kept(graph: Graph, name: str) -> None:
    """A tag, where one is to be deleted; states that expire, and one that a tag keeps."""
    if name == "untag":
        graph.tag("t")
    if name == "expire":
        graph.tag("first")
        for age in (5, 6, 7):
            graph.load([person("s", age)], "merge")
    if name == "erase":
        graph.load([person("secret", 7)], "merge")


def change_kept(graph: Graph, name: str) -> None:
    if name == "tag":
        graph.tag("t")
    elif name == "untag":
        graph.delete_tag("t")
    elif name == "copy":
        graph.copy(f"{graph.uri}-copy", storage_options=graph.store.storage_options)
    elif name == "convert":
        options = graph.store.storage_options
        graph.convert(f"{graph.uri}-convert", all_branches=True, storage_options=options)
    elif name == "erase":
        graph.erase("Person", "secret", confirm=True)
    else:
        graph.cleanup(keep=1, confirm=True, force=True)


def check_after_kept_crash(root: Path | str, name: str, row: Row, options: Mapping[str, str] | None = None) -> None:
    """A tag is there whole or not at all, what is promised can be read, and the next run leaves nothing over."""
    reader = Graph.open(root, mode="r", storage_options=options)
    if name in _CHECKS:
        _CHECKS[name](root, row, options)
        return
    there = (name == "untag") is not row.visible
    assert [tag.name for tag in reader.tags()] == (["t"] if there else [])
    graph = Graph.open(root, storage_options=options)
    expire_claims(graph)
    if not there:
        graph.tag("t")
    assert graph.at(tag="t").count("node:Person") == 2
    graph.load([person("later", 1)], "merge")
    assert (graph.count("node:Person", tag="t"), graph.count("node:Person")) == (2, 3)
    graph.delete_tag("t")
    graph.cleanup(timedelta(0), confirm=True)
    stores = [entry.location for entry in graph.snapshot().entries.values()] + [MANIFEST]
    assert [lance_tags(graph.store.open_dataset(store)) for store in stores] == [{}] * len(stores)
    assert_whole(graph)


def check_after_expiry_crash(root: Path | str, row: Row, options: Mapping[str, str] | None = None) -> None:
    """Newest states, tags and where merges start can be read; what goes is gone after the next run."""
    graph = Graph.open(root, storage_options=options)
    expire_claims(graph)
    newest, old = BEFORE | {"Person:s=7"}, graph.commits()[1].id
    if not row.visible:
        assert graph.at(snapshot=old).count("node:Person") == 3
    for _ in range(2):
        assert (state(graph), state(graph, "draft")) == (newest, BEFORE)
        assert graph.at(tag="first").count("node:Person") == 2
        change_kept(graph, "expire")
    with pytest.raises(VersionExpiredError, match="the oldest that can be read"):
        graph.at(snapshot=old)
    left = graph.cleanup(keep=1, force=True).expiry
    assert left is not None
    assert left.lines == ()
    graph.merge_branch("review")
    assert state(graph) == WRITERS["branch merge"].after | {"Person:s=7"}
    assert_whole(graph)


def check_after_copy_crash(
    root: Path | str, row: Row, options: Mapping[str, str] | None = None, name: str = "copy"
) -> None:
    """The copy opens whole or not at all, and another run ends it."""
    graph, target = Graph.open(root, storage_options=options), f"{root}-{name}"
    if row.visible:
        assert state(Graph.open(target, mode="r", storage_options=options)) == BEFORE
    else:
        with pytest.raises(NotFoundError, match="did not end"):
            Graph.open(target, mode="r", storage_options=options)
    location = locate(target, options)
    expire_leases(Graph(GraphStore(location, Objects(location))))
    change_kept(graph, name)
    made = Graph.open(target, storage_options=options)
    assert {branch: state(made, branch) for branch in made.branches()} == {
        branch: state(graph, branch) for branch in graph.branches()
    }
    assert_whole(made)


def check_after_erase_crash(root: Path | str, row: Row, options: Mapping[str, str] | None = None) -> None:
    """The row is shown no more, and another run ends the work."""
    graph = Graph.open(root, storage_options=options)
    expire_claims(graph)
    expire_leases(graph)
    graph = Graph.open(root, storage_options=options)
    assert (state(graph), row.visible) == (BEFORE, True)
    assert graph.erase("Person", "secret", confirm=True).done
    stores = [entry.location for entry in graph.snapshot().entries.values()]
    files = [each.path for store in stores for each in graph.store.objects.walk(store)]
    assert [path for path in files if b"secret" in (graph.store.objects.get(path, limit=None) or b"")] == []
    assert state(graph) == BEFORE
    assert_whole(graph)


_CHECKS: dict[str, Callable[..., None]] = {
    "expire": check_after_expiry_crash,
    "copy": check_after_copy_crash,
    "convert": partial(check_after_copy_crash, name="convert"),
    "erase": check_after_erase_crash,
}


def check_stopped_recovery(graph: Graph, died_at: CrashPoint, point: CrashPoint) -> None:
    """A write dies, its recovery dies too, and the next one ends as the first would have."""
    writer, finished = WRITERS["merge"], died_at is CrashPoint.LANDED_ALL
    with stop_at(died_at):
        assert crashed(lambda: run(graph, writer))
    expire_leases(graph)
    with stop_at(point):
        stopped = crashed(lambda: Graph.open(graph.uri, storage_options=graph.store.storage_options))
    assert stopped or point is CrashPoint.RECOVERY_RESTORED, "only a write that is undone restores"
    again = Graph.open(graph.uri, storage_options=graph.store.storage_options)
    assert state(again) == (writer.after if finished else BEFORE)
    assert_whole(again)
    (audit,) = again.recoveries()
    assert audit.kind == ("RolledForward" if finished else "RolledBack")
    commits = again.commits()
    assert [c.parent for c in commits[:-1]] == [c.id for c in commits[1:]], "one line of commits"
    assert [c.id for c in commits].count(audit.commit_id) == 1


def crashed(work: Callable[[], object]) -> bool:
    """Whether some work stopped at a point."""
    try:
        work()
    except Crashed:
        return True
    return False


_INTRODUCTION = """
    A write can stop at any of the points below: its process is killed, its machine goes, its store fails. Readers see
    the old graph or the new one, at once and always; the next read-write open, and `recover`, bring the write to an
    end. They do so at once where a process of the same machine was killed; where a test stops a write by an exception,
    its process lives, and its lease is made to run out. This page is made from `tests/crash/matrix.py` by
    `python -m tests.crash.matrix`; the tests that it counts are made from the same tables.
"""
_UNDO = "Its publish failed, and it undoes what it landed while it holds its lease."
_UNDO_NOTE = """
    A write that died before it began to undo anything is finished when everything that it relied on still stands:
    nobody was told that it failed.
"""
_INDEX = "It changes no row and makes no commit; *old* is a graph without the indexes, *new* one with all of them."
_OPTIMIZE = "It changes no row; *old* are tables of many files, *new* the same tables of one each, in one commit."
_MERGE = """
    A write that says what its tables reached before it publishes, as other engines expect it of merges: until then a
    merge that died is undone.
"""
_LINE = """
    Neither is a write: a branch is there as soon and as long as the manifest has it, and what is left of one that is
    not there goes by the next creation or clean-up. *old* is the graph before, *new* the graph after.
"""
_SCHEMA = """
    Tables, schema and schema files are old or new together. What is dropped for good goes after the publish; whoever
    finds that it was not ended goes on with it.
"""
_KEPT = """
    None of them is a write, but for what an erasure deletes and writes anew. A tag is there as soon and as long as the
    manifest has it. Of an expiry *new* are states that nothing keeps and that can be read no more; of a copy or a
    conversion *new* is a graph at the target, of an erasure the graph without the row. The next run does what is left.
"""
_FOREIGN_SCHEMA = "Its sidecar says less: while not all schema files are staged it is undone."
_RECOVERY = """
    A recovery of a write that died at {died} is stopped at {points}; the next one ends as the first would have.
    So is one of a write that the reference engine left: {fixtures}.
"""
_BESIDES = """
    Processes that only seem dead are tested by `tests/crash/test_late_owner.py`: owners of writes, recoveries and
    realigning processes stand still (SIGSTOP) at each of their points while others recover and write, and then go on.
    One round is part of every test run; `pytest tests/crash/test_late_owner.py -m "long or not long" --late-rounds 100`
    runs each a hundred times. `pytest tests/faults -m long` adds the whole matrix on S3 and a fault in every
    single call to the store; `python -m tests.races.stress --seconds 600 [--storage s3]` kills writers at random.
"""
_HEAD = ["| stopped at | where that is | readers see | after recovery | audit |", "|---|---|---|---|---|"]


def render() -> str:
    """The page."""
    recovery = _RECOVERY.format(died=_listed(DIED_AT), points=_listed(RECOVERY_POINTS), fixtures="; ".join(FIXTURES))
    blocks = [
        ["# What a stopped write leaves"],
        _filled(_INTRODUCTION),
        ["## A write"],
        [*_HEAD, *(_row(row) for row in (BRANCH_ROW, *WRITE_ROWS))],
        ["## A merge of branches"],
        _filled(_MERGE),
        [*_HEAD, *(_row(row) for row in MERGE_ROWS)],
        ["## A write that takes itself back"],
        _filled(_UNDO),
        [*_HEAD, *(_row(row) for row in UNDO_ROWS)],
        _filled(_UNDO_NOTE),
        ["## A build of indexes"],
        _filled(_INDEX),
        [*_HEAD, *(_row(row) for row in INDEX_ROWS)],
        ["## A compaction"],
        _filled(_OPTIMIZE),
        [*_HEAD, *(_row(row) for row in OPTIMIZE_ROWS)],
        ["## A schema change"],
        _filled(_SCHEMA),
        [*_HEAD, *(_row(row) for row in SCHEMA_ROWS)],
        ["## A schema change of the reference engine"],
        _filled(_FOREIGN_SCHEMA),
        ["| stopped after | after recovery |", "|---|---|", *(f"| {s} | {_age(done)} |" for s, done in SCHEMA_STEPS)],
        ["## A branch that is made or deleted"],
        _filled(_LINE),
        [*_HEAD, *(_row(row) for _, row in line_cases())],
        ["## A tag, the expiry of old states, a copy, a conversion, an erasure"],
        _filled(_KEPT),
        [*_HEAD, *(_row(row) for _, row in kept_cases())],
        ["## A recovery"],
        _filled(recovery),
        ["## Counts"],
        [
            "| how it stops | writes | where | cases |",
            "|---|---|---|---:|",
            *(f"| {how} | {writes} | {where} | {count} |" for how, writes, where, count in _counts()),
        ],
        _filled(_BESIDES),
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _filled(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 120, break_on_hyphens=False)


def _age(new: bool) -> str:
    return "new" if new else "old"


def _row(row: Row) -> str:
    seen, after = _age(row.visible), _age(row.finished)
    audit = ("rolled forward" if row.finished else "rolled back") if row.audited else "none needed"
    return f"| `{row.point.value}` | {row.meaning} | {seen} | {after} | {audit} |"


def _counts() -> list[tuple[str, str, str, int]]:
    writers, killed, s3 = ", ".join(WRITERS), ", ".join(KILLED_WRITERS), ", ".join(S3_WRITERS)
    recoveries = len(DIED_AT) * len(RECOVERY_POINTS)
    others = len(INDEX_ROWS) + len(OPTIMIZE_ROWS) + len(SCHEMA_ROWS) + len(line_cases()) + len(kept_cases())
    every = len(cases()) + others
    maintenance = (
        "index, compaction, schema change, branch made, branch deleted, tag, expiry, copy, conversion, erasure"
    )
    fixtures = len(FIXTURES) * len(RECOVERY_POINTS)
    schema = len(SCHEMA_RECOVERED_AT) * len(RECOVERY_POINTS)
    return [
        ("exception", writers, "local, every point", len(cases())),
        ("SIGKILL", killed, f"local, {_listed(KILLED_AT)}", len(KILLED_WRITERS) * len(KILLED_AT)),
        ("exception", maintenance, "local, every point", others),
        ("SIGKILL (`-m long`)", f"{writers}, {maintenance}", "local, every point", every),
        ("exception in an undo", "merge", "local, every point", len(UNDO_ROWS)),
        ("exception in a recovery", "merge", "local, every point", recoveries),
        (
            "exception in a recovery",
            "of the reference engine",
            "local, every point",
            fixtures,
        ),
        ("every step", "schema change of the reference engine", "local", len(SCHEMA_STEPS)),
        ("exception in a recovery", "schema change of the reference engine", "local, every point", schema),
        ("exception", s3, f"S3, {_listed(S3_POINTS)}", len(S3_WRITERS) * len(S3_POINTS)),
        ("SIGKILL", "merge", f"S3, {_listed(S3_KILLED_AT)}", len(S3_KILLED_AT)),
        ("exception (`-m long`)", f"{writers}, {maintenance}", "S3, every point", every),
        ("SIGKILL (`-m long`)", f"{writers}, {maintenance}", "S3, every point", every),
        ("exception in a recovery (`-m long`)", "merge", "S3, every point", recoveries),
    ]


def _listed(points: tuple[CrashPoint, ...]) -> str:
    return ", ".join(f"`{point.value}`" for point in points)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
