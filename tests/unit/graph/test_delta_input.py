"""Delta tables as input without a JVM: as Spark and as delta-rs write them, at a version, or refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_omnigraph import BadRequestError, BadRowsError, Graph, LoadOptions, NotFoundError
from spark_omnigraph.errors import IoError
from spark_omnigraph.storage.input.delta import wrapped_column
from spark_omnigraph.write.executor import LocalExecutor
from tests.support.delta_logs import add_feature, make_int96
from tests.support.delta_tables import unpack

SCHEMA = "node Film { name: String @key  age: I32?  at: DateTime?  part: String? }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("delta"))


def films(graph: Graph, *names: str) -> list[tuple[Any, ...]]:
    rows = [json.loads(line)["data"] for line in graph.export()]
    return sorted(tuple(row.get(name) for name in ("name", *names)) for row in rows)


def rows(*names: str, part: str = "z") -> pa.Table:
    return pa.table({"name": list(names), "part": [part] * len(names)})


def test_a_table_of_several_files_and_partitions_is_read_at_a_version(graph: Graph, tmp_path: Path) -> None:
    place = str(tmp_path / "films")
    write_deltalake(place, rows("a", "b", part="x y/é"), partition_by=["part"])
    write_deltalake(place, rows("c"), mode="append")
    DeltaTable(place).delete("name = 'a'")
    report = graph.load(f"delta:{place}", node="Film", version_as_of=1, options=LoadOptions(executor=LocalExecutor(2)))
    assert report.tables["node:Film"].inserted == 3
    assert films(graph, "part") == [("a", "x y/é"), ("b", "x y/é"), ("c", "z")]
    graph.load(place, "overwrite", node="Film")  # a folder with a log, at its newest version
    assert films(graph) == [("b",), ("c",)]
    graph.load_table("node:Film", place, "overwrite", version_as_of=0, format="delta")
    assert films(graph) == [("a",), ("b",)]


def test_a_mapping_names_tables_and_versions(graph: Graph, tmp_path: Path) -> None:
    place = str(tmp_path / "films")
    write_deltalake(place, pa.table({"title": ["a"], "years": [7], "etl": [1]}))
    write_deltalake(place, pa.table({"title": ["b"], "years": [8], "etl": [1]}), mode="append")
    (tmp_path / "films.csv").write_text("name,age\nc,9\n")
    how = {"node": "Film", "columns": {"title": "name", "years": "age"}, "ignore": ["etl"]}
    inputs = [{"path": f"delta:{place}", "version": 0, **how}, {"path": str(tmp_path / "films.csv"), "node": "Film"}]
    graph.load(mapping={"inputs": inputs})
    assert films(graph, "age") == [("a", 7), ("c", 9)]


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("masked", "age", [("a", 1), ("c", 3), ("d", 4)]),
        ("masked_near", "at", [("a", "2020-02-29T12:00:00.123Z"), ("b", "1970-01-01T00:00:00.000Z")]),
        ("far", "at", [("a", "9999-12-31T23:59:59.999Z"), ("b", "0001-01-01T00:00:00.000Z"), ("c", None)]),
        ("renamed", "age", [("a", 1), ("b", 2)]),
    ],
)
def test_tables_that_spark_wrote(
    graph: Graph, tables: Path, name: str, column: str, expected: list[tuple[Any, ...]]
) -> None:
    graph.load(tables / name, node="Film")
    assert films(graph, column) == expected


def test_instants_that_would_wrap_are_refused(graph: Graph, tables: Path) -> None:
    with pytest.raises(BadRequestError, match=r"column 'at' is stored as INT96.*--executor spark"):
        graph.load(tables / "masked_far", node="Film")
    assert films(graph) == []


def test_instants_in_lists_of_a_scanned_table(tmp_path: Path) -> None:
    """No statistics tell of items of a list, so nothing proves their range."""
    graph = Graph.init(tmp_path / "g", "node Film { name: String @key  days: [DateTime]? }")
    place = tmp_path / "films"
    instants = pa.array([[253402300799999000], []], pa.list_(pa.timestamp("us", "UTC")))
    write_deltalake(str(place), pa.table({"name": ["a", "b"], "days": instants}))
    add_feature(place, "v2Checkpoint")
    graph.load(f"delta:{place}", node="Film")
    assert films(graph, "days") == [("a", ["9999-12-31T23:59:59.999Z"]), ("b", [])]
    make_int96(place)
    with pytest.raises(BadRequestError, match="column 'days' is stored as INT96"):
        graph.load(f"delta:{place}", "merge", node="Film")


def test_a_scanned_table_in_a_folder_with_a_space(graph: Graph, tmp_path: Path) -> None:
    place = tmp_path / "new films"
    at = pa.array([253402300799999000, None], pa.timestamp("us", "UTC"))
    write_deltalake(str(place), pa.table({"name": ["a", "b"], "at": at, "part": ["x y/é", "z"]}), partition_by=["part"])
    add_feature(place, "v2Checkpoint")
    graph.load(place, node="Film")
    assert films(graph, "at", "part") == [("a", "9999-12-31T23:59:59.999Z", "x y/é"), ("b", None, "z")]
    make_int96(place)
    with pytest.raises(BadRequestError, match="column 'at' is stored as INT96"):
        graph.load(place, "merge", node="Film")


def test_files_without_an_instant_need_no_proof(graph: Graph, tables: Path) -> None:
    place = tables / "masked_near"
    write_deltalake(str(place / ".." / "none"), pa.table({"name": ["a"], "at": pa.nulls(1, pa.timestamp("us", "UTC"))}))
    nothing = DeltaTable(str(tables / "none"))
    assert wrapped_column(nothing, str(tables / "none"), {}) is None
    graph.load(place, node="Film")
    assert [row[0] for row in films(graph)] == ["a", "b"]


@pytest.mark.parametrize("version", [None, 0])
def test_a_table_with_a_feature_that_is_not_known(graph: Graph, tmp_path: Path, version: int | None) -> None:
    for name in ("fancyFeature", "catalogManaged"):
        write_deltalake(str(tmp_path / name), rows("a"))
        add_feature(tmp_path / name, name, read=True)
        with pytest.raises(BadRequestError, match=rf"input 'delta:.*{name}'.*--executor spark"):
            graph.load(tmp_path / name, node="Film", version_as_of=version)


def test_a_scanned_table_repeats_no_id_and_stands_alone(graph: Graph, tables: Path, tmp_path: Path) -> None:
    """Its rows have no order, so none of two is the last one."""
    one = Graph.init(tmp_path / "one", "node Film { year: I32 @key  name: String? }")
    with pytest.raises(BadRowsError) as refused:
        one.load(tables / "masked", "merge", mapping={"node": "Film", "constants": {"year": 5}, "ignore": ["age"]})
    assert {row.rule for row in refused.value.summary.sample} == {"key_duplicate"}
    with pytest.raises(BadRequestError, match="load it alone"):
        graph.load([str(tables / "masked"), str(tables / "far")], node="Film")


def test_bad_rows_name_the_table_and_the_row(graph: Graph, tmp_path: Path) -> None:
    place = str(tmp_path / "films")
    write_deltalake(place, pa.table({"name": ["a", "b", "c"], "age": pa.array([1, 2**40, 3], pa.int64())}))
    with pytest.raises(BadRowsError) as refused:
        graph.load(place, node="Film")
    (bad,) = refused.value.summary.sample
    assert (bad.file, bad.line, bad.rule) == (f"delta:{place}@v0", 2, "out_of_range")


def test_a_table_that_is_vacuumed_meanwhile(graph: Graph, tmp_path: Path) -> None:
    place = str(tmp_path / "films")
    write_deltalake(place, rows("a"))
    write_deltalake(place, rows("b"), mode="overwrite")
    DeltaTable(place).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(IoError, match="lost a file, as after VACUUM"):
        graph.load(place, node="Film", version_as_of=0)


@pytest.mark.parametrize(
    ("path", "arguments", "error", "message"),
    [
        ("delta:none", {}, NotFoundError, "there is no Delta table"),
        ("films", {"version_as_of": 9}, NotFoundError, "no version 9"),
        ("films", {"version_as_of": -1}, BadRequestError, "version_as_of"),
        ("films.csv", {"version_as_of": 1}, BadRequestError, "a version is of a Delta table"),
        ("films", {"node": None}, BadRequestError, "input '.*films@v0'"),
    ],
)
def test_what_is_no_table_or_version(
    graph: Graph, tmp_path: Path, path: str, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    write_deltalake(str(tmp_path / "films"), rows("a"))
    (tmp_path / "films.csv").write_text("name\na\n")
    place = f"delta:{tmp_path}/none" if path == "delta:none" else str(tmp_path / path)
    with pytest.raises(error, match=message):
        graph.load(place, **{"node": "Film", **arguments})


def test_without_the_package_the_way_out_is_said(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(str(tmp_path / "films"), rows("a"))
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(BadRequestError, match=r"spark-omnigraph\[delta\].*--executor spark"):
        graph.load(tmp_path / "films", node="Film")
