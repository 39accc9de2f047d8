"""Loads in mode update: what patches may do to rows, edges, blobs and vectors, and who else is at work."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, BadRowsError, Graph, LoadMode, LoadOptions, OnMissing
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.graph.load.frame import finish_frame_load, frame_request, plan_frame_load, staged_part
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import EmbedAtLoad, OnDuplicate
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.tables.stored_rows import StoredRows
from spark_omnigraph.write import values

SCHEMA = """
node Film {
  slug: String @key
  title: String
  year: I32?
  code: String? @unique
  part: I32?
  of: String?
  poster: Blob?
  trailer: Blob?
  plot: String?
  vec: Vector(2)? @embed("plot")
  @unique(of, part)
  @range(year, 1880..2100)
}
node Note { text: String }
edge Cites: Film -> Film { page: I32?  why: enum(praise, doubt)? }
"""
PLAIN = LoadOptions(build_indexes=False)
INSERT = LoadOptions(build_indexes=False, missing=OnMissing.INSERT)


def film(slug: str, **given: object) -> str:
    return json.dumps({"type": "Film", "data": {"slug": slug, **given}})


def cites(id_: str, ends: tuple[str, str] | None = None, **given: object) -> str:
    record = {"edge": "Cites", "data": {"id": id_, **given}}
    return json.dumps(record if ends is None else {**record, "from": ends[0], "to": ends[1]})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    rows = [
        film(
            s,
            title=s.upper(),
            year=1990 + i,
            code=f"c{s}",
            part=i,
            of="set",
            plot=f"plot {s}",
            vec=[i, 1],
            poster="base64:AAAA",
            trailer=f"s3://films/{s}",
        )
        for i, s in enumerate("abcd")
    ]
    graph.load([*rows, cites("ab", ("a", "b"), page=1), cites("cd", ("c", "d"), page=2, why="doubt")], options=PLAIN)
    return graph


def row(graph: Graph, slug: str, kind: str = "node:Film") -> Mapping[str, object]:
    found = graph.entity(kind, slug)
    assert found is not None
    return found


def update(graph: Graph, *lines: str, options: LoadOptions = PLAIN) -> tuple[int, int]:
    """How many rows a load of patches inserted and updated."""
    counts = graph.load(list(lines), "update", options=options).tables.values()
    return sum(each.inserted for each in counts), sum(each.updated for each in counts)


def refused(graph: Graph, *lines: str, options: LoadOptions = PLAIN) -> list[tuple[int, str, str | None, str]]:
    """Line, rule, field and message of every mistake; nothing has changed."""
    before = graph.snapshot().version
    with pytest.raises(BadRowsError) as caught:
        graph.load(list(lines), "update", options=options)
    assert graph.snapshot().version == before
    return [
        (bad.line, str(each.rule), each.field, each.message)
        for bad in caught.value.summary.sample
        for each in bad.mistakes
    ]


def test_members_set_their_values_and_others_stay(graph: Graph) -> None:
    before = {s: row(graph, s) for s in "abcd"}
    assert update(graph, film("a", year=2000, code=None), film("b", title="Bee"), cites("ab", why="praise")) == (0, 3)
    assert row(graph, "a") == {**before["a"], "year": 2000, "code": None}
    assert row(graph, "b") == {**before["b"], "title": "Bee"}
    assert (row(graph, "c"), row(graph, "d")) == (before["c"], before["d"])
    assert row(graph, "ab", "edge:Cites") == {"id": "ab", "src": "a", "dst": "b", "page": 1, "why": "praise"}
    newest = graph.commits()[0].facts
    assert newest is not None
    assert (newest.operation, newest.mode) == ("load", "update")
    assert {key: (each.inserted, each.updated) for key, each in newest.tables.items()} == {
        "edge:Cites": (0, 1),
        "node:Film": (0, 2),
    }


def test_the_feed_shows_the_changed_rows_and_no_others(graph: Graph) -> None:
    before = graph.commits()[0].id
    update(graph, film("a", year=1990), film("b", year=2001), film("b", plot="new"), film("c"))
    diff = graph.diff(before, graph.commits()[0].id)
    assert [(change.id, str(change.op)) for change in diff.changes] == [("a", "update"), ("b", "update")]


def test_a_record_with_nothing_but_its_key_changes_nothing(graph: Graph) -> None:
    report = graph.load([film("a"), cites("ab", ("a", "b"))], "update", options=PLAIN)
    assert report.commit is None
    assert [(t.read, t.valid, t.updated) for t in report.tables.values()] == [(1, 1, 0), (1, 1, 0)]


def test_rows_are_named_by_key_or_id(graph: Graph) -> None:
    graph.load(['{"type": "Note", "data": {"id": "n1", "text": "x"}}'], options=PLAIN)
    by_id = '{"type": "Film", "data": {"id": "a", "year": 2001}}'
    assert update(graph, by_id, '{"type": "Note", "data": {"id": "n1", "text": "y"}}') == (0, 2)
    assert (row(graph, "a")["year"], row(graph, "n1", "node:Note")["text"]) == (2001, "y")
    told = refused(
        graph,
        '{"type": "Film", "data": {"year": 2001}}',
        '{"type": "Film", "data": {"id": "a", "slug": "b"}}',
        '{"type": "Film", "data": {"slug": null, "id": "a"}}',
        '{"type": "Note", "data": {"text": "z"}}',
        cites("ab").replace('"id": "ab"', '"page": 3'),
    )
    assert [(line, rule, field) for line, rule, field, _ in told] == [
        (1, "key_missing", "slug"),
        (2, "id_mismatch", "id"),
        (3, "key_missing", "slug"),
        (4, "key_missing", "id"),
        (5, "key_missing", "id"),
    ]


def test_what_is_not_stored_is_a_bad_row_or_a_new_row(graph: Graph) -> None:
    missing = "Film 'x' is not stored, so there is nothing to change; with --missing insert (missing) it becomes a row"
    assert refused(graph, film("a", year=2000), film("x", year=2000)) == [(2, "not_stored", "id", missing)]
    needs = "Film 'x' is not stored, and a record of a new row needs 'title'"
    assert refused(graph, film("x", year=2000), film("x", title="X"), options=INSERT) == [
        (1, "required", "title", needs)
    ]
    made = update(
        graph,
        film("x", title="X", poster="base64:AQ=="),
        film("x", plot="p"),
        film("a", year=1999),
        cites("xa", ("x", "a")),
        cites("xa", page=7),
        options=INSERT,
    )
    assert made == (2, 1)
    assert row(graph, "x") == {
        **dict.fromkeys(row(graph, "a")),
        "id": "x",
        "slug": "x",
        "title": "X",
        "poster": "base64:AQ==",
        "plot": "p",
    }
    assert row(graph, "xa", "edge:Cites") == {"id": "xa", "src": "x", "dst": "a", "page": 7, "why": None}
    told = refused(graph, cites("xb", ("x", "nobody")), cites("xc", None, page=1), options=INSERT)
    assert [(line, rule, field) for line, rule, field, _ in told] == [
        (1, "endpoint", "to"),
        (2, "missing_endpoint", "from"),
        (2, "missing_endpoint", "to"),
    ]


def test_ends_of_edges_stay(graph: Graph) -> None:
    assert update(graph, cites("ab", ("a", "b"), page=3)) == (0, 1)
    told = "Cites 'ab' has another '{}', which a patch does not change: delete the edge, and load it anew"
    assert refused(graph, cites("ab", ("a", "c")), cites("ab", ("d", "b"))) == [
        (1, "id_mismatch", "to", told.format("to")),
        (2, "id_mismatch", "from", told.format("from")),
    ]


def test_rules_are_asked_of_the_row_that_results(graph: Graph) -> None:
    assert [told[:3] for told in refused(graph, film("a", title=None), film("b", year=1500), cites("ab", why="x"))] == [
        (1, "required", "title"),
        (2, "range", "year"),
        (3, "enum", "why"),
    ]
    assert [told[:3] for told in refused(graph, film("a", code="cb"))] == [(1, "unique", "code")]
    # Of a unique group one value is kept: that of the row, not of the patch.
    assert [told[:3] for told in refused(graph, film("a", part=2))] == [(1, "unique", "of")]
    # Both patches of a row are bad rows when the row is.
    assert [told[:3] for told in refused(graph, film("a", part=2), film("b", year=2000), film("a", plot="p"))] == [
        (1, "unique", "of"),
        (3, "unique", "of"),
    ]
    assert update(graph, film("a", part=1), film("b", part=0), film("c", code="cd"), film("d", code="cc")) == (0, 4)
    assert [(row(graph, s)["part"], row(graph, s)["code"]) for s in "abcd"] == [
        (1, "ca"),
        (0, "cb"),
        (2, "cd"),
        (3, "cc"),
    ]


def test_a_refused_row_keeps_what_it_held(graph: Graph) -> None:
    """`a` would free its code for `b`, but is refused; so `b` is too."""
    lines = [film("a", code="cd"), film("b", code="ca"), film("c", year=2000)]
    report = graph.load(lines, "update", options=replace(PLAIN, max_bad_rows=2))
    assert [(bad.line, str(bad.rule)) for bad in report.bad_rows.sample] == [(1, "unique"), (2, "unique")]
    assert [(row(graph, s)["code"], row(graph, s)["year"]) for s in "abc"] == [("ca", 1990), ("cb", 1991), ("cc", 2000)]


@pytest.mark.parametrize("share", [0.0, 2.0], ids=["by column", "by row"])
def test_blobs_and_vectors_are_kept_as_stored(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, share: float, read: list[str]
) -> None:
    monkeypatch.setattr(values, "SHARE", share)
    before = {s: row(graph, s) for s in "abcd"}
    assert update(graph, film("a", year=2000), film("b", plot=None)) == (0, 2)
    assert read == []  # no row of a type with blobs is read for what is no blob
    assert update(graph, film("c", poster="base64:BBBB", vec=None), film("d", vec=[7, 8])) == (0, 2)
    assert row(graph, "a") == {**before["a"], "year": 2000}
    assert row(graph, "b") == {**before["b"], "plot": None}
    assert row(graph, "c") == {**before["c"], "poster": "base64:BBBB", "vec": None}
    assert row(graph, "d") == {**before["d"], "vec": [7.0, 8.0]}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Columns that were read of whole rows."""
    seen: list[str] = []
    take = StoredRows.take

    def watched(rows: StoredRows, wanted: pa.Array) -> pa.Table:
        seen.extend(rows.columns)
        return take(rows, wanted)

    monkeypatch.setattr(StoredRows, "take", watched)
    return seen


