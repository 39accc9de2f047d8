"""The change data feed of a Delta table, without a JVM, as the package `deltalake` reads it.

Before it is read the log of the versions is looked at: whether all of it is there, and whether a file holds instants
that the Rust reader would take for others (see `delta.py`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.errors import BadRequestError, FeedLostError, IoError, NotFoundError, StorageError
from spark_omnigraph.records.changes.ranks import CHANGE_TYPE
from spark_omnigraph.storage.faults import said
from spark_omnigraph.storage.input.delta import (
    BY_SPARK,
    LOG,
    delta_table,
    guarded,
    has_int96,
    open_part,
    reading_delta,
)
from spark_omnigraph.storage.uri import DELTA, plain

if TYPE_CHECKING:
    from deltalake import DeltaTable

FEED = "delta.enableChangeDataFeed"
WAY = "run it once with --full (full=True): the whole table is compared, and followed from there"


@dataclass(frozen=True, slots=True)
class DeltaState:
    """What a table is at a version: which table, its columns (`types`: their types as Delta writes them, in JSON), and
    whether it keeps a change data feed.
    """

    table_id: str
    version: int
    schema: pa.Schema
    types: Mapping[str, str]
    has_feed: bool
    bar: str | None = None
    """Why whoever reads the table cannot read its changes."""


def delta_state(uri: str, version: int | None, options: Mapping[str, str]) -> DeltaState:
    """What a table is at a version, or at its newest."""
    table = delta_table(uri, version, options)
    with reading_delta(uri):
        meta, schema = table.metadata(), table.schema()
        types = {
            field["name"]: json.dumps(field["type"], sort_keys=True) for field in json.loads(schema.to_json())["fields"]
        }
        has_feed, bar = meta.configuration.get(FEED) == "true", _bar(uri, table)
        return DeltaState(str(meta.id), table.version(), pa.schema(schema.to_arrow()), types, has_feed, bar)


def delta_changes(uri: str, first: int, last: int, options: Mapping[str, str]) -> pa.RecordBatchReader:
    """The changes of the versions from `first` to `last`, with the columns of the feed. A former image counts as a
    delete: the key may be another one afterwards.

    FeedLostError when some of it is not there, or was not kept; BadRequestError for what only Spark reads.
    """
    name = f"{DELTA}{plain(uri.removeprefix(DELTA)).rstrip('/')}"
    try:
        table = delta_table(uri, first, options)
    except NotFoundError as error:
        raise FeedLostError(f"version {first} of '{name}' is not there any more: {WAY}") from error
    newest = delta_table(uri, last, options)
    if table.metadata().configuration.get(FEED) != "true":
        raise no_feed(name, first)
    bar = _bar(name, newest)
    if bar is not None:
        raise BadRequestError(bar)
    _look(name, newest, range(first, last + 1), options)
    try:
        with reading_delta(name):
            rows = newest.load_cdf(starting_version=first, ending_version=last)
            found = guarded(name, pa.RecordBatchReader.from_stream(rows))
    except IoError as error:
        raise FeedLostError(
            f"the changes of '{name}' from version {first} on cannot be read: {WAY} ({error.message})"
        ) from error
    return pa.RecordBatchReader.from_batches(found.schema, _as_deletes(name, found))


def _bar(name: str, table: DeltaTable) -> str | None:
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    return f"'{name}' has mapped columns, whose changes are not read here: {BY_SPARK}" if mapped else None


def no_feed(name: str, first: int) -> FeedLostError:
    """For changes that the table did not keep."""
    return FeedLostError(
        f"'{name}' did not keep the changes of its versions from {first} on (table property {FEED}): {WAY}"
    )


def _as_deletes(name: str, found: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    place = found.schema.get_field_index(CHANGE_TYPE)
    try:
        for batch in found:
            words = batch.column(place).cast(pa.string())
            words = pc.if_else(pc.equal(words, "update_preimage"), "delete", words)
            yield batch.set_column(place, found.schema.field(place), words.cast(found.schema.field(place).type))
    except IoError as error:
        raise FeedLostError(
            f"the changes of '{name}' cannot be read any more, as after VACUUM: {WAY} ({error.message})"
        ) from error


def _look(name: str, table: DeltaTable, versions: range, options: Mapping[str, str]) -> None:
    """FeedLostError where a version's log is gone or says that changes were not kept; BadRequestError for instants
    that would be read wrongly, and files that `deltalake` does not find, since it escapes their names twice.
    """
    instants = "timestamp" in table.schema().to_json()
    for version in versions:
        for action in _actions(name, table.table_uri, version, options):
            if action.get("metaData", {}).get("configuration", {FEED: "true"}).get(FEED) != "true":
                raise no_feed(name, version)
            parts = (action.get(kind) for kind in ("add", "cdc", "remove"))
            path = unquote(next((part["path"] for part in parts if part), ""))
            if "%" in path:
                raise BadRequestError(
                    f"version {version} of '{name}' has a value of a partition whose folder is spelled with escapes "
                    f"('{os.path.dirname(path)}'), where changes are not found here: {BY_SPARK}, or compare the whole "
                    "table each time with --full (full=True)"
                )
            if path and instants and _may_wrap(os.path.join(table.table_uri, path), options):
                raise BadRequestError(
                    f"version {version} of '{name}' has instants stored as INT96, whose changes may be read wrongly: "
                    f"{BY_SPARK}, or write it with spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"
                )


def _may_wrap(uri: str, options: Mapping[str, str]) -> bool:
    try:
        return has_int96(uri, options)
    except (OSError, StorageError):
        return False  # it is gone, which whoever reads it says


def _actions(name: str, root: str, version: int, options: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    try:
        with open_part(os.path.join(root, LOG, f"{version:020d}.json"), options) as stream:
            for line in stream:
                action = json.loads(line)
                if not isinstance(action, dict):
                    raise ValueError("an action is no object")
                yield action
    except (ValueError, RecursionError) as error:
        raise FeedLostError(f"the log of version {version} of '{name}' is damaged: {WAY} ({said(error)})") from error
    except (OSError, StorageError) as error:
        raise FeedLostError(f"version {version} of '{name}' is not there any more: {WAY} ({said(error)})") from error
