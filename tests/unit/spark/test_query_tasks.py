"""Tasks of the Spark engine, run without Spark: text searches of single fragments, and the best rows of a scan."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.cli.output.answer_files import _AtMost
from spark_omnigraph.engine.pushdown import Pushed
from spark_omnigraph.engine.search import hits_of
from spark_omnigraph.engine.table import Table
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.lang.gq.plan import Bm25, Column, Constant, Nearest, TextForm, TextMatch
from spark_omnigraph.spark.query.tasks import HitsTask, ScanTask
from spark_omnigraph.storage.tables.reader import ReadCache
from spark_omnigraph.storage.tables.scan import PinnedTable, fragment_sizes
from spark_omnigraph.storage.tables.search import is_spread

STRING = PropType(Scalar.STRING)
SCHEMA = "node A { k: String @key  t: String? @index  v: Vector(2)? }"
TEXTS = ("wax", "wax wax moss", "fern", "moss and a fern and more ferns", "wex", None)
FRAME = StructType([StructField("c0", StringType()), StructField("c1", DoubleType())])
TEXT = Column("a", "t", STRING)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Three fragments, one index over all of them."""
    made = Graph.init(tmp_path_factory.mktemp("tasks") / "g", SCHEMA)
    for load in range(3):
        rows = [{"k": f"{load}-{n}", "t": text, "v": [load, n]} for n, text in enumerate(TEXTS)]
        made.load([json.dumps({"type": "A", "data": row}) for row in rows], options=LoadOptions(build_indexes=False))
    made.ensure_indices()
    return made


def table_of(graph: Graph) -> PinnedTable:
    return pin(graph.store, graph.snapshot().entries["node:A"])


@pytest.mark.parametrize(
    "search",
    [
        Bm25(TEXT, Constant("moss wax", STRING)),
        TextMatch(TextForm.SEARCH, TEXT, Constant("fern", STRING)),
        TextMatch(TextForm.FUZZY, TEXT, Constant("wax", STRING), Constant(1, PropType(Scalar.I64))),
    ],
)
def test_searches_of_fragments_score_like_one_of_the_table(graph: Graph, search: Bm25 | TextMatch) -> None:
    pinned, entity = table_of(graph), graph.catalog().nodes["A"]
    reader = ReadCache().open(pinned)
    groups = tuple((size.id,) for size in fragment_sizes(pinned))
    assert len(groups) == 3
    assert is_spread(reader, "t")
    parts = HitsTask(pinned, entity, search, groups, FRAME)
    whole = HitsTask(pinned, entity, search, (None,), FRAME)
    found = [[row for batch in parts.rows(n) for row in batch.to_pylist()] for n in range(3)]
    assert all(found)
    together = sorted((row["c0"], row["c1"]) for rows in found for row in rows)
    assert together == sorted((row["c0"], row["c1"]) for batch in whole.rows(0) for row in batch.to_pylist())
    wanted = hits_of(Table(entity, reader), search)
    assert sorted(score for _, score in together) == sorted(wanted.scores.tolist())


def test_a_column_whose_index_covers_a_part_is_searched_whole(tmp_path: Path) -> None:
    other = Graph.init(tmp_path / "g", SCHEMA)
    other.load(['{"type":"A","data":{"k":"x","t":"wax"}}'])
    other.load(['{"type":"A","data":{"k":"y","t":"wax"}}'], options=LoadOptions(build_indexes=False))
    assert not is_spread(ReadCache().open(table_of(other)), "t")


def test_of_a_task_the_best_rows_are_left_with_all_that_are_as_good(graph: Graph) -> None:
    by = Nearest(Column("a", "v", PropType(Scalar.VECTOR, dimension=2)), Constant((1.0, 0.0), PropType(Scalar.VECTOR)))
    pinned, entity = table_of(graph), graph.catalog().nodes["A"]
    stored = frozenset(ReadCache().open(pinned).names)
    groups = tuple((size.id,) for size in fragment_sizes(pinned))
    task = ScanTask(pinned, entity, stored, ("id",), Pushed(None, ()), (by,), 1, groups, FRAME)
    found = [sorted((row["c0"], row["c1"]) for batch in task.rows(n) for row in batch.to_pylist()) for n in range(3)]
    assert found == [[("0-0", 1.0)], [("1-0", 0.0)], [("2-0", 1.0)]]
    group = (tuple(size.id for size in fragment_sizes(pinned)),)
    for most, ids in (
        (0, []),
        (1, ["1-0"]),
        (2, ["0-0", "1-0", "1-1", "2-0"]),
        (99, [f"{a}-{b}" for a in "012" for b in "012345"]),
    ):
        task = ScanTask(pinned, entity, stored, ("id",), Pushed(None, ()), (by,), most, group, FRAME)
        rows = pa.Table.from_batches(list(task.rows(0)), task_schema())
        assert sorted(rows.column("c0").to_pylist()) == ids, most
        assert not np.isnan(rows.column("c1").to_numpy()).any()


def task_schema() -> pa.Schema:
    return pa.schema([("c0", pa.string()), ("c1", pa.float64())])


def test_rows_of_a_bounded_answer_end_where_they_are_too_many_and_no_task_fails() -> None:
    batches = [pa.record_batch({"c0": part}) for part in (["a"], ["b", "c", "d"], ["e"])]
    for most, found in ((3, ["a", "b", "c"]), (1, ["a"]), (9, ["a", "b", "c", "d", "e"])):
        rows = pa.Table.from_batches(list(_AtMost(most).run(batches)))
        assert rows.column("c0").to_pylist() == found
