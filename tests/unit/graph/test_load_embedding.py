"""Loads that ask for the vectors which their rows lack."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph import BadRowsError, Graph, LoadOptions, LoadReport
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.embed import remote
from spark_omnigraph.embed.config import resolve_config
from spark_omnigraph.embed.counts import PropertyCounts
from spark_omnigraph.errors import EmbeddingConfigError, EmbeddingError
from spark_omnigraph.graph.load.source import LocalRows
from spark_omnigraph.records.mode import EmbedAtLoad
from tests.support.embedding_server import EmbeddingServer
from tests.unit.graph.test_embed import Scripted, vector

SCHEMA = """
node Film { slug: String @key  plot: String?  year: I32?  @range(year, 1900..2100)  vec: Vector(4) @embed("plot") }
node Note { text: String @unique  vec: Vector(3)? @embed("text") }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def film(slug: str, plot: str | None, **data: object) -> str:
    return json.dumps({"type": "Film", "data": {"slug": slug, "plot": plot, **data}})


def load(graph: Graph, asked: Scripted, *lines: str, mode: str = "append", **options: object) -> LoadReport:
    chosen = LoadOptions(build_indexes=False, embed=EmbedAtLoad.MISSING, embedder=asked, **options)  # type: ignore[arg-type]  # options by their names
    return graph.load(list(lines), mode, options=chosen)


def vectors(graph: Graph) -> dict[str, list[float]]:
    return {r["slug"]: r["vec"] for line in graph.export(["Film"]) if (r := json.loads(line)["data"])}


def test_rows_bring_a_text_or_a_vector_and_are_stored_with_one(graph: Graph) -> None:
    asked = Scripted()
    given = film("c", "one", vec=[1, 0, 0, 0])
    report = load(graph, asked, film("a", "one"), film("b", "two"), given, film("d", "one"))
    assert vectors(graph) == {
        "a": vector("one"), "b": vector("two"), "c": [1, 0, 0, 0], "d": vector("one"),
    }  # laid out as a table  # fmt: skip
    assert (asked.texts, len(graph.commits())) == (["one", "two"], 2)
    assert report.tables["node:Film"].inserted == 4
    load(graph, asked, film("a", "two"), film("e", "three"), mode="merge")
    assert asked.texts == ["one", "two", "three"]
    assert vectors(graph)["a"] == vector("two")


def test_the_report_says_what_asking_took(graph: Graph) -> None:
    """In the figures that a run of embedding has; what another attempt finds kept was asked for all the same."""
    asked = Scripted(failing=frozenset({"bad"}))
    load(graph, asked, film("a", "one"))
    lines = [film("b", "one"), film("c", "two"), film("d", "two"), film("e", "bad"), film("f", " "), film("g", "four")]
    given = film("h", "never", vec=[1, 0, 0, 0])
    moved: list[str] = []

    def interfere(texts: list[str]) -> None:
        if "two" in texts and not moved:
            moved.append("by another load")
            load(graph, Scripted(), film("z", None, vec=[1, 0, 0, 0]))

    asked.before = interfere
    report = load(graph, asked, *lines, given, max_bad_rows=2)
    bodies = {"rows": 7, "missing": 5, "blank": 1, "embedded": 4, "failed": 1}
    attempts = len(asked.asked) - 1
    texts = [text for texts in asked.asked[1:] for text in texts]
    spent = {"requested": len(texts), "requests": attempts, "tokens": sum(map(len, texts))}
    assert attempts == 2, "the second one asks again for what had failed"
    found = report.properties["Film.vec"]
    assert found == PropertyCounts(distinct=4, cached=3, bytes=len("bad"), **bodies, **spent)
    assert "Note.vec" not in report.properties
    assert report.to_dict()["properties"]["Film.vec"]["tokens"] == found.tokens  # type: ignore[index]  # a dictionary
    off = graph.load([film("i", "x", vec=[1, 0, 0, 0])], options=LoadOptions(build_indexes=False))
    assert off.properties == {}


