"""A forced init: refused while anybody is at work, and whatever step it dies at, what is left says what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import lance
import pytest

from spark_omnigraph import Graph, LoadOptions, NotFoundError, OmnigraphError
from spark_omnigraph.commit.claim import claimed
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.lease import Lease, lease_path
from spark_omnigraph.commit.stage import close_stage, open_stage, staging
from spark_omnigraph.errors import ConflictError, WriterBusyError
from spark_omnigraph.graph.create import check_root
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import MAKING

SCHEMA = "node Person { name: String @key }"
PLAIN = LoadOptions(build_indexes=False)
MAKING_POINTS = [point for point in CrashPoint if point.name.startswith("MAKING_")]


def person(name: str) -> str:
    return json.dumps({"type": "Person", "data": {"name": name}})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Graph.init(tmp_path / "g", SCHEMA).load([person("a")], options=PLAIN)
    return tmp_path / "g"


def names(root: Path) -> set[str]:
    return {json.loads(line)["data"]["name"] for line in Graph.open(root, mode="r").export()}


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


HOLDERS: dict[str, Callable[[GraphStore], AbstractContextManager[object]]] = {
    "stage": staging,
    "claim": lambda store: claimed(store, "branch~draft"),
}


@pytest.mark.parametrize("holder", [*HOLDERS, "handed-over stage", "other init"])
def test_whoever_is_alive_keeps_a_forced_init_out(root: Path, holder: str) -> None:
    store = GraphStore.open(root)
    stage, lease = "", Lease(store, f"{MAKING}other")
    if holder == "handed-over stage":
        stage = open_stage(store)
    elif holder == "other init":
        lease.acquire()
    with HOLDERS[holder](store) if holder in HOLDERS else nullcontext():
        before = files(root)
        with pytest.raises(WriterBusyError, match="at work on"):
            Graph.init(root, SCHEMA, force=True)
        assert files(root) == before
        with pytest.raises(WriterBusyError, match="at work on"):
            check_root(root, force=True)
    if holder == "handed-over stage":
        with pytest.raises(WriterBusyError, match=f"removed by hand: {root}/__recovery/{stage}.lease"):
            Graph.init(root, SCHEMA, force=True)
        close_stage(store, stage)
    lease.release()
    Graph.init(root, SCHEMA, force=True)
    assert names(root) == set()


def test_a_write_that_awaits_recovery_keeps_a_forced_init_out(root: Path) -> None:
    with stop_at(CrashPoint.LANDED_ALL), pytest.raises(Crashed):
        Graph.open(root).load([person("b")], options=PLAIN)
    with pytest.raises(ConflictError, match="run recover"):
        Graph.init(root, SCHEMA, force=True)
    assert names(root) == {"a"}


def test_a_stage_that_ran_out_is_ended_and_its_write_refused(root: Path) -> None:
    """As that of a frame whose driver slept for longer than the stage was given."""
    graph = Graph.open(root)
    stage = open_stage(graph.store, term=-3600)
    Graph.init(root, SCHEMA, force=True)
    assert graph.store.objects.get(lease_path(stage)) is None
    assert names(root) == set()


@pytest.mark.parametrize("at", [CrashPoint.STAGE_OPENED, CrashPoint.PLANNED, CrashPoint.CHECKED, CrashPoint.BOUND])
def test_a_load_between_its_stage_and_its_sidecar_keeps_a_forced_init_out(root: Path, at: CrashPoint) -> None:
    refused: list[OmnigraphError] = []

    def replace() -> None:
        with pytest.raises(WriterBusyError) as error:
            Graph.init(root, SCHEMA, force=True)
        refused.append(error.value)

    with stop_at(at, replace):
        assert Graph.open(root).load([person("b")], options=PLAIN).commit is not None
    assert len(refused) == 1
    assert names(root) == {"a", "b"}


def test_a_load_that_began_while_the_old_graph_was_removed_is_refused(root: Path) -> None:
    """Its stage came after the look for owners, its plan before anything was gone."""
    graph = Graph.open(root)

    def load() -> None:
        with pytest.raises(ConflictError, match="is being made anew by an init"):
            graph.load([person("b")], options=PLAIN)

    with stop_at(CrashPoint.MAKING_ALONE, load):
        Graph.init(root, SCHEMA, force=True)
    assert names(root) == set()
    graph = Graph.open(root)
    graph.load([person("c")], options=PLAIN)
    assert names(root) == {"c"}
    assert graph.store.objects.list("__recovery") == []


def test_claims_and_a_plain_init_step_back_while_a_graph_is_made_anew(root: Path) -> None:
    graph, seen = Graph.open(root), []

    def interfere() -> None:
        for act in (lambda: graph.create_branch("draft"), lambda: Graph.init(root, SCHEMA)):
            with pytest.raises((ConflictError, NotFoundError)) as error:
                act()
            seen.append(error.value.kind)

    for point in (CrashPoint.MAKING_ALONE, CrashPoint.MAKING_REMOVED):
        with stop_at(point, interfere):
            Graph.init(root, SCHEMA, force=True)
    assert seen == ["writer_busy", "already_initialized", seen[2], "writer_busy"]
    assert Graph.open(root).branches() == ["main"]


@pytest.mark.parametrize("at", MAKING_POINTS)
def test_a_forced_init_that_died_says_what_to_do(root: Path, at: CrashPoint) -> None:
    with stop_at(at), pytest.raises(Crashed):
        Graph.init(root, SCHEMA, force=True)
    for lease in (root / "__recovery").glob("*.lease"):  # its process is gone
        lease.write_text(json.dumps({"owner": "gone", "expires_at": 1.0, "started_at": 0.0}))
    if at in (CrashPoint.MAKING_LEASED, CrashPoint.MAKING_ALONE):
        Graph.open(root).load([person("b")], options=PLAIN)
        assert names(root) == {"a", "b"}
    elif at is CrashPoint.MAKING_CREATED:
        Graph.open(root).load([person("b")], options=PLAIN)
        assert names(root) == {"b"}
    else:
        with pytest.raises(OmnigraphError, match=r"init with force") as error:
            Graph.open(root)
        assert error.value.kind in {"not_found", "storage"}
        removed = at in (CrashPoint.MAKING_REMOVED, CrashPoint.MAKING_STAGES_ENDED)
        with nullcontext() if removed else pytest.raises(OmnigraphError, match="force"):
            Graph.init(root, SCHEMA).load([person("d")], options=PLAIN)
        Graph.init(root, SCHEMA, force=True).load([person("c")], options=PLAIN)
        assert names(root) == {"c"}
    assert [n for n in os.listdir(root / "__recovery") if n.endswith(".lease")] == []


def test_an_init_that_stood_still_removes_nothing_more(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep() -> None:
        monkeypatch.setattr(Lease, "may_be_taken", lambda _: True)

    with stop_at(CrashPoint.MAKING_ALONE, sleep), pytest.raises(ConflictError, match="stood still"):
        Graph.init(root, SCHEMA, force=True)
    monkeypatch.undo()
    assert names(root) == {"a"}


@pytest.mark.parametrize("place", ["nodes/link", "nodes", "nodes/{table}", "nodes/{table}/data", "nodes/{table}/tree"])
def test_links_are_neither_followed_by_a_forced_init_nor_by_clean_up(root: Path, tmp_path: Path, place: str) -> None:
    """What they lead to is left as it is; a forced init removes a link in the place of something of the graph."""
    table = next((root / "nodes").iterdir()).name
    link, outside = root / place.format(table=table), tmp_path / "outside"
    if link.exists():
        link.rename(outside)
    (outside / "sub").mkdir(parents=True)
    for name in ("x", "sub/x.lance", "sub/y"):
        (outside / name).write_text("mine")
        os.utime(outside / name, (1.0, 1.0))
    link.symlink_to(outside)
    before = files(outside)
    report = Graph.open(root).cleanup(confirm=True)
    assert report.items == ()
    assert [(kept.what, "symbolic link" in kept.why) for kept in report.kept] == [(place.format(table=table), True)]
    assert files(outside) == before
    assert names(root) == {"a"}
    Graph.init(root, SCHEMA, force=True).load([person("b")], options=PLAIN)
    assert files(outside) == before
    assert link.is_symlink() == (place == "nodes/link")
    assert names(root) == {"b"}


def test_a_root_that_is_a_link_is_cleaned_up_and_made_anew(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.symlink_to(root)
    graph = Graph.open(linked)
    table = root / graph.snapshot().entry("node:Person").location
    (table / "data" / "left.lance").write_bytes(b"x")
    os.utime(table / "data" / "left.lance", (1.0, 1.0))
    assert [item.path for item in graph.cleanup(confirm=True).items] == [f"nodes/{table.name}/data/left.lance"]
    Graph.init(linked, SCHEMA, force=True)
    assert linked.is_symlink()
    assert lance.dataset(table).count_rows() == 0


@pytest.mark.parametrize("stands", [True, False], ids=["a graph", "no graph"])
def test_a_forced_init_removes_nothing_that_is_not_of_a_graph(tmp_path: Path, stands: bool) -> None:
    root = tmp_path / "g"
    if stands:
        Graph.init(root, SCHEMA)
    mine = [root / name for name in ("nodes/films.jsonl", "edges/e.csv", "nodes/2024/a.jsonl", "thesis.txt")]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    Graph.init(root, SCHEMA, force=True)
    assert [path.read_text() for path in mine] == ["mine"] * 4
