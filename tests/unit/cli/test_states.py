"""The verbs about states of the past on a real graph: what they print, what the summary says, and how they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.branch.consumers import take_consumer
from spark_omnigraph.graph.changes.feed import first_parents
from tests.unit.cli.test_branch import run

NO_INDEX = LoadOptions(build_indexes=False)
Capture = pytest.CaptureFixture[str]


def room(name: str) -> str:
    return json.dumps({"type": "Room", "data": {"name": name}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", "node Room { name: String @key }")
    for name in ("attic", "cellar", "hall"):
        made.load([room(name)], options=NO_INDEX)
    return made


def test_a_tag_is_made_listed_read_and_deleted(graph: Graph, capsys: Capture) -> None:
    attic = graph.commits()[2]
    told = run(capsys, "tag", "create", "first", "--snapshot", attic.id, "--dry-run", "--graph", graph.uri)
    assert (told[0], graph.tags()) == (0, [])
    assert "tag first can be made; dry run: nothing was written" in told[2]
    code, body, err = run(capsys, "tag", "create", "first", "--snapshot", attic.id, "--graph", graph.uri)
    assert (code, body["result"]["tag"], body["result"]["commit"]) == (0, "first", attic.id)
    assert f"tag first names version {attic.manifest_version} of branch main" in err
    _, body, _ = run(capsys, "tag", "list", "--graph", graph.uri)
    assert [(each["tag"], each["manifest_version"]) for each in body["result"]] == [("first", attic.manifest_version)]
    _, body, _ = run(capsys, "describe", "--tag", "first", "--graph", graph.uri)
    assert body["result"]["nodes"]["Room"]["rows"] == 1
    assert run(capsys, "branch", "create", "old", "--tag", "first", "--graph", graph.uri)[0] == 0
    assert graph.count("node:Room", branch="old") == 1
    found = graph.diff("first", "main")
    assert (found.from_version, found.stats()["inserts"]) == (attic.manifest_version, 2)
    _, body, _ = run(capsys, "tag", "delete", "other", "--graph", graph.uri)
    assert body["error"]["error"].endswith("(tags: first)")
    code, body, _ = run(capsys, "tag", "create", "first", "--graph", graph.uri)
    assert (code, body["error"]["kind"]) == (3, "tag_exists")
    assert run(capsys, "tag", "delete", "first", "--graph", graph.uri)[0] == 0
    code, body, _ = run(capsys, "describe", "--tag", "first", "--graph", graph.uri)
    assert (code, body["error"]["kind"]) == (6, "not_found")


def test_a_restore_counts_first_and_writes_then(graph: Graph, capsys: Capture) -> None:
    attic = graph.commits()[2].id
    code, body, err = run(capsys, "restore", "--snapshot", attic, "--dry-run", "--graph", graph.uri)
    counts = {"inserted": 0, "updated": 0, "deleted": 2}
    assert (code, body["commit"], body["tables"]) == (0, None, {"node:Room": counts})
    before = graph.commits()[0].id
    assert "would be restored; dry run: nothing was written" in err
    code, body, _ = run(capsys, "restore", "--snapshot", attic, "--actor", "ada", "--graph", graph.uri)
    assert (code, body["commit"], graph.count("node:Room")) == (0, graph.commits()[0].id, 1)
    assert body["base_commit"] == before
    assert graph.commits()[0].actor == "ada"
    _, _, err = run(capsys, "restore", "--snapshot", attic, "--graph", graph.uri)
    assert "nothing to do: the rows are those of version" in err
    code, body, _ = run(capsys, "restore", "--graph", graph.uri)
    assert (code, body["error"]["kind"]) == (2, "usage")
    assert "say what to restore: --version" in body["error"]["error"]


def test_clean_up_says_what_expires_and_who_is_waited_for(graph: Graph, capsys: Capture) -> None:
    attic, cellar, hall = (commit.id for commit in graph.commits()[2::-1])
    _, body, _ = run(capsys, "cleanup", "--keep", "1", "--confirm", "--graph", graph.uri)
    assert body["result"]["expiry"]["versions"] == 0, "all of it was shown within a week"
    _, body, err = run(capsys, "cleanup", "--keep", "1", "--force", "--graph", graph.uri)
    expiry = body["result"]["expiry"]
    (main,) = expiry["branches"]
    assert main["commits"][1:] == [attic, cellar]
    assert "main: 3 commits can no longer be read; the oldest is version" in err
    assert graph.at(snapshot=attic).count("node:Room") == 1
    stands = graph.commit(cellar).manifest_version
    take_consumer(graph.store, "search", None, first_parents(graph.store, None), stands)
    code, body, err = run(capsys, "cleanup", "--keep", "1", "--force", "--confirm", "--graph", graph.uri)
    done = body["result"]["expiry"]
    assert (code, body["result"]["consumers"]) == (0, ["search"])
    assert f"left: consumer search: has read branch 'main' up to version {stands}" in err
    assert done["bytes"] == done["bytes_before"] - done["bytes_after"] > 0
    assert done["branches"][0]["commits"][1:] == [attic]
    code, body, _ = run(capsys, "describe", "--snapshot", attic, "--graph", graph.uri)
    assert (code, body["error"]["kind"]) == (6, "version_expired")
    _, body, _ = run(capsys, "consumer", "list", "--graph", graph.uri)
    assert [(each["consumer"], each["manifest_version"]) for each in body["result"]] == [("search", stands)]
    assert run(capsys, "consumer", "delete", "search", "--graph", graph.uri)[0] == 0
    assert run(capsys, "consumer", "delete", "search", "--graph", graph.uri)[0] == 6
    assert graph.at(snapshot=hall).count("node:Room") == 3