def test_a_dry_run_says_what_asking_would_take(graph: Graph) -> None:
    """Also where nobody is configured: then all texts are to be asked for, and nobody knows in how many requests."""
    lines = [film(f"f{number}", f"text {number % 30:02}") for number in range(40)]
    options = LoadOptions(embed=EmbedAtLoad.MISSING, dry_run=True)
    nobody = graph.load(lines, options=options).properties["Film.vec"]
    assert nobody == PropertyCounts(rows=40, missing=40, distinct=30, requested=30, tokens=53, bytes=210)
    with EmbeddingServer() as server:
        provider = replace(resolve_config(server.environ()), batch_size=8)
        kept = replace(options, embedder=provider, dry_run=False, build_indexes=False)
        graph.load([film("z", "text 07")], options=kept)
        told = graph.load(lines, options=replace(options, embedder=provider)).properties["Film.vec"]
        assert server.asked == ["text 07"]
        done = graph.load(lines, options=kept).properties["Film.vec"]
    assert told == replace(nobody, cached=1, requested=29, requests=4, tokens=51, bytes=203)
    assert done == replace(told, embedded=40, tokens=58)


def test_nobody_is_asked_unless_it_is_said(graph: Graph) -> None:
    asked = Scripted()
    with pytest.raises(BadRowsError, match="vec"):
        graph.load([film("a", "one")], options=LoadOptions(embedder=asked))
    assert load(graph, asked, film("a", "one"), dry_run=True).tables["node:Film"].inserted == 1
    assert asked.asked == []


def test_a_text_that_fails_is_a_bad_row(graph: Graph) -> None:
    asked = Scripted(failing=frozenset({"bad"}))
    lines = [film("a", "one"), film("x", "bad"), film("y", "  "), film("z", "three", year=3000)]
    with pytest.raises(BadRowsError) as refused:
        load(graph, asked, *lines)
    rows = [(row.line, row.id, str(row.rule), row.field) for row in refused.value.summary.sample]
    assert rows == [(2, "x", "embedding", "vec"), (3, "y", "required", "vec"), (4, "z", "range", "year")]
    assert json.loads(refused.value.summary.sample[0].raw)["data"]["slug"] == "x"
    assert graph.count("node:Film") == 0
    report = load(graph, asked, *lines, max_bad_rows=3)
    assert (report.bad_rows.total, vectors(graph)) == (3, {"a": vector("one")})


def test_rows_left_out_stay_out_when_a_file_is_written_anew(graph: Graph) -> None:
    """The text that failed would get its vector the second time."""
    fails = Scripted(failing=frozenset({"bad"}))

    def recover(texts: list[str]) -> None:
        if fails.asked:
            fails.failing = frozenset()

    fails.before = recover
    notes = [json.dumps({"type": "Note", "data": {"text": text}}) for text in ("one", "bad", "two", "two")]
    report = load(graph, fails, *notes, max_bad_rows=3)
    kept = sorted(json.loads(line)["data"]["text"] for line in graph.export(["Note"]))
    assert (report.bad_rows.per_rule, kept) == ({"embedding": 1, "unique": 1}, ["one", "two"])


def test_a_merge_whose_last_row_fails_keeps_the_one_before(graph: Graph) -> None:
    load(graph, Scripted(), film("a", "one"))
    asked = Scripted(failing=frozenset({"bad"}))
    load(graph, asked, film("a", "two"), film("a", "bad"), mode="merge", max_bad_rows=1)
    assert vectors(graph) == {"a": vector("two")}


def test_ids_that_are_stored_are_not_asked_for(graph: Graph) -> None:
    load(graph, Scripted(), film("a", "one"))
    asked = Scripted()
    with pytest.raises(BadRowsError, match="exists in Film already"):
        load(graph, asked, film("a", "new text"))
    assert asked.texts == []


