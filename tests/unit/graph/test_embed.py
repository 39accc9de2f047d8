"""Embedding stored rows: which, of which texts, asked how often, in how many commits."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, Graph, LoadOptions, NotFoundError, StorageError, embedding_config
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.embed import remote
from spark_omnigraph.embed.config import resolve_config
from spark_omnigraph.embed.counts import PropertyCounts
from spark_omnigraph.embed.embedder import Embedded, Role, Usage
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import EmbeddingConfigError, EmbeddingError
from spark_omnigraph.graph.embed import plan
from spark_omnigraph.records.mode import EmbedAtLoad
from tests.support.embedding_server import EmbeddingServer

SCHEMA = """
node Film {
    slug: String @key
    title: String?
    plot: String?
    year: I32?
    plot_vec: Vector(4)? @embed("plot")
    title_vec: Vector(3)? @embed("title")
}
node Poster { slug: String @key  text: String?  image: Blob?  vec: Vector(3)? @embed("text") }
edge Next: Film -> Film
"""
QUIET = LoadOptions(build_indexes=False)


@dataclass
class Scripted:
    """The mock; counts what it is asked, fails for some texts, and does something in between."""

    model: str = "m"
    failing: frozenset[str] = frozenset()
    before: Callable[[list[str]], None] = lambda texts: None
    asked: list[list[str]] = field(default_factory=list)

    @property
    def identity(self) -> str:
        return f"scripted/{self.model}"

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        self.before(list(texts))
        self.asked.append(list(texts))
        found = MockEmbedder(self.model).embed(texts, dimension=dimension, role=role)
        failures = {at: "refused by the test" for at, text in enumerate(texts) if text in self.failing}
        return Embedded(found.vectors, failures, Usage(1, 0, sum(map(len, texts))))

    @property
    def texts(self) -> list[str]:
        return [text for texts in self.asked for text in texts]


def film(slug: str, plot: str | None = None, **data: object) -> str:
    return json.dumps({"type": "Film", "data": {"slug": slug, "plot": plot, **data}})


def vector(text: str, dimension: int = 4) -> list[float]:
    found: list[float] = MockEmbedder().embed([text], dimension=dimension, role=Role.DOCUMENT).vectors[0].tolist()
    return found


def vectors(graph: Graph, column: str = "plot_vec", branch: str = "main") -> dict[str, list[float] | None]:
    records = (json.loads(line)["data"] for line in graph.export(["Film"], branch=branch))
    return {record["slug"]: record[column] for record in records}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Three films with a text, two of which are equal, one without and one with a blank one."""
    made = Graph.init(tmp_path / "g", SCHEMA)
    made.load([film("a", "one"), film("b", "two"), film("c", "one"), film("d"), film("e", " \n")], options=QUIET)
    return made


def test_rows_with_a_text_and_no_vector_get_one(graph: Graph) -> None:
    asked = Scripted()
    report = graph.embed("Film", "plot_vec", asked)
    assert vectors(graph) == {"a": vector("one"), "b": vector("two"), "c": vector("one"), "d": None, "e": None}
    assert asked.asked == [["one", "two"]]  # each text once
    counts = report.properties["Film.plot_vec"]
    assert counts == PropertyCounts(
        rows=5, missing=3, blank=2, distinct=2, requested=2, requests=1, tokens=6, embedded=3, bytes=6
    )
    assert (report.tables, report.mode, report.model) == ({"node:Film": 3}, "missing", "m")
    assert graph.commit(report.commit or "").facts.to_dict()["operation"] == "embed"  # type: ignore[union-attr]  # a commit of this release has facts
    changes = graph.diff(report.base_commit or "", report.commit).changes
    assert [(change.id, str(change.op)) for change in changes] == [(i, "update") for i in "abc"]
    again = graph.embed("Film", "plot_vec", asked)
    assert (again.commit, len(asked.asked)) == (None, 1)


def test_answers_outlive_the_graph_and_the_process(graph: Graph) -> None:
    graph.embed("Film", "plot_vec", Scripted())
    assert graph.embed("Film", "plot_vec", mode="clean").properties["Film.plot_vec"].cleaned == 3
    assert set(vectors(graph).values()) == {None}
    never = Scripted(before=lambda texts: pytest.fail(f"asked {texts}"))
    counts = graph.embed("Film", "plot_vec", never).properties["Film.plot_vec"]
    assert (counts.cached, counts.requested, counts.embedded) == (2, 0, 3)
    assert vectors(graph)["a"] == vector("one")
    assert [path.name for path in Path(f"{graph.uri}.embeddings").iterdir()] == ["answers_4"]


