"""A pipe in place of a file that Lance opens: refused by name, at once, for reading and for writing."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.errors import DamagedError

LINE = '{"type":"A","data":{"k":"a"}}'


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", "node A { k: String @key }")
    made.load([LINE], options=LoadOptions(build_indexes=False))
    made.create_branch("dev")
    return made


def place(graph: Graph, what: str) -> Path:
    table = graph.snapshot().entries["node:A"].location
    return Path(graph.uri) / {"table": f"{table}/_versions"}.get(what, what)


@pytest.mark.parametrize("mode", ["r", "rw"])
@pytest.mark.parametrize(
    "what", ["__manifest/_versions", "_graph_commits.lance/_versions", "__manifest/_refs/branches", "table"]
)
def test_a_pipe_hangs_nobody(graph: Graph, what: str, mode: str) -> None:
    folder = place(graph, what)
    pipe = folder / sorted(os.listdir(folder))[0]
    pipe.unlink()
    os.mkfifo(pipe)
    found: list[BaseException] = []

    def look() -> None:
        try:
            opened = Graph.open(graph.uri, mode=mode)
            opened.describe()
            opened.query("query q() { match { $a: A } return { $a.k } }")
        except DamagedError as error:
            found.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(20)
    assert [str(error) for error in found] == [
        f"storage: {pipe} is no regular file: put the file back from a backup, or remove it"
    ]


def test_a_handle_looks_once_and_links_are_no_pipes(graph: Graph) -> None:
    folder = place(graph, "table")
    newest = folder / sorted(os.listdir(folder))[0]
    os.rename(newest, folder.parent / "moved")
    newest.symlink_to(folder.parent / "moved")
    (folder / "nowhere").symlink_to("/no/such/place")
    assert Graph.open(graph.uri, mode="r").count("node:A") == 1
