"""The verb `lint`: where it takes the schema from, what it answers, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.cli.program import main
from spark_omnigraph.graph.handle import Graph

SCHEMA = "node Film { title: String @key  year: I32? }"
GOOD = "query q($t: String) { match { $f: Film { title: $t } } return { $f.year } }\n"
BAD = "query wrong() { match { $f: Film } return { $f.yeer } }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OMNIGRAPH_GRAPH", raising=False)
    (tmp_path / "films.pg").write_text(SCHEMA)
    (tmp_path / "films.gq").write_text(GOOD)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object], str]:
    code = main(["lint", *words])
    captured = capsys.readouterr()
    body = json.loads(captured.out.splitlines()[-1])
    assert isinstance(body, dict)
    return code, body, captured.err


def result(body: dict[str, object]) -> dict[str, object]:
    found = body["result"]
    assert isinstance(found, dict)
    return found


def test_against_a_schema_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, said = run(capsys, "films.gq", "--schema", "films.pg")
    assert (code, body["status"], body["graph"], body["branch"]) == (0, "done", None, None)
    assert result(body)["schema_source"] == {"kind": "file", "path": "films.pg"}
    assert result(body)["status"] == "ok"
    assert "films.gq: 1 query, 0 errors, 0 warnings" in said


def test_against_the_schema_of_a_graph(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Graph.init("graph", SCHEMA)
    code, body, _ = run(capsys, "films.gq", "--graph", "graph")
    assert (code, body["graph"]) == (0, "graph")
    assert result(body)["schema_source"] == {"kind": "graph", "uri": "graph"}


def test_a_schema_file_counts_before_a_graph(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, _ = run(capsys, "films.gq", "--graph", "nowhere", "--schema", "films.pg")
    assert (code, result(body)["schema_source"]) == (0, {"kind": "file", "path": "films.pg"})


def test_errors_refuse_the_file_and_show_the_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "films.gq").write_text(GOOD + BAD + 'query w() { update Film set { title: "x" } where title = "y" }')
    code, body, said = run(capsys, "films.gq", "--schema", "films.pg")
    assert (code, body["status"], body["error"]) == (3, "refused", None)
    assert (result(body)["errors"], result(body)["warnings"]) == (1, 2)
    assert "query 'wrong': type error: T6: type `Film` has no property `yeer`" in said
    assert "line 2, column 48" in said
    assert "query 'w': mutation declares no params" in said
    assert "L201 Film.year exists in schema but no update query sets it (queries: w)" in said


def test_without_a_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, said = run(capsys, "films.gq")
    assert (code, body["status"]) == (2, "usage")
    assert "--schema FILE, or --graph URI" in said


def test_a_file_that_is_no_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "films.gq").write_bytes(b"query \xff")
    code, _, said = run(capsys, "films.gq", "--schema", "films.pg")
    assert code == 2
    assert "'films.gq' is not UTF-8 text" in said
