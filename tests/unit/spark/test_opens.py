"""A task opens each dataset once, however many rows it reads."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping, Sequence

import lance
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.spark.read.feed import FeedPartition, FeedReader, plan_feed_frame
from spark_omnigraph.spark.read.plan import plan_read
from spark_omnigraph.spark.read.reader import FragmentGroup, GraphReader

FEW, MANY = 3, 20_000
QUERY = "query q() { match { $a: Page $a.n >= 0 } return { $a.name, $a.text } }"


@pytest.fixture(scope="module", params=[FEW, MANY])
def uri(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Pages with bodies in two fragments and more than one batch each, or in two fragments of few rows."""
    schema = "node Page { name: String @key  n: I32  text: String  body: Blob? }"
    graph = Graph.init(tmp_path_factory.mktemp("graphs") / "g", schema)
    for half in range(2):
        rows = (
            {"name": f"{half}-{n}", "n": n, "text": "x" * (n % 50), "body": "base64:MQ=="} for n in range(request.param)
        )
        graph.load([json.dumps({"type": "Page", "data": row}) for row in rows])
    return graph.uri


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """URIs of the datasets that are opened, in order."""
    found: list[str] = []
    opening: Callable[..., lance.LanceDataset] = lance.dataset

    def count(uri: str, *given: object, **named: object) -> lance.LanceDataset:
        found.append(uri)
        return opening(uri, *given, **named)

    monkeypatch.setattr(lance, "dataset", count)
    return found


@pytest.mark.parametrize(
    "options",
    [{}, {"columns": "name"}, {"columns": "body"}, {"filter": "n >= 0"}, {"where": '[["text", "!=", "?"]]'}],
    ids=str,
)
def test_a_task_opens_its_dataset_once(uri: str, opened: list[str], options: Mapping[str, str]) -> None:
    reader = GraphReader(plan_read({"path": uri, "node": "Page", **options}))
    for ids in ((0,), (1,), (0, 1)):
        opened.clear()
        rows = sum(batch.num_rows for batch in reader.read(FragmentGroup(ids)))
        assert rows % FEW == 0 or rows >= MANY
        assert len(opened) == 1


def test_a_plan_and_its_partitions_open_as_much_for_many_rows(uri: str, opened: list[str]) -> None:
    reader = GraphReader(plan_read({"path": uri, "node": "Page", "filter": "n >= 0"}))
    pages = [opened_uri for opened_uri in opened if "/nodes/" in opened_uri]
    assert len(pages) == 2, "once for the columns that are stored, once for the filter"
    opened.clear()
    reader.partitions()
    assert len(opened) == 1


def test_the_feed_opens_as_much_for_many_rows(uri: str, opened: list[str]) -> None:
    reader = FeedReader(plan_feed_frame({"path": uri, "table": "changes", "node": "Page"}))
    partitions = reader.partitions()
    tasks = sum(len(partition.tasks) for partition in partitions if isinstance(partition, FeedPartition))
    opened.clear()
    rows = sum(batch.num_rows for partition in partitions for batch in reader.read(partition))
    assert rows in (2 * FEW, 2 * MANY)
    assert len(opened) <= 3 * tasks


def test_the_list_of_types_opens_tables_for_what_only_they_know(uri: str, opened: list[str]) -> None:
    plan = plan_read({"path": uri, "table": "tables"})
    opened.clear()

    def rows(names: Sequence[str]) -> list[dict[str, object]]:
        asked = StructType([field for field in plan.frame.fields if field.name in names])
        reader = pickle.loads(cloudpickle.dumps(GraphReader(plan.for_schema(asked))))
        (partition,) = reader.partitions()
        return [row for batch in reader.read(partition) for row in batch.to_pylist()]

    cheap = ["table", "rows", "branch", "manifest_version", "table_version"]
    (page,) = rows(cheap)
    assert (page["table"], page["rows"], page["branch"]) in {("node:Page", 2 * n, "main") for n in (FEW, MANY)}
    assert [path for path in opened if "/nodes/" in path] == []
    assert rows(["fragments"]) == [{"fragments": 2}]
    assert [path for path in opened if "/nodes/" in path] != []


def test_a_query_opens_as_much_for_many_rows(uri: str, opened: list[str]) -> None:
    reader = GraphReader(plan_read({"path": uri, "query": QUERY}))
    opened.clear()
    (partition,) = reader.partitions()
    rows = sum(batch.num_rows for batch in reader.read(partition))
    assert rows in (2 * FEW, 2 * MANY)
    assert len(opened) == 1