def test_vectors_are_there_before_anything_is_armed(graph: Graph) -> None:
    asked = Scripted()
    with stop_at(CrashPoint.BOUND), pytest.raises(Crashed):
        load(graph, asked, film("a", "one"))
    assert asked.texts == ["one"]
    load(graph, asked, film("a", "one"))
    assert (asked.texts, vectors(graph)) == (["one"], {"a": vector("one")})


def test_a_provider_that_refuses_ends_the_load(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(texts: list[str]) -> None:
        raise EmbeddingConfigError("OPENAI_API_KEY is refused")

    with pytest.raises(EmbeddingConfigError):
        load(graph, Scripted(before=refuse), film("a", "one"))
    many = [film(f"f{i}", f"bad {i}") for i in range(600)]
    with pytest.raises(EmbeddingError, match="none of 512 texts"):
        load(graph, Scripted(failing=frozenset(f"bad {i}" for i in range(600))), *many)
    assert graph.count("node:Film") == 0


def test_one_pace_through_all_types(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(remote._Call, "pause", lambda call, seconds: waits.append(seconds))
    note = json.dumps({"type": "Note", "data": {"text": "two"}})
    with EmbeddingServer() as server:
        provider = replace(resolve_config(server.environ()), requests_per_minute=0.001)
        graph.load([film("a", "one"), note], options=LoadOptions(embed=EmbedAtLoad.MISSING, embedder=provider))
    assert sorted(server.asked) == ["one", "two"]
    assert [wait > 10_000 for wait in waits] == [False, True]


@pytest.mark.parametrize("tasks", [1, 4])
def test_tasks_that_stage_a_frame_share_what_a_minute_allows(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, tasks: int
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(remote._Call, "pause", lambda call, seconds: waits.append(seconds))
    films = pa.table({"slug": ["a", "b"], "plot": ["one", "two"]})
    with EmbeddingServer() as server:
        provider = replace(resolve_config(server.environ()), requests_per_minute=0.001, batch_size=1, parallel=1)
        options = LoadOptions(embed=EmbedAtLoad.MISSING, embedder=provider)
        graph.load(LocalRows(films.to_reader(), parallelism=tasks), node="Film", options=options)
    assert sorted(server.asked) == ["one", "two"]
    assert [round(wait / 60_000) for wait in waits] == [0, tasks]


def test_a_patch_takes_no_vector_away_that_is_required(graph: Graph) -> None:
    """A row that is read before its vector is there could be null; one that says null and brings no text is not."""
    asked = Scripted()
    load(graph, asked, film("a", "one"), film("b", "two"))
    taken = json.dumps({"type": "Film", "data": {"slug": "a", "vec": None}})
    with pytest.raises(BadRowsError, match=r"1 bad row \(1 required\).*'vec' is required, not null"):
        load(graph, asked, taken, mode="update")
    assert vectors(graph) == {"a": vector("one"), "b": vector("two")}
    anew = json.dumps({"type": "Film", "data": {"slug": "b", "plot": "three", "vec": None}})
    report = load(graph, asked, taken, anew, mode="update", max_bad_rows=1)
    assert report.bad_rows.per_rule == {"required": 1}
    assert vectors(graph) == {"a": vector("one"), "b": vector("three")}


def test_a_patch_that_makes_a_row_brings_a_text_or_a_vector(graph: Graph) -> None:
    bare = json.dumps({"type": "Film", "data": {"slug": "new", "year": 2000}})
    for line in (bare, film("new", None), film("new", None, vec=None)):
        with pytest.raises(BadRowsError, match=r"1 bad row \(1 required\)"):
            load(graph, Scripted(), line, mode="update", missing="insert")
        with pytest.raises(BadRowsError, match=r"1 bad row \(1 required\)"):
            load(graph, Scripted(), line, mode="update", missing="insert", dry_run=True)
    dry = load(graph, Scripted(), film("new", "one"), mode="update", missing="insert", dry_run=True)
    assert dry.tables["node:Film"].inserted == 1
    load(graph, Scripted(), film("new", "one"), mode="update", missing="insert")
    assert vectors(graph) == {"new": vector("one")}
