"""Options of `df.write.format("omnigraph")` as one checked value."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pyspark import TaskContext

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.load.frame import frame_request
from spark_omnigraph.graph.load.inputs import distinct_tables, input_choices
from spark_omnigraph.graph.load.load import LoadRequest
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.manifest.facts import CommitOrigin, user_metadata
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import (
    REMOTE_SCHEMES,
    EmbedAtLoad,
    LoadMode,
    Nulls,
    OnDuplicate,
    OnMissing,
    bad_row_limit,
    schemes_of,
)
from spark_omnigraph.spark.read.options import (
    INSTEAD,
    READ_OPTIONS,
    canonical,
    graph_uri,
    split_storage,
    type_key,
    whole_number,
    word_of,
)
from spark_omnigraph.spark.session import slots_of
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.words import TextEnum

WRITE_OPTIONS: Mapping[str, str] = {
    "path": "root of the graph, a path, `file://…`, `s3://…` or `s3a://…`; what `save(uri)` and `start(uri)` set",
    "node": "name of a node type",
    "edge": "name of an edge type; without either the frame holds records, or ids to delete, of any types (see below)",
    "branch": "default `main`; it must exist",
    "loadMode": "`append`, `merge`, `update`, `overwrite`, `changes`, `delete`; default from Spark's mode",
    "actor": "name for the commit log",
    "maxBadRows": "bad rows that may be left out: a count, `5%`, or a fraction below 1; default 0",
    "badRowsPath": "file for all bad rows: on the machine of the driver, or `s3://…`",
    "missing": "of `update`: what becomes of an id that is not stored, `error` (a bad row, the default) or `insert`",
    "nulls": "of `update`: what a null means, `set` (the property is null, the default) or `keep` (it stays as it is)",
    "onDuplicate": "`error`; `last` is refused: rows of a frame have no order, so drop duplicates first",
    "maxDeletes": "with `changes`: how many stored rows may be deleted, a count, or a share of each type's such as "
    "`5%`; default any number",
    "edgeId": "`ends` makes ids of edges of their ends, names of properties with commas make them of these, too; "
    "not with `update`",
    "adoptEdges": "`true` gives such an edge the id of a stored one with the same ends, where that has another; "
    "default `false`",
    "mapping": "which columns become which properties of which types: YAML or JSON as text of several lines, or a path "
    "on the machine of the driver",
    "coerce": "`true` reads a text as the value that it spells, where a property takes no text; default `false`",
    "blobSchemes": "schemes of the URIs that blobs of records may refer to, separated by commas; default all that "
    "storage knows but `file`",
    "index": "`false` leaves indexes that the schema asks for and that are missing to a later write or to the verb "
    "`index`; default `true`",
    "embed": "`missing` asks for vectors of `@embed` properties that rows lack, of the provider which the environment "
    "of the process in which Spark plans the write names, as it was when the session began (of a stream: that of its "
    "tasks): set `OMNIGRAPH_EMBED_PROVIDER` before, on a cluster in its own environment; default `off`",
    "embedTasks": "how many tasks ask at a time, which share what a minute allows and the requests at a time; default "
    "what the configuration of Spark says",
    "embedCache": "folder or `s3://…` where answers of the provider are kept; default beside the graph",
    "userMetadata": "texts of your own, kept with the commit: a JSON object, or one text, which gets the name "
    "`userMetadata`; 1,024 bytes at most",
    "job": "name of the job, kept with the commit",
    "runId": "name of this run, kept with the commit",
    "applicationId": "id of the Spark application, kept with the commit; `write_nodes` and `write_edges` know it",
    "txnAppId": "name of the application whose writes are numbered; of a stream by default the id of its query",
    "txnVersion": "number of this write, rising; a number that was committed before is not written again",
}
"""Every option of a write and what it takes; docs/spark-write.md shows them."""

DELETE = "delete"
"""The `loadMode` that no load has: rows go by id."""

_OF_READS = (
    ": it belongs to reads, and a frame or view that was read so is not written to (INSERT INTO); write a frame with "
    "df.write.format('omnigraph').mode('append').option('node', …).save(uri)"
)
_INSTEAD = {**{name.lower(): _OF_READS for name in READ_OPTIONS}, **INSTEAD}
_OF_STREAMS = ("checkpointLocation", "queryName")
"""Spark hands its own options of a stream to the sink too."""
_OF_ROWS = (
    "maxBadRows", "badRowsPath", "missing", "nulls", "onDuplicate", "maxDeletes", "edgeId", "adoptEdges", "mapping",
    "coerce", "blobSchemes",
)  # laid out as a table  # fmt: skip
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What one `save()` asks for; without `table_key` the frame holds records of any types."""

    uri: str
    table_key: TableKey | None
    request: LoadRequest
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    app_id: str | None = None
    """Name of the application whose batches are numbered; a stream without one goes by its query id."""
    deletes: bool = False
    """The frame has ids of rows to delete."""
    input: TableInput = field(default_factory=TableInput)
    """How rows of the frame are read."""
    embed_tasks: int | None = None
    """How many tasks ask for vectors at a time."""

    def open(self) -> GraphStore:
        """The graph, as the process sees it that writes."""
        return GraphStore.open(self.uri, self.storage or None)

    def batch_name(self, query: str | None, batch: int) -> Transaction | None:
        """The name of a batch of a stream, that of its query unless the application has one."""
        app_id = self.app_id or query
        return None if app_id is None else Transaction(app_id, batch)


