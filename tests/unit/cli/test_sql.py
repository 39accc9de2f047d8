"""The verb `sql`: the forms of its rows, how it ends; and how it and `query` are given up."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark_omnigraph.cli.program import main
from spark_omnigraph.graph.handle import Graph
from tests.support.cases import Json

SCHEMA = "node Film { title: String @key  year: I32?  seen: DateTime?  tags: [String]? }"
FILMS = [
    '{"type": "Film", "data": {"title": "Fog", "year": 1999, "seen": "2024-01-31T12:00:00.5Z", "tags": ["a", "b"]}}',
    '{"type": "Film", "data": {"title": "Rain, or \\"so\\"", "year": 2004}}',
    '{"type": "Film", "data": {"title": "Wind"}}',
]
SINCE = ("-e", "SELECT title, year, seen, tags FROM Film WHERE year >= $y ORDER BY year", "--params", '{"y": 1990}')
FOG = {"title": "Fog", "year": 1999, "seen": "2024-01-31T12:00:00.500Z", "tags": ["a", "b"]}
RAIN = {"title": 'Rain, or "so"', "year": 2004, "seen": None, "tags": None}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OMNIGRAPH_GRAPH", raising=False)
    Graph.init("graph", SCHEMA).load(FILMS)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str, verb: str = "sql") -> tuple[int, list[str], Json]:
    code = main([verb, "--graph", "graph", *words])
    out, err = capsys.readouterr()
    *_, last = (out if "--output" in words else err).splitlines()
    return code, [line for line in out.splitlines() if line != last], json.loads(last)


def test_every_form(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, body = run(capsys, *SINCE)
    assert (code, body["status"], body["branch"]) == (0, "done", "main")
    assert lines[2:] == [
        'Fog            1999  2024-01-31T12:00:00.500Z  ["a", "b"]',
        'Rain, or "so"  2004  null                      null',
    ]
    assert body["result"] == {"row_count": 2, "columns": list(FOG), "output": None}
    assert list(map(json.loads, run(capsys, *SINCE, "--format", "jsonl")[1])) == [FOG, RAIN]
    lines = run(capsys, *SINCE, "--format", "csv")[1]
    assert list(csv.reader(lines))[1] == ["Fog", "1999", "2024-01-31T12:00:00.500Z", '["a", "b"]']
    assert lines[2] == '"Rain, or ""so""",2004,,'
    _, lines, body = run(capsys, *SINCE, "--format", "json")
    assert json.loads("\n".join(lines)) == {
        "target": {"branch": "main", "manifest_version": body["manifest_version"]},
        **{"columns": list(FOG), "rows": [FOG, RAIN], "row_count": 2},
    }
    code, _, body = run(capsys, *SINCE, "--format", "parquet", "--output", "found.parquet")
    assert (code, body["result"]["row_count"]) == (0, 2)
    assert pq.read_table("found.parquet").column("title").to_pylist() == ["Fog", 'Rain, or "so"']


def test_an_answer_without_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none = ("-e", "SELECT title FROM Film WHERE false", "--format")
    assert json.loads("".join(run(capsys, *none, "json")[1]))["rows"] == []
    assert run(capsys, *none, "csv")[1] == ["title"]
    run(capsys, *none, "parquet", "--output", "none.parquet")
    assert (pq.read_table("none.parquet").num_rows, pq.read_schema("none.parquet").names) == (0, ["title"])


def test_a_table_for_people_reads_no_more_than_it_shows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, body = run(capsys, "-e", "SELECT value FROM generate_series(1, 100000000000)")
    assert (code, len(lines), lines[-1]) == (0, 1_003, "… and more rows")
    assert body["result"]["row_count"] is None


def test_a_file_and_the_past(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("count.sql").write_text("\ufeffSELECT count(*) AS n FROM Film")
    for words, count in ((("count.sql",), 3), (("--file", "count.sql", "--version", "1"), 0)):
        assert run(capsys, *words, "--format", "jsonl")[1] == [json.dumps({"n": count})]


@pytest.mark.parametrize(("option", "says"), [("--explain", "logical_plan"), ("--analyze", "output_rows=2")])
def test_plans(folder: Path, capsys: pytest.CaptureFixture[str], option: str, says: str) -> None:
    code, lines, body = run(capsys, *SINCE, option)
    assert code == 0
    assert says in "\n".join(lines)
    assert body["result"] == {"plan": "\n".join(lines) + "\n"}


def test_analyze_of_a_query(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "query q() { match { $f: Film $f.year > 2000 } return { $f.title } }"
    code, lines, body = run(capsys, "-e", text, "--analyze", "--version", "1", verb="query")
    assert (code, lines[2].split("  [")[0]) == (0, "    scan $f: Film where $f.year > 2000")
    assert "[0 rows, " in lines[2]
    assert body["result"] == {"plan": "\n".join(lines) + "\n"}


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        ((), 2, "usage"),
        (("-e", "DELETE FROM Film"), 3, "bad_request"),
        (("-e", "selec"), 3, "query_parse"),
        (("-e", "SELECT nothing FROM Film"), 3, "type"),
        (("-e", 'SELECT * FROM "nope".Film'), 6, "not_found"),
        (("-e", "SELECT title FROM Film WHERE year = $y"), 3, "param"),
        (("-e", "SELECT title FROM Film", "--max-rows", "2", "--format", "csv", "--output", "x"), 3, "limit"),
        (("-e", "SELECT max(value) FROM generate_series(1, 1000000000000)", "--time-limit", "0.2s"), 3, "limit"),
        (("-e", "SELECT 1", "--memory", "1KiB"), 3, "bad_request"),
        (("-e", "SELECT 1", "--format", "parquet"), 2, "usage"),
        (("-e", "SELECT interval '1 day' AS i", "--format", "parquet", "--output", "x"), 3, "bad_request"),
        (("nothing.sql",), 6, "not_found"),
    ],
)  # laid out as a table  # fmt: skip
def test_what_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, kind: str
) -> None:
    ended, _, body = run(capsys, *words)
    assert (ended, body["error"]["kind"]) == (code, kind)
    assert "\n" not in body["error"]["error"]
    assert not Path("x").exists()


