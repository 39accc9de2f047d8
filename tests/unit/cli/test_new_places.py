"""Where a graph is made, and texts as editors save them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.cli.program import main

SCHEMA = "node Film { name: String @key }"


def test_a_folder_that_holds_other_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.pg").write_text(SCHEMA)
    (tmp_path / "photos").mkdir()
    for words in (["--dry-run"], []):
        assert main(["init", "--graph", ".", "--schema", "films.pg", *words]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["warnings"] == [
            ". holds other files (films.pg, photos): a graph is best alone in its folder"
        ]
    assert main(["init", "--graph", "g", "--schema", "films.pg"]) == 0
    assert main(["init", "--graph", "g", "--schema", "films.pg", "--force"]) == 0
    assert [json.loads(line)["warnings"] for line in capsys.readouterr().out.splitlines()] == [[], []]


def test_a_byte_order_mark_is_no_part_of_a_schema_or_a_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.pg").write_text(SCHEMA, encoding="utf-8-sig")
    (tmp_path / "films.gq").write_text("query q() { match { $f: Film } return { $f.name } }", encoding="utf-8-sig")
    assert main(["init", "--graph", "g", "--schema", "films.pg"]) == 0
    assert main(["lint", "films.gq", "--schema", "films.pg"]) == 0
    capsys.readouterr()
    assert main(["query", "films.gq", "--graph", "g", "--format", "jsonl"]) == 0
    assert capsys.readouterr().out == ""
    assert Graph.open("g", mode="r").schema() == SCHEMA
    assert Graph.init("h", tmp_path / "films.pg").schema() == SCHEMA
    assert Graph.init("i", f"\ufeff{SCHEMA}").schema() == SCHEMA


def test_the_bad_rows_of_the_readme_can_be_had_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\w*\n(.*?)```", page, re.DOTALL)
    starts = {"films.pg": "node Film", "films.jsonl": '{"type": "Film"', "bad.jsonl": '{"type": "Person"'}
    for name, start in starts.items():
        (tmp_path / name).write_text(next(b for b in blocks if b.startswith(start)), encoding="utf-8")
    command, *shown = next(b for b in blocks if b.startswith("$ spark-omnigraph ingest")).splitlines()
    assert main(["init", "--graph", "graphs/films", "--schema", "films.pg"]) == 0
    assert main(["ingest", "--graph", "graphs/films", "--input", "films.jsonl", "--no-index"]) == 0
    capsys.readouterr()
    assert main([*shlex.split(command.removeprefix("$ spark-omnigraph ")), "--show-rows", "9"]) == 3
    said = [re.sub(r"^\d\d:\d\d:\d\d", "12:30:01", line) for line in capsys.readouterr().err.splitlines()]
    assert said[:-1] == shown[:-1]
    for part in shown[-1].split("…"):
        assert part in said[-1]
