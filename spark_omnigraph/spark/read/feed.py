"""The change feed as a frame; what its stream shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from spark_omnigraph.branch.consumers import take_consumer
from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.changes.feed import (
    COMMIT_COLUMNS,
    ENVELOPE,
    FeedTask,
    check_start,
    feed_tasks,
    first_parents,
    read_envelopes,
    read_typed,
)
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import Portable
from spark_omnigraph.spark.read.options import MetaTable, ReadOptions, parse_read_options
from spark_omnigraph.spark.types import arrow_target, check_user_schema, frame_schema, to_frame
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.write.executor import available_cores

MOST_TASKS = 64
"""Into how many tasks a range of commits is cut, unless the driver has more cores."""


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """A change feed with the frame it is read into; `table_key` None is all types together."""

    options: ReadOptions
    frame: StructType
    versions: tuple[int, int] | None = None
    """First and last, both included; of a frame, which is one state of the feed. A stream has none."""

    def for_schema(self, asked: StructType) -> FeedPlan:
        """The same feed under a schema that the user gave: it prunes and orders columns."""
        check_user_schema(self.frame, asked, "the change feed")
        return replace(self, frame=asked)

    def store(self) -> GraphStore:
        return GraphStore.open(self.options.uri, self.options.storage or None)

    def commits(self, store: GraphStore) -> list[Commit]:
        return first_parents(store, parse_branch(self.options.branch))

    def partitions(self, first: int, last: int) -> Sequence[FeedPartition]:
        """The tables that each commit of the versions changed, in order, some to a task where there are many."""
        store = self.store()
        tasks = feed_tasks(store, read_catalog(store), self.commits(store), first, last, self.options.table_key)
        each = -(-len(tasks) // max(MOST_TASKS, available_cores()))
        return [FeedPartition(tuple(tasks[start : start + each])) for start in range(0, len(tasks), each or 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Batches of the frame. Spark turns an empty list of partitions into one partition without a value."""
        read_task = read_envelopes if self.options.table_key is None else read_typed
        target = arrow_target(self.frame)
        with coded():
            for task in partition.tasks if isinstance(partition, FeedPartition) else ():
                for batch in read_task(task):
                    yield to_frame(batch.select(self.frame.names), target)


@dataclass(frozen=True)
class FeedPartition(InputPartition):
    """What one task reads."""

    tasks: tuple[FeedTask, ...]


def is_feed(given: Mapping[str, str]) -> bool:
    """Whether the options ask for the change feed."""
    return any(k.lower() == "table" and v.strip().lower() == MetaTable.CHANGES.value for k, v in given.items())


def plan_feed_frame(given: Mapping[str, str]) -> FeedPlan:
    """A change feed as a frame: as `plan_feed`, and its range of versions is fixed."""
    plan = plan_feed(given)
    store, options = plan.store(), plan.options
    newest = plan.commits(store)[-1].manifest_version
    first = newest + 1 if options.from_now else options.starting or 0
    check_start(store, parse_branch(options.branch), first)
    if options.ending is not None and options.ending < first:
        raise BadRequestError(f"endingVersion {options.ending} lies before startingVersion {first}")
    return replace(plan, versions=(first, newest if options.ending is None else min(options.ending, newest)))


def plan_feed(given: Mapping[str, str]) -> FeedPlan:
    """Checks the options of a change feed. Raises BadRequestError and NotFoundError."""
    if not is_feed(given):
        raise BadRequestError("only the change feed can be read as a stream: add .option('table', 'changes')")
    options = parse_read_options(given)
    for name, value in (("columns", options.columns), ("filter", options.filter or options.where)):
        if value:
            raise BadRequestError(f"option '{name}' does not go with a change feed: use Spark's own select and filter")
    if options.table_key is None:
        return FeedPlan(options, from_arrow_schema(ENVELOPE))
    catalog = read_catalog(GraphStore.open(options.uri, options.storage or None))
    entity = catalog.require(options.table_key)
    taken = next((field.name for field in COMMIT_COLUMNS if entity.property(field.name) is not None), None)
    if taken is not None:
        raise BadRequestError(
            f"'{entity.name}' has a property '{taken}', which is a column of the change feed: read all types together, "
            f"without the option '{options.table_key.kind}'"
        )
    commit = from_arrow_schema(pa.schema(COMMIT_COLUMNS))
    # A property that is required now is null in rows of before a schema change that added or required it.
    own = [StructField(f.name, f.dataType, f.name not in entity.identity) for f in frame_schema(entity).fields]
    return FeedPlan(options, StructType([*own, *commit.fields]))


class FeedReader(Portable, DataSourceReader):
    """The feed of a range of versions, both ends included; by default all of them."""

    def __init__(self, plan: FeedPlan) -> None:
        self.plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        assert self.plan.versions is not None
        options, first = self.plan.options, self.plan.versions[0]
        with coded():
            if options.consumer is not None:  # whoever asks for a range has done with what is before it
                store = self.plan.store()
                commits = self.plan.commits(store)
                take_consumer(store, options.consumer, parse_branch(options.branch), commits, max(first - 1, 0))
            return self.plan.partitions(*self.plan.versions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.plan.read(partition)
