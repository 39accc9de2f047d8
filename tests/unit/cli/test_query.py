"""The verb `query`: where its text comes from, the forms of its rows, how it ends."""

from __future__ import annotations

import csv
import json
from datetime import datetime, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark_omnigraph.cli.host import Host
from spark_omnigraph.cli.program import main
from spark_omnigraph.graph.handle import Graph
from tests.support.cases import Json

SCHEMA = "node Film { title: String @key  year: I32?  seen: DateTime?  tags: [String]?  note: String? }"
TEXT = """query by_year($year: I32) {
    match { $f: Film $f.year >= $year }
    return { $f.title as title, $f.year as year, $f.seen as seen, $f.tags as tags, $f.note as note }
    order { title }
}
query all() { match { $f: Film } return { $f.title } order { $f.title } }
query add($title: String) { insert Film { title: $title } }
"""
TWICE = "query q() { match { $f: Film } return { $f.title $f.title } }"
FILMS = [
    '{"type":"Film","data":{"title":"Fog","year":1999,"seen":"2024-01-31T12:00:00.5Z","tags":["a","b"],"note":""}}',
    '{"type":"Film","data":{"title":"Rain, or \\"so\\"","year":2004}}',
    '{"type":"Film","data":{"title":"Wind"}}',
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OMNIGRAPH_GRAPH", raising=False)
    (tmp_path / "films.gq").write_text(TEXT)
    Graph.init("graph", SCHEMA).load(FILMS)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], Json]:
    code = main(["query", "--graph", "graph", *words])
    out, err = capsys.readouterr()
    *_, last = (out if "--output" in words else err).splitlines()
    return code, [line for line in out.splitlines() if line != last], json.loads(last)


NOTES = "query notes() { match { $f: Film } return { $f.year, $f.note } order { $f.year } }"


def test_texts_that_could_be_taken_for_others_are_in_quotes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = [" Fog", "Fog ", "Fog", "a  b", "a\nb", "", "null", None, '"Fog"', "x" * 80]
    films = [{"type": "Film", "data": {"title": f"t{n}", "year": n + 5, "note": note}} for n, note in enumerate(notes)]
    Graph.init("noted", SCHEMA).load([json.dumps(film) for film in films])
    (folder / "notes.gq").write_text(NOTES)
    code, lines, _ = run(capsys, "--graph", "noted", "--file", "notes.gq")
    assert (code, [line[8:] for line in lines[2:]]) == (
        0,
        ['" Fog"', '"Fog "', "Fog", '"a  b"', '"a\\nb"', '""', '"null"', "null", '"\\"Fog\\""', "x" * 59 + "…"],
    )
    assert [line[:6] for line in lines[2:]] == [*(f"{n:6}" for n in range(5, 15))]


BY_YEAR = ("--file", "films.gq", "--name", "by_year", "--params", '{"year": 1990}')


def test_a_table_for_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, body = run(capsys, *BY_YEAR)
    assert code == 0
    assert lines == [
        "title          year  seen                      tags        note",
        "-------------  ----  ------------------------  ----------  ----",
        'Fog            1999  2024-01-31T12:00:00.500Z  ["a", "b"]  ""',
        'Rain, or "so"  2004  null                      null        null',
    ]
    columns = ["title", "year", "seen", "tags", "note"]
    assert body["result"] == {"query_name": "by_year", "row_count": 2, "columns": columns, "output": None}
    assert (body["status"], body["branch"]) == ("done", "main")


def test_forms_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fog = {"title": "Fog", "year": 1999, "seen": "2024-01-31T12:00:00.500Z", "tags": ["a", "b"], "note": ""}
    rain = {"title": 'Rain, or "so"', "year": 2004, "seen": None, "tags": None, "note": None}
    _, lines, _ = run(capsys, *BY_YEAR, "--format", "jsonl")
    assert list(map(json.loads, lines)) == [fog, rain]
    _, [line], body = run(capsys, *BY_YEAR, "--format", "json")
    found = json.loads(line)
    assert (found["query_name"], found["row_count"], found["rows"]) == ("by_year", 2, [fog, rain])
    assert found["target"] == {"branch": "main", "manifest_version": body["manifest_version"]}
    _, lines, _ = run(capsys, *BY_YEAR, "--format", "csv")
    assert lines[2] == '"Rain, or ""so""",2004,,,'
    assert list(csv.reader(lines))[1] == ["Fog", "1999", "2024-01-31T12:00:00.500Z", '["a", "b"]', ""]
    assert lines[1].endswith(',""')


def test_files_appear_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, _ = run(capsys, *BY_YEAR, "--format", "parquet", "--output", "out/rows.parquet")
    assert (code, lines) == (0, [])
    table = pq.read_table("out/rows.parquet")
    assert table.column("seen").to_pylist() == [datetime(2024, 1, 31, 12, 0, 0, 500_000, timezone.utc), None]
    assert table.column("title").to_pylist() == ["Fog", 'Rain, or "so"']
    code, lines, _ = run(capsys, "--file", "films.gq", "--name", "all", "--format", "csv", "--output", "all.csv")
    assert Path("all.csv").read_text() == 'f.title\nFog\n"Rain, or ""so"""\nWind\n'
    assert sorted(p.name for p in Path("out").iterdir()) == ["rows.parquet"]