def test_a_row_is_stale_when_its_text_or_the_model_is_another_one(graph: Graph) -> None:
    graph.embed("Film", "plot_vec", Scripted())
    graph.mutate('query q() { update Film set { plot: "three" } where slug = "b" }')
    asked = Scripted()
    assert graph.embed("Film", "plot_vec", asked).commit is None  # it has a vector
    report = graph.embed("Film", "plot_vec", asked, mode="stale")
    assert (report.properties["Film.plot_vec"].stale, asked.texts) == (1, ["three"])
    assert vectors(graph)["b"] == vector("three")
    assert graph.embed("Film", "plot_vec", asked, mode="stale").commit is None
    other = graph.embed("Film", "plot_vec", Scripted("n"), mode="stale")
    assert other.properties["Film.plot_vec"].stale == 3


def test_vectors_of_unknown_origin_are_stale_unless_adopted(graph: Graph) -> None:
    graph.load([film("x", "one", plot_vec=[1, 0, 0, 0])], options=QUIET)
    asked = Scripted()
    adopted = graph.embed("Film", "plot_vec", asked, mode="stale", adopt=True)
    assert (adopted.properties["Film.plot_vec"].stale, vectors(graph)["x"]) == (0, [1, 0, 0, 0])
    assert graph.embed("Film", "plot_vec", asked, mode="stale").commit is None  # known from then on
    graph.load([film("y", "one", plot_vec=[1, 0, 0, 0])], options=QUIET)
    assert graph.embed("Film", "plot_vec", asked, mode="stale").properties["Film.plot_vec"].stale == 1
    assert (vectors(graph)["x"], vectors(graph)["y"]) == ([1, 0, 0, 0], vector("one"))
    graph.mutate('query q() { update Film set { plot: "two" } where slug = "x" }')
    assert graph.embed("Film", "plot_vec", asked, mode="stale").properties["Film.plot_vec"].stale == 1
    assert vectors(graph)["x"] == vector("two")  # it was adopted beside another text


def test_a_vector_of_ours_is_not_adopted_beside_another_text(graph: Graph) -> None:
    graph.embed("Film", "plot_vec", Scripted())
    graph.mutate('query q() { update Film set { plot: "three" } where slug = "b" }')
    report = graph.embed("Film", "plot_vec", Scripted(), mode="stale", adopt=True)
    assert (report.properties["Film.plot_vec"].stale, vectors(graph)["b"]) == (1, vector("three"))


def test_all_properties_of_a_graph_in_one_commit(graph: Graph) -> None:
    graph.load([film("a", "one", title="A"), film("t", title="T")], "merge", options=QUIET)
    report = graph.embed(embedder=Scripted())
    assert len(report.commits) == 1
    assert list(report.properties) == ["Film.plot_vec", "Film.title_vec", "Poster.vec"]
    assert vectors(graph) == {**dict.fromkeys("ac", vector("one")), "b": vector("two"), **dict.fromkeys("det")}
    assert vectors(graph, "title_vec") == {"a": vector("A", 3), "t": vector("T", 3), **dict.fromkeys("bcde")}
    assert report.tables == {"node:Film": 4}


def test_few_rows_are_written_whole_and_many_as_a_column(graph: Graph) -> None:
    graph.load([film(f"n{i}", f"text {i}", year=i) for i in range(100)], options=QUIET)
    graph.embed("Film", "plot_vec", Scripted())

    def files() -> list[int]:
        table = graph.store.open_table(graph.snapshot().entry("node:Film"))
        return [len(fragment.metadata.files) for fragment in table.get_fragments()]

    assert files() == [2, 2]
    graph.embed("Film", "plot_vec", mode="clean", where="slug = 'n7'")
    assert files() == [2, 2, 1]
    report = graph.embed("Film", "plot_vec", Scripted(), where="slug = 'n7'")
    assert vectors(graph)["n7"] == vector("text 7")
    assert graph.entity("node:Film", "n7")["year"] == 7  # type: ignore[index]  # it is there
    assert [change.id for change in graph.diff(report.base_commit or "", report.commit).changes] == ["n7"]
    assert graph.cleanup().items == ()