def test_columns_of_many_rows_are_written_beside_the_others(tmp_path: Path, read: list[str]) -> None:
    graph = Graph.init(tmp_path / "g", "node P { n: I64 @key  a: I32  b: String  vec: Vector(3) }")
    whole = pa.table(
        {"n": range(3000), "a": pa.array([0] * 3000, pa.int32()), "b": ["x"] * 3000, "vec": [[1.0, 2, 3]] * 3000}
    )
    for part in (whole.slice(0, 2000), whole.slice(2000)):
        graph.load_table("node:P", part, options=PLAIN)
    graph.delete("node:P", ["0", "1", "1999"])
    numbers = np.arange(2, 1999, 2)
    graph.load_table("node:P", pa.table({"n": numbers, "a": numbers}), mode="update", options=PLAIN)
    assert read == []
    few = pa.table({"n": [2001, 2500], "b": ["y", "z"]})
    graph.load_table("node:P", few, mode="update", options=PLAIN)
    assert sorted(set(read)) == ["a", "b", "id", "n", "vec"]
    found = {data["n"]: (data["a"], data["b"]) for data in (json.loads(line)["data"] for line in graph.export())}
    expected = {n: (n if n < 1999 and n % 2 == 0 else 0, "x") for n in range(3000) if n not in (0, 1, 1999)}
    assert found == {**expected, 2001: (0, "y"), 2500: (0, "z")}