def current_query() -> str | None:
    """Id of the query whose task this is; it outlives restarts with its checkpoint. None outside of streams."""
    task = TaskContext.get()
    return None if task is None else task.getLocalProperty("sql.streaming.queryId")


def tasks_beside() -> int | None:
    """How many tasks run at a time, this one among them, by the settings of the session, which come with each task.
    None where they do not say it.
    """
    task = TaskContext.get()
    if task is None:
        return 1
    return slots_of(lambda name: task.getLocalProperty(name) or "", os.cpu_count())


def current_batch() -> str | None:
    """The same name in all tasks of a batch of a stream, attempts and repetitions included. None outside of streams."""
    task, query = TaskContext.get(), current_query()
    batch = None if task is None else task.getLocalProperty("streaming.sql.batchId")
    return None if query is None or batch is None else f"{query}-{batch}"


def parse_write_options(given: Mapping[str, str], overwrite: bool, stream: bool = False) -> WriteOptions:
    """Checks names, values and combinations; `overwrite` is Spark's save mode."""
    named, storage = split_storage(given)
    text = canonical(named, (*WRITE_OPTIONS, *_OF_STREAMS) if stream else WRITE_OPTIONS, _INSTEAD)
    if "node" in text and "edge" in text:
        raise BadRequestError("options 'node' and 'edge' contradict each other; give one of them")
    options = LoadOptions(
        max_bad_rows=_parsed("maxBadRows", text.get("maxBadRows", "0"), bad_row_limit),
        bad_rows=text.get("badRowsPath"),
        on_duplicate=word_of("onDuplicate", text.get("onDuplicate", "error"), OnDuplicate),
        max_deletes=_parsed("maxDeletes", text["maxDeletes"], bad_row_limit) if "maxDeletes" in text else None,
        edge_id=text.get("edgeId"),
        adopt_edges=word_of("adoptEdges", text.get("adoptEdges", "false"), _Flag) is _Flag.TRUE,
        blob_schemes=_parsed("blobSchemes", text.get("blobSchemes", ",".join(REMOTE_SCHEMES)), schemes_of),
        coerce=word_of("coerce", text.get("coerce", "false"), _Flag) is _Flag.TRUE,
        missing=word_of("missing", text.get("missing", "error"), OnMissing),
        nulls=word_of("nulls", text.get("nulls", "set"), Nulls),
        build_indexes=word_of("index", text.get("index", "true"), _Flag) is _Flag.TRUE,
        embed=word_of("embed", text.get("embed", "off"), EmbedAtLoad),
        cache=text.get("embedCache"),
    )
    app_id = text.get("txnAppId")
    transaction = None if stream else _transaction(app_id, text.get("txnVersion"))
    if stream and "txnVersion" in text:
        raise BadRequestError("option 'txnVersion' does not go with a stream: the number is that of the batch")
    deletes = text.get("loadMode", "").strip().lower() == DELETE
    if deletes:
        _check_delete_options(text)
    mode = LoadMode.APPEND if deletes else _mode(text.get("loadMode"), overwrite)
    if overwrite and mode is not LoadMode.OVERWRITE:
        asked, way = ("outputMode('complete')", "foreachBatch") if stream else ("mode('overwrite')", "mode('append')")
        raise BadRequestError(f"{asked} and loadMode '{DELETE if deletes else mode}' contradict each other; use {way}")
    request = frame_request(text.get("branch"), mode, text.get("actor"), options, transaction)
    choices = input_choices({name: text[name] for name in ("node", "edge", "mapping") if name in text})
    how = choices.of_rows
    digest, distinct = choices.digest, distinct_tables((), how)
    request = replace(request, origin=_origin(text), mapping_digest=digest, distinct=distinct)
    key = how.rules[0].table_key if len(how.rules) == 1 else None
    tasks = whole_number("embedTasks", text["embedTasks"], 1) if "embedTasks" in text else None
    return WriteOptions(graph_uri(text), type_key(text) or key, request, storage, app_id, deletes, how, tasks)


def _check_delete_options(text: Mapping[str, str]) -> None:
    for name in (*_OF_ROWS, "index", "embed", "embedTasks", "embedCache"):
        if name in text:
            raise BadRequestError(f"option '{name}' does not go with loadMode 'delete'")


def _origin(text: Mapping[str, str]) -> CommitOrigin:
    metadata = _parsed("userMetadata", text["userMetadata"], user_metadata) if "userMetadata" in text else {}
    return CommitOrigin(text.get("job"), text.get("runId"), text.get("applicationId"), metadata)


def _transaction(app_id: str | None, version: str | None) -> Transaction | None:
    if app_id is None and version is None:
        return None
    if app_id is None or version is None:
        raise BadRequestError("options 'txnAppId' and 'txnVersion' go together: they name a write")
    return Transaction(app_id, whole_number("txnVersion", version, 0) or 0)


def _mode(text: str | None, overwrite: bool) -> LoadMode:
    if text is None:
        return LoadMode.OVERWRITE if overwrite else LoadMode.APPEND
    return word_of("loadMode", text, LoadMode, (DELETE,))


class _Flag(TextEnum):
    TRUE = "true"
    FALSE = "false"


def _parsed(name: str, text: str, parse: Callable[[str], _T]) -> _T:
    try:
        return parse(text)
    except ValueError as error:
        raise BadRequestError(f"option '{name}': {error}") from None
