"""Rows of the `__manifest` dataset as values, in the layout of the storage format, version 3."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import msgspec

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import DamagedError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.redaction import excerpt
from spark_omnigraph.stored import Count, decode, refuse_branch, refuse_path

SENTINEL_ID = "x:publish"
"""Object id of the row that every publish of ours updates, so that our publishes are totally ordered."""

TRANSACTION_PREFIX = "x:txn:"
FACTS_PREFIX = "x:facts:"
SCHEMA_PREFIX = "x:schema:"
_NONE = TableKey()
"""What stands in rows that are of no table."""
_MOST = 2**63 - 1


class RowKind:
    """Values of `object_type`; readers ignore the others."""

    TABLE = "table"
    VERSION = "table_version"
    TOMBSTONE = "table_tombstone"
    SENTINEL = "x_publish"
    TRANSACTION = "x_txn"
    FACTS = "x_facts"
    TAG = "x_tag"
    EXPIRED = "x_expired"
    SCHEMA = "x_schema"
    COPY = "x_copy"


SHOWING = frozenset({RowKind.TABLE, RowKind.VERSION, RowKind.TOMBSTONE})
"""Kinds of rows that a snapshot is made of."""


class TableId(NamedTuple):
    """What tells a table from every other one that its graph had or has, whatever they are called."""

    table: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One row; `kind` is the column `object_type`. `facts` of a commit, and the text of a former schema, stand alone in
    `base_objects`, a column that no engine uses and that is not read with the others: they never come back here.

    `identity` is of formats whose tables have ids. `fault` says why a stored row is not acted on: then its location and
    branch are not here.
    """

    object_id: str
    kind: str
    table_key: TableKey
    location: str | None = None
    metadata: str | None = None
    table_version: int | None = None
    table_branch: Branch = None
    row_count: int | None = None
    fault: str | None = None
    facts: str | None = None
    identity: TableId | None = None


@dataclass(frozen=True, slots=True)
class TableUpdate:
    """A new visible version of one table. `manifest_path` is the object path of its Lance manifest."""

    table_key: TableKey
    version: int
    branch: Branch
    row_count: int
    manifest_path: str
    manifest_size: int | None = None


@dataclass(frozen=True, slots=True)
class PublishFacts:
    """What the sentinel records of a publish: who, which commit is the head after it, on which version it was built."""

    operation: str
    commit: str | None
    parent: str | None
    actor: str | None
    base: int


@dataclass(frozen=True, slots=True)
class SchemaEpoch:
    """That a schema was accepted up to a version of the manifest, and which one followed; both by their hashes."""

    until: int
    schema_hash: str
    next_hash: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """The name that a writer gives a write, so that the same write is recognised when it comes again.

    Numbers of one application rise; each publish records the last one, so all up to it count as committed. `note` is a
    text that the writer keeps with its number. A write that `resets` is made whatever the last number was.
    """

    app_id: str
    version: int
    note: str | None = None
    resets: bool = False


def checked(row: ManifestRow) -> ManifestRow:
    """A row as it came from the store, looked at: one whose location or branch would lead out of the graph, or whose
    numbers no dataset has, says so in `fault`, and leads nowhere. Rows of kinds that nobody acts on are not looked at.
    """
    if row.kind not in SHOWING:
        return row
    location = None if row.location is None else refuse_path(row.location)
    branch = None if row.table_branch is None else refuse_branch(row.table_branch)
    numbers = [n for n in (row.table_version, row.row_count) if n is not None and n > _MOST]
    fault = (
        (location and f"location {location}")
        or (branch and f"table_branch {branch}")
        or (numbers and f"{numbers[0]} is no version or number of rows")
    )
    return replace(row, location=None, table_branch=None, fault=fault) if fault else row


def transaction_row(transaction: Transaction, operation: str, commit: str | None) -> ManifestRow:
    """The row that records the last transaction of an application, in the publish that makes it visible."""
    metadata = {"version": transaction.version, "operation": operation, "commit": commit}
    if transaction.note is not None:
        metadata["note"] = transaction.note
    return ManifestRow(
        f"{TRANSACTION_PREFIX}{transaction.app_id}", RowKind.TRANSACTION, _NONE, metadata=compact(metadata)
    )


def rewound_rows(rewound: Mapping[str, int | None], operation: str, commit: str | None) -> tuple[ManifestRow, ...]:
    """Rows that set applications back to the number of an earlier transaction, or to none."""
    return tuple(
        ManifestRow(f"{TRANSACTION_PREFIX}{app_id}", RowKind.TRANSACTION, _NONE)
        if version is None
        else transaction_row(Transaction(app_id, version), operation, commit)
        for app_id, version in sorted(rewound.items())
    )


def last_transactions(rows: Iterable[ManifestRow]) -> dict[str, int]:
    """Application → number of its last committed transaction."""
    return {each.app_id: each.version for each in noted_transactions(rows)}


