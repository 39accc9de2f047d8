"""`--report PATH.html`: a run for people who did not start it, from the program's arguments to the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.cli.program import main
from spark_omnigraph.cli.registry import VERBS
from spark_omnigraph.graph.handle import Graph
from tests.unit.draw.test_html import Seen

SCHEMA = "node Person { name: String @key  age: I32? @range(age, 0..150) }\nedge Knows: Person -> Person"
READING = {
    "profile",
    "query", "sql", "describe", "commits", "diff", "export", "lint", "schema show", "schema plan", "tag list",
    "consumer list", "branch list",
}  # laid out as a table  # fmt: skip


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def written(folder: Path, *records: object) -> str:
    path = folder / "people.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def people(*ages: int) -> list[object]:
    return [{"type": "Person", "data": {"name": f"<b>{age}", "age": age}} for age in ages]


def run(*argv: str) -> dict[str, str]:
    """Runs a verb; the facts of its page, and its texts under an empty name."""
    page = argv[argv.index("--report") + 1]
    main([*argv])
    text = Path(page).read_text(encoding="utf-8")
    seen = Seen(text)
    assert not seen.tags & {"script", "b", "img", "link"}
    assert not seen.attributes & {"src", "href"}
    return {**dict(reversed([*zip(seen.texts, seen.texts[1:])])), "": "\n".join(seen.texts)}


def test_every_verb_that_writes_has_a_report() -> None:
    having = {name for name, verb in VERBS.items() if "report" in {option.key for option in verb.all_options}}
    assert set(VERBS) - having == READING | {"demo"}


def test_a_page_says_what_went_in_and_what_came_of_it(graph: Graph, tmp_path: Path) -> None:
    bad, page, file = str(tmp_path / "bad.jsonl"), str(tmp_path / "run.html"), written(tmp_path, *people(1, 2, 151))
    options = ("--bad-rows", bad, "--max-bad-rows", "1", "--actor", "<i>nightly", "--meta", "why=<u>because")
    facts = run("ingest", "--graph", graph.uri, "--input", file, "--report", page, *options)
    head = graph.commits()[0]
    assert facts[""].startswith("ingest: done\ningest: done\nThe run did what was asked.")
    assert (facts["graph"], facts["by"], facts["why"], facts["branch"]) == (
        graph.uri,
        "<i>nightly",
        "<u>because",
        "main",
    )
    assert (facts["commit"], facts["parent"]) == (head.id, head.parent)
    size = f"{Path(file).stat().st_size:,}"
    assert f"1 file, {size} bytes\ninput\nbytes\n{file}\n{size}\n" in facts[""]
    assert "type\nread\nvalid\nbad\ninserted\nnode:Person\n3\n2\n1\n2\n" in facts[""]
    assert (
        f"1 row broke a rule of the schema. All of them are in {bad}. The text of rows is not shown here." in facts[""]
    )
    assert "rule\nmistakes\nrange\n1\n" in facts[""]
    assert f"{file}:3\nPerson\nage\nrange\n@range violation on Person.age: value 151 > max 150\n" in facts[""]
    assert "<b>151" not in facts[""]
    assert {"plan", "stage", "check", "commit"} <= set(facts)
    assert f"bad rows\n{bad}\n{Path(bad).stat().st_size:,}" in facts[""]


def test_a_refusal_says_why_and_that_nothing_changed(graph: Graph, tmp_path: Path) -> None:
    file = written(tmp_path, *people(151, 152))
    facts = run("ingest", "--graph", graph.uri, "--input", file, "--report", str(tmp_path / "run.html"))
    assert "ingest: refused\nThe run was refused, and nothing in the graph has changed." in facts[""]
    assert (facts["kind"], facts["exit code"]) == ("bad_rows", "3")
    assert facts["what to do"].startswith("correct the rows of the report")
    assert "rule\nmistakes\nrange\n2\n" in facts[""]
    assert f"{file}:2" in facts[""]
    assert facts["input"] == "bytes"
    assert graph.count("node:Person") == 0


def test_wrong_options_make_a_page_too(tmp_path: Path) -> None:
    facts = run("ingest", "--grap", "g", "--report", str(tmp_path / "run.html"))
    assert "The run did not begin: its options are wrong." in facts[""]
    assert "unknown option --grap; did you mean '--graph'?" in facts[""]


def test_conflicts_are_listed(graph: Graph, tmp_path: Path) -> None:
    graph.create_branch("draft")
    graph.load([json.dumps(people(1)[0])], branch="draft")
    graph.load([json.dumps({"type": "Person", "data": {"name": "<b>1", "age": 2}})])
    facts = run("branch", "merge", "draft", "--graph", graph.uri, "--report", str(tmp_path / "run.html"))
    assert "branch merge: conflict" in facts[""]
    assert "node:Person\n<b>1\ndivergent_insert\ndivergent insert for id '<b>1'" in facts[""]


def test_a_merge_has_two_parents(graph: Graph, tmp_path: Path) -> None:
    graph.create_branch("draft")
    source = graph.load([json.dumps(people(1)[0])], branch="draft").commit
    facts = run("branch", "merge", "draft", "--graph", graph.uri, "--report", str(tmp_path / "run.html"))
    assert (facts["second parent"], facts["parent"]) == (source, graph.commits()[0].parent)


def test_no_secret_stands_on_a_page(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "tr0ub4dor")
    file = written(tmp_path / "g" / "..", {"type": "Person", "data": {"name": "tr0ub4dor", "age": 151}})
    named = tmp_path / "tr0ub4dor.jsonl"
    Path(file).rename(named)
    options = ("--actor", "tr0ub4dor", "--meta", "why=tr0ub4dor")
    page = str(tmp_path / "run.html")
    facts = run("ingest", "--graph", graph.uri, "--input", str(named), "--report", page, *options)
    assert (facts["by"], facts["why"]) == ("***", "***")
    assert f"{tmp_path}/***.jsonl" in facts[""]
    assert "tr0ub4dor" not in Path(page).read_text()


def test_cleanup_has_a_list_or_a_page(graph: Graph, tmp_path: Path) -> None:
    facts = run("cleanup", "--graph", graph.uri, "--report", str(tmp_path / "run.html"))
    assert "A dry run: everything was looked at, and nothing was written." in facts[""]
    assert main(["cleanup", "--graph", graph.uri, "--report", str(tmp_path / "run.jsonl")]) == 0
    assert (tmp_path / "run.jsonl").read_text() == ""


@pytest.mark.parametrize(
    ("name", "why"),
    [("run.txt", "does not end in .html"), ("g/run.html", "lies inside the graph")],
    ids=["txt", "graph"],
)
def test_a_report_is_a_page_outside_of_the_graph(
    graph: Graph, tmp_path: Path, name: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, *people(1))
    assert main(["ingest", "--graph", graph.uri, "--input", file, "--report", str(tmp_path / name)]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / name).exists()


def test_a_page_that_cannot_be_written_fails_the_job(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, page = written(tmp_path, *people(1)), tmp_path / "sub" / "run.html"

    def refuse(*_args: object) -> None:
        raise OSError("full")

    monkeypatch.setattr("spark_omnigraph.storage.objects.whole_file.os.replace", refuse)
    code = main(["ingest", "--graph", graph.uri, "--input", file, "--report", str(page)])
    assert code == 1


@pytest.mark.parametrize("form", ["json", "mermaid", "svg"])
def test_describe_draws(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    described = graph.describe()
    whole = {
        "json": json.dumps(described.to_dict(), indent=2) + "\n",
        "mermaid": described.mermaid(),
        "svg": described.svg() + "\n",
    }[form]
    assert main(["describe", "--graph", graph.uri, "--format", form]) == 0
    out, err = capsys.readouterr()
    assert out == whole
    assert json.loads(err.splitlines()[-1])["status"] == "done"
    assert main(["describe", "--graph", graph.uri, "--format", form, "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == whole
    assert json.loads(capsys.readouterr().out)["status"] == "done"


def test_describe_is_a_table_for_people(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "--graph", graph.uri, "--format", "text"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["result"]["nodes"]["Person"]["rows"] == 0
    assert "node:Person" in err
