"""The change feed as a stream. Needs Spark 4.2, the first whose Python streams can bound a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from spark_omnigraph.branch.consumers import Consumer, move_consumer, take_consumer
from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.changes.feed import check_start
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.spark.errors import coded
from spark_omnigraph.spark.portable import Portable
from spark_omnigraph.spark.read.feed import FeedPlan

VERSION = "version"
"""Key of a stream's offset: the manifest version up to which changes were read."""


class FeedStream(Portable, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The feed as a stream. An offset is a manifest version; a batch ends at a commit, so no commit is ever split."""

    def __init__(self, plan: FeedPlan) -> None:
        self.plan = plan
        self.target: int | None = None
        self.consumer: Consumer | None = None
        if plan.options.ending is not None:
            raise BadRequestError("option 'endingVersion' does not go with a stream; use the trigger availableNow")

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self.target = self._commits()[-1].manifest_version

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        # Spark knows limits of files, rows and bytes; commits travel as files.
        most = self.plan.options.commits_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        commits, options = self._commits(), self.plan.options
        if options.from_now:
            return {VERSION: self._stand(commits[-1].manifest_version)}
        start = options.starting or 0
        with coded():
            check_start(self.plan.store(), parse_branch(options.branch), start)
        # The oldest commit made the graph: there is nothing before it to compare with.
        return {VERSION: self._stand(max(start - 1, commits[0].manifest_version))}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        self._stand(start[VERSION])
        later = [c.manifest_version for c in self._commits() if c.manifest_version > start[VERSION]]
        if self.target is not None:
            later = [version for version in later if version <= self.target]
        if isinstance(limit, ReadMaxFiles):
            later = later[: limit.max_files]
        return {VERSION: later[-1] if later else start[VERSION]}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        self._stand(start[VERSION])
        with coded():
            return self.plan.partitions(start[VERSION] + 1, end[VERSION])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.plan.read(partition)

    def commit(self, end: dict[str, int]) -> None:
        """What was read is the consumer's to forget; versions belong to the graph."""
        self._stand(end[VERSION])

    def _stand(self, version: int) -> int:
        """Says where the stream stands, where it has a name: the first time it takes the name over."""
        name, known = self.plan.options.consumer, self.consumer
        if name is None or (known is not None and version <= known.version):
            return version
        with coded():
            store = self.plan.store()
            if known is None:
                branch = parse_branch(self.plan.options.branch)
                self.consumer = take_consumer(store, name, branch, self.plan.commits(store), version)
            else:
                self.consumer = move_consumer(store, known, version)
        return version

    def _commits(self) -> list[Commit]:
        with coded():
            return self.plan.commits(self.plan.store())
