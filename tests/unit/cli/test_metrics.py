"""`--metrics`: a row a run, whatever became of it."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from spark_omnigraph import Graph
from spark_omnigraph.cli.output.metrics import metrics_row
from spark_omnigraph.cli.program import main
from tests.support.cases import Json

SCHEMA = "node Film { name: String @key  year: I32? }\nedge Next: Film -> Film"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def film(name: str, year: object = 1995) -> str:
    return json.dumps({"type": "Film", "data": {"name": name, "year": year}})


def lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def ingest(graph: Graph, source: Path, metrics: object, *more: str) -> int:
    return main(["ingest", "--graph", graph.uri, "--input", str(source), "--metrics", str(metrics), *more])


def test_each_run_adds_a_line(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, metrics = tmp_path / "in.jsonl", tmp_path / "new" / "runs.jsonl"
    source.write_text("\n".join([film("a"), film("b"), film("c", "x"), '{"edge":"Next","from":"a","to":"b"}']))
    assert ingest(graph, source, metrics, "--max-bad-rows", "1", "--meta", "ticket=OPS-7") == 0
    body = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert ingest(graph, source, metrics) == 3
    assert main(["describe", "--graph", graph.uri, "--metrics", str(metrics)]) == 0
    assert main(["describe", "--graph", str(tmp_path / "none"), "--metrics", str(metrics)]) == 6
    assert main(["describe", "--grap", "g", "--metrics", str(metrics)]) == 2
    first, refused, described, absent, usage = lines(metrics)
    assert [key for key in first if first[key] != body.get(key, first[key])] == []
    assert (first["started_at"] < first["ended_at"], first["ended_at"]) == (True, first["ended_at"])
    assert {key: first[key] for key in ("job", "status", "exit_code", "read", "inserted", "updated", "deleted")} == {
        "job": "ingest", "status": "done", "exit_code": 0, "read": 4, "inserted": 3, "updated": 0, "deleted": 0,
    }  # laid out as a table  # fmt: skip
    assert (first["bad"], first["error"], first["commit"]) == (1, None, graph.commits()[0].id)
    assert [refused[key] for key in ("status", "bad", "error", "inserted")] == ["refused", 3, "bad_rows", None]
    assert [described[key] for key in ("job", "exit_code", "read", "bad")] == ["describe", 0, None, None]
    assert (absent["exit_code"], absent["error"]) == (6, "not_found")
    assert (usage["exit_code"], usage["status"]) == (2, "usage")
    assert {tuple(row) for row in lines(metrics)} == {tuple(first)}
    facts = graph.commits()[0].facts
    assert facts is not None
    assert (facts.origin.job, facts.origin.run_id) == ("ingest", first["run_id"])
    assert facts.origin.metadata == {"ticket": "OPS-7"}
    assert (facts.totals().inserted, facts.totals().bad) == (first["inserted"], first["bad"])


def test_a_folder_of_parquet_gets_a_file_a_run(graph: Graph, tmp_path: Path) -> None:
    source, folder = tmp_path / "in.jsonl", tmp_path / "runs.parquet"
    source.write_text(film("a"))
    assert [ingest(graph, source, folder), ingest(graph, source, f"{folder}/")] == [0, 3]
    table = ds.dataset(folder).to_table().sort_by("started_at").to_pylist()
    assert [(row["exit_code"], row["inserted"], row["bad"], row["error"]) for row in table] == [
        (0, 1, 0, None),
        (3, None, 1, "bad_rows"),
    ]
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{row['run_id']}.parquet" for row in table)


def test_a_row_that_cannot_be_written_ends_a_good_run_with_1(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "runs.jsonl"
    target.mkdir()
    assert main(["describe", "--graph", graph.uri, "--metrics", str(target)]) == 2
    taken = tmp_path / "taken.parquet"
    taken.write_text("")
    assert main(["describe", "--graph", graph.uri, "--metrics", str(taken)]) == 2
    (tmp_path / "in.jsonl").write_text(film("a"))
    assert ingest(graph, tmp_path / "in.jsonl", "/dev/full") == 1
    body = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (body["exit_code"], body["error"]["kind"], graph.count("node:Film")) == (1, "io", 1)


@pytest.mark.parametrize(
    ("path", "message"),
    [("s3://b/runs.jsonl", "nothing is added to an object"), ("s3://KEY:S@b/r.parquet", "must not hold credentials")],
)
def test_places_where_nothing_can_be_added(path: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "--graph", "g", "--metrics", path]) == 2
    assert message in capsys.readouterr().err


def test_metrics_stay_out_of_the_graph_and_of_the_input(graph: Graph, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(film("a"))
    assert ingest(graph, source, f"{graph.uri}/runs.jsonl") == 2
    assert ingest(graph, source, source) == 2
    assert source.read_text() == film("a")
    assert not Path(f"{graph.uri}/runs.jsonl").exists()


@pytest.mark.parametrize("meta", ["ticket", "a b=x", "aws_secret_access_key=x"])
def test_metadata_is_checked_before_anything_runs(meta: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutate", "--graph", "g", "-e", "query q() { }", "--meta", meta]) == 2
    assert "--meta" in capsys.readouterr().err


def test_metadata_that_is_too_large_is_refused(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(film("a"))
    metrics = tmp_path / "runs.jsonl"
    assert ingest(graph, tmp_path / "in.jsonl", metrics, "--meta", f"a={'x' * 600}", "--meta", f"b={'x' * 600}") == 2
    assert (lines(metrics)[0]["error"], graph.count("node:Film")) == ("usage", 0)


def test_sums_are_null_where_no_table_has_the_figure() -> None:
    summary = dict.fromkeys(
        ("job", "version", "run_id", "graph", "branch", "status", "exit_code", "dry_run", "base_commit", "commit")
    )
    body = {
        **summary, "manifest_version": 3, "seconds": 2.5, "bad_rows": None, "error": None,
        "tables": {"node:A": {"inserted": 1, "read": None}, "node:B": {"inserted": 2}},
    }  # laid out as a table  # fmt: skip
    row = metrics_row(body, datetime(2026, 1, 31, 12, 0, 2, 500_000, tzinfo=timezone.utc))
    assert (row["started_at"], row["ended_at"]) == ("2026-01-31T12:00:00.000Z", "2026-01-31T12:00:02.500Z")
    assert (row["inserted"], row["read"], row["deleted"], row["bad"]) == (3, None, None, None)
