"""The verbs of schemas on a real graph: what they print, what the summary says, and how they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.cli import main

SCHEMA = "// rooms of a house\nnode Room { name: String @key  size: I32?  use: String? }\n"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(tmp_path / "g", SCHEMA)
    rows = [{"name": "attic", "size": 9}, {"name": "hall", "size": 30, "use": "waiting"}, {"name": "cellar"}]
    made.load([json.dumps({"type": "Room", "data": row}) for row in rows], options=LoadOptions(build_indexes=False))
    return made


def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str], schema: str, *words: str) -> tuple[int, Any, str]:
    (tmp_path / "new.pg").write_text(schema)
    code = main(["schema", "plan", str(tmp_path / "new.pg"), "--graph", str(tmp_path / "g"), *words])
    out, err = capsys.readouterr()
    return code, json.loads(out.splitlines()[-1]), err


def test_show_writes_the_text_as_it_is(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "show", "--graph", graph.uri]) == 0
    assert capsys.readouterr().out == SCHEMA
    assert main(["schema", "show", "--graph", graph.uri, "--output", str(tmp_path / "old.pg"), "--version", "3"]) == 0
    assert (tmp_path / "old.pg").read_text() == SCHEMA
    assert main(["schema", "show", "--graph", graph.uri, "--version", "99"]) == 6


@pytest.mark.usefixtures("graph")
def test_a_plan_is_shown_with_its_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = "node Room { name: String @key  size: I64 @range(size, 10..)  use: String  door: Bool }"
    bad = str(tmp_path / "bad.jsonl")
    words = ("--set", "Room.door=true", "--set", "Room.use=@name", "--bad-rows", bad, "--show-rows", "1")
    code, body, err = plan(tmp_path, capsys, schema, *words)
    assert code == 0
    assert body["bad_rows"] == {"total": 2, "per_rule": {"range": 1, "required": 1}, "report": bad}
    result = body["result"]
    assert (result["supported"], result["applicable"], result["step_count"], result["branches"]) == (True, False, 5, [])
    assert result["steps"][0] == {
        "kind": "add_property", "type_kind": "node", "type_name": "Room", "property_name": "door",
        "property_type": {"scalar": "Bool", "nullable": False, "list": False, "enum_values": None}, "value": True,
        "rows": 3, "touched": 3, "rewritten": 3, "would_break": 0, "writes": "values", "shows_updates": True,
    }  # laid out as a table  # fmt: skip
    lines = err.splitlines()
    assert [line.split() for line in lines[:6]] == [
        ["step", "rows", "touched", "written", "would", "break"],
        ["add", "Room.door:", "Bool", "(stored", "rows", "get", "true)", "3", "3", "3", "0"],
        ["widen", "Room.size", "from", "I32?", "to", "I64", "3", "2", "3", "0"],
        ["require", "Room.size", "3", "0", "0", "1"],
        ["require", "Room.use", "(null", "becomes", "that", "of", "name)", "3", "2", "3", "0"],
        ["add", "@range(size,", "10..)", "to", "Room", "3", "0", "0", "1"],
    ]
    assert "the change feed will show 3 rows of node:Room as updated" in err
    assert "a change of 5 steps would be refused; nothing was written" in err
    assert '"name": "attic"' in err
    assert [json.loads(line)["id"] for line in Path(bad).read_text().splitlines()] == ["attic", "cellar"]


def test_what_stands_in_the_way_is_said(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph.create_branch("draft")
    code, body, err = plan(tmp_path, capsys, SCHEMA.replace("I32?", "String?"))
    assert (code, body["result"]["supported"]) == (0, False)
    assert "error: [OG-MF-106] changing property type for 'Room.size' from I32? to String?" in err
    assert "merge or delete first: draft" in err
    code, body, err = plan(tmp_path, capsys, SCHEMA)
    assert (code, body["result"]["applicable"], body["result"]["steps"]) == (0, True, [])
    assert "nothing to do: the graph has this schema" in err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--set", "Room.door=yes"), 2, "a text stands in quotes, as in Room.door='\"yes\"'"),
        (("--set", "door=1"), 2, "is not TYPE.PROP=JSON"),
        (("--set", "Room.dor=1"), 6, "did you mean 'door'?"),
        (("--set", 'Room.door="x"'), 3, "expects Bool"),
        (("--set", "Room.door=@size"), 3, "I32? does not fit into Bool?"),
        (("--bad-rows", "{graph}/_schema.pg"), 2, "lies inside the graph"),
    ],
)
@pytest.mark.usefixtures("graph")
def test_how_a_plan_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    given = [word.format(graph=tmp_path / "g") if "{" in word else word for word in words]
    got, body, _ = plan(tmp_path, capsys, SCHEMA.replace("size:", "door: Bool?  size:"), *given)
    assert (got, said in body["error"]["error"]) == (code, True), body["error"]


@pytest.mark.usefixtures("graph")
def test_values_come_from_a_file_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "job.yaml"
    config.write_text("schema plan:\n  set:\n    Room.door: true\n    Room.label: '@name'\n")
    schema = SCHEMA.replace("size:", "door: Bool  label: String  size:")
    code, body, _ = plan(tmp_path, capsys, schema, "--config", str(config))
    assert (code, body["result"]["applicable"]) == (0, True)
    assert [step.get("value", step.get("value_from")) for step in body["result"]["steps"]] == [True, "name"]


def test_a_file_that_is_no_schema(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, _ = plan(tmp_path, capsys, "node Room { name String }")
    assert (code, body["error"]["kind"]) == (3, "parse")
    assert graph.schema() == SCHEMA
