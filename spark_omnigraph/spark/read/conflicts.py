"""Conflicts of a merge as a frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from spark_omnigraph.graph.merge.decisions import MEMBERS
from spark_omnigraph.graph.merge.merge import MergeRequest, find_conflicts, merge_request
from spark_omnigraph.spark.read.options import ReadOptions
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.write.executor import LocalExecutor

CONFLICTS_FRAME = StructType(
    [StructField("type" if name == "table" else name, StringType()) for name in MEMBERS if name != "decided"]
)


@dataclass(frozen=True, slots=True)
class ConflictsTask:
    """Conflicts of a merge, found by one task as by a dry run."""

    uri: str
    request: MergeRequest
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    def run(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns, in the given order."""
        store = GraphStore.open(self.uri, self.storage or None)
        for batch in find_conflicts(store, self.request, LocalExecutor(1)):
            yield batch.rename_columns(["type", *batch.schema.names[1:]]).select(list(columns))


def conflicts_task(store: GraphStore, options: ReadOptions) -> tuple[StructType, ConflictsTask]:
    """What one task is to find, and the schema of it. It stages rows as the merge would."""
    store.require_writable()
    request = merge_request(store, options.source, options.into, None, {"dry_run": True})
    for branch in (request.source, request.target):
        store.require_branch(branch)
    return CONFLICTS_FRAME, ConflictsTask(options.uri, request, options.storage)
