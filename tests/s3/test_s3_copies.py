"""Copies between a local disk and an S3 server, in every direction."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.cli import main
from spark_omnigraph.errors import UnsupportedFormatError
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import locate
from tests.crash.worlds import assert_whole
from tests.support.later import RELEASES, recorded_commits, records, sample
from tests.support.object_store import BUCKET, S3Server

pytestmark = [pytest.mark.s3, pytest.mark.timeout(300)]

SCHEMA = "node P { s: String @key  n: I32? }\nedge K: P -> P"


def row(name: str, number: int) -> str:
    return json.dumps({"type": "P", "data": {"s": name, "n": number}})


def everything(graph: Graph) -> dict[str, list[str]]:
    return {branch: sorted(graph.export(branch=branch)) for branch in graph.branches()}


def test_there_between_stores_and_back(
    s3: S3Server, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, options = Graph.init(tmp_path / "g", SCHEMA), s3.storage_options
    graph.load([row("a", 1), row("b", 2)])
    graph.create_branch("x")
    graph.load([row("c", 3)], "merge", branch="x")
    graph.create_branch("x2", "x")
    graph.load([row("d", 4)], "merge", branch="x2")
    before = everything(graph)
    graph.copy(uri, storage_options=options)
    shutil.rmtree(graph.uri)
    remote = Graph.open(uri, storage_options=options)
    assert everything(remote) == before
    remote.copy(f"{uri}-2", storage_options=options)
    second = Graph.open(f"{uri}-2", storage_options=options)
    second.load([row("e", 5)], "merge", branch="x2")
    assert_whole(second)
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    assert main(["copy", f"{uri}-2", str(tmp_path / "back")]) == 0
    body = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (body["graph"], body["result"]["target"]) == (f"{uri}-2", str(tmp_path / "back"))
    assert "testing" not in json.dumps(body)
    back = Graph.open(tmp_path / "back")
    assert everything(back) == {**before, "x2": sorted([*before["x2"], *_with(second, '"e"')])}
    one_uri = f"s3://{BUCKET}/one"
    assert main(["copy", f"{uri}-2", one_uri, "--only", "x2"]) == 0
    one = Graph.open(one_uri, storage_options=options)
    assert (one.branches(), sorted(one.export())) == (["main"], everything(second)["x2"])
    one.load([row("f", 6)], "merge")
    assert_whole(one)
    second.copy(tmp_path / "one", branch="x")
    assert sorted(Graph.open(tmp_path / "one").export()) == everything(second)["x"]
    remote.copy(tmp_path / "main", branch="main")
    assert sorted(Graph.open(tmp_path / "main").export()) == before["main"]


def _with(graph: Graph, text: str) -> list[str]:
    return [line for line in graph.export(branch="x2") if text in line]


@pytest.mark.parametrize("release", RELEASES)
def test_a_graph_of_a_later_release_is_read_and_converted_there(
    release: str, s3: S3Server, uri: str, tmp_path: Path
) -> None:
    """Without its branches, whose forks name the place where they were made."""
    root, options = sample(tmp_path, release) / "graph", s3.storage_options
    place = Objects(locate(uri, options))
    for file in (path for path in root.rglob("*") if path.is_file()):
        path = file.relative_to(root).as_posix()
        if "tree/" not in path and "_refs/" not in path:
            place.put(path, file.read_bytes())
    graph = Graph.open(uri, mode="r", storage_options=options)
    told = records((root.parent / "export-4-main.jsonl").read_text().splitlines())
    assert records(graph.export()) == told
    assert [c.id for c in graph.commits()] == [c.id for c in recorded_commits(root.parent, "main")][::-1]
    with pytest.raises(UnsupportedFormatError, match="convert"):
        Graph.open(uri, storage_options=options)
    assert graph.convert(f"{uri}-converted", storage_options=options).branches.keys() == {"main"}
    made = Graph.open(f"{uri}-converted", storage_options=options)
    assert records(made.export()) == told
    made.mutate('query m() { insert Vessel { name: "Nova" } }')
    assert made.count("node:Vessel") == 3
    assert_whole(made)
