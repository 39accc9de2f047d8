"""Offsets of the stream of changes, as Spark asks for them; no session is needed."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import chain
from pathlib import Path

import lance
import pytest
from pyspark import cloudpickle

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.errors import VersionExpiredError
from spark_omnigraph.graph.delete.by_id import DeleteRequest
from spark_omnigraph.graph.delete.frame import FrameIds, delete_frame
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.spark.errors import CodedError, translate
from spark_omnigraph.spark.read.feed import plan_feed

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

    from spark_omnigraph.spark.read.feed_stream import FeedStream
except ImportError:
    pytest.skip("streams of changes need Spark 4.2", allow_module_level=True)

SCHEMA = "node Lamp { tag: String @key  watt: I32? }\nedge Near: Lamp -> Lamp"
QUICK = LoadOptions(build_indexes=False)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    for number in range(4):
        write(g, number)
    return g


def write(graph: Graph, watt: int) -> None:
    graph.load([json.dumps({"type": "Lamp", "data": {"tag": "l", "watt": watt}})], "merge", options=QUICK)


def stream(graph: Graph, **options: str) -> FeedStream:
    """A stream that has just begun, or begun anew: it knows nothing but its options."""
    found: FeedStream = cloudpickle.loads(
        cloudpickle.dumps(FeedStream(plan_feed({"path": graph.uri, "table": "changes", "node": "Lamp", **options})))
    )
    return found


def test_a_property_that_came_later_may_be_null_in_the_feed(graph: Graph) -> None:
    graph.apply_schema(SCHEMA.replace("watt", "lit: Bool  watt"), values={"Lamp.lit": False})
    frame = plan_feed({"path": graph.uri, "table": "changes", "node": "Lamp"}).frame
    assert {field.name for field in frame.fields if field.nullable} == {"lit", "tag", "watt"}


def versions(graph: Graph) -> list[int]:
    return [commit.manifest_version for commit in reversed(graph.commits())]


def watts(reader: FeedStream, start: int, end: int) -> list[int]:
    """Values after the changes of one batch, in order."""
    found = []
    for partition in reader.partitions({"version": start}, {"version": end}):
        for batch in reader.read(partition):
            found += [r["watt"] for r in batch.to_pylist() if r["_change_type"] != "update_preimage"]
    return found


def test_a_batch_has_so_many_commits_and_none_is_split_or_lost(graph: Graph) -> None:
    made, *later = versions(graph)
    reader = stream(graph, maxCommitsPerTrigger="3")
    limit = reader.getDefaultReadLimit()
    assert (limit, reader.initialOffset()) == (ReadMaxFiles(3), {"version": made})
    first = reader.latestOffset({"version": made}, limit)
    second = reader.latestOffset(first, limit)
    assert (first, second, reader.latestOffset(second, limit)) == ({"version": later[2]}, {"version": later[3]}, second)
    assert (watts(reader, made, later[2]), watts(reader, later[2], later[3])) == ([0, 1, 2], [3])
    assert stream(graph).latestOffset({"version": made}, ReadAllAvailable()) == {"version": later[3]}


def test_available_now_ends_where_it_stood_when_the_trigger_fired(graph: Graph) -> None:
    start, *_, newest = versions(graph)
    reader = stream(graph, maxCommitsPerTrigger="2")
    reader.prepareForTriggerAvailableNow()
    write(graph, 9)
    offset, ends = {"version": start}, []
    while (after := reader.latestOffset(offset, ReadMaxFiles(2))) != offset:
        offset = after
        ends.append(offset["version"])
    assert ends == [versions(graph)[2], newest]
    # The next run begins at the offset of the checkpoint and sees only what came later.
    again = stream(graph)
    assert watts(again, newest, again.latestOffset(offset, ReadAllAvailable())["version"]) == [9]


def test_a_version_without_a_commit_makes_no_batch(graph: Graph) -> None:
    newest = {"version": versions(graph)[-1]}
    named = DeleteRequest({}, transaction=Transaction("job", 1))
    delete_frame(graph.store, [FrameIds({"node:Lamp": ("nobody",)})], named)
    graph.ensure_indices()
    assert graph.snapshot().version > newest["version"]
    assert stream(graph).latestOffset(newest, ReadAllAvailable()) == newest
    write(graph, 9)
    after = stream(graph).latestOffset(newest, ReadAllAvailable())
    assert watts(stream(graph), newest["version"], after["version"]) == [9]


def test_a_checkpoint_whose_next_version_is_gone_says_where_to_start(graph: Graph) -> None:
    _, first, *_, newest = versions(graph)
    entry = graph.snapshot().entries["node:Lamp"]
    table = lance.dataset(graph.store.table_uri(entry.location, None))
    table.cleanup_old_versions(older_than=timedelta(0), retain_versions=2)
    reader = stream(graph)
    end = reader.latestOffset({"version": first}, ReadAllAvailable())
    with pytest.raises(CodedError) as caught:
        reader.partitions({"version": first}, end)
    found = translate(caught.value)
    assert type(found) is VersionExpiredError
    assert found.message.endswith(f"the change feed can start at version {newest}")
    assert watts(stream(graph, startingVersion=str(newest)), newest - 1, newest) == [3]


def test_a_version_that_goes_while_a_task_reads_is_named(graph: Graph) -> None:
    start, *_, newest = versions(graph)
    reader = stream(graph)
    partitions = reader.partitions({"version": start}, {"version": newest})
    entry = graph.snapshot().entries["node:Lamp"]
    lance.dataset(graph.store.table_uri(entry.location, None)).cleanup_old_versions(
        older_than=timedelta(0), retain_versions=1
    )
    with pytest.raises(CodedError, match=r"OMNIGRAPH_VERSION_EXPIRED: version \d of .* a clean-up removed it"):
        list(chain.from_iterable(reader.read(partition) for partition in partitions))