def test_blobs_are_never_touched(graph: Graph) -> None:
    posters = [{"slug": f"p{i}", "text": "t" if i == 5 else None, "image": "base64:aGk="} for i in range(60)]
    graph.load([json.dumps({"type": "Poster", "data": data}) for data in posters], options=QUIET)
    graph.embed("Poster", embedder=Scripted())
    rows = {record["slug"]: record for line in graph.export(["Poster"]) if (record := json.loads(line)["data"])}
    assert rows["p5"]["vec"] == vector("t", 3)
    assert {row["image"] for row in rows.values()} == {"base64:aGk="}
    table = graph.store.open_table(graph.snapshot().entry("node:Poster"))
    assert [len(fragment.metadata.files) for fragment in table.get_fragments()] == [2]


def test_texts_of_several_fields(graph: Graph) -> None:
    graph.load([film("f", "p", title="T", year=1999)], options=QUIET)
    asked = Scripted()
    graph.embed("Film", "title_vec", asked, fields=["title", "year"], where="slug = 'f'")
    assert asked.texts == ["type: Film\ntitle: T\nyear: 1999"]
    graph.embed("Film", "title_vec", asked, source="slug", mode="all", where="slug = 'f'")
    assert asked.texts[1:] == ["f"]


def test_several_commits_have_all_rows_between_them(graph: Graph) -> None:
    graph.load([film(f"n{i}", f"text {i}") for i in range(10)], options=QUIET)
    asked = Scripted(failing=frozenset({"text 3"}))
    report = graph.embed("Film", "plot_vec", asked, commit_every=4, max_bad_rows=1, mode="all")
    assert len(report.commits) == 4
    assert sorted(asked.texts) == sorted(["one", "two", *(f"text {i}" for i in range(10))])
    assert {slug for slug, found in vectors(graph).items() if found is None} == {"d", "e", "n3"}
    assert (report.properties["Film.plot_vec"].embedded, report.properties["Film.plot_vec"].failed) == (12, 1)


