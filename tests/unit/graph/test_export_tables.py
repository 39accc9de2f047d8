"""Types as Delta tables and Parquet: every value of every type, whole, and by what changed."""

from __future__ import annotations

import base64
import datetime as dt
import json
import random
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from spark_omnigraph import BadRequestError, ConflictError, Graph, LoadOptions, NotFoundError
from spark_omnigraph.cli.program import main
from spark_omnigraph.commit import owners
from spark_omnigraph.errors import VersionExpiredError
from spark_omnigraph.graph.export.tables import ExportOutcome
from spark_omnigraph.storage.delta_write import Following

SCHEMA = """
node Film {
  title: String @key  kind: enum(short, long)?  seen: Bool?  a: I32?  b: I64?  c: U32?  d: U64?  e: F32?  f: F64?
  day: Date?  at: DateTime?  place: Vector(2)?  tags: [String]?  days: [Date]?  poster: Blob?
}
node Person { name: String @key }
edge ActedIn: Person -> Film { role: String? }
"""
FULL: dict[str, Any] = {
    "title": "Heat ☃", "kind": "long", "seen": True, "a": -(2**31), "b": 2**63 - 1, "c": 2**32 - 1, "d": 2**64 - 1,
    "e": 0.5, "f": -1e300, "day": "0001-01-01", "at": "9999-12-31T23:59:59.999Z", "place": [0.25, -1.0],
    "tags": ["x", ""], "days": ["2024-02-29"], "poster": "base64:" + base64.b64encode(b"\0\xff").decode(),
}  # laid out as a table  # fmt: skip
SHOWN: dict[str, Any] = {
    **FULL,
    "id": FULL["title"],
    "d": Decimal(2**64 - 1),
    "day": dt.date(1, 1, 1),
    "at": dt.datetime(9999, 12, 31, 23, 59, 59, 999000, dt.timezone.utc),
    "days": [dt.date(2024, 2, 29)],
    "poster": b"\0\xff",
}
PLAIN = LoadOptions(build_indexes=False)


def node(type_name: str, /, **data: object) -> str:
    return json.dumps({"type": type_name, "data": data})


def acted(number: str, person: str, film: str, role: str | None = None) -> str:
    return json.dumps({"edge": "ActedIn", "from": person, "to": film, "data": {"id": number, "role": role}})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    lines = [node("Film", **FULL), node("Film", title="bare"), node("Person", name="Al"), acted("1", "Al", "bare", "x")]
    graph.load(lines, options=PLAIN)
    return graph


def rows(place: object) -> list[dict[str, Any]]:
    table = pa.table(DeltaTable(str(place)).to_pyarrow_table())
    found: list[dict[str, Any]] = table.sort_by("id").to_pylist()
    return found


