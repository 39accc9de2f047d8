"""Types as Delta tables and Parquet: every value of every type, whole, and by what changed."""

from __future__ import annotations

import base64
import datetime as dt
import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_omnigraph import BadRequestError, ConflictError, Graph, LoadOptions, NotFoundError
from spark_omnigraph.cli.program import main
from spark_omnigraph.commit import owners
from spark_omnigraph.errors import VersionExpiredError
from spark_omnigraph.graph.export.tables import ExportOutcome
from spark_omnigraph.storage.delta_write import LocalTable
from tests.support import export_history
from tests.support.delta_logs import add_feature, make_int96
from tests.support.delta_tables import SEED
from tests.support.export_history import Months, expire_at_once

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


@pytest.mark.parametrize("days", [12, pytest.param(180, marks=pytest.mark.long)])
def test_months_of_commits_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    """The tables are the graph after each export: of days without a commit or with many, repeated, late, with gaps."""
    expire_at_once(monkeypatch)
    graph = Graph.init(tmp_path / "g", export_history.SCHEMA)
    months, out = Months(graph, SEED), tmp_path / "out"
    for _ in range(days):
        months.day()
        if months.dice.random() < 0.3:
            months.export(
                lambda incremental, version: graph.export_tables(str(out), incremental=incremental, version=version),
                lambda place: rows(out / place),
            )


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