def test_a_text_on_the_command_line_reads_the_past(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "query n() { match { $f: Film } return { count($f) as n } }"
    assert main(["query", "--graph", "graph", "-e", text]) == 0
    assert "n: 1 row\n" in capsys.readouterr().err
    assert run(capsys, "-e", text, "--format", "jsonl")[1] == ['{"n": 3}']
    assert run(capsys, "-e", text, "--format", "jsonl", "--version", "1")[1] == ['{"n": 0}']


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 3, "query file contains multiple queries"),
        (("--name", "nobody"), 3, "'nobody'"),
        (("--name", "by_year"), 3, "year"),
        (("--name", "by_year", "--params", '{"year": "x"}'), 3, "year"),
        (("--name", "add", "--params", '{"title": "x"}'), 3, "add"),
        (("--name", "all", "--output", "there.csv"), 2, "'there.csv' is there already: Spark writes a new folder"),
        (("--name", "all", "--time-limit", "none"), 2, "--time-limit"),
    ],
)
def test_a_mistake_is_told_before_spark_starts(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    def session(_host: Host) -> None:
        raise AssertionError("Spark starts")

    monkeypatch.setattr(Host, "session", session)
    (folder / "there.csv").write_text("kept")
    found, _, body = run(
        capsys, "--file", "films.gq", "--executor", "spark", "--format", "csv", "--output", "new", *words
    )
    assert (found, says in body["error"]["error"]) == (code, True), body["error"]
    assert (folder / "there.csv").read_text() == "kept"


def test_the_memory_is_an_option_and_a_variable(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[int] = []

    def noted(graph: Graph, text: str, *args: object, **past: object) -> object:
        budgets.append(graph.store.reads.memory.budget)
        return plainly(graph, text, *args, **past)  # type: ignore[arg-type]  # whatever the verb gives

    plainly = Graph.query
    monkeypatch.setattr(Graph, "query", noted)
    text = ("-e", "query n() { match { $f: Film } return { $f.title } order { $f.title } }", "--format", "csv")
    shown = run(capsys, *text)[1]
    assert run(capsys, *text, "--cache-memory", "0")[1] == shown
    monkeypatch.setenv("OMNIGRAPH_CACHE_MEMORY", "3MiB")
    assert run(capsys, *text)[1] == shown
    assert run(capsys, *text, "--cache-memory", "some")[0] == 2
    assert budgets == [2 << 30, 0, 3 << 20]


def test_the_plan_is_shown_and_nothing_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, body = run(capsys, *BY_YEAR, "--explain")
    assert code == 0
    assert "1990" in "".join(lines)
    assert body["result"] == {"plan": "\n".join(lines) + "\n"}
    assert "$year" in "".join(run(capsys, *BY_YEAR[:4], "--explain")[1])


@pytest.mark.parametrize("past", [("--version", "1"), ("--as-of", "2030-01-01")])
def test_a_plan_is_of_no_state(folder: Path, capsys: pytest.CaptureFixture[str], past: tuple[str, str]) -> None:
    code, _, body = run(capsys, *BY_YEAR, "--explain", *past)
    assert code == 2
    assert body["error"]["error"] == f"--explain shows a plan and reads no state: leave {past[0]} out"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "--file FILE or as -e TEXT"),
        (("--file", "films.gq", "-e", "x"), 2, "not both"),
        (("--file", "films.gq"), 3, "multiple queries"),
        (("--file", "films.gq", "--name", "add"), 3, "run 'add' with mutate"),
        (("--file", "films.gq", "--name", "all", "--as-of", "yesterday"), 2, "--as-of: 'yesterday' is not a time"),
        (("--file", "films.gq", "--name", "none"), 3, "query 'none' not found"),
        (("--file", "films.gq", "--name", "by_year"), 3, "parameter 'year' not provided"),
        (("--file", "films.gq", "--name", "all", "--format", "parquet"), 2, "--output"),
        (("-e", "query q() { match { $f: Film } return { $f.nope } }"), 3, "no property `nope`"),
        (("-e", TWICE, "--format", "parquet", "--output", "x"), 3, "two columns are called 'f.title'"),
        (("-e", TWICE, "--executor", "spark"), 2, "give a new folder with --output, and --format jsonl, csv, parquet"),
        (("-e", TWICE, "--executor", "spark", "--output", "x"), 2, "and --format jsonl, csv, parquet"),
    ],
)  # laid out as a table  # fmt: skip
def test_what_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, says: str
) -> None:
    ended, _, body = run(capsys, *words)
    error = body["error"]
    assert isinstance(error, dict)
    assert ended == code
    assert says in error["error"]
    assert not Path("x").exists()
