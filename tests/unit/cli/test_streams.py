"""Standard output has rows and nothing else; the summary stands beside them, or last."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from spark_omnigraph.cli.program import main
from spark_omnigraph.graph.handle import Graph

ROW = '{"type":"T","data":{"k":"a\\u001b[31m","v":1}}'
QUERY = "query q() { match { $t: T } return { $t.k, $t.v } }"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Graph.init("g", "node T { k: String @key  v: I64? }").load([ROW], actor="a\x1b]0;x\x07")
    return tmp_path


def test_an_export_is_an_input(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--graph", "g"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["type"] for line in out.splitlines()] == ["T"]
    assert json.loads(err.splitlines()[-1])["result"]["records"] == 1
    (place / "again.jsonl").write_text(out)
    assert main(["merge", "--graph", "g", "--input", "again.jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["job"] == "merge"


@pytest.mark.parametrize("words", [("query", "-e", QUERY, "--format", "csv"), ("diff", "1", "main")])
def test_other_rows_stand_alone_too(words: tuple[str, ...], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--graph", "g"]) == 0
    out, err = capsys.readouterr()
    assert '"job"' not in out
    assert json.loads(err.splitlines()[-1])["job"] == words[0]


def test_packed_rows_are_read_again(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--graph", "g", "--output", "x.jsonl.gz"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "done"
    assert gzip.decompress((place / "x.jsonl.gz").read_bytes()).decode().count("\n") == 1
    assert main(["merge", "--graph", "g", "--input", "x.jsonl.gz"]) == 0


def test_a_person_reads_a_sentence_and_no_escapes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    # A bar, which would have escapes of its own, is for work that takes longer.
    no_bar = ["--progress", "none"]
    assert main(["query", "--graph", "g", "-e", QUERY, "--format", "jsonl", *no_bar]) == 0
    assert main(["query", "--graph", "g", "-e", QUERY, *no_bar]) == 0
    assert main(["commits", "--graph", "g"]) == 0
    shown = out.getvalue() + err.getvalue()
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert r"a\u001b]0;x\u0007" in err.getvalue()
    assert r"a\u001b[31m" in out.getvalue()
    assert "query: done after" in err.getvalue()
    assert out.getvalue().splitlines()[-1].startswith("commits: done after")


def test_a_table_in_a_file_has_no_escapes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "--graph", "g", "-e", QUERY]) == 0
    assert r"a\u001b[31m" in capsys.readouterr().out


def test_no_verb_is_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: spark-omnigraph VERB")


def test_bad_rows_are_events_with_members(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "bad.jsonl").write_text('{"type":"T","data":{"k":"b","v":"Jane Roe"}}\n{"type":"T","data":{}}\n')
    words = ["ingest", "--graph", "g", "--input", "bad.jsonl", "--log-format", "json"]
    assert main(words) == 3
    err = capsys.readouterr().err
    events = [json.loads(line) for line in err.splitlines()]
    rows = [e for e in events if e.get("event") == "bad_row"]
    assert [(e["rule"], e["file"], e["line"], e["type"], e["field"]) for e in rows] == [
        ("wrong_type", "bad.jsonl", 1, "T", "v"),
        ("key_missing", "bad.jsonl", 2, "T", "k"),
    ]
    [counts] = [e for e in events if e.get("event") == "bad_rows"]
    assert (counts["total"], counts["per_rule"]) == (2, {"key_missing": 1, "wrong_type": 1})
    assert all("raw" not in e for e in events)
    main([*words, "--show-rows", "1"])
    rows = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [e["raw"] for e in rows if "raw" in e] == ['{"type":"T","data":{"k":"b","v":"Jane Roe"}}']


def test_a_stream_without_the_letters(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["describe", "--graph", "gräph\U0001f600"]) == 6
    assert json.loads(raw.getvalue())["graph"] == "gräph\U0001f600"


def test_no_streams_at_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["export", "--graph", "g"]) == 0