ENDLESS = {
    "sql": "SELECT max(value) FROM generate_series(1, 1000000000000)",
    "query": "query q() { match { $a: N $b: N $a.n > $b.n $b.n > $a.n } return { count($a) as c } }",
}


@pytest.mark.parametrize("asked", ENDLESS)
def test_ctrl_c_ends_an_endless_answer(folder: Path, asked: str) -> None:
    """The command is interrupted when it is in the middle of its work: it says that it begins on standard error."""
    graph = Graph.init("big", "node N { n: I64 }")
    graph.load_table("node:N", [{"n": n} for n in range(60_000)])
    program = (
        "import sys; from spark_omnigraph import limits\n"
        "began = limits.Leaving._run\n"
        "def run(self, make):\n    print('began', file=sys.stderr, flush=True)\n    began(self, make)\n"
        "limits.Leaving._run = run\n"
        "from spark_omnigraph.cli import script; sys.argv[0] = 'x'; script()"
    )
    words = [asked, "--graph", "big", "-e", ENDLESS[asked], "--format", "jsonl"]
    child = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # laid out as a table  # fmt: skip
    assert child.stderr is not None
    times = 1 if words[0] == "query" else 2  # a statement is planned in a thread of its own before
    while times:
        times -= "began" in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    [said] = [line for line in err.splitlines() if line.startswith("{")]
    assert json.loads(said)["status"] == "interrupted"


@pytest.mark.parametrize("verb", ["sql", "query"])
def test_a_limit_is_named_as_its_option(folder: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    text = {"sql": "SELECT title FROM Film", "query": "query q() { match { $f: Film } return { $f.title } }"}[verb]
    for words in ((), ("--analyze",)) if verb == "query" else ((),):
        code, _, body = run(capsys, "-e", text, "--max-rows", "2", *words, verb=verb)
        said = "query: the answer has more than 2 rows: limit it, or allow more by --max-rows"
        assert (code, body["error"]["error"]) == (3, said)


def test_the_explanation_of_a_statement_is_whole_in_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = " AND ".join(f"title <> 'a long title of number {place}'" for place in range(5))
    _, lines, _ = run(capsys, "-e", f"EXPLAIN SELECT title FROM Film WHERE {many}")
    assert lines[0] == "logical_plan"
    assert "physical_plan" in lines
    assert "number 4" in "\n".join(lines)


@pytest.mark.parametrize(
    ("verb", "words"), [("sql", ("--explain",)), ("sql", ("--analyze",)), ("query", ("--explain",))]
)
def test_a_plan_takes_no_bound_of_rows(
    folder: Path, capsys: pytest.CaptureFixture[str], verb: str, words: tuple[str, ...]
) -> None:
    code, _, body = run(capsys, "-e", "SELECT 1", *words, "--max-rows", "9", verb=verb)
    assert (code, body["error"]["error"]) == (2, "a plan is shown in place of rows: leave --max-rows out")


def test_the_plan_names_the_engine_that_was_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "query q() { match { $f: Film } return { $f.title } limit 2 }"
    for words, said in (
        ((), "engine auto: "),
        (("--executor", "spark"), "engine spark, by --executor; auto would be "),
    ):
        _, lines, _ = run(capsys, "-e", text, "--explain", *words, verb="query")
        why = "embedded, since no edges are walked from many nodes, and the answer is limited or aggregated"
        assert lines[-1] == said + why


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time-limit", "1ms"), "'1ms' is not a length of time: a number and s, m, h, d or w, as in 30s, 90m or 7d"),
        (("--output", "."), "'.' is a folder already; name a new file, or for --executor spark a new folder"),
    ],
)
def test_options_of_an_answer_are_told_in_plain_words(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["query", "--graph", "graph", "-e", "query q() { match { $f: Film } return { $f } }", *words]) == 2
    assert said in capsys.readouterr().err
