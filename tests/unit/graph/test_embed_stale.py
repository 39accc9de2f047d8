"""What a run that looks for stale vectors reads, and that it leaves none behind, whatever happened in between."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.graph.embed import select
from spark_omnigraph.records.mode import EmbedAtLoad
from spark_omnigraph.storage.tables import scan
from tests.unit.graph.test_embed import QUIET, SCHEMA, Scripted, film, vector, vectors

Read = Callable[[], int]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Four films, all of which a run for stale vectors has looked at."""
    made = Graph.init(tmp_path / "g", SCHEMA)
    made.load([film("a", "one"), film("b", "two"), film("c", "one"), film("d")], options=QUIET)
    made.embed("Film", "plot_vec", Scripted(), mode="stale")
    return made


@pytest.fixture
def texts_read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """How many rows had their texts read since it was asked last."""
    counts: list[int] = []
    read = scan.placed_rows

    def counted(table: object, columns: list[str], *rest: object) -> Iterator[pa.RecordBatch]:
        for batch in read(table, columns, *rest):  # type: ignore[arg-type]  # as it is given
            counts.append(batch.num_rows if "plot" in columns else 0)
            yield batch

    monkeypatch.setattr(select, "placed_rows", counted)

    def taken() -> int:
        total = sum(counts)
        counts.clear()
        return total

    return taken


def stale(graph: Graph, model: str = "m", **choices: object) -> list[str]:
    """Looks for stale vectors; which texts were asked for."""
    asked = Scripted(model)
    graph.embed("Film", "plot_vec", asked, mode="stale", **choices)  # type: ignore[arg-type]  # choices of a test
    return asked.texts


def change(graph: Graph, slug: str, plot: str, branch: str = "main") -> None:
    graph.mutate(f'query q() {{ update Film set {{ plot: "{plot}" }} where slug = "{slug}" }}', branch=branch)


def test_only_rows_that_changed_are_read(graph: Graph, texts_read: Read) -> None:
    assert (stale(graph), texts_read()) == ([], 0)
    change(graph, "b", "three")
    assert (stale(graph), texts_read()) == (["three"], 1)
    assert (stale(graph), texts_read()) == ([], 0)  # its own commit is none of another
    graph.load([film("e", "five"), film("a", "one", year=1)], "merge", options=QUIET)
    assert (stale(graph), texts_read()) == (["five"], 2)
    assert vectors(graph)["a"] == vector("one")
    graph.optimize()
    graph.mutate('query q() { delete Film where slug = "c" }')
    assert (stale(graph), texts_read()) == ([], 0)
    assert sorted(stale(graph, "another model")) == ["five", "one", "three"]
    assert texts_read() == 4


def test_missing_and_cleaned_vectors_are_found_among_them(graph: Graph, texts_read: Read) -> None:
    graph.embed("Film", "plot_vec", mode="clean", where="slug = 'b'")
    graph.load([film("e", "one")], options=QUIET)
    graph.embed("Film", "plot_vec", Scripted(), where="slug = 'e'")
    texts_read()
    report = graph.embed("Film", "plot_vec", Scripted(), mode="stale")
    assert (report.properties["Film.plot_vec"].missing, report.properties["Film.plot_vec"].stale) == (1, 0)
    assert (vectors(graph)["b"], vectors(graph)["e"], texts_read()) == (vector("two"), vector("one"), 2)


def test_what_a_run_leaves_behind_is_found_by_the_next(graph: Graph) -> None:
    for slug, plot in (("a", "three"), ("b", "four"), ("c", "five")):
        change(graph, slug, plot)
    assert stale(graph, where="slug = 'a'") == ["three"]
    failing = Scripted(failing=frozenset({"four"}))
    graph.embed("Film", "plot_vec", failing, mode="stale", max_bad_rows=1)
    assert vectors(graph)["b"] == vector("two")
    assert stale(graph) == ["four"]
    assert [vectors(graph)[slug] for slug in "abc"] == [vector(text) for text in ("three", "four", "five")]