def test_texts_that_fail_are_bad_rows_within_a_bound(graph: Graph, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    failing = Scripted(failing=frozenset({"one"}))
    with pytest.raises(EmbeddingError, match=r"2 rows of 3 got no vector.*'a'.*refused by the test"):
        graph.embed("Film", "plot_vec", failing, bad_rows=bad)
    assert set(vectors(graph).values()) == {None}
    told = [json.loads(line) for line in bad.read_text().splitlines()]
    assert [(row["id"], row["rule"], row["field"]) for row in told] == [(i, "embedding", "plot_vec") for i in "ac"]
    report = graph.embed("Film", "plot_vec", failing, max_bad_rows=2)
    assert failing.texts == ["one", "two", "one"]  # what was answered is not asked again
    assert vectors(graph) == {**dict.fromkeys("acde"), "b": vector("two")}
    assert (report.bad_rows.total, report.bad_rows.per_rule) == (2, {"embedding": 2})
    with pytest.raises(EmbeddingError, match="2 rows of 2 got no vector"):
        graph.embed("Film", "plot_vec", failing, max_bad_rows=5)


@pytest.mark.parametrize("bound", [2, 0.5])
def test_the_bound_is_of_the_whole_run_however_many_commits(graph: Graph, bound: float) -> None:
    graph.load([film("f", "three")], options=QUIET)
    asked = Scripted(failing=frozenset({"one"}))
    report = graph.embed("Film", "plot_vec", asked, max_bad_rows=bound, commit_every=1)
    assert (len(report.commits), report.bad_rows.total) == (2, 2)
    counts = report.properties["Film.plot_vec"]
    assert (counts.distinct, counts.cached, counts.requested, counts.failed) == (3, 0, 3, 2)
    found = vectors(graph)
    assert (found["a"], found["b"], found["c"], found["f"]) == (None, vector("two"), None, vector("three"))


def test_a_run_that_ends_after_some_commits_says_so(graph: Graph) -> None:
    asked = Scripted(failing=frozenset({"two"}))
    with pytest.raises(EmbeddingError, match=r"^1 commit made, and no more: 1 row of 3 got no vector"):
        graph.embed("Film", "plot_vec", asked, commit_every=1)
    assert vectors(graph)["a"] == vector("one")
    nobody = Scripted(failing=frozenset({"two", "one"}))
    with pytest.raises(EmbeddingError, match=r"^nothing changed: 2 rows of 2 got no vector"):
        graph.embed("Film", "plot_vec", nobody, max_bad_rows=9, commit_every=1, no_cache=True)


def test_what_was_answered_before_a_failure_is_kept(graph: Graph) -> None:
    graph.load([film(f"n{i}", f"text {i}") for i in range(20)], options=QUIET)

    def refuse_the_third(texts: list[str]) -> None:
        if len(asked.asked) == 2:
            raise EmbeddingConfigError("OPENAI_API_KEY is refused")

    asked = Scripted(before=refuse_the_third)
    with pytest.raises(EmbeddingConfigError):
        graph.embed("Film", "plot_vec", asked, cache_every_texts=5)
    assert len(asked.texts) == 10
    rest = Scripted()
    graph.embed("Film", "plot_vec", rest, cache_every_texts=5)
    assert len(rest.texts) == 12
    assert not set(rest.texts) & set(asked.texts)


def test_texts_that_change_meanwhile_are_asked_again(graph: Graph) -> None:
    def change(texts: list[str]) -> None:
        if not asked.asked:
            other = Graph.open(graph.uri)
            other.load([film("b", "three"), film("n", "four")], "merge", options=QUIET)
            other.delete("node:Film", ["c"])

    asked = Scripted(before=change)
    report = graph.embed("Film", "plot_vec", asked)
    assert asked.asked == [["one", "two"], ["three", "four"]]
    found = {"a": vector("one"), "b": vector("three"), "n": vector("four"), "d": None, "e": None}
    assert vectors(graph) == found
    assert report.properties["Film.plot_vec"].embedded == 3


def test_a_property_that_comes_meanwhile_is_embedded_as_well(graph: Graph) -> None:
    """What the run is about is looked up anew with the schema that stands."""

    def rename(texts: list[str]) -> None:
        if not asked.asked:
            renamed = 'plot_new: Vector(4)? @embed("plot") @rename_from("plot_vec")'
            Graph.open(graph.uri).apply_schema(SCHEMA.replace('plot_vec: Vector(4)? @embed("plot")', renamed))

    asked = Scripted(before=rename)
    report = graph.embed("Film", None, asked)
    assert vectors(graph, "plot_new") == {
        "a": vector("one"),
        "b": vector("two"),
        "c": vector("one"),
        "d": None,
        "e": None,
    }
    assert report.properties["Film.plot_new"].embedded == 3
    assert graph.embed("Film", None, Scripted()).commit is None


def test_answers_that_are_gone_when_the_rest_is_answered_are_told(graph: Graph) -> None:
    graph.load([film(f"n{i}", f"text {i}") for i in range(20)], options=QUIET)

    def remove(texts: list[str]) -> None:
        if len(asked.asked) == 2:
            shutil.rmtree(f"{graph.uri}.embeddings")

    asked = Scripted(before=remove)
    with pytest.raises(StorageError, match=r"10 answers are gone from the cache .*g.embeddings .*run it again"):
        graph.embed("Film", "plot_vec", asked, cache_every_texts=5)
    assert set(vectors(graph).values()) == {None}
    assert graph.embed("Film", "plot_vec", Scripted()).properties["Film.plot_vec"].embedded == 23


def test_a_lost_race_is_planned_again(graph: Graph) -> None:
    asked = Scripted()

    def meanwhile() -> None:
        if len(asked.asked) == 1:
            Graph.open(graph.uri).mutate('query q() { update Film set { plot: "three" } where slug = "a" }')

    with stop_at(CrashPoint.CHECKED, meanwhile):
        graph.embed("Film", "plot_vec", asked)
    assert asked.asked == [["one", "two"], ["three"]]
    assert vectors(graph) == {"a": vector("three"), "b": vector("two"), "c": vector("one"), "d": None, "e": None}
    assert graph.cleanup().items == ()


@pytest.mark.parametrize("commit_every", [None, 1])
def test_a_dry_run_counts_and_writes_nothing(graph: Graph, commit_every: int | None) -> None:
    """The rows of all commits, however many there would be."""
    never = Scripted(before=lambda texts: pytest.fail(f"asked {texts}"))
    readable = Graph.open(graph.uri, mode="r")
    report = readable.embed("Film", "plot_vec", never, dry_run=True, commit_every=commit_every)
    counts = report.properties["Film.plot_vec"]
    assert (report.commit, counts.missing, counts.blank, counts.distinct) == (None, 3, 2, 2)
    assert (counts.bytes, counts.tokens) == (6, 2)
    assert not Path(f"{graph.uri}.embeddings").exists()


def test_without_a_cache_nothing_stays_beside_the_graph(graph: Graph) -> None:
    graph.embed("Film", "plot_vec", Scripted(), no_cache=True)
    assert vectors(graph)["a"] == vector("one")
    assert [path for path in Path(f"{graph.uri}.embeddings").rglob("*") if path.is_file()] == []


def test_on_a_branch(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.embed("Film", "plot_vec", Scripted(), branch="draft")
    assert vectors(graph)["a"] is None
    assert vectors(graph, branch="draft")["a"] == vector("one")
    merged = graph.merge_branch("draft")
    assert merged.tables["node:Film"].updated == 3
    assert vectors(graph)["b"] == vector("two")


def test_any_function_from_texts_to_vectors_will_do(graph: Graph) -> None:
    graph.embed("Film", "plot_vec", lambda texts: [[len(text), 0, 0, 0] for text in texts])
    assert vectors(graph)["a"] == [1, 0, 0, 0]


def test_search_finds_what_was_embedded(graph: Graph) -> None:
    graph.embed("Film", "plot_vec", Scripted())
    graph.ensure_indices()
    graph.mutate('query q() { update Film set { plot: "three" } where slug = "a" }')
    graph.embed("Film", "plot_vec", Scripted(), mode="stale")
    query = (
        "query q($v: Vector(4)) { match { $f: Film } return { $f.slug } order { nearest($f.plot_vec, $v) } limit 1 }"
    )
    for text, slug in (("three", "a"), ("two", "b"), ("one", "c")):
        assert graph.query(query, params={"v": vector(text)}).to_pylist() == [{"f.slug": slug}]


def test_one_pace_through_all_commits(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(remote._Call, "pause", lambda call, seconds: waits.append(seconds))
    with EmbeddingServer() as server:
        provider = replace(resolve_config(server.environ()), requests_per_minute=0.001)
        report = graph.embed("Film", "plot_vec", provider, commit_every=1)
    assert (len(report.commits), sorted(server.asked)) == (3, ["one", "two"])
    assert [wait > 10_000 for wait in waits] == [False, True]


@dataclass
class Counting:
    """A machine with many slots; how much work it was given at once."""

    parallelism: int = 8
    given: list[int] = field(default_factory=list)

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        self.given.append(len(items))
        return map(work, items)


def test_no_more_tasks_ask_at_once_than_requests_may(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.load([film(f"n{i}", f"text {i}") for i in range(20)], options=QUIET)
    monkeypatch.setattr(plan, "QUESTION_TEXTS", 3)
    machine = Counting()
    provider = replace(embedding_config("mock"), parallel=3)
    report = graph.embed("Film", "plot_vec", provider, executor=machine)
    assert machine.given[:-1] == [3, 3, 2]  # 22 texts in parts of 3; what is written is no question
    assert report.properties["Film.plot_vec"].requested == 22


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("Film", "year"), BadRequestError, "'Film.year' is I32?, not a vector"),
        (("Film", "plot_vek"), NotFoundError, "did you mean 'plot_vec'"),
        (("Flim",), NotFoundError, "did you mean 'Film'"),
        ((None, "plot_vec"), BadRequestError, "name the type too"),
    ],
)
def test_names_that_mean_nothing(
    graph: Graph, arguments: tuple[str | None, ...], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words.replace("?", r"\?")):
        graph.embed(arguments[0], arguments[1] if len(arguments) > 1 else None, Scripted())


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"mode": "some"}, "mode"),
        ({"source": "title", "fields": ["plot"]}, "not from both"),
        ({"source": "year"}, "a source is a String"),
        ({"no_cache": True, "mode": "stale"}, "what is stale"),
        ({"adopt": True}, "--stale"),
        ({"wehre": "a"}, "did you mean 'where'"),
        ({"commit_every": 0}, "commit_every"),
        ({"fields": ["title", "plot", "title"]}, r"fields are each named once, not \['title', 'plot', 'title'\]"),
        ({"cache_every_seconds": "10"}, "cache_every_seconds is a number of seconds, not '10'"),
        ({"cache_every_seconds": float("nan")}, "cache_every_seconds is a number of seconds, not nan"),
        ({"cache_every_seconds": -1}, "cache_every_seconds is a number of seconds, not -1"),
    ],
)
def test_choices_that_mean_nothing(graph: Graph, choices: dict[str, object], words: str) -> None:
    with pytest.raises(BadRequestError, match=words):
        graph.embed("Film", "plot_vec", Scripted(), **choices)  # type: ignore[arg-type]  # wrong on purpose


