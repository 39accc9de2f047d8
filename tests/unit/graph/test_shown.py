"""Handles, reports and results show themselves: a line, and HTML in which whatever a graph holds is text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRowsError, MergeConflictsError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from tests.unit.draw.test_html import Seen

SCHEMA = """
node Person { name: String @key  age: I32? @range(age, 0..150)  mail: String? @pii  vec: Vector(1)? @embed("name") }
edge Knows: Person -> Person @card(0..3) { since: Date? }
"""
BOLD = "<b>&\u202e"
TEXT = "<b>&\\u202e"


def person(name: str, age: int) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age, "mail": "secret@example.org"}})


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, object]:
    """Objects of one story by name."""
    root = tmp_path_factory.mktemp("shown")
    graph = Graph.init(root / "g", SCHEMA)
    first = graph.commits()[0]
    lines = [*(person(f"{BOLD}{number}", number) for number in range(30)), person("Old", 151)]
    lines.append(json.dumps({"edge": "Knows", "from": f"{BOLD}1", "to": f"{BOLD}2", "data": {}}))
    load = graph.load(lines, actor=BOLD, options=LoadOptions(max_bad_rows=1, build_indexes=False))
    found: dict[str, object] = {"load": load, "diff": graph.diff(first.id), "commit": graph.commits(limit=1)[0]}
    found["query"] = graph.query("query all() { match { $p: Person } return { $p.name, $p.age } }")
    found["description"] = graph.describe()
    with pytest.raises(BadRowsError) as refused:
        graph.load([person(BOLD, -1)])
    found |= {"bad rows": refused.value, "summary": refused.value.summary}
    graph.create_branch("draft")
    change = 'query older() { update Person set { age: %d } where name = "Bea" }'
    graph.load([person("Bea", 1)], "merge", branch="draft")
    graph.load([person("Bea", 2)], "merge")
    found["mutation"] = graph.mutate(change % 3, branch="draft")
    with pytest.raises(MergeConflictsError) as conflicts:
        graph.merge_branch("draft")
    found["conflicts"] = conflicts.value
    found["merge"] = graph.merge_branch("draft", on_conflict="source", conflicts=str(root / "c.jsonl"))
    found["branch"] = graph.delete_branch("draft")
    found |= {"graph": graph, "pinned": graph.at(version=first.manifest_version)}
    found["plan"] = graph.plan_schema(SCHEMA.replace("0..150", "0..20"))
    found["schema"] = graph.apply_schema(SCHEMA.replace("I32", "I64"))
    found["deleted"] = graph.delete("node:Person", [f"{BOLD}1", "nobody"])
    found["restored"] = graph.restore(version=graph.snapshot().version - 1, dry_run=True)
    found |= {"optimized": graph.optimize(), "repaired": graph.repair(), "cleaned": graph.cleanup(keep=1, force=True)}
    found["expiry"] = found["cleaned"].expiry  # type: ignore[attr-defined]  # it is a report
    graph.create_branch("merged")
    found["merged"] = graph.delete_merged_branches()
    found["copied"] = graph.copy(root / "copy")
    found["erased"] = graph.erase("Person", "Bea")
    found["converted"] = graph.convert(root / "converted", dry_run=True)
    found["embedded"] = graph.embed(embedder=lambda texts: [[1.0] for _ in texts])
    return found


def html(value: object) -> str:
    text = getattr(value, "_repr_html_")()  # noqa: B009 - what a notebook does
    assert isinstance(text, str)
    return text


LINES = {
    "load": "<LoadReport: append on main: 31 inserted, 1 bad, commit ",
    "diff": "<Diff: version 3 to 4 of main: 31 inserts, 0 updates, 0 deletes>",
    "query": "<QueryResult: all, 30 rows of p.name, p.age>",
    "mutation": "<MutationResult: older on draft: 1 updated, commit ",
    "merge": "<MergeReport: draft into main, merged: 1 updated, commit ",
    "plan": "<SchemaPreview: 2 steps, would be refused>",
    "schema": "<SchemaReport: 1 step applied, commit ",
    "deleted": "<DeleteReport: on main: 2 deleted, 1 missing, commit ",
    "branch": "<DeletedBranch: draft, head ",
    "merged": "<MergedBranches: 0 deleted, ",
    "optimized": "<OptimizeReport: on main: ",
    "repaired": "<RepairReport: 0 of 2 tables drifted, 0 published, no commit>",
    "cleaned": "<CleanupReport: 0 objects found, 0 bytes, ",
    "expiry": "<ExpiryReport: ",
    "copied": "<CopyReport: all branches of ",
    "erased": "<EraseReport: a row of node:Person, 2 rows on 2 branches: not done, ",
    "converted": "<ConvertReport: ",
    "summary": "<BadRowSummary: 1 bad row (range 1)>",
}


@pytest.mark.parametrize("name", LINES)
def test_a_repr_is_a_line_that_says_what_was_done(shown: Mapping[str, object], name: str) -> None:
    assert repr(shown[name]).startswith(LINES[name])


def test_every_object_is_text_within_bounds(shown: Mapping[str, object]) -> None:
    for name, value in shown.items():
        drawn, line = html(value), repr(value)
        assert "<b>" not in drawn, name
        assert not Seen(drawn).tags & {"b", "script", "img", "a", "link"}, name
        assert len(drawn) < 20_000, name
        if isinstance(value, Displayed):
            assert "\n" not in line, name
            assert len(line) < 400, name


def test_a_graph_shows_its_schema_counts_head_and_branches(shown: Mapping[str, object]) -> None:
    graph = shown["graph"]
    assert isinstance(graph, Graph)
    assert repr(graph) == f"<Graph: {graph.uri}, branch main, read and write>"
    texts = Seen(html(graph)).texts
    assert {"Person", "30", "Knows", "0..3 · 0", "name", "String key", "main", graph.commits()[0].id} <= {
        part.split(", ")[0] for part in texts
    }


def test_a_pinned_handle_shows_its_own_state(shown: Mapping[str, object]) -> None:
    assert "at version 3, read only>" in repr(shown["pinned"])
    assert "Person" in (texts := Seen(html(shown["pinned"])).texts)
    assert "0" in texts
    assert "30" not in texts


def test_a_graph_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    (tmp_path / "g").rename(tmp_path / "h")
    assert any("lacks __manifest: it was removed" in text for text in Seen(html(graph)).texts)
    assert repr(graph).startswith("<Graph: ")


def test_rows_of_a_query_are_a_table(shown: Mapping[str, object]) -> None:
    seen = Seen(html(shown["query"]))
    assert {"p.name", "p.age", f"{TEXT}0", "and 10 more rows"} <= set(seen.texts)


def test_bad_rows_are_tables_without_their_text(shown: Mapping[str, object]) -> None:
    for name, place in (("load", "<input>:31"), ("bad rows", "<input>:1"), ("summary", "<input>:1")):
        seen = Seen(html(shown[name]))
        assert {"Bad rows by rule", "First bad rows", "range", place, "Person"} <= set(seen.texts), name
        assert not any("secret@example.org" in text for text in seen.texts), name


def test_conflicts_are_a_table(shown: Mapping[str, object]) -> None:
    texts = Seen(html(shown["conflicts"])).texts
    assert {"By kind", "divergent_insert", "node:Person", "Bea", "divergent insert for id 'Bea'"} <= set(texts)


def test_what_keeps_a_graph_whole_says_what_it_did(shown: Mapping[str, object]) -> None:
    texts = {
        name: set(Seen(html(shown[name])).texts) for name in ("optimized", "cleaned", "copied", "erased", "branch")
    }
    assert {"Files", "node:Person", "before", "after"} <= texts["optimized"]
    assert {"What can be read", "Versions that go", "main", "from version"} <= texts["cleaned"]
    assert {"Branches", "main", "files sent by this run"} <= texts["copied"]
    assert {"Versions that hold the row", "To be seen to outside", "node:Person"} <= texts["erased"]
    assert {"Tables of its own", "node:Person"} <= texts["branch"]


def test_whoever_is_erased_is_not_named(shown: Mapping[str, object]) -> None:
    assert "Bea" not in repr(shown["erased"])
    assert "Bea" not in html(shown["erased"])


def test_a_difference_is_iterated(shown: Mapping[str, object]) -> None:
    diff = shown["diff"]
    assert len(diff) == 31  # type: ignore[arg-type]  # a difference
    assert {change.type_name for change in diff} == {"Person", "Knows"}  # type: ignore[attr-defined]  # a difference
    assert f"{TEXT}1" in Seen(html(diff)).texts


def test_a_commit_shows_who_made_it(shown: Mapping[str, object]) -> None:
    texts = Seen(html(shown["commit"])).texts
    assert texts[texts.index("actor") + 1] == TEXT
    assert {"node:Person", "30", "inserted"} <= set(texts)


def test_a_description_is_a_picture(shown: Mapping[str, object]) -> None:
    description = shown["description"]
    assert description.svg().startswith("<svg ")  # type: ignore[attr-defined]  # a description
    assert 'Person["Person (30)"]' in description.mermaid()  # type: ignore[attr-defined]  # a description
    assert "svg" in Seen(html(description)).tags