def test_a_race_for_two_properties_of_a_row_keeps_both(graph: Graph) -> None:
    def other(phase: str, done: int, of: int) -> None:
        if not calls:
            calls.append(phase)
            assert update(Graph.open(graph.uri), film("a", title="theirs"), film("b", year=1900)) == (0, 2)

    calls: list[str] = []
    assert update(graph, film("a", year=2000), film("b", year=2001), options=replace(PLAIN, progress=other)) == (0, 2)
    assert (row(graph, "a")["title"], row(graph, "a")["year"]) == ("theirs", 2000)
    assert row(graph, "b")["year"] == 2001
    assert [commit.facts.mode for commit in graph.commits()[:3] if commit.facts] == ["update", "update", "append"]


def of_frame(graph: Graph, rows: pa.Table, branch: str | None, between: Callable[[], object]) -> None:
    """A frame of one task, with something that happens before it is committed."""
    options = LoadOptions(build_indexes=False, on_duplicate=OnDuplicate.ERROR, max_bad_rows=1)
    key = TableKey.node("Film")
    with staging(graph.store) as stage:
        request = replace(frame_request(branch, LoadMode.UPDATE, None, options), stages=(stage,))
        plan = plan_frame_load(graph.store, request, key)
        receipt = stage_frame(plan.context, TableInput.of_type(key), rows.to_batches(), 0)
        between()
        report = finish_frame_load(graph.store, request, plan, [staged_part(plan.context, receipt)])
    assert [(bad.id, str(bad.rule)) for bad in report.bad_rows.sample] == [("a", "key_duplicate")]


@pytest.mark.parametrize("branch", [None, "draft"])
def test_a_frame_is_applied_to_what_the_winner_left(graph: Graph, branch: str | None) -> None:
    """Blobs stand in nobody's way: what is staged are patches."""
    if branch is not None:
        graph.create_branch(branch)
    rows = pa.table({"slug": ["a", "b", "a"], "year": pa.array([2000, None, 2002], pa.int32())})

    def other() -> None:
        graph.load([film("a", title="theirs"), film("b", year=1900)], "update", branch=branch, options=PLAIN)

    of_frame(graph, rows, branch, other)
    shown = graph.at(branch=branch or "main")
    a, b = row(shown, "a"), row(shown, "b")
    assert (a["title"], a["year"], b["year"], b["poster"]) == ("theirs", 2000, None, "base64:AAAA")
    if branch is not None:
        assert row(graph, "a")["title"] == "A"


