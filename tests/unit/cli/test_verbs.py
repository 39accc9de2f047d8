"""Each verb against a stand-in for the graph: what it asks of it, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from spark_omnigraph.bad_rows import BadRow, BadRowSummary, Rule
from spark_omnigraph.cli.program import main
from spark_omnigraph.cli.verbs import branch as branching
from spark_omnigraph.cli.verbs import create as creating
from spark_omnigraph.cli.verbs import load as loading
from spark_omnigraph.cli.verbs import read as reading
from spark_omnigraph.errors import BadRowsError, NotFoundError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport, TableCounts
from spark_omnigraph.graph.read.describe import GraphDescription, TableDescription, TableUpkeep, TypeDescription
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin, RowFacts
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.records.mode import OnDuplicate, UnknownFields

FACTS = CommitFacts(
    "load", "append", {"node:Film": RowFacts(3, 0, 0, 1)}, origin=CommitOrigin("ingest", metadata={"t": "7"})
)
OLD = Commit("c1", None, 4, None, None, 1_700_000_000_000_000, "etl", FACTS)
NEW = Commit("c2", BranchName("dev"), 5, "c1", None, 1_700_000_001_000_000)
REPORT = LoadReport(
    mode="merge",
    branch="dev",
    base_branch="main",
    branch_created=True,
    commit="c2",
    base_commit="c1",
    manifest_version=5,
    tables={"node:Film": TableCounts(read=1200, valid=1199, bad=1, inserted=1000, updated=199, superseded=1)},
    bad_rows=BadRowSummary(1, {"range": 1}, (BadRow("f.jsonl", 9, 0, "Film", "year", Rule.RANGE, "m", "{}"),)),
    phases={"stage": 0.25},
    warnings=("index of Film.title is behind",),
)
STORED = TableDescription(3201, 4, "main", "nodes/0", {}, {}, TableUpkeep(40, 2, 7, 0, True))
FILM = TypeDescription({"name": "String", "year": "I32"}, (), (), STORED)
DIRECTED = TypeDescription({}, (), (), None, None, "Person", "Film", "0..*")
DESCRIBED = GraphDescription("g", "main", 5, "sha256:0", ("main", "dev"), {"Film": FILM}, {"Directed": DIRECTED})

Calls = list[tuple[str, tuple[Any, ...], dict[str, Any]]]


class FakeGraph:
    """Records what is asked of it; answers are set by the test."""

    calls: ClassVar[Calls] = []
    ingest_result: LoadReport | Exception = REPORT
    origin: ClassVar[CommitOrigin] = CommitOrigin()

    def with_origin(self, origin: CommitOrigin) -> FakeGraph:
        FakeGraph.origin = origin
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        answers = {
            "describe": DESCRIBED,
            "commits": [NEW, OLD],
            "export": iter(['{"type":"Film"}', '{"type":"Genre"}']),
            "branches": ["main", "dev"],
            "create_branch": "dev",
            "ingest": self.ingest_result,
            "at": self,
        }

        def method(*args: Any, **kwargs: Any) -> Any:
            FakeGraph.calls.append((name, args, kwargs))
            answer = answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return method

    @classmethod
    def open(cls, *args: Any, **kwargs: Any) -> FakeGraph:
        cls.calls.append(("open", args, kwargs))
        return cls()

    @classmethod
    def init(cls, *args: Any, **kwargs: Any) -> FakeGraph:
        cls.calls.append(("init", args, kwargs))
        return cls()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    for module in (branching, creating, loading, reading):
        monkeypatch.setattr(module, "Graph", FakeGraph)
    monkeypatch.setattr(FakeGraph, "calls", [])
    return FakeGraph.calls


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "f.jsonl"
    path.write_text('{"type":"Film"}\n')
    return str(path)


def summary(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str, str]:
    out, err = capsys.readouterr()
    return json.loads((err if '"job": "export"' in err else out).splitlines()[-1]), out, err


def test_ingest_hands_every_option_on(calls: Calls, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([
        "ingest", "--graph", "g", "--input", source, "--mode", "merge", "--branch", "dev", "--from", "base",
        "--actor", "etl", "--max-bad-rows", "5%", "--bad-rows", "bad.jsonl", "--on-duplicate", "error",
        "--unknown-fields", "ignore", "--no-index", "--dry-run", "--storage-option", "aws_region=x",
        "--meta", "ticket=OPS-7", "--meta", "note=a=b", "--coerce", "--csv-single-line",
    ])  # laid out as a table  # fmt: skip
    assert code == 0
    assert calls[0] == ("open", ("g",), {"storage_options": {"aws_region": "x"}})
    name, args, kwargs = calls[1]
    options: LoadOptions = kwargs.pop("options")
    inputs = {"node": None, "edge": None, "format": "auto", "mapping": None, "csv_single_line": True}
    inputs |= {"version_as_of": None}
    assert (name, args, kwargs) == ("ingest", ([source], "dev", "base", "merge"), {"actor": "etl", **inputs})
    assert options.coerce is True
    assert (options.max_bad_rows, options.bad_rows) == (0.05, "bad.jsonl")
    assert (options.on_duplicate, options.unknown_fields) == (OnDuplicate.ERROR, UnknownFields.IGNORE)
    assert (options.build_indexes, options.dry_run) == (False, True)
    assert options.progress is not None
    assert options.executor is None
    body, _, _ = summary(capsys)
    assert FakeGraph.origin is not None
    origin = replace(FakeGraph.origin, app_id=None)  # where a test before left a Spark session, it is named
    assert origin == CommitOrigin("ingest", body["run_id"], None, {"ticket": "OPS-7", "note": "a=b"})


def test_ingest_reports_what_was_done(calls: Calls, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["ingest", "--graph", "g", "--input", source])
    body, out, err = summary(capsys)
    assert out.count("\n") == 1
    assert (body["branch"], body["base_commit"], body["commit"], body["manifest_version"]) == ("dev", "c1", "c2", 5)
    assert body["tables"] == {
        "node:Film": {
            "read": 1200, "valid": 1199, "bad": 1, "inserted": 1000, "updated": 199, "deleted": 0, "superseded": 1,
            "cascaded": 0, "missing": 0,
        }
    }  # laid out as a table  # fmt: skip
    assert body["bad_rows"] == {"total": 1, "per_rule": {"range": 1}, "report": None}
    assert body["phases"] == {"stage": 0.25}
    assert body["warnings"] == ["index of Film.title is behind"]
    assert body["result"] == {"mode": "merge", "base_branch": "main", "branch_created": True, "executor": "local"}
    assert "node:Film: read 1,200, valid 1,199, bad 1, inserted 1,000, updated 199, superseded 1" in err
    assert "f.jsonl:9: Film.year: range: m" in err
    assert "commit c2 on branch dev (new)" in err


@pytest.mark.parametrize("verb", ["merge", "overwrite"])
def test_merge_and_overwrite(verb: str, calls: Calls, source: str) -> None:
    assert main([verb, "--graph", "g", "--input", source]) == 0
    assert calls[1][1] == ([source], "main", "main", verb)


def test_a_missing_input_is_found_before_the_graph_is_touched(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "--graph", "g", "--input", "/nowhere/x.jsonl", "--executor", "spark"]) == 6
    assert calls == []
    assert "/nowhere/x.jsonl" in summary(capsys)[0]["error"]["error"]


def test_a_refused_load(
    calls: Calls, source: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeGraph, "ingest_result", BadRowsError("1 bad row", REPORT.bad_rows))
    assert main(["ingest", "--graph", "g", "--input", source]) == 3
    body, _, _ = summary(capsys)
    assert (body["status"], body["commit"], body["tables"]) == ("refused", None, None)
    assert body["bad_rows"]["total"] == 1
    assert body["error"]["kind"] == "bad_rows"


def test_init(calls: Calls, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "s.pg"
    schema.write_text("node Film { name: String @key }")
    assert main(["init", "--graph", "g", "--schema", str(schema), "--force"]) == 0
    assert calls[0] == ("init", ("g", "node Film { name: String @key }"), {"force": True, "storage_options": {}})
    assert summary(capsys)[0]["commit"] == "c2"


def test_init_checks_the_schema_first(calls: Calls, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "s.pg"
    schema.write_text("node Film {")
    assert main(["init", "--graph", "g", "--schema", str(schema)]) == 3
    schema.write_text("node Film { name: String @key }")
    assert main(["init", "--graph", "g", "--schema", str(schema), "--dry-run"]) == 0
    assert calls == []
    schema.write_bytes(b"\xff")
    assert main(["init", "--graph", "g", "--schema", str(schema)]) == 2
    assert main(["init", "--graph", "g", "--schema", "/nowhere/s.pg"]) == 6


def test_describe(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "--graph", "g", "--branch", "dev"]) == 0
    assert calls[0] == ("open", ("g",), {"mode": "r", "branch": "dev", "storage_options": {}})
    body, _, err = summary(capsys)
    assert body["result"] == DESCRIBED.to_dict()
    assert body["manifest_version"] == 5
    assert err.splitlines() == [
        "g, branch main, manifest version 5",
        "type           rows   version  properties  indexes",
        "node:Film      3,201  4                 2        0",
        "edge:Directed                           0        0",
        "optimize pays for node:Film: 40 files instead of 2, 7 rows masked, 0 not indexed",
    ]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--version", "3"], {"version": 3, "snapshot": None, "as_of": None, "tag": None}),
        (["--snapshot", "c1"], {"version": None, "snapshot": "c1", "as_of": None, "tag": None}),
        (["--as-of", "2026-01-31"], {"version": None, "snapshot": None, "as_of": "2026-01-31", "tag": None}),
        (["--tag", "r7"], {"version": None, "snapshot": None, "as_of": None, "tag": "r7"}),
    ],
)
def test_reading_the_past(argv: list[str], expected: dict[str, Any], calls: Calls) -> None:
    assert main(["describe", "--graph", "g", *argv]) == 0
    assert calls[1] == ("at", (), expected)


def test_two_states_of_the_past_are_a_mistake(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--graph", "g", "--version", "3", "--snapshot", "c1"]) == 2
    assert "give one of --version, --snapshot, not 2" in summary(capsys)[0]["error"]["error"]


def test_commits_are_shown_newest_first(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["commits", "--graph", "g", "--filter", "actor=etl", "--limit", "2"]) == 0
    assert calls[1] == ("commits", (), {"limit": 2, "actor": "etl"})
    body, _, err = summary(capsys)
    assert body["result"] == [
        {
            "commit": "c2", "id": "c2", "branch": "dev", "manifest_version": 5, "parent": "c1", "merged_parent": None,
            "created_at": "2023-11-14T22:13:21.000Z", "actor": None, "facts": None,
        },
        {
            "commit": "c1", "id": "c1", "branch": "main", "manifest_version": 4, "parent": None, "merged_parent": None,
            "created_at": "2023-11-14T22:13:20.000Z", "actor": "etl", "facts": {
                "operation": "load", "mode": "append", "job": "ingest", "metadata": {"t": "7"},
                "tables": {"node:Film": {"inserted": 3, "updated": 0, "deleted": 0, "bad": 1}},
            },
        },
    ]  # laid out as a table  # fmt: skip
    assert err.splitlines()[1].split() == ["2023-11-14T22:13:21.000Z", "c2", "dev", "5"]


def test_a_wrong_filter(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["commits", "--graph", "g", "--filter", "author=me"]) == 2
    assert "'author=me' is not actor=NAME" in summary(capsys)[0]["error"]["error"]


def test_export_to_standard_output(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--graph", "g", "--type", "Film", "--type", "Genre"]) == 0
    assert calls[1] == ("export", (), {"types": ["Film", "Genre"]})
    body, out, _ = summary(capsys)
    assert out.splitlines() == ['{"type":"Film"}', '{"type":"Genre"}']
    assert body["result"] == {"records": 2, "output": None}


def test_export_to_a_file(calls: Calls, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deep" / "out.jsonl"
    assert main(["export", "--graph", "g", "--output", str(path)]) == 0
    assert calls[1] == ("export", (), {"types": None})
    assert path.read_text() == '{"type":"Film"}\n{"type":"Genre"}\n'
    assert summary(capsys)[1].count("\n") == 1


def test_a_failed_export_leaves_no_file(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_args: Any, **_kwargs: Any) -> Any:
        yield "{}"
        raise NotFoundError("gone")

    monkeypatch.setattr(FakeGraph, "export", broken, raising=False)
    assert main(["export", "--graph", "g", "--output", str(tmp_path / "out.jsonl")]) == 6
    assert list(tmp_path.iterdir()) == []


def test_branch_create(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["branch", "create", "new", "--from", "dev", "--graph", "g"]) == 0
    start = {"base": "dev", "version": None, "snapshot": None, "tag": None, "dry_run": False}
    assert calls[1] == ("create_branch", ("new",), start)
    body, _, _ = summary(capsys)
    assert (body["branch"], body["result"]) == ("new", {"base_branch": "dev"})


def test_branch_create_as_a_dry_run(calls: Calls) -> None:
    assert main(["branch", "create", "new", "--from", "dev", "--graph", "g", "--dry-run"]) == 0
    assert calls[1][2]["dry_run"] is True


def test_branch_create_at_an_earlier_state(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["branch", "create", "new", "--version", "7", "--graph", "g"]) == 0
    assert (calls[1][2]["base"], calls[1][2]["version"]) == ("main", 7)
    assert "created branch new from main as of version 7" in summary(capsys)[2]
    assert main(["branch", "create", "new", "--version", "7", "--snapshot", "c1", "--graph", "g"]) == 2
    assert "give one of --version, --snapshot" in summary(capsys)[2]


def test_branch_list(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["branch", "list", "--graph", "g"]) == 0
    body, _, err = summary(capsys)
    assert body["result"] == ["main", "dev"]
    assert err == "main\ndev\n"


def test_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run_demo(folder: Path | None, log: Callable[[str], None]) -> dict[str, object]:
        log("100% done")
        return {"folder": str(folder), "phases": {"load": 0.5}}

    monkeypatch.setattr(creating, "run_demo", run_demo)
    assert main(["demo", "--folder", str(tmp_path)]) == 0
    body, _, err = summary(capsys)
    assert err == "100% done\n"
    assert body["result"]["folder"] == str(tmp_path)
    assert (body["graph"], body["branch"]) == (None, None)


def test_diff_shows_the_changes_between_states_of_any_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph.init(tmp_path / "g", "node Lamp { tag: String @key  watt: I32? }")
    graph.load(['{"type": "Lamp", "data": {"tag": "a"}}'])
    first = graph.commits()[0]
    graph.create_branch("review")
    graph.load(['{"type": "Lamp", "data": {"tag": "b"}}'], branch="review")
    for before in (str(first.manifest_version), first.id, "main"):
        assert main(["diff", before, "review", "--graph", str(tmp_path / "g")]) == 0
        out, err = capsys.readouterr()
        [row], summary = out.splitlines(), err.splitlines()[-1]
        assert {k: v for k, v in json.loads(row).items() if k in ("type_name", "id", "op")} == {
            "type_name": "Lamp",
            "id": "b",
            "op": "insert",
        }
        assert json.loads(summary)["result"]["inserts"] == 1