@pytest.mark.parametrize("case", ["new", "whole", "changes", "no_change"])
def test_of_two_at_once_one_conflicts_and_the_other_stands(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Whoever has looked before the other wrote does not write over it, be it late with old rows or with new ones."""
    out, look = str(tmp_path / "out"), LocalTable.look
    if case != "new":
        graph.export_tables(out, types=["Film"])
    kind = "Person" if case == "no_change" else "Film"
    graph.load([node("Film", title="bare", a=1)], "merge", options=PLAIN)

    def raced(self: LocalTable) -> Any:
        found = look(self)
        monkeypatch.setattr(LocalTable, "look", look)
        Graph.open(graph.uri).load([node("Film", title="bare", a=2), node("Person", name="Bo")], "merge", options=PLAIN)
        Graph.open(graph.uri).export_tables(out, types=[kind], incremental=case != "whole")
        return found

    if case == "no_change":
        graph.export_tables(out, types=["Person"])
        graph.load([node("Film", title="bare", a=3)], "merge", options=PLAIN)
    monkeypatch.setattr(LocalTable, "look", raced)
    with pytest.raises(ConflictError, match="written by somebody else"):
        graph.export_tables(out, types=[kind], incremental=case in ("changes", "no_change"))
    later = rows(f"{out}/nodes/{kind}")
    assert [row["a"] for row in later if row["id"] == "bare"] == ([2] if kind == "Film" else [])
    assert graph.export_tables(out, types=[kind], incremental=True)[f"node:{kind}"].outcome is ExportOutcome.SAME


def test_a_table_that_showed_something_else_meanwhile_is_written_whole(graph: Graph, tmp_path: Path) -> None:
    """What a table shows is what its newest commit says, not what it showed of this once."""
    out = str(tmp_path / "out")
    graph.create_branch("draft")
    graph.load([node("Person", name="Bo")], branch="draft", options=PLAIN)
    for branch, names in (("main", ["Al"]), ("draft", ["Al", "Bo"]), ("main", ["Al"]), ("draft", ["Al", "Bo"])):
        done = graph.export_tables(out, types=["Person"], incremental=True, branch=branch)["node:Person"]
        assert done.outcome is ExportOutcome.WHOLE
        assert [row["id"] for row in rows(f"{out}/nodes/Person")] == names


@pytest.mark.parametrize("of_others", ["append", "restore", "optimize"])
def test_what_others_do_to_a_table(graph: Graph, tmp_path: Path, of_others: str) -> None:
    out = str(tmp_path / "out")
    graph.export_tables(out, types=["Person"])
    graph.load([node("Person", name="Bo")], options=PLAIN)
    graph.export_tables(out, types=["Person"], incremental=True)
    table = DeltaTable(f"{out}/nodes/Person")
    if of_others == "append":
        write_deltalake(table, pa.table({"id": ["Cy"], "name": ["Cy"]}), mode="append")
    elif of_others == "restore":
        table.restore(0)
    else:
        table.optimize.compact()
    graph.load([node("Person", name="Di")], options=PLAIN)
    done = graph.export_tables(out, types=["Person"], incremental=True)["node:Person"]
    assert done.outcome is (ExportOutcome.CHANGES if of_others == "optimize" else ExportOutcome.WHOLE)
    assert [row["id"] for row in rows(f"{out}/nodes/Person")] == ["Al", "Bo", "Di"]


def test_a_column_that_was_made_again_is_written_anew(tmp_path: Path) -> None:
    schema = "node P { name: String @key  n: I64? }"
    graph = Graph.init(tmp_path / "g", schema)
    graph.load([node("P", name="a", n=1)], options=PLAIN)
    graph.export_tables(str(tmp_path / "out"))
    graph.apply_schema("node P { name: String @key }")
    graph.apply_schema(schema)
    graph.export_tables(str(tmp_path / "out"), incremental=True)
    assert rows(tmp_path / "out/nodes/P") == [{"id": "a", "name": "a", "n": None}]


def test_instants_that_a_merge_would_change_are_written_anew(graph: Graph, tmp_path: Path) -> None:
    """Rows that stay are read by the Rust reader when others of their file change: it wraps INT96, as of Spark."""
    out = tmp_path / "out"
    graph.export_tables(str(out), types=["Film"])
    make_int96(out / "nodes/Film")
    graph.load([node("Film", title="bare", a=1)], "merge", options=PLAIN)
    assert graph.export_tables(str(out), types=["Film"], incremental=True)["node:Film"].outcome is ExportOutcome.WHOLE
    assert rows(out / "nodes/Film")[0]["at"] == SHOWN["at"]


def test_a_table_with_what_deltalake_does_not_write_is_refused_before(graph: Graph, tmp_path: Path) -> None:
    graph.export_tables(str(tmp_path / "out"), types=["Person"])
    add_feature(tmp_path / "out/nodes/Person", "rowTracking")
    graph.load([node("Person", name="Bo")], options=PLAIN)
    before = sorted((tmp_path / "out/nodes/Person").rglob("*"))
    with pytest.raises(BadRequestError, match=r"feature 'rowTracking'.*--executor spark"):
        graph.export_tables(str(tmp_path / "out"), types=["Person"])
    assert sorted((tmp_path / "out/nodes/Person").rglob("*")) == before


def test_a_table_of_others_that_does_not_take_the_rows(graph: Graph, tmp_path: Path) -> None:
    place = tmp_path / "out" / "nodes" / "Person"
    write_deltalake(place, pa.table({"id": ["q"], "day": ["x"]}), partition_by=["day"])
    with pytest.raises(BadRequestError, match="is partitioned by 'day', which the type does not have"):
        graph.export_tables(tmp_path / "out", types=["Person"])
    other = tmp_path / "kept" / "nodes" / "Person"
    graph.export_tables(tmp_path / "kept", types=["Person"])
    DeltaTable(other).alter.add_constraint({"named": "id <> 'secret'"})
    graph.load([node("Person", name="secret")], "merge")
    with pytest.raises(BadRequestError, match="a constraint that rows do not keep, and took none") as refused:
        graph.export_tables(tmp_path / "kept", types=["Person"], incremental=True)
    assert "secret" not in refused.value.message


def test_the_verb(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["export", "--graph", graph.uri, "--output", str(tmp_path / "out")]
    assert main([*given, "--format", "delta", "--type", "Person"]) == 0
    body = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert body["result"]["written"]["node:Person"]["outcome"] == "whole"
    assert body["manifest_version"] == graph.snapshot().version
    graph.load([node("Person", name="Bo")], options=PLAIN)
    for outcome in ("changes", "same"):
        assert main([*given, "--format", "delta", "--type", "Person", "--incremental"]) == 0
        body = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert body["result"]["written"]["node:Person"]["outcome"] == outcome
    for _ in range(2):
        assert main([*given, "--format", "parquet", "--type", "Person"]) == 0
    capsys.readouterr()
    assert main([*given, "--format", "parquet", "--incremental"]) == 2
    assert main([*given, "--incremental"]) == 2
    assert main(["export", "--graph", graph.uri, "--format", "delta"]) == 2
    assert main([*given, "--executor", "spark"]) == 2
    assert main([*given, "--executor", "spark", "--format", "parquet"]) == 2
    assert main(["export", "--graph", graph.uri, "--format", "delta", "--output", f"{graph.uri}/out"]) == 2
    capsys.readouterr()


def test_bad_arguments(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="inside the graph"):
        graph.export_tables(f"{graph.uri}/out")
    with pytest.raises(BadRequestError, match="format must be one of delta, parquet"):
        graph.export_tables(str(tmp_path / "out"), "orc")