def test_staged_patches_go_with_the_write(graph: Graph) -> None:
    def files() -> set[str]:
        return {str(path) for path in Path(graph.uri, "nodes").rglob("*.lance") if path.is_file()}

    before = files()
    refused(graph, film("x", year=2000))
    graph.load([film("a", year=2000)], "update", options=replace(PLAIN, dry_run=True))
    assert (files(), row(graph, "a")["year"]) == (before, 1990)
    update(graph, film("a", year=2000))
    assert len(files() - before) == 1  # the new column


def test_vectors_of_texts_that_change(graph: Graph, tmp_path: Path) -> None:
    """As with a merge: stale until they are embedded, or asked for by the load."""
    graph.embed(embedder=MockEmbedder("m"), mode="all")
    kept = row(graph, "a")["vec"]
    update(graph, film("a", plot="another"), film("b", year=2000))
    assert row(graph, "a")["vec"] == kept
    report = graph.embed(embedder=MockEmbedder("m"), mode="stale")
    assert report.tables == {"node:Film": 1}
    renewed = row(graph, "a")["vec"]
    assert renewed != kept
    asking = replace(PLAIN, embed=EmbedAtLoad.MISSING, embedder=MockEmbedder("m"))
    before = row(graph, "d")["vec"]
    update(graph, film("a", plot="third"), film("c", plot="own", vec=[5, 6]), film("d", year=1999), options=asking)
    assert row(graph, "a")["vec"] not in (kept, renewed)
    assert (row(graph, "c")["vec"], row(graph, "d")["vec"]) == ([5.0, 6.0], before)


def test_options_of_patches_go_with_update(graph: Graph) -> None:
    with pytest.raises(BadRequestError, match="'missing' belongs to mode update, and the mode is merge"):
        graph.load([film("a", title="A")], "merge", options=INSERT)
    for columns, told in (
        ({"year": [1]}, "column 'slug' is missing: a patch of 'Film' names its row by slug, or by id alone"),
        ({"slug": ["a"], "yaer": [1]}, "'Film' has no column 'yaer'; did you mean 'year'?"),
    ):
        with pytest.raises(BadRequestError, match=told.replace("?", r"\?")):
            graph.load_table("node:Film", pa.table(columns), mode="update")
    with pytest.raises(BadRequestError, match="column 'id' is missing: a patch of 'Cites' names its row by id"):
        graph.load_table("edge:Cites", pa.table({"page": [1]}), mode="update")


def test_indexes_answer_for_values_as_they_are(tmp_path: Path) -> None:
    """Of columns that were written anew: before indexes are built again, after, and once all is joined."""
    schema = "node Doc { n: I64 @key  group: I32 @index  text: String @index  vec: Vector(2) @index }"
    graph = Graph.init(tmp_path / "g", schema)
    numbers = np.arange(400)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(numbers, 2).astype(np.float32)), 2)
    rows = pa.table({"n": numbers, "group": numbers, "text": [f"word{n} moss" for n in numbers], "vec": vectors})
    for part in (rows.slice(0, 300), rows.slice(300)):
        graph.load_table("node:Doc", part)
    changed = numbers[::3]
    moved = pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(changed + 5000, 2).astype(np.float32)), 2)
    texts = [f"fresh{n} moss" for n in changed]
    patch = pa.table({"n": changed, "group": changed + 1000, "text": texts, "vec": moved})
    assert graph.load_table("node:Doc", patch, mode="update", options=PLAIN).tables["node:Doc"].updated == len(changed)

    def asked(clause: str) -> list[object]:
        found = graph.query(f"query q() {{ match {{ $d: Doc {clause} }} return {{ $d.n as n }} order {{ n asc }} }}")
        return [row["n"] for row in found.to_pylist()]

    for upkeep in (lambda: None, graph.ensure_indices, graph.optimize):
        upkeep()
        assert asked("$d.group = 9") == []
        assert asked("$d.group = 1009") == [9]
        assert asked('search($d.text, "word9")') == []
        assert asked('search($d.text, "word10")') == [10]
        assert asked('search($d.text, "fresh9")') == [9]
        assert len(asked('search($d.text, "moss")')) == 400
        nearest = "order { nearest($d.vec, [5009.0, 5009.0]) } limit 1"
        found = graph.query(f"query q() {{ match {{ $d: Doc }} return {{ $d.n as n }} {nearest} }}")
        assert [row["n"] for row in found.to_pylist()] == [9]
