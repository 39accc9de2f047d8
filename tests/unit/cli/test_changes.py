"""Changes and edges that are known by their ends, as the program is told of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.cli import main
from tests.support.cases import Json


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", "node Film { title: String @key }\nedge Before: Film -> Film")
    graph.load([json.dumps({"type": "Film", "data": {"title": title}}) for title in "abc"])
    return graph


def run(capsys: pytest.CaptureFixture[str], graph: Graph, verb: str, path: Path, *given: str) -> Json:
    code = main([verb, "--graph", graph.uri, "--input", str(path), "--no-index", *given])
    found: Json = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["exit_code"] == code
    return found


def written(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_changes_are_refused_by_their_number_and_then_done(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "feed.csv").write_text("title,op\na,d\nb,d\nd,u\n")
    feed = tmp_path / "feed.csv"
    refused = run(capsys, graph, "changes", feed, "--node", "Film", "--max-deletes", "50%")
    assert (refused["exit_code"], refused["error"]["kind"], refused["error"]["deletes"]) == (3, "too_many_deletes", 2)
    done = run(capsys, graph, "ingest", feed, "--mode", "changes", "--node", "Film", "--max-deletes", "2")
    assert (done["status"], done["result"]["mode"]) == ("done", "changes")
    assert {name: count for name, count in done["tables"]["node:Film"].items() if count} == {
        "read": 3, "valid": 3, "inserted": 1, "deleted": 2
    }  # laid out as a table  # fmt: skip


def test_edges_get_ids_of_their_ends(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = written(tmp_path / "edges.jsonl", {"edge": "Before", "from": "a", "to": "b"})
    first = run(capsys, graph, "merge", edges)
    assert first["warnings"][0].startswith("1 edge of Before had no id")
    refused = run(capsys, graph, "merge", edges, "--edge-id", "ends")
    assert (refused["exit_code"], refused["error"]["kind"]) == (3, "constraint")
    adopted = run(capsys, graph, "merge", edges, "--edge-id", "ends", "--adopt-edges")
    assert (adopted["tables"]["edge:Before"]["updated"], adopted["warnings"]) == (1, [])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--max-deletes", "1"], "--max-deletes goes with mode changes"),
        (["--adopt-edges"], "--adopt-edges goes with --edge-id"),
        (["--mode", "update", "--edge-id", "ends"], "--edge-id does not go with mode update"),
    ],
)
def test_options_without_effect_are_mistakes_of_usage(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], message: str
) -> None:
    found = run(capsys, graph, "ingest", written(tmp_path / "in.jsonl"), *given)
    assert found["exit_code"] == 2
    assert message in found["error"]["error"]