def noted_transactions(rows: Iterable[ManifestRow]) -> Iterator[Transaction]:
    """The last committed transaction of each application."""
    for row in rows:
        if row.kind == RowKind.TRANSACTION and row.metadata is not None:
            body = decoded(row.metadata, _NamedBody, row)
            yield Transaction(row.object_id.removeprefix(TRANSACTION_PREFIX), body.version, body.note)


def facts_row(commit: str, facts: str) -> ManifestRow:
    """The row that keeps the facts of a commit, in the publish that makes it visible."""
    return ManifestRow(f"{FACTS_PREFIX}{commit}", RowKind.FACTS, _NONE, facts=facts)


def schema_row(epoch: SchemaEpoch, source: str) -> ManifestRow:
    """The row that keeps the text of a schema, in the publish that ends it."""
    metadata = {"hash": epoch.schema_hash, "until": epoch.until, "next": epoch.next_hash}
    return ManifestRow(_schema_id(epoch.until), RowKind.SCHEMA, _NONE, metadata=compact(metadata), facts=source)


def epoch_of(rows: Iterable[ManifestRow], version: int) -> SchemaEpoch | None:
    """The epoch that a version of the manifest is of, where it is over; else the last one before the present one. A
    damaged row tells nothing and does not stand in the way of the others.
    """
    kept = _kept_schemas(rows)
    first = bisect_left(kept, _schema_id(version), key=lambda row: row.object_id)
    return next(_epochs((*kept[first:], *reversed(kept[:first]))), None)


def former_epochs(rows: Iterable[ManifestRow]) -> Iterator[SchemaEpoch]:
    """Schemas that were accepted before the present one, the newest first, as far as rows tell."""
    return _epochs(reversed(_kept_schemas(rows)))


def _kept_schemas(rows: Iterable[ManifestRow]) -> list[ManifestRow]:
    return sorted((row for row in rows if row.kind == RowKind.SCHEMA), key=lambda row: row.object_id)


def _epochs(kept: Iterable[ManifestRow]) -> Iterator[SchemaEpoch]:
    for row in kept:
        with suppress(DamagedError):
            body = decoded(row.metadata or "", _SchemaBody, row)
            yield SchemaEpoch(body.until, body.hash, body.next)


def _schema_id(until: int) -> str:
    return f"{SCHEMA_PREFIX}{until:020d}"


def last_transaction(rows: Iterable[ManifestRow], app_id: str) -> int | None:
    """Number of the last committed transaction of an application, or None when it never committed here."""
    row = next((r for r in rows if r.object_id == f"{TRANSACTION_PREFIX}{app_id}"), None)
    return None if row is None or row.metadata is None else decoded(row.metadata, _NamedBody, row).version


def table_row(table_key: TableKey, location: str) -> ManifestRow:
    """Registers a table at a relative path."""
    return ManifestRow(table_key, RowKind.TABLE, table_key, location=location)


def version_row(update: TableUpdate) -> ManifestRow:
    """Makes a version of a table visible."""
    metadata = {
        "manifest_path": update.manifest_path,
        "manifest_size": update.manifest_size,
        "e_tag": None,
        "naming_scheme": "V2",
    }
    return ManifestRow(
        f"{update.table_key}${update.version:020d}",
        RowKind.VERSION,
        update.table_key,
        metadata=compact(metadata),
        table_version=update.version,
        table_branch=update.branch,
        row_count=update.row_count,
    )


def tombstone_row(table_key: TableKey, version: int) -> ManifestRow:
    """Hides every version of a table up to this one."""
    return ManifestRow(f"{table_key}$tombstone${version:020d}", RowKind.TOMBSTONE, table_key, table_version=version)


def sentinel_row(facts: PublishFacts) -> ManifestRow:
    """The row that orders publishes and records who made the last one."""
    metadata = {
        "operation": facts.operation,
        "commit": facts.commit,
        "parent": facts.parent,
        "actor": facts.actor,
        "base": facts.base,
    }
    return ManifestRow(SENTINEL_ID, RowKind.SENTINEL, _NONE, metadata=compact(metadata))


def sentinel_facts(rows: Iterable[ManifestRow]) -> PublishFacts | None:
    """Facts of the newest publish of ours among these rows, or None when none was made yet."""
    row = next((r for r in rows if r.object_id == SENTINEL_ID), None)
    if row is None or row.metadata is None:
        return None
    body = decoded(row.metadata, _SentinelBody, row)
    return PublishFacts(body.operation, body.commit, body.parent, body.actor, body.base)


class _NamedBody(msgspec.Struct):
    version: Count
    note: str | None = None


class _SchemaBody(msgspec.Struct):
    hash: str
    until: Count
    next: str


class _SentinelBody(msgspec.Struct):
    operation: str
    base: Count
    commit: str | None = None
    parent: str | None = None
    actor: str | None = None


_T = TypeVar("_T")


def decoded(metadata: str, kind: type[_T], row: ManifestRow) -> _T:
    """The metadata of a row as a declared shape; DamagedError names the row."""
    return decode(metadata.encode(), kind, f"metadata of manifest row '{excerpt(row.object_id)}'")


def compact(value: Mapping[str, object]) -> str:
    """Metadata of a row as it is stored."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
