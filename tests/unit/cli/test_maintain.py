"""The verbs that keep a graph whole, on real graphs: what they say, what they change, and how they end."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import lance
import pytest
from lance.fragment import write_fragments

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.cli.program import main
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.commit.lease import SKEW, lease_path
from tests.crash.matrix import expire_leases
from tests.support.graph_files import pins

FILM = "node:Film"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", "node Film { name: String @key }")
    for name in ("Alien", "Heat"):
        graph.load([json.dumps({"type": "Film", "data": {"name": name}})], options=LoadOptions(build_indexes=False))
    return graph


def film(graph: Graph) -> lance.LanceDataset:
    return pins(Path(graph.uri))[FILM].head(Path(graph.uri))


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any], str]:
    code = main([*argv])
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    return code, json.loads(out), err


def pending_write(graph: Graph) -> str:
    """A write that no recovery can bring to an end: the graph has no such table."""
    name = "01J0000000000000000000000A"
    body = {
        "schema_version": 2, "operation_id": name, "started_at": "1750000000000000", "branch": None,
        "actor_id": None, "writer_kind": "Load",
        "tables": [{"table_key": "node:Z", "table_path": "/z/nodes/0", "expected_version": 1, "post_commit_pin": 2}],
    }  # laid out as a table  # fmt: skip
    graph.store.objects.put(f"__recovery/{name}.json", json.dumps(body).encode())
    return name


def test_a_dry_run_of_recover_tells_running_writes_from_interrupted_ones(
    graph: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    name = pending_write(graph)
    code, body, _ = run(capsys, "recover", "--graph", graph.uri, "--dry-run")
    row = {"operation": name, "writer": "Load", "branch": "main", "tables": ["node:Z"]}
    assert (code, body["result"]) == (0, [{**row, "state": "interrupted"}])
    lease = json.dumps({"owner": "elsewhere:1", "expires_at": 4102444800 - SKEW}).encode()
    graph.store.objects.put(lease_path(name), lease)
    code, body, err = run(capsys, "recover", "--graph", graph.uri, "--dry-run")
    assert (code, body["result"]) == (0, [{**row, "alive_until": "2100-01-01T00:00:00.000Z", "state": "running"}])
    assert "running" in err


def test_commits_of_recoveries_are_shown_by_their_actor(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    for name, point in (("Ran", CrashPoint.LANDED_ALL), ("Ikiru", CrashPoint.ARMED), ("Solaris", CrashPoint.LEASED)):
        with stop_at(point), pytest.raises(Crashed):
            graph.load([json.dumps({"type": "Film", "data": {"name": name}})], actor="ada")
        expire_leases(graph)
        code, body, _ = run(capsys, "recover", "--graph", graph.uri)
        assert code == 0
        kinds = [row["kind"] for row in body["result"]]
        assert kinds == {"Ran": ["RolledForward"], "Ikiru": ["RolledBack"], "Solaris": []}[name]
    code, body, err = run(capsys, "commits", "--graph", graph.uri, "--filter", "actor=omnigraph:recovery")
    shown = [commit["commit"] for commit in body["result"]]
    assert (code, shown) == (0, [audit.commit_id for audit in reversed(graph.recoveries())])
    assert (len(shown), err.count("omnigraph:recovery")) == (2, 2)
    code, body, _ = run(capsys, "commits", "--graph", graph.uri)
    assert len(body["result"]) == 5


def test_repair_of_a_whole_graph(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, err = run(capsys, "repair", "--graph", graph.uri)
    assert (code, body["result"], body["commit"], body["dry_run"]) == (0, [], None, True)
    assert "nothing to repair" in err


def test_repair_by_force_alone_says_that_nothing_was_done(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, _ = run(capsys, "repair", "--graph", graph.uri, "--force")
    assert (code, body["error"]["code"]) == (3, "bad_request")
    assert "needs --confirm, too" in body["error"]["error"]


def test_upkeep_of_every_branch(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    graph.create_branch("draft")
    for number in range(3):
        graph.load([json.dumps({"type": "Film", "data": {"name": f"n{number}"}})], branch="draft")
    rows = sorted(graph.export(branch="draft"))
    code, body, _ = run(capsys, "optimize", "--graph", graph.uri, "--all-branches", "--actor", "ada")
    done = body["result"]["branches"]
    assert (code, done.keys()) == (0, {"main", "draft"})
    assert done["draft"]["result"]["tables"][FILM]["files_after"] == 1
    assert done["draft"]["commit"] == graph.commits(branch="draft")[0].id
    assert graph.commits(branch="draft")[0].actor == "ada"
    assert sorted(graph.export(branch="draft")) == rows
    for verb in ("index", "repair"):
        code, body, _ = run(capsys, verb, "--graph", graph.uri, "--all-branches")
        assert (code, body["result"]["branches"].keys()) == (0, {"main", "draft"})
    code, body, _ = run(capsys, "index", "--graph", graph.uri, "--all-branches", "--branch", "draft")
    assert (code, "not both" in body["error"]["error"]) == (3, True)


def test_repair_looks_first_and_publishes_when_told(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    published = graph.snapshot().pin(FILM)
    film(graph).optimize.compact_files()
    head = film(graph).version
    for argv in ([], ["--confirm", "--dry-run"]):
        code, body, err = run(capsys, "repair", "--graph", graph.uri, *argv)
        assert (code, body["commit"], body["dry_run"], body["branch"]) == (0, None, True, "main")
        (found,) = body["result"]
        assert (found["table"], found["published"], found["head"]) == (FILM, published, head)
        assert (found["verdict"], found["repaired"]) == ("verified_maintenance", False)
        assert found["operations"] == ["ReserveFragments", "Rewrite"]
        assert "publish it with repair --confirm" in err
        assert "dry run: nothing was published" in err
        assert graph.snapshot().pin(FILM) == published
    code, body, err = run(capsys, "repair", "--graph", graph.uri, "--confirm")
    assert (code, body["dry_run"], body["result"][0]["repaired"], body["warnings"]) == (0, False, True, [])
    assert [c.id for c in graph.commits(actor="omnigraph:repair")] == [body["commit"]]
    assert body["manifest_version"] == graph.snapshot().version
    assert f"{FILM}: repaired" in err
    assert graph.snapshot().pin(FILM) == head


def test_repair_leaves_what_nobody_checked_unless_forced(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    film(graph).delete("id = 'Heat'")
    code, body, err = run(capsys, "repair", "--graph", graph.uri, "--confirm")
    assert (code, body["commit"], body["result"][0]["verdict"]) == (0, None, "suspicious")
    assert len(body["warnings"]) == 1
    assert f"{FILM} is left as it is: changed by Delete" in body["warnings"][0]
    assert "restore version" in err
    code, body, _ = run(capsys, "repair", "--graph", graph.uri, "--confirm", "--force")
    assert (code, body["warnings"], graph.count(FILM)) == (0, [], 1)
    assert [c.id for c in graph.commits(actor="omnigraph:repair:force")] == [body["commit"]]


@pytest.mark.parametrize("argv", [["repair"], ["repair", "--confirm"]])
def test_repair_is_refused_while_a_write_is_pending(
    graph: Graph, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = pending_write(graph)
    code, body, _ = run(capsys, *argv, "--graph", graph.uri)
    assert (code, body["status"]) == (5, "recovery_required")
    assert name in body["error"]["error"]


def stage(graph: Graph) -> Path:
    """A month-old data file that nothing names."""
    dataset = film(graph)
    (fragment,) = write_fragments(dataset.head(1), dataset.uri, mode="append", data_storage_version="2.2")
    path = Path(dataset.uri) / "data" / fragment.files[0].path
    then = time.time() - 30 * 86400
    os.utime(path, (then, then))
    return path


def test_cleanup_of_a_clean_graph(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, err = run(capsys, "cleanup", "--graph", graph.uri, "--confirm", "--older-than", "0s")
    assert (code, body["dry_run"]) == (0, False)
    assert (body["result"]["objects"], body["result"]["bytes"], body["result"]["by_reason"]) == (0, 0, {})
    assert "nothing to clean up" in err


def test_cleanup_looks_first_and_removes_when_told(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stage(graph)
    size = path.stat().st_size
    code, body, err = run(capsys, "cleanup", "--graph", graph.uri, "--older-than", "40d")
    assert (code, body["dry_run"], body["result"]["objects"], body["result"]["younger"]) == (0, True, 0, 1)
    assert "left because they are younger: 1 object\n" in err
    report = tmp_path / "removed.jsonl"
    for argv, deleted in ((["--confirm", "--dry-run"], False), (["--confirm"], True)):
        code, body, err = run(capsys, "cleanup", "--graph", graph.uri, "--report", str(report), *argv)
        assert (code, body["dry_run"]) == (0, not deleted)
        assert body["result"]["by_reason"] == {"unnamed_data": {"objects": 1, "bytes": size}}
        assert (body["result"]["kept"], body["result"]["report"]) == ([], str(report))
        assert "unnamed_data" in err
        assert ("dry run: nothing was removed" in err) is not deleted
        (line,) = [json.loads(text) for text in report.read_text().splitlines()]
        assert (line["path"], line["size"]) == (str(path.relative_to(graph.uri)), size)
        assert (line["reason"], line["deleted"]) == ("unnamed_data", deleted)
        assert path.exists() is not deleted


def test_cleanup_names_what_it_left(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    path = stage(graph)
    (Path(film(graph).uri) / "data" / film(graph).get_fragments()[0].data_files()[0].path).unlink()
    code, body, err = run(capsys, "cleanup", "--graph", graph.uri, "--confirm")
    assert (code, path.exists()) == (0, True)
    (kept,) = body["result"]["kept"]
    assert kept["what"] == pins(Path(graph.uri))[FILM].location
    assert "not there" in kept["why"]
    assert f"left: {kept['what']}" in err


@pytest.mark.parametrize("age", ["7", "d", "-1d", "7 years", "", "1e9d", "99999999999d"])
def test_an_age_that_is_none(graph: Graph, age: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, _ = run(capsys, "cleanup", "--graph", graph.uri, f"--older-than={age}")
    assert code == 2
    assert "--older-than" in body["error"]["error"]


def test_recover_and_repair_take_the_same_way_out_of_a_sidecar_that_cannot_be_read(
    graph: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    graph.store.objects.put("__recovery/notes.json", b"remember the milk")
    for verb in ("recover", "repair", "cleanup"):
        code, body, _ = run(capsys, verb, "--graph", graph.uri)
        assert code == 5
        assert "__recovery/notes.json cannot be read" in body["error"]["error"]


def test_index_shows_first_and_then_builds(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, err = run(capsys, "index", "--graph", graph.uri, "--dry-run")
    assert (code, body["dry_run"], body["result"]["built"]) == (0, True, [])
    assert {i["progress"] for i in body["result"]["indexes"]} == {"missing"}
    assert "nothing was built" in err

    code, body, err = run(capsys, "index", "--graph", graph.uri)
    assert (code, body["commit"], body["result"]["built"]) == (0, None, [f"{FILM}.id", f"{FILM}.name"])
    assert body["result"]["indexes"][0] == {
        "table_key": FILM, "column": "id", "kind": "BTREE", "name": "id_idx", "rows": 2, "total": 2,
        "progress": "complete",
    }  # laid out as a table  # fmt: skip
    assert body["manifest_version"] == graph.snapshot().version

    _, body, err = run(capsys, "index", "--graph", graph.uri)
    assert body["result"]["built"] == []
    assert "nothing to do" in err


def test_optimize_counts_first_and_then_joins(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    version = graph.snapshot().version
    code, body, err = run(capsys, "optimize", "--graph", graph.uri, "--dry-run")
    assert (code, body["dry_run"], graph.snapshot().version) == (0, True, version)
    assert body["result"] == {
        "tables": {FILM: {"files_before": 2, "files_after": 2, "left": None}}, "indexes": [], "internal": {},
    }  # laid out as a table  # fmt: skip
    assert "nothing was written" in err

    code, body, err = run(capsys, "optimize", "--graph", graph.uri)
    assert (code, body["commit"], body["warnings"]) == (0, graph.commits()[0].id, [])
    assert body["result"]["tables"] == {FILM: {"files_before": 2, "files_after": 1, "left": None}}
    assert body["result"]["indexes"] == [f"{FILM}.id", f"{FILM}.name"]
    assert body["result"]["internal"].keys() >= {"__manifest", "_graph_commits.lance"}
    assert graph.count(FILM) == 2