def test_a_report_replaces_no_file_of_the_graph(graph: Graph) -> None:
    before = Path(graph.uri, "_schema.pg").read_text()
    for place in ("_schema.pg", "bad.jsonl", "nodes/bad.jsonl"):
        with pytest.raises(BadRequestError, match=r"the bad-row report '.*' (is|lies|would)"):
            graph.embed("Film", "plot_vec", Scripted(), bad_rows=f"{graph.uri}/{place}")
    assert Path(graph.uri, "_schema.pg").read_text() == before
    assert not list(Path(graph.uri).rglob("bad.jsonl"))


@pytest.mark.parametrize("place", ["", "nodes", "new/folder", "../g/cache", "../link", "../link/new"])
def test_a_cache_lies_in_no_graph(graph: Graph, tmp_path: Path, place: str) -> None:
    """What other programs find in a graph that they do not know they remove."""
    (tmp_path / "link").symlink_to(graph.uri)
    other = Graph.init(tmp_path / "other", SCHEMA)
    for each in (graph, other):
        with pytest.raises(BadRequestError, match="outside of the graph"):
            each.embed("Film", "plot_vec", Scripted(), cache=f"{graph.uri}/{place}")
    asking = LoadOptions(embed=EmbedAtLoad.MISSING, embedder=Scripted(), cache=f"{graph.uri}/{place}")
    with pytest.raises(BadRequestError, match="outside of the graph"):
        other.load([film("a", "one")], options=asking)
    assert not list(Path(graph.uri).rglob("answers_*"))


