"""Graphs of a format that is not known are refused at every door, in reading too; so are stamps that are none."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, Graph
from spark_omnigraph.errors import UnsupportedFormatError
from spark_omnigraph.manifest.formats.stamps import FORMATS, format_of
from spark_omnigraph.spark.errors import CodedError
from spark_omnigraph.spark.read.feed import plan_feed
from spark_omnigraph.spark.read.feed_stream import FeedStream
from spark_omnigraph.spark.read.plan import plan_read
from spark_omnigraph.storage.layout import SCHEMA_VERSION
from tests.support.graph_files import internal
from tests.unit.storage.test_stamp import old_graph, record

STAMP = "omnigraph:internal_schema_version"
SAMPLES = Path(__file__).parents[2] / "format" / "samples"
NEWER = ("4", "5", "6", "7", "99", "4000000000")
NONE = ("", "old", "0", "-2", "3.0", " 3", "03", "²", "9" * 5000)


def stamped(root: Path, stamp: str) -> Graph:
    graph = Graph.init(root, "node Film { name: String @key }")
    graph.load([record("Alien")])
    internal(root, "__manifest").update_schema_metadata({STAMP: stamp})
    return graph


def sample(folder: Path, release: str) -> Path:
    with tarfile.open(SAMPLES / f"release-{release}.tar.gz") as packed:
        packed.extractall(folder / "graph", filter="data")
    return folder / "graph"


def test_the_newest_format_is_the_one_that_is_written() -> None:
    assert max(FORMATS) == SCHEMA_VERSION


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


@pytest.mark.parametrize(("release", "stamp"), [("0.8.0", "4"), ("0.9.0", "6")])
@pytest.mark.parametrize("mode", ["r", "rw"])
def test_graphs_of_later_releases_are_refused(tmp_path: Path, release: str, stamp: str, mode: str) -> None:
    root = sample(tmp_path, release)
    assert internal(root, "__manifest").schema.metadata[STAMP.encode()] == stamp.encode()
    with pytest.raises(UnsupportedFormatError, match=rf"version {stamp}, which release {release[:3]}.*reads .*1 to 3"):
        Graph.open(root, mode=mode)


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
    "data source, stream of changes": lambda g: FeedStream(
        plan_feed({"path": g.uri, "table": "changes", "node": "Film"})
    ).initialOffset(),
}


@pytest.fixture(scope="module")
def overtaken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Path]:
    """A handle from before a later release took its graph over."""
    root = tmp_path_factory.mktemp("overtaken") / "g"
    return stamped(root, "6"), root


@pytest.mark.parametrize("call", CALLS)
def test_a_handle_that_is_kept_open_sees_the_change(overtaken: tuple[Graph, Path], call: str) -> None:
    graph, root = overtaken
    versions = {path: lance.dataset(path).version for path in (root / "__manifest", *root.glob("nodes/*"))}
    with pytest.raises((UnsupportedFormatError, CodedError), match="version 6"):
        CALLS[call](graph)
    assert {path: lance.dataset(path).version for path in versions} == versions
    assert not list((root / "__recovery").rglob("*.json"))


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
    assert [format_of(stamp, (), "g").stamp for stamp in (None, "1", "2", "3")] == [1, 1, 2, 3]
