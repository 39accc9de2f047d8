"""Facts go with the publish that makes a commit: what each writer tells, who sees them, and who never reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, Commit, CommitFacts, CommitOrigin, Graph, LoadOptions, RowFacts
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from spark_omnigraph.graph.delete.by_id import DeleteRequest, delete_ids
from spark_omnigraph.graph.read import history
from spark_omnigraph.graph.read.scan import commits_table
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.storage.manifest import table as manifest_table
from tests.crash.matrix import expire_leases

SCHEMA = "node Person { name: String @key  age: I32? @range(age, 0..150) }\nedge Knows: Person -> Person"
PERSON, KNOWS = "node:Person", "edge:Knows"


def person(name: str, age: int = 1) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def knows(source: str, target: str) -> str:
    return json.dumps({"edge": "Knows", "from": source, "to": target})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


def newest(graph: Graph) -> CommitFacts:
    facts = graph.commits()[0].facts
    assert facts is not None
    return facts


def stored(graph: Graph) -> dict[str, list[str]]:
    rows = lance.dataset(f"{graph.uri}/__manifest").to_table(filter="object_type = 'x_facts'").to_pylist()
    assert all(row["metadata"] is row["location"] is row["table_version"] is None for row in rows)
    return {row["object_id"]: row["base_objects"] for row in rows}


def test_a_load_tells_what_its_report_tells(graph: Graph, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join([person("a"), person("b"), person("c", 999), knows("a", "b")]))
    options = LoadOptions(max_bad_rows=1)
    handle = graph.with_origin(CommitOrigin("nightly", "r1", "app", {"ticket": "1", "team": "x"}))
    report = handle.load(source, metadata={"ticket": "7"}, options=options)
    facts = newest(graph)
    assert facts.tables == {key: RowFacts(c.inserted, c.updated, c.deleted, c.bad) for key, c in report.tables.items()}
    assert facts.tables == {PERSON: RowFacts(inserted=2, bad=1), KNOWS: RowFacts(inserted=1)}
    assert (facts.operation, facts.mode, facts.transaction) == ("load", "append", None)
    assert facts.origin == CommitOrigin("nightly", "r1", "app", {"ticket": "7", "team": "x"})
    assert facts.seconds is not None
    assert 0 < facts.seconds < 60
    assert graph.commits()[0].id == report.commit
    assert list(stored(graph)) == [f"x:facts:{report.commit}"]


def test_the_digest_is_that_of_files_not_of_runs(graph: Graph, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(person("a"))
    digests = []
    for _ in range(2):
        graph.load(source, "merge")
        digests.append(newest(graph).input_digest)
    source.write_text(person("b"))
    graph.load(source, "merge")
    assert digests[0] is not None
    assert digests[0].startswith("sha256:")
    assert digests[0] == digests[1] != newest(graph).input_digest
    for lines in ([person("c")], [person("c")], [person("d")]):
        graph.load(lines, "merge")
        digests.append(newest(graph).input_digest)
    assert digests[2] == digests[3] != digests[4]


def test_a_merge_and_an_overwrite_tell_their_counts(graph: Graph) -> None:
    graph.load([person("a"), person("b")])
    graph.load([person("a", 2), person("c")], "merge")
    assert (newest(graph).mode, newest(graph).tables) == ("merge", {PERSON: RowFacts(inserted=1, updated=1)})
    graph.load([person("z")], "overwrite")
    assert (newest(graph).mode, newest(graph).tables) == ("overwrite", {PERSON: RowFacts(inserted=1, deleted=3)})


def test_a_mutation_and_a_delete_tell_their_counts(graph: Graph) -> None:
    graph.load([person("a"), person("b"), knows("a", "b")])
    text = 'query q() { insert Person { name: "c" }  update Person set { age: 3 } where name = "a" }'
    result = graph.mutate(text, metadata={"why": "test"})
    facts = newest(graph)
    assert facts.tables == {k: RowFacts(r.inserted, r.updated, r.deleted) for k, r in result.tables.items()}
    assert (facts.operation, facts.mode, facts.tables) == ("mutation", None, {PERSON: RowFacts(1, 1)})
    assert facts.origin.metadata == {"why": "test"}
    graph.delete(PERSON, ["a"], metadata={"why": "gone"})
    facts = newest(graph)
    assert (facts.operation, facts.tables) == ("delete", {PERSON: RowFacts(deleted=1), KNOWS: RowFacts(deleted=1)})
    assert facts.origin.metadata == {"why": "gone"}
    ids = {PERSON: pa.array(["b"])}
    delete_ids(graph.store, DeleteRequest(ids, transaction=Transaction("etl", 4)))
    assert newest(graph).transaction == Transaction("etl", 4)


def test_metadata_that_cannot_be_kept_changes_nothing(graph: Graph) -> None:
    before = graph.snapshot().version
    wrong: list[Mapping[str, str]] = [{"note": "n" * 2_000}, {"a b": "x"}, {"password": "x"}]
    for metadata in wrong:
        for write in (
            lambda: graph.load([person("a")], metadata=metadata),  # noqa: B023 - called before the next round
            lambda: graph.mutate('query q() { insert Person { name: "a" } }', metadata=metadata),  # noqa: B023 - called at once, as above
            lambda: graph.delete(PERSON, ["a"], metadata=metadata),  # noqa: B023 - called at once, as above
        ):
            with pytest.raises(BadRequestError, match="metadata"):
                write()
    assert graph.snapshot().version == before


def test_one_order_everywhere_newest_first(graph: Graph) -> None:
    for name in ("a", "b", "c"):
        graph.load([person(name)])
    commits = graph.commits()
    versions = [commit.manifest_version for commit in commits]
    assert versions == sorted(versions, reverse=True)
    table = commits_table(graph.store, None)
    assert table["commit"].to_pylist() == [commit.id for commit in commits]
    assert [c.id for c in graph.commits(limit=2)] == [c.id for c in commits[:2]]
    assert graph.commit(commits[1].id).facts == commits[1].facts


def test_the_table_of_commits_has_facts_as_columns(graph: Graph) -> None:
    graph.load([person("a")], actor="eve", metadata={"ticket": "7"})
    first, genesis = commits_table(graph.store, None).to_pylist()
    assert (first["operation"], first["mode"], first["actor"]) == ("load", "append", "eve")
    assert [first[name] for name in ("inserted", "updated", "deleted", "bad")] == [1, 0, 0, 0]
    assert first["metadata"] == [("ticket", "7")]
    assert json.loads(first["facts"])["tables"] == {PERSON: {"inserted": 1, "updated": 0, "deleted": 0, "bad": 0}}
    names = list(genesis)
    assert {genesis[name] for name in names[names.index("operation") :]} == {None}


def test_a_branch_has_the_facts_of_its_parent(graph: Graph) -> None:
    graph.load([person("a")], metadata={"n": "1"})
    graph.create_branch("b")
    graph.load([person("b")], branch="b", metadata={"n": "2"})
    graph.load([person("m")], metadata={"n": "3"})

    def told(commits: list[Commit]) -> list[str | None]:
        return [None if c.facts is None else c.facts.origin.metadata["n"] for c in commits]

    assert told(graph.commits(branch="b")) == ["2", "1", None]
    assert told(graph.commits()) == ["3", "1", None]
    of_branch = graph.commit(graph.commits(branch="b")[0].id)  # found from main
    assert told([of_branch]) == ["2"]


def test_no_read_of_a_state_reads_facts(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.load([person("a"), person("b"), knows("a", "b")])
    commit = graph.commits()[0].id
    asked: list[list[str]] = []
    scanner = lance.LanceDataset.scanner

    def watched(dataset: lance.LanceDataset, *args: Any, **named: Any) -> lance.LanceScanner:
        if str(dataset.uri).endswith("__manifest"):
            asked.append(named["columns"])
        return scanner(dataset, *args, **named)

    monkeypatch.setattr(lance.LanceDataset, "scanner", watched)
    reader = Graph.open(graph.uri, mode="r")
    assert len(reader.query("query q() { match { $p: Person } return { $p.name } }").to_pylist()) == 2
    assert len(list(reader.export())) == 3
    assert reader.at(snapshot=commit).count(PERSON) == 2
    assert len(reader.diff(3).changes) == 3
    writer = Graph.open(graph.uri)
    writer.load([person("c")])
    assert writer.commits(limit=1)[0].facts is not None
    assert [columns for columns in asked if "base_objects" in columns] == [["object_id", "base_objects"]]
    assert len(asked) > 5
    kinds = {row.kind for row in writer.store.manifest_rows(writer.store.manifest(None))}
    assert kinds == {"table", "table_version", "x_publish"}


def test_damaged_facts_do_not_stop_the_history(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.load([person("a")])
    graph.load([person("b")])
    first = graph.commits()[1].id
    damaged = {first: "{", graph.commits()[0].id: '{"operation":"load"}', "nobody": "x"}
    monkeypatch.setattr(history, "read_facts", lambda dataset, commit=None: damaged)
    assert [commit.facts for commit in graph.commits()] == [CommitFacts("load"), None, None]
    assert graph.commit(first).facts is None


def test_a_row_of_facts_without_any_is_passed_over(graph: Graph) -> None:
    row = {"object_id": "x:facts:A", "object_type": "x_facts", "table_key": "", "base_objects": None}
    dataset = lance.dataset(f"{graph.uri}/__manifest")
    rows = pa.Table.from_pylist([row, {**row, "object_id": "x:facts:B", "base_objects": [None]}], manifest_table.SCHEMA)
    dataset.merge_insert("object_id").when_not_matched_insert_all().execute(rows)
    graph.load([person("a")])
    assert [commit.facts is None for commit in graph.commits()] == [False, True]


@pytest.mark.parametrize("point", [CrashPoint.LANDED_ALL, CrashPoint.PUBLISHED])
def test_a_write_that_recovery_finishes_has_its_facts(graph: Graph, point: CrashPoint) -> None:
    with stop_at(point), pytest.raises(Crashed):
        graph.load([person("a"), knows("a", "a")], metadata={"ticket": "7"})
    assert graph.commits()[0].facts is None  # there is no commit yet, only the genesis
    assert len(stored(graph)) == (point is CrashPoint.PUBLISHED)
    expire_leases(graph)
    (recovered,) = Graph.open(graph.uri).recovered
    assert recovered.kind.value == "RolledForward"
    facts = newest(graph)
    assert facts.tables == {PERSON: RowFacts(1), KNOWS: RowFacts(1)}
    assert facts.origin.metadata == {"ticket": "7"}
    assert list(stored(graph)) == [f"x:facts:{graph.commits()[0].id}"]


def test_damaged_facts_of_a_sidecar_do_not_stop_recovery(graph: Graph) -> None:
    with stop_at(CrashPoint.LANDED_ALL), pytest.raises(Crashed):
        graph.load([person("a")])
    (name,) = [n for n in graph.store.objects.list("__recovery") if n.endswith(".json")]
    body = json.loads(graph.store.objects.get(f"__recovery/{name}") or b"")
    assert json.loads(body["x_facts"])["operation"] == "load"
    graph.store.objects.put(f"__recovery/{name}", json.dumps({**body, "x_facts": ["?"]}).encode())
    expire_leases(graph)
    assert [r.kind.value for r in Graph.open(graph.uri).recovered] == ["RolledForward"]
    assert (graph.count(PERSON), graph.commits()[0].facts) == (1, None)


def test_maintenance_and_compaction_keep_facts(graph: Graph) -> None:
    for name in ("a", "b", "c"):
        graph.load([person(name)], metadata={"n": name})
    graph.optimize()
    graph.store.tidy(None, above=1)
    told = [(c.facts.operation, c.facts.origin.metadata.get("n")) for c in graph.commits() if c.facts is not None]
    assert told == [("optimize", None), ("load", "c"), ("load", "b"), ("load", "a")]
