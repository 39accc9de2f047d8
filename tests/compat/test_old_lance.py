"""Graphs that our code wrote work under the Lance of the reference engine (pylance 7.0.0)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import lance
import pytest

from spark_omnigraph import FromColumn
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.storage.tables.blobs import column_with_hidden_nulls, hides_nulls
from spark_omnigraph.storage.tables.rows import rows_in_id_order
from spark_omnigraph.storage.tables.scan import PinnedTable, TableScan, read_batches
from tests.format.sample import edge, node
from tests.support.cases import Json
from tests.support.graph_files import Pin, pins

OLD = "7.0.0"
INSTALL_SECONDS = 400
SCRIPT = Path(__file__).with_name("old_lance.py")

SCHEMA = """
node Person { name: String @key  age: I32?  seen: DateTime?  v: Vector(2)? }
node Gauge { tag: String @key  big: U64?  words: [String]?  kind: enum(a, b)? }
edge Knows: Person -> Person { since: Date? }
"""


@pytest.fixture(scope="session")
def old_python() -> Path:
    """Interpreter of a second environment with the old pylance; made once per machine and Python version."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    home = Path(tempfile.gettempdir()) / f"spark-omnigraph-pylance-{OLD}-python{version}"
    python = home / "bin" / "python"
    done = home / "installed"
    if not done.exists():
        venv.create(home, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", f"pylance=={OLD}"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"pylance {OLD} could not be installed: {error} {error.stderr!r}")
        done.touch()
    return python


def under_old_lance(python: Path, *steps: dict[str, Json]) -> list[dict[str, Json]]:
    run = subprocess.run(
        [str(python), str(SCRIPT)],
        input=json.dumps({"steps": steps}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    answers: list[dict[str, Json]] = json.loads(run.stdout)
    first = answers.pop(0)
    assert first == {"pylance": OLD}
    return answers


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Rows from an append, a merge that updated and inserted, and an overwrite; indexes built; a branch with a fork."""
    root = tmp_path / "graph"
    g = Graph.init(str(root), SCHEMA)
    people = [node("Person", name=f"p{i}", age=i, seen=i * 1000, v=[i, 1]) for i in range(5)]
    g.load([*people, edge("Knows", "p0", "p1", id="k1", since=3)])
    g.load([node("Person", name="p1", age=100), node("Person", name="p5", age=5)], mode="merge")
    g.load([node("Gauge", tag="g0")])
    g.load([node("Gauge", tag="g1", big=2**64 - 1, words=["x"], kind="b")], mode="overwrite")
    g.ingest([node("Person", name="draft", age=7)], branch="draft", base="main", mode="append")
    return root


def folder(root: Path, pin: Pin) -> str:
    return str(pin.folder(root))


def test_old_lance_scans_what_we_wrote(graph: Path, old_python: Path) -> None:
    main, draft = pins(graph), pins(graph, "draft")
    person, gauge, knows = (main[key] for key in ("node:Person", "node:Gauge", "edge:Knows"))
    people, some, gauges, edges, forked = under_old_lance(
        old_python,
        {"do": "scan", "path": folder(graph, person), "columns": ["id", "age", "v"], "at": person.version},
        {"do": "scan", "path": folder(graph, person), "columns": ["id"], "where": "id = 'p1' OR age >= 5"},
        {"do": "scan", "path": folder(graph, gauge), "columns": ["id", "big", "words", "kind"]},
        {"do": "scan", "path": folder(graph, knows), "columns": ["id", "src", "dst", "since"]},
        {"do": "scan", "path": folder(graph, draft["node:Person"]), "columns": ["id"]},
    )
    assert [row["id"] for row in people["rows"]] == ["p0", "p1", "p2", "p3", "p4", "p5"]
    assert [row["age"] for row in people["rows"]] == [0, 100, 2, 3, 4, 5]
    assert [row["v"] for row in people["rows"]] == [[0.0, 1.0], None, [2.0, 1.0], [3.0, 1.0], [4.0, 1.0], None]
    assert people["types"][2] == "fixed_size_list<item: float>[2]"
    assert [row["id"] for row in some["rows"]] == ["p1", "p5"]
    assert gauges["rows"] == [{"id": "g1", "big": 2**64 - 1, "words": ["x"], "kind": "b"}]
    assert edges["rows"] == [{"id": "k1", "src": "p0", "dst": "p1", "since": "1970-01-04"}]
    assert [row["id"] for row in forked["rows"]] == ["draft", "p0", "p1", "p2", "p3", "p4", "p5"]


def test_nulls_that_old_lance_wrote_as_empty_blobs_are_nulls(tmp_path: Path, old_python: Path) -> None:
    root = tmp_path / "graph"
    g = Graph.init(str(root), "node File { name: String @key  body: Blob? }")
    g.load([node("File", name="ours", body="base64:"), node("File", name="none")])
    pin = pins(root)["node:File"]
    path = folder(root, pin)
    under_old_lance(
        old_python,
        {"do": "append_blobs", "path": path, "blobs": {"a": None, "b": "x", "c": None, "d": ""}},
        {"do": "append_blobs", "path": path, "blobs": {"e": "", "f": ""}},
    )
    found = lance.dataset(path)
    scan = TableScan(PinnedTable(path, found.version), ("id", "body"))
    blobs = {row["id"]: row["body"] for batch in read_batches(scan) for row in batch.to_pylist()}
    texts = {row["id"]: row["body"] for batch in rows_in_id_order(found, ["body"]) for row in batch.to_pylist()}
    empty = dict.fromkeys(("ours", "d", "e", "f"), b"")
    assert blobs == {**empty, "none": None, "a": None, "b": b"x", "c": None}
    assert texts == {**dict.fromkeys(empty, "base64:"), "none": None, "a": None, "b": "base64:eA==", "c": None}
    assert [hides_nulls(found, "body", f.fragment_id) for f in found.get_fragments()] == [False, True, False]
    assert column_with_hidden_nulls(found) == "body"


@pytest.mark.parametrize("branch", [None, "draft"])
def test_old_lance_appends_merges_and_deletes(graph: Path, old_python: Path, branch: str | None) -> None:
    pin = pins(graph, branch)["node:Person"]
    path = folder(graph, pin)
    before = pin.open(graph).to_table(columns=["id", "age"]).to_pylist()
    fresh = {"id": "new", "name": "new", "age": 1, "seen": None, "v": [0.5, 0.5]}
    changed = {"id": "p1", "name": "p1", "age": 111, "seen": None, "v": None}
    steps = under_old_lance(
        old_python,
        {"do": "append", "path": path, "rows": [fresh]},
        {"do": "merge", "path": path, "rows": [changed]},
        {"do": "delete", "path": path, "where": "id = 'p2'"},
        {"do": "scan", "path": path, "columns": ["id", "age"]},
    )
    assert [step["version"] for step in steps] == [pin.version + 1, pin.version + 2, pin.version + 3, pin.version + 3]
    assert steps[1]["stats"]["num_updated_rows"] == 1

    expected = {row["id"]: row["age"] for row in before if row["id"] != "p2"} | {"new": 1, "p1": 111}
    assert {row["id"]: row["age"] for row in steps[3]["rows"]} == expected
    head = lance.dataset(path)
    assert {row["id"]: row["age"] for row in head.to_table(columns=["id", "age"]).to_pylist()} == expected
    assert head.count_rows(filter="id = 'p1' AND age = 111") == 1
    # The graph itself still shows its own snapshot: nobody published the moved HEAD.
    assert Graph.open(str(graph), mode="r").count("node:Person", branch=branch or "main") == len(before)


def test_old_lance_reads_and_writes_what_was_mutated_and_compacted(graph: Path, old_python: Path) -> None:
    g = Graph.open(str(graph))
    g.mutate('query q() { update Person set { age: 50 } where age >= 3 insert Person { name: "m", age: 6 } }')
    g.mutate('query q() { delete Person where name = "p0" }')
    assert g.optimize().tables["node:Person"].files_after == 1
    pin = pins(graph)["node:Person"]
    path = folder(graph, pin)
    changed = {"id": "p2", "name": "p2", "age": 222, "seen": None, "v": None}
    before, _, after, found = under_old_lance(
        old_python,
        {"do": "scan", "path": path, "columns": ["id", "age"], "at": pin.version},
        {"do": "merge", "path": path, "rows": [changed]},
        {"do": "scan", "path": path, "columns": ["id", "age"]},
        {"do": "scan", "path": path, "columns": ["id"], "where": "id = 'm'"},
    )
    expected = {"p1": 50, "p2": 2, "p3": 50, "p4": 50, "p5": 50, "m": 6}
    assert {row["id"]: row["age"] for row in before["rows"]} == expected
    assert {row["id"]: row["age"] for row in after["rows"]} == expected | {"p2": 222}
    assert found["rows"] == [{"id": "m"}]


def test_old_lance_reads_our_manifest_and_history(graph: Path, old_python: Path) -> None:
    manifest, commits = under_old_lance(
        old_python,
        {"do": "scan", "path": str(graph / "__manifest"), "columns": ["object_id", "object_type"]},
        {"do": "scan", "path": str(graph / "_graph_commits.lance"), "columns": ["graph_commit_id", "manifest_version"]},
    )
    assert {"table", "table_version"} <= {row["object_type"] for row in manifest["rows"]}
    assert len(commits["rows"]) == 5


def test_tables_of_a_schema_change_work_there(tmp_path: Path, old_python: Path) -> None:
    """Columns renamed, dropped, moved, added with and without values, widened, required: read, appended to, merged
    into, deleted from and compacted by the older Lance, in the order of names.
    """
    root = tmp_path / "g"
    g = Graph.init(
        str(root), "node Person { name: String @key  age: I32?  seen: DateTime?  v: Vector(2)?  z: String? }"
    )
    g.load([node("Person", name=f"p{i}", age=i, seen=i * 1000, v=[i, 1]) for i in range(4)])
    g.load([node("Person", name="p1", age=100, z="x")], mode="merge")
    changed = """node Person {
        name: String @key  age: I64  bits: [I32]?  kind: String  last: DateTime? @rename_from("seen")
        v: Vector(2)?  w: Vector(3)?
    }"""
    g.apply_schema(changed, values={"Person.kind": "k", "Person.age": 0})
    pin = pins(root)["node:Person"]
    path = str(pin.folder(root))
    columns = ["id", "age", "bits", "kind", "last", "name", "v", "w"]
    row = {"id": "n", "age": 2**40, "bits": [1], "kind": "k", "last": None, "name": "n", "v": None, "w": None}
    scanned, filtered, _, merged, deleted, compacted, again = under_old_lance(
        old_python,
        {"do": "scan", "path": path, "columns": columns},
        {"do": "scan", "path": path, "columns": ["id", "age"], "where": "age = 100"},
        {"do": "append", "path": path, "rows": [row]},
        {"do": "merge", "path": path, "rows": [row | {"age": 7}, row | {"id": "m", "name": "m"}]},
        {"do": "delete", "path": path, "where": "id = 'p0'"},
        {"do": "compact", "path": path},
        {"do": "scan", "path": path, "columns": ["id", "age", "kind"]},
    )
    mine = lance.dataset(path, version=pin.version)
    assert mine.schema.names == columns
    assert [r["age"] for r in scanned["rows"]] == [0, 100, 2, 3]
    assert [(r["kind"], r["bits"], r["w"]) for r in scanned["rows"]] == [("k", None, None)] * 4
    assert [r["v"] for r in scanned["rows"]] == [[0.0, 1.0], None, [2.0, 1.0], [3.0, 1.0]]
    assert filtered["rows"] == [{"id": "p1", "age": 100}]
    assert (merged["count"], deleted["count"]) == (6, 5)
    assert compacted["version"] > pin.version + 3
    assert [(r["id"], r["age"]) for r in again["rows"]] == [("m", 2**40), ("n", 7), ("p1", 100), ("p2", 2), ("p3", 3)]


def test_columns_that_are_read_in_files_of_others_work_there(tmp_path: Path, old_python: Path) -> None:
    """Columns like others, in their files, and one of one value, whose file is that of all fragments of a length."""
    root = tmp_path / "g"
    g = Graph.init(str(root), "node Person { name: String @key  age: I32?  v: Vector(2)?  words: [String]? }")
    for part in ("ab", "cd"):
        g.load([node("Person", name=n, age=ord(n), v=[ord(n), 1], words=[n]) for n in part])
    g.apply_schema(
        """node Person {
            name: String @key  age: I32?  also: I32?  first: [String]?  kind: String  v: Vector(2)?  w: Vector(2)?
            words: [String]?
        }""",
        values={
            "Person.also": FromColumn("age"),
            "Person.first": FromColumn("words"),
            "Person.w": FromColumn("v"),
            "Person.kind": "k",
        },
    )
    pin = pins(root)["node:Person"]
    path, columns = str(pin.folder(root)), ["id", "age", "also", "first", "kind", "w", "words"]
    mine = lance.dataset(path, version=pin.version)
    one, other = ([file.path for file in fragment.data_files()] for fragment in mine.get_fragments())
    assert (len(one), len(set(one)), len({*one} & {*other})) == (5, 2, 1)
    row = {"id": "n", "name": "n", "age": 1, "also": 2, "kind": "l"}
    row |= {"first": ["x"], "words": ["y"], "v": None, "w": None}
    changed = row | {"id": "a", "name": "a", "age": 7, "also": 97}
    scanned, filtered, _, _, _, compacted, again = under_old_lance(
        old_python,
        {"do": "scan", "path": path, "columns": columns},
        {"do": "scan", "path": path, "columns": ["id", "first"], "where": "also = 98 AND kind = 'k'"},
        {"do": "append", "path": path, "rows": [row]},
        {"do": "merge", "path": path, "rows": [changed]},
        {"do": "delete", "path": path, "where": "also = 99"},
        {"do": "compact", "path": path},
        {"do": "scan", "path": path, "columns": ["id", "age", "also", "kind"]},
    )
    assert scanned["rows"] == [
        {"id": n, "age": ord(n), "also": ord(n), "first": [n], "kind": "k", "w": [float(ord(n)), 1.0], "words": [n]}
        for n in "abcd"
    ]
    assert filtered["rows"] == [{"id": "b", "first": ["b"]}]
    assert compacted["version"] > pin.version + 3
    assert [tuple(r.values()) for r in again["rows"]] == [
        ("a", 7, 97, "l"),
        ("b", 98, 98, "k"),
        ("d", 100, 100, "k"),
        ("n", 1, 2, "l"),
    ]


def test_old_lance_reads_searches_and_merges_columns_written_anew(tmp_path: Path, old_python: Path) -> None:
    root = tmp_path / "graph"
    g = Graph.init(str(root), 'node Note { text: String @key  v: Vector(2)? @embed("text") @index }')
    g.load([node("Note", text=f"n{i}") for i in range(5)])
    g.load([node("Note", text=f"n{i}") for i in range(5, 9)])
    g.delete("node:Note", ["n6"])
    given = {f"n{i}": [float(i), 1.0] for i in range(9)}
    g.embed(embedder=lambda texts: [given[text] for text in texts])
    table = g.store.open_table(g.snapshot().entry("node:Note"))
    assert [len(fragment.metadata.files) for fragment in table.get_fragments()] == [2, 2]
    length = {name: sum(number**2 for number in numbers) ** 0.5 for name, numbers in given.items()}
    unit = {name: [number / length[name] for number in numbers] for name, numbers in given.items() if name != "n6"}

    path = folder(root, pins(root)["node:Note"])
    rows, near, merged, again = under_old_lance(
        old_python,
        {"do": "scan", "path": path, "columns": ["id", "v"]},
        {"do": "nearest", "path": path, "column": "v", "vector": unit["n8"], "k": 2},
        {"do": "merge", "path": path, "rows": [{"id": "n0", "text": "n0", "v": None}]},
        {"do": "scan", "path": path, "columns": ["id", "v"]},
    )
    assert {row["id"]: row["v"] for row in rows["rows"]} == {n: pytest.approx(v, abs=1e-6) for n, v in unit.items()}
    assert near["rows"] == ["n8", "n7"]
    assert merged["stats"]["num_updated_rows"] == 1
    assert {row["id"]: row["v"] for row in again["rows"]} == {
        n: None if n == "n0" else pytest.approx(v, abs=1e-6) for n, v in unit.items()
    }


@pytest.mark.parametrize("branch", [None, "draft"])
def test_old_lance_reads_and_writes_what_was_merged(graph: Path, old_python: Path, branch: str | None) -> None:
    g = Graph.open(str(graph))
    g.load([node("Person", name="p2", age=22), edge("Knows", "draft", "p3", id="k2")], "merge", branch="draft")
    g.delete("node:Person", ["p4"], branch="draft")
    g.load([node("Person", name="main", age=8), node("Gauge", tag="g2", words=["y"])])
    assert str(g.merge_branch("draft").outcome) == "merged"
    assert str(g.merge_branch("main", "draft").outcome) == "fast_forward"
    expected = {"p0": 0, "p1": 100, "p2": 22, "p3": 3, "p5": 5, "draft": 7, "main": 8}
    shown = pins(graph, branch)
    path, knows = folder(graph, shown["node:Person"]), folder(graph, shown["edge:Knows"])
    fresh = {"id": "new", "name": "new", "age": 1, "seen": None, "v": [0.5, 0.5]}
    changed = {"id": "p2", "name": "p2", "age": 222, "seen": None, "v": None}
    merged, edges, gauges, _, found, written, _, left, rest, manifest, commits = under_old_lance(
        old_python,
        {"do": "scan", "path": path, "columns": ["id", "age"], "at": shown["node:Person"].version},
        {"do": "scan", "path": knows, "columns": ["id", "src", "dst"]},
        {"do": "scan", "path": folder(graph, shown["node:Gauge"]), "columns": ["id", "words"]},
        {"do": "append", "path": path, "rows": [fresh]},
        {"do": "scan", "path": path, "columns": ["id"], "where": "id = 'draft' OR id = 'main'"},
        {"do": "merge", "path": path, "rows": [changed]},
        {"do": "delete", "path": path, "where": "id = 'p0'"},
        {"do": "scan", "path": path, "columns": ["id", "age"]},
        {"do": "compact", "path": path},
        {"do": "scan", "path": str(graph / "__manifest"), "columns": ["object_id", "object_type"]},
        {
            "do": "scan",
            "path": str(graph / "_graph_commits.lance"),
            "columns": ["graph_commit_id", "merged_parent_commit_id"],
        },
    )
    assert {row["id"]: row["age"] for row in merged["rows"]} == expected
    assert [row["id"] for row in edges["rows"]] == ["k1", "k2"]
    assert gauges["rows"] == [{"id": "g1", "words": ["x"]}, {"id": "g2", "words": ["y"]}]
    assert [row["id"] for row in found["rows"]] == ["draft", "main"]
    assert written["stats"]["num_updated_rows"] == 1
    after = {**expected, "new": 1, "p2": 222}
    del after["p0"]
    assert {row["id"]: row["age"] for row in left["rows"]} == after
    assert rest["version"] > shown["node:Person"].version
    assert {"table", "table_version"} <= {row["object_type"] for row in manifest["rows"]}
    assert [row["merged_parent_commit_id"] is None for row in commits["rows"]].count(False) == 1
