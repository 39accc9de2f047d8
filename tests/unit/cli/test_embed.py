"""The verb `embed`: what a run says, and what it ends with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.cli.program import main
from tests.support.embedding_server import EmbeddingServer, refusal

FIGURES = ("missing", "distinct", "cached", "requested", "requests", "embedded", "failed")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", 'node Film { name: String @key  plot: String?  v: Vector(4)? @embed("plot") }')
    films = [{"name": f"f{i}", "plot": f"plot {i % 6}"} for i in range(10)]
    lines = [json.dumps({"type": "Film", "data": data}) for data in films]
    graph.load(lines, options=LoadOptions(build_indexes=False))
    return graph


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    with EmbeddingServer() as running:
        for name, value in running.environ().items():
            monkeypatch.setenv(name, value)
        yield running


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any], str]:
    code = main(["embed", *argv])
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    return code, json.loads(out), err


def figures(body: dict[str, Any]) -> list[int]:
    counts = body["result"]["properties"]["Film.v"]
    return [counts[name] for name in FIGURES]


def test_a_run_asks_in_batches_and_a_second_one_not_at_all(
    graph: Graph, server: EmbeddingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, body, err = run(capsys, "--graph", graph.uri, "--dry-run", "--price-per-million", "2", "--batch", "2")
    assert (code, figures(body), server.asked) == (0, [10, 6, 0, 6, 3, 0, 0], [])
    assert (body["result"]["cost"], body["result"]["properties"]["Film.v"]["tokens"]) == (1.8e-05, 9)
    assert "dry run: nobody was asked, nothing was written; tokens: about 9; cost: 0.000018\n" in err
    code, body, _ = run(capsys, "--graph", graph.uri, "--batch", "2", "--parallel", "1", "--actor", "ann")
    assert (code, figures(body)) == (0, [10, 6, 0, 6, 3, 10, 0])
    assert [len(each.texts) for each in server.log] == [2, 2, 2]
    assert body["tables"] == {"node:Film": {"updated": 10}}
    commit = graph.commit(body["commit"])
    assert (commit.actor, commit.facts and commit.facts.operation) == ("ann", "embed")
    code, body, err = run(capsys, "--graph", graph.uri)
    assert (code, body["commit"], len(server.log)) == (0, None, 3)
    assert "nothing to do" in err


def test_a_run_that_is_too_dear_asks_nobody(
    graph: Graph, server: EmbeddingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six texts of six bytes are about nine tokens."""
    dear = ("--price-per-million", "1000000", "--max-cost", "8.5")
    for bound in (("--max-tokens", "8"), dear, (*dear, "--max-tokens", "9")):
        code, body, _ = run(capsys, "--graph", graph.uri, "--commit-every", "1", *bound)
        assert (code, body["commit"], server.asked) == (3, None, [])
        said = body["error"]["error"]
        is_cost = "--max-cost" in bound
        most = "which cost about 9, and at most 8.5 may be spent" if is_cost else "and at most 8 may be"
        assert said.startswith(f"about 9 tokens would be asked for, {most}: nobody was asked")
        assert said.endswith(f"allow more by {'--max-cost' if is_cost else '--max-tokens'}")
    code, body, _ = run(capsys, "--graph", graph.uri, "--max-cost", "1")
    assert (code, body["error"]["error"]) == (
        2,
        "--max-cost needs --price-per-million PRICE, what a million tokens costs",
    )
    for cost, price in (("1", "0"), ("1e300", "1e-300")):
        bound = ("--max-cost", cost, "--price-per-million", price)
        code, body, _ = run(capsys, "--graph", graph.uri, *bound, "--max-tokens", "8")
        assert (code, body["error"]["error"][:15]) == (3, "about 9 tokens "), "what costs nothing is bounded, too"
        assert run(capsys, "--graph", graph.uri, *bound, "--dry-run")[0] == 0
    code, body, _ = run(capsys, "--graph", graph.uri, "--max-tokens", "9")
    assert (code, figures(body)[3:]) == (0, [6, 1, 10, 0])
    code, body, _ = run(capsys, "--graph", graph.uri, "--all", "--max-cost", "0", "--price-per-million", "1")
    assert (code, figures(body)[3:]) == (0, [0, 0, 10, 0]), "what is answered already costs nothing"


def test_a_key_that_is_refused_ends_the_run_and_is_not_shown(
    graph: Graph, server: EmbeddingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script.append(refusal(401, "bad key sk-test-0123456789"))
    code, body, err = run(capsys, "--graph", graph.uri)
    assert (code, body["error"]["kind"]) == (2, "embedding_config")
    assert "OPENAI_API_KEY" in body["error"]["error"]
    assert "0123456789" not in json.dumps(body) + err


def test_texts_that_fail_are_counted_within_a_bound(
    graph: Graph, server: EmbeddingServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refuses = lambda text: text == "plot 1"
    report = tmp_path / "bad.jsonl"
    code, body, _ = run(capsys, "--graph", graph.uri, "--bad-rows", str(report))
    assert (code, body["status"], body["error"]["kind"]) == (1, "failed", "embedding")
    assert [json.loads(line)["id"] for line in report.read_text().splitlines()] == ["f1", "f7"]
    code, body, _ = run(capsys, "--graph", graph.uri, "--max-bad-rows", "20%")
    assert (code, figures(body)) == (0, [10, 6, 5, 1, 1, 8, 2])
    assert body["bad_rows"] == {"total": 2, "per_rule": {"embedding": 2}, "report": None}


def test_one_mode_at_a_time(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    code, body, _ = run(capsys, "--graph", graph.uri, "--stale", "--clean")
    assert (code, body["error"]["error"]) == (2, "give one of --stale, --clean, not 2")


def test_a_load_says_what_asking_took(
    graph: Graph, server: EmbeddingServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In the words of a run that embeds; a dry run in estimates, and one that asks nobody in none."""
    path = tmp_path / "more.jsonl"
    path.write_text("".join(f'{{"type":"Film","data":{{"name":"n{n}","plot":"four{n % 4}"}}}}\n' for n in range(8)))
    words = ["ingest", "--graph", graph.uri, "--mode", "append", "--input", str(path)]
    found = []
    for more in (["--embed", "missing", "--dry-run"], ["--embed", "missing"]):
        assert main([*words, *more]) == 0
        out, err = capsys.readouterr()
        counts = json.loads(out)["result"]["properties"]["Film.v"]
        found.append([counts[name] for name in ("rows", "distinct", "requested", "requests", "tokens", "embedded")])
        assert ("tokens: about 5" in err) is ("--dry-run" in more)
    assert found == [[8, 4, 4, 1, 5, 0], [8, 4, 4, 1, 4, 8]]
    path.write_text('{"type":"Film","data":{"name":"last","plot":"x"}}\n')
    assert main(words) == 0
    assert "properties" not in json.loads(capsys.readouterr().out)["result"]