def test_a_folder_that_holds_something_else_is_no_cache(graph: Graph, tmp_path: Path) -> None:
    for number, rows in enumerate(({"key": ["a"], "x": [1]}, {"key": ["a"], "at": [1], "vector": [[1.0, 0, 0]]})):
        place = tmp_path / f"c{number}"
        lance.write_dataset(pa.table(rows), str(place / "answers_4"))
        with pytest.raises(StorageError, match="answers_4 has other columns than a cache of vectors"):
            graph.embed("Film", "plot_vec", Scripted(), cache=place)
    assert set(vectors(graph).values()) == {None}


@dataclass
class Strange:
    """Somebody's own embedder that gives something."""

    given: object
    model: str = "m"

    @property
    def identity(self) -> str:
        return "strange"

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        return self.given  # type: ignore[return-value]  # wrong on purpose


HALF = np.full((2, 4), 0.5, dtype=np.float32)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (None, EmbeddingConfigError, r"an array of shape \(2, 4\)"),
        (HALF, EmbeddingConfigError, "must give an Embedded"),
        (Embedded(HALF[:1]), EmbeddingConfigError, "shape"),
        (Embedded(HALF[:, :3]), EmbeddingConfigError, "shape"),
        (Embedded(HALF, {7: "?"}), EmbeddingConfigError, "failures by the numbers of texts"),
        (Embedded(HALF * np.nan), EmbeddingError, "not the length 1"),
        (Embedded(HALF * 0), EmbeddingError, "not the length 1"),
        (Embedded(HALF * 3), EmbeddingError, "not the length 1"),
    ],
)
def test_what_an_embedder_gives_is_looked_at(graph: Graph, given: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        graph.embed("Film", "plot_vec", Strange(given))
    assert set(vectors(graph).values()) == {None}


def test_a_model_of_another_library_is_no_embedder(graph: Graph) -> None:
    class Model:
        def embed(self, documents: list[str]) -> None:
            pytest.fail("it is not asked")

    with pytest.raises(BadRequestError, match="embedder is a function"):
        graph.embed("Film", "plot_vec", Model())


def test_the_model_that_the_schema_names_is_the_one_that_is_asked(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", 'node T { k: String @key  v: Vector(2)? @embed("k", model="a") }')
    with pytest.raises(BadRequestError, match="OMNIGRAPH_EMBED_MODEL='a'"):
        graph.embed("T", embedder=Scripted("b"))


def test_commits_of_a_run_that_is_stopped_are_named(graph: Graph, caplog: pytest.LogCaptureFixture) -> None:
    def stop_at_the_third(texts: list[str]) -> None:
        if len(asked.asked) == 2:
            raise KeyboardInterrupt

    graph.load([film("f", "three")], options=QUIET)
    known = {commit.id for commit in graph.commits()}
    asked = Scripted(before=stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        graph.embed("Film", "plot_vec", asked, commit_every=1)
    made = [commit.id for commit in reversed(graph.commits()) if commit.id not in known]
    assert len(made) >= 2
    warned = [record.getMessage() for record in caplog.records if "which stand" in record.getMessage()]
    assert warned == [f"stopped after {len(made)} commits, which stand; the last of them: {', '.join(made)}"]