def test_in_several_commits_with_others_between_them(graph: Graph) -> None:
    for slug in "abc":
        change(graph, slug, f"new {slug}")

    def meanwhile(texts: list[str]) -> None:
        if "new c" in texts:
            change(Graph.open(graph.uri), "a", "newest")

    asked = Scripted(before=meanwhile)
    graph.embed("Film", "plot_vec", asked, mode="stale", commit_every=1)
    assert sorted(asked.texts) == ["new a", "new b", "new c"]
    assert stale(graph) == ["newest"]
    assert vectors(graph)["a"] == vector("newest")


def test_a_backup_that_is_put_back_and_written_on(graph: Graph, tmp_path: Path) -> None:
    shutil.copytree(graph.uri, tmp_path / "backup")
    for number in range(3):
        change(graph, "c", f"text {number}")
    stale(graph)
    shutil.rmtree(graph.uri)
    shutil.copytree(tmp_path / "backup", graph.uri)
    again = Graph.open(graph.uri)
    change(again, "b", "four")  # in a version that the run had seen with other rows
    assert stale(again) == ["four"]
    assert vectors(again)["b"] == vector("four")


def test_a_graph_and_a_branch_made_anew(graph: Graph) -> None:
    graph.create_branch("draft")
    change(graph, "a", "on the draft", branch="draft")
    assert "on the draft" in stale(graph, branch="draft")
    graph.delete_branch("draft")
    change(graph, "a", "on main")
    graph.create_branch("draft")
    change(graph, "a", "on the draft", branch="draft")  # as it was recorded, and its vector is another one
    stale(graph, branch="draft")
    assert vectors(graph, branch="draft")["a"] == vector("on the draft")

    anew = Graph.init(graph.uri, SCHEMA, force=True)
    anew.load([film("a", "one"), film("z", "zero", plot_vec=[1, 0, 0, 0])], options=QUIET)
    stale(anew)
    assert vectors(anew) == {"a": vector("one"), "z": vector("zero")}


def test_a_change_of_the_schema_and_an_older_state(graph: Graph, texts_read: Read) -> None:
    before = graph.commits()[0].id
    change(graph, "b", "three")
    stale(graph)
    graph.restore(snapshot=before, confirm=True)
    assert vectors(graph)["b"] == vector("two")
    assert stale(graph) == []
    change(graph, "b", "three")
    graph.apply_schema(SCHEMA.replace("title: String?\n", "title: String?\n    note: String?\n"))
    texts_read()
    stale(graph)
    assert texts_read() == 4
    assert vectors(graph)["b"] == vector("three")


def test_an_old_text_that_comes_back_and_is_set_again(graph: Graph) -> None:
    """What a row was given last says nothing of the vector that it has now."""
    before = graph.commits()[0].id
    change(graph, "a", "three")
    assert stale(graph) == ["three"]
    graph.restore(snapshot=before, confirm=True)
    change(graph, "a", "three")  # beside the vector of "one"
    report = graph.embed("Film", "plot_vec", Scripted(), mode="stale")
    assert (report.properties["Film.plot_vec"].stale, vectors(graph)["a"]) == (1, vector("three"))


def test_whoever_wrote_a_vector_it_is_known_by_its_numbers(graph: Graph, tmp_path: Path) -> None:
    """Vectors of a load, of a merged branch and of another graph that was made of an export are up to date."""
    graph.create_branch("draft")
    change(graph, "a", "three", branch="draft")
    stale(graph, branch="draft")
    graph.merge_branch("draft")
    asking = LoadOptions(build_indexes=False, embed=EmbedAtLoad.MISSING, embedder=Scripted())
    graph.load([film("e", "five"), film("f", "one", plot_vec=[1, 0, 0, 0])], options=asking)
    report = graph.embed("Film", "plot_vec", Scripted(), mode="stale")
    assert (report.tables, vectors(graph)["f"]) == ({"node:Film": 1}, vector("one"))

    other = Graph.init(tmp_path / "other", SCHEMA)
    other.load(list(graph.export()), options=QUIET)
    assert other.embed("Film", "plot_vec", Scripted(), mode="stale", cache=f"{graph.uri}.embeddings").commit is None
