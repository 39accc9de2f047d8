"""The verb `mutate` on real graphs: what it says, what it changes, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.cli.program import main

TEXT = """
query add($name: String, $year: I32?) { insert Film { name: $name, year: $year } }
query retire($name: String) { delete Film where name = $name }
query all() { match { $f: Film } return { $f.name } }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    (tmp_path / "changes.gq").write_text(TEXT, encoding="utf-8")
    return Graph.init(tmp_path / "g", "node Film { name: String @key  year: I32?  @range(year, 1888..) }")


def run(capsys: pytest.CaptureFixture[str], graph: Graph, *argv: str) -> tuple[int, dict[str, Any], str]:
    text = str(Path(graph.uri).parent / "changes.gq")
    code = main(["mutate", "--graph", graph.uri, "--file", text, *argv])
    out, err = capsys.readouterr()
    return code, json.loads(out.splitlines()[-1]), err


def test_a_mutation_reports_what_it_did(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    params = '{"name": "Heat", "year": 1995}'
    code, body, err = run(capsys, graph, "--name", "add", "--params", params, "--actor", "ada")
    assert code == 0
    assert body["result"] == {"query_name": "add", "affected_nodes": 1, "affected_edges": 0, "actor_id": "ada"}
    assert body["tables"] == {"node:Film": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert body["commit"] == graph.commits()[0].id
    assert body["base_commit"] == graph.commits()[1].id
    assert f"commit {body['commit']} on branch main" in err
    assert graph.entity("node:Film", "Heat") == {"id": "Heat", "name": "Heat", "year": 1995}


def test_a_dry_run_writes_nothing(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, err = run(capsys, graph, "--name", "add", "--params", '{"name": "Heat"}', "--dry-run")
    assert (code, body["commit"], body["dry_run"], body["result"]["affected_nodes"]) == (0, None, True, 1)
    assert "nothing was written" in err
    assert graph.count("node:Film") == 0


def test_nothing_matched(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, err = run(capsys, graph, "--name", "retire", "--params", '{"name": "Heat"}')
    assert (code, body["commit"]) == (0, None)
    assert "nothing to do" in err


@pytest.mark.parametrize(
    ("argv", "code", "kind", "words"),
    [
        (["--name", "add", "--params", '{"name": "Heat", "year": 1700}'], 3, "constraint", "1700 < min 1888"),
        (["--name", "add", "--params", '{"name": 7}'], 3, "param", "expected string"),
        (["--name", "nowhere"], 3, "bad_request", "nowhere"),
        ([], 3, "bad_request", "by its name with --name"),
        (["--name", "all"], 3, "bad_request", "use query instead"),
        (["--name", "add", "--params", "[1]"], 2, "usage", "must be a JSON object"),
        (["--name", "add", "--params", '{"n": 1,}'], 2, "usage", "is not JSON:"),
        (["--name", "add", "--params", "{"], 2, "usage", "double quotes at character 2"),
        (["--name", "add", "--params", __file__], 2, "usage", f"takes JSON, and '{__file__}' is a file"),
        (["-e", "query q() { delete Film where year = 1 }"], 2, "usage", "not both"),
    ],
)
def test_refusals(
    graph: Graph, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, kind: str, words: str
) -> None:
    ended, body, _ = run(capsys, graph, *argv)
    assert (ended, body["error"]["kind"]) == (code, kind)
    assert words in body["error"]["error"]
    assert graph.count("node:Film") == 0


def test_a_file_that_is_no_text(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    (Path(graph.uri).parent / "changes.gq").write_bytes(b"\xff\xfe")
    code, body, _ = run(capsys, graph)
    assert code == 2
    assert "changes.gq' is not UTF-8 text (byte 1); save it as UTF-8" in body["error"]["error"]