@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_every_value_of_every_type(graph: Graph, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    done = graph.export_tables(str(out), form, with_blobs=True)
    assert {key: (each.outcome, each.rows) for key, each in done.items()} == {
        "edge:ActedIn": (ExportOutcome.WHOLE, 1),
        "node:Film": (ExportOutcome.WHOLE, 2),
        "node:Person": (ExportOutcome.WHOLE, 1),
    }
    read = rows if form == "delta" else lambda place: pq.read_table(f"{place}.parquet").sort_by("id").to_pylist()
    full, bare = read(out / "nodes" / "Film")
    assert full == SHOWN
    assert bare == {**dict.fromkeys(SHOWN), "id": "bare", "title": "bare"}
    assert read(out / "edges" / "ActedIn") == [{"id": "1", "src": "Al", "dst": "bare", "role": "x"}]


def test_blobs_are_left_out_and_types_chosen(graph: Graph, tmp_path: Path) -> None:
    done = graph.export_tables(str(tmp_path / "out"), types=["Film"])
    assert list(done) == ["node:Film"]
    assert "poster" not in rows(tmp_path / "out/nodes/Film")[0]
    with pytest.raises(NotFoundError, match=r"Flim.*did you mean 'Film'"):
        graph.export_tables(str(tmp_path / "out"), types=["Flim"])


def test_a_repeat_writes_nothing_and_a_change_its_rows(graph: Graph, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    graph.export_tables(out)
    assert {each.outcome for each in graph.export_tables(out, incremental=True).values()} == {ExportOutcome.SAME}
    assert DeltaTable(f"{out}/nodes/Film").version() == 0
    graph.load([node("Film", title="bare", a=7), node("Film", title="new")], "merge", options=PLAIN)
    graph.delete("node:Film", [FULL["title"]])
    done = graph.export_tables(out, incremental=True)
    film = done["node:Film"]
    assert (film.outcome, film.rows, film.deleted) == (ExportOutcome.CHANGES, 2, 1)
    assert done["node:Person"].outcome is ExportOutcome.SAME
    assert [(row["id"], row["a"]) for row in rows(tmp_path / "out/nodes/Film")] == [("bare", 7), ("new", None)]
    newest = DeltaTable(f"{out}/nodes/Person").history(1)[0]
    assert newest["omnigraph.manifest_version"] == str(graph.snapshot().version)  # also where no row differs


def test_random_histories_are_followed(tmp_path: Path) -> None:
    """After any number of commits a table shows what the graph shows."""
    dice = random.Random(20260212)
    graph = Graph.init(tmp_path / "g", "node P { name: String @key  n: I64? }")
    for step in range(12):
        for _ in range(dice.randrange(4)):
            names = dice.sample("abcdefgh", 3)
            if dice.random() < 0.3:
                graph.delete("node:P", names)
            elif dice.random() < 0.2:
                graph.optimize()
            else:
                mode = dice.choice(["merge", "merge", "overwrite"])
                graph.load([node("P", name=n, n=dice.randrange(9)) for n in names], mode, options=PLAIN)
        graph.export_tables(str(tmp_path / "out"), incremental=step > 0)
        shown = [json.loads(line)["data"] for line in graph.export()]
        assert rows(tmp_path / "out/nodes/P") == sorted(shown, key=lambda row: row["id"])


def test_other_columns_another_branch_or_another_graph_are_written_whole(graph: Graph, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    graph.export_tables(out, types=["Person"])
    graph.apply_schema(SCHEMA.replace("name: String @key", "name: String @key  born: I32?"))
    assert graph.export_tables(out, types=["Person"], incremental=True)["node:Person"].outcome is ExportOutcome.WHOLE
    graph.create_branch("draft")
    graph.load([node("Person", name="Bo")], branch="draft", options=PLAIN)
    graph.export_tables(out, types=["Person"], incremental=True, branch="draft")
    assert [row["id"] for row in rows(f"{out}/nodes/Person")] == ["Al", "Bo"]
    anew = Graph.init(tmp_path / "g", "node Person { name: String @key  born: I32? }", force=True)
    anew.export_tables(out, incremental=True)
    assert rows(f"{out}/nodes/Person") == []


def test_a_type_that_was_made_again_is_written_whole(graph: Graph, tmp_path: Path) -> None:
    out = tmp_path / "out"
    graph.export_tables(out, types=["Person"])
    before, _, after = SCHEMA.partition("node Person { name: String @key }\n")
    graph.apply_schema(before + after.replace("edge ActedIn: Person -> Film { role: String? }\n", ""))
    graph.apply_schema(SCHEMA)
    graph.load([node("Person", name="Al"), node("Person", name="Bo")], options=PLAIN)
    graph.export_tables(out, types=["Person"], incremental=True)
    assert [row["id"] for row in rows(out / "nodes/Person")] == ["Al", "Bo"]


def test_a_state_that_expired_is_named(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "SKEW", 0.0)
    out = str(tmp_path / "out")
    graph.export_tables(out, types=["Film"])
    graph.load([node("Film", title="bare", a=1)], "merge", options=PLAIN)
    graph.load([node("Film", title="bare", a=2)], "merge", options=PLAIN)
    graph.cleanup(timedelta(0), keep=1, confirm=True, force=True)
    with pytest.raises(VersionExpiredError, match="write the tables whole"):
        graph.export_tables(out, types=["Film"], incremental=True)
    graph.export_tables(out, types=["Film"])
    assert rows(f"{out}/nodes/Film")[1]["a"] == 2


def test_who_writes_at_the_same_moment_wins_alone(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "out")
    graph.export_tables(out, types=["Film"])
    graph.load([node("Film", title="bare", a=1)], "merge", options=PLAIN)
    marked = Following._marked

    def raced(self: Following, package: Any, version: int) -> CommitProperties:
        monkeypatch.setattr(Following, "_marked", marked)
        properties = CommitProperties(app_transactions=[Transaction(self.application, version)])
        table = DeltaTable(f"{out}/nodes/Film")
        write_deltalake(
            table, pa.table(table.to_pyarrow_table()).slice(0, 0), mode="append", commit_properties=properties
        )
        found: CommitProperties = marked(self, package, version)
        return found

    monkeypatch.setattr(Following, "_marked", raced)
    with pytest.raises(ConflictError, match="written by somebody else"):
        graph.export_tables(out, types=["Film"], incremental=True)


def test_the_verb(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["export", "--graph", graph.uri, "--output", str(tmp_path / "out")]
    assert main([*given, "--format", "delta", "--type", "Person"]) == 0
    body = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert body["result"]["written"]["node:Person"]["outcome"] == "whole"
    assert body["manifest_version"] == graph.snapshot().version
    assert main([*given, "--format", "parquet", "--incremental"]) == 2
    assert main([*given, "--incremental"]) == 2
    assert main(["export", "--graph", graph.uri, "--format", "delta"]) == 2
    assert main(["export", "--graph", graph.uri, "--format", "delta", "--output", f"{graph.uri}/out"]) == 2
    capsys.readouterr()


def test_bad_arguments(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="inside the graph"):
        graph.export_tables(f"{graph.uri}/out")
    with pytest.raises(BadRequestError, match="format must be one of delta, parquet"):
        graph.export_tables(str(tmp_path / "out"), "orc")
