"""Graphs of a format that is not known are refused at every door, in reading too; so are stamps that are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, Graph
from spark_omnigraph.errors import UnsupportedFormatError
from spark_omnigraph.manifest.formats.stamps import FORMATS, WRITTEN, format_of
from spark_omnigraph.spark.errors import CodedError
from spark_omnigraph.spark.read.feed import plan_feed
from spark_omnigraph.spark.read.plan import plan_read
from spark_omnigraph.storage.layout import SCHEMA_VERSION
from tests.support.feed_streams import feed_stream
from tests.support.graph_files import internal
from tests.unit.storage.test_stamp import old_graph, record

STAMP = "omnigraph:internal_schema_version"
NEWER = ("7", "19", "99", "4000000000")
NONE = ("", "old", "0", "-2", "3.0", " 3", "03", "²", "9" * 5000)


def stamped(root: Path, stamp: str) -> Graph:
    graph = Graph.init(root, "node Film { name: String @key }")
    graph.load([record("Alien")])
    internal(root, "__manifest").update_schema_metadata({STAMP: stamp})
    return graph


def test_one_format_is_written_and_later_ones_are_read() -> None:
    assert SCHEMA_VERSION == WRITTEN == 3
    assert [number for number, form in FORMATS.items() if not form.is_written] == [4, 5, 6]


@pytest.mark.parametrize("stamp", [*NEWER, *NONE])
@pytest.mark.parametrize("mode", ["r", "rw"])
def test_an_unknown_stamp_is_refused_at_every_open(tmp_path: Path, stamp: str, mode: str) -> None:
    stamped(tmp_path / "g", stamp)
    before = internal(tmp_path / "g", "__manifest").version
    with pytest.raises(UnsupportedFormatError) as caught:
        Graph.open(tmp_path / "g", mode=mode)
    assert "release that wrote it" in caught.value.message
    assert (caught.value.kind, caught.value.exit_code) == ("unsupported_format", 3)
    assert isinstance(caught.value, BadRequestError)
    assert len(caught.value.message) < 600
    assert internal(tmp_path / "g", "__manifest").version == before


QUERY = "query q() { match { $f: Film } return { $f.name } }"
CALLS: dict[str, Callable[[Graph], object]] = {
    "snapshot": lambda g: g.snapshot(),
    "count": lambda g: g.count("node:Film"),
    "entity": lambda g: g.entity("node:Film", "Alien"),
    "query": lambda g: g.query(QUERY),
    "export": lambda g: list(g.export()),
    "describe": lambda g: g.describe(),
    "commits": lambda g: g.commits(),
    "commit": lambda g: g.commit("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "at a version": lambda g: g.at(version=3),
    "at a time": lambda g: g.at(as_of="2100-01-01"),
    "diff": lambda g: g.diff({"version": 3}),
    "indexes": lambda g: g.indexes(),
    "load": lambda g: g.load([record("Heat")]),
    "delete": lambda g: g.delete("node:Film", ["Alien"]),
    "mutate": lambda g: g.mutate('query m() { insert Film { name: "Heat" } }'),
    "create_branch": lambda g: g.create_branch("draft"),
    "ensure_indices": lambda g: g.ensure_indices(),
    "optimize": lambda g: g.optimize(),
    "cleanup": lambda g: g.cleanup(),
    "repair": lambda g: g.repair(),
    "recoveries": lambda g: g.recoveries(),
    "opened for reading": lambda g: Graph.open(g.uri, mode="r"),
    "data source, type": lambda g: plan_read({"path": g.uri, "node": "Film"}),
    "data source, counts": lambda g: plan_read({"path": g.uri, "table": "tables"}),
    "data source, query": lambda g: plan_read({"path": g.uri, "query": QUERY}),
    "data source, history": lambda g: plan_read({"path": g.uri, "table": "commits"}),
    "data source, branches": lambda g: plan_read({"path": g.uri, "table": "branches"}),
    "data source, recoveries": lambda g: plan_read({"path": g.uri, "table": "recoveries"}),
    "data source, changes": lambda g: plan_feed({"path": g.uri, "table": "changes", "node": "Film"}).partitions(3, 9),
    "data source, stream of changes": lambda g: feed_stream(
        {"path": g.uri, "table": "changes", "node": "Film"}
    ).initialOffset(),
}


def refused(graph: Graph, root: Path, call: str, message: str) -> None:
    """The call is refused, and nothing has changed."""
    versions = {path: lance.dataset(path).version for path in (root / "__manifest", *root.glob("nodes/*"))}
    with pytest.raises((UnsupportedFormatError, CodedError), match=message):
        CALLS[call](graph)
    assert {path: lance.dataset(path).version for path in versions} == versions
    assert not list((root / "__recovery").rglob("*.json"))


@pytest.fixture(scope="module")
def overtaken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Path]:
    """A handle from before a later release took its graph over."""
    root = tmp_path_factory.mktemp("overtaken") / "g"
    return stamped(root, "7"), root


@pytest.mark.parametrize("call", CALLS)
def test_a_handle_that_is_kept_open_sees_the_change(overtaken: tuple[Graph, Path], call: str) -> None:
    refused(*overtaken, call, "version 7")


READS = ("snapshot", "count", "entity", "query", "export", "describe", "at a version", "diff", "indexes", "recoveries")
WRITES = ("load", "delete", "mutate", "create_branch", "ensure_indices", "optimize", "cleanup", "repair")


@pytest.fixture(scope="module")
def taken_over(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Path]:
    """A handle from before a release took its graph over whose format is read."""
    root = tmp_path_factory.mktemp("taken") / "g"
    return stamped(root, "4"), root


@pytest.mark.parametrize("call", WRITES)
def test_a_handle_that_is_kept_open_writes_no_more(taken_over: tuple[Graph, Path], call: str) -> None:
    refused(*taken_over, call, r"version 4.*only reads.*convert")


def test_a_handle_that_is_kept_open_goes_on_reading(taken_over: tuple[Graph, Path]) -> None:
    for call in READS:
        CALLS[call](taken_over[0])


def test_versions_from_before_the_stamp_are_read_by_that_of_the_newest(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Film { name: String @key }")
    assert (internal(tmp_path / "g", "__manifest", version=1).schema.metadata or {}).get(STAMP.encode()) is None
    assert graph.at(version=1).count("node:Film") == 0


def test_no_stamp_is_the_oldest_format_only_where_the_rest_looks_like_it(tmp_path: Path) -> None:
    assert Graph.open(old_graph(tmp_path / "old"), mode="r").count("node:Film") == 1
    rows = internal(tmp_path / "old", "__manifest").to_table()

    def rewritten(name: str, table: pa.Table) -> Path:
        root = old_graph(tmp_path / name)
        lance.write_dataset(table.replace_schema_metadata(None), root / "__manifest", mode="overwrite")
        return root

    wider = rows.append_column("stable_table_id", pa.nulls(rows.num_rows, pa.uint64()))
    with pytest.raises(UnsupportedFormatError, match=r"no stamp.*stable_table_id"):
        Graph.open(rewritten("wider", wider), mode="r")
    first = rows.slice(0, 1).to_pylist()[0] | {"object_id": "graph_head:main", "object_type": "graph_head"}
    lineage = pa.concat_tables([rows, pa.Table.from_pylist([first], rows.schema)])
    with pytest.raises(UnsupportedFormatError, match="graph_head"):
        Graph.open(rewritten("lineage", lineage), mode="r").count("node:Film")


def test_known_stamps_have_a_format_each() -> None:
    assert [format_of(stamp, (), "g").stamp for stamp in (None, *"123456")] == [1, 1, 2, 3, 4, 5, 6]
