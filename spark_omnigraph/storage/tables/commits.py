"""Every call that makes Lance advance a dataset, and no other file has one.

Each takes a prepared transaction or a single purpose; none retries a data commit. What a failure proves is
in `faults.CommitFailed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata
from lance.lance import CleanupStats
from lance.optimize import Compaction, RewriteResult

from spark_omnigraph.errors import StorageError
from spark_omnigraph.manifest.branches import Branch, BranchName
from spark_omnigraph.storage.faults import CommitFailed, Outcome, committing, reading
from spark_omnigraph.storage.layout import STORAGE_VERSION
from spark_omnigraph.storage.spelling import one_spelling
from spark_omnigraph.storage.tables.columns import Layout, relay
from spark_omnigraph.storage.tables.staged import ColumnRewrite, StagedFile, write_file

FENCE_KEY = "omnigraph:fence"
CONTENT_KEY = "omnigraph:content"
OPERATION_KEY = "omnigraph:operation"
PRIMARY_KEY = "lance-schema:unenforced-primary-key"
"""Field metadata by which Lance knows the column that merges of manifest rows go by."""

_LOG_RETRIES = 20
"""Appends to the commit log commute, so lost races for the file name may be retried."""


Addresses = npt.NDArray[np.uint64]
"""Physical row addresses: fragment id in the upper 32 bits, offset in the lower."""


@dataclass(frozen=True, slots=True, eq=False)
class TableChange:
    """What one commit does to a table: staged files, rows to mask by address (sorted, distinct), fragments with columns
    written anew (others than those with masked rows), a replacement of all rows, staged index segments and those that
    go (alone), or a staged compaction (alone).

    With a `layout` its columns change: the files are then those of columns, if any are written, or with a replacement
    those of all rows.
    """

    files: tuple[StagedFile, ...] = ()
    removed: Addresses | None = None
    replace_all: bool = False
    segments: tuple[lance.Index, ...] = ()
    replaced_segments: tuple[lance.Index, ...] = ()
    rewrites: tuple[RewriteResult, ...] = ()
    layout: Layout | None = None
    columns: tuple[ColumnRewrite, ...] = ()

    @property
    def staged(self) -> tuple[StagedFile, ...]:
        """All files that nothing names until it lands."""
        return (*self.files, *(rewrite.file for rewrite in self.columns))

    @property
    def added(self) -> int:
        """Rows in its staged files."""
        return 0 if self.layout is not None and not self.replace_all else sum(file.rows for file in self.files)

    @property
    def masked(self) -> int:
        """Stored rows that it takes away, or replaces where it has files."""
        return 0 if self.removed is None else len(self.removed)

    @property
    def versions(self) -> int:
        """How many versions its commit makes: a compaction first reserves ids for its fragments."""
        return 2 if self.rewrites else 1

    @property
    def tolerates(self) -> bool:
        """Whether Lance may land it on a version newer than the one it was made for."""
        return bool(self.rewrites or self.segments or self.replaced_segments) or (
            self.layout is not None and not self.replace_all
        )


def create_dataset(
    uri: str, schema: pa.Schema, rows: pa.Table | pa.RecordBatchReader | None, options: Mapping[str, str]
) -> LanceDataset:
    """New dataset at version 1 with stable row ids in the graph's file format; CommitFailed when one exists, also one
    that somebody makes at this moment, which Lance by itself would replace.
    """
    with committing(f"create {uri}"):
        transaction = lance.fragment.write_fragments(
            rows if rows is not None else schema.empty_table(),
            uri,
            schema=schema,
            mode="create",
            return_transaction=True,
            data_storage_version=STORAGE_VERSION,
            enable_stable_row_ids=True,
            storage_options=dict(options) or None,
            allow_external_blob_outside_bases=True,
        )
        return LanceDataset.commit(
            uri, transaction, max_retries=0, enable_stable_row_ids=True, storage_options=dict(options) or None
        )


def prepare_change(dataset: LanceDataset, change: TableChange, properties: Mapping[str, str]) -> Transaction:
    """Transaction that lands only on the state of `dataset`.

    A replacement and a first fill are Overwrites, strict by themselves. Other columns are a Project or a Merge, which
    Lance may land on a newer version: the caller compares it. Anything else is an Update that lists an
    anchor, the lowest fragment, so that any two of them conflict (Lance rebases plain appends silently).
    """
    if change.segments or change.replaced_segments:
        indexing = LanceOperation.CreateIndex(list(change.segments), list(change.replaced_segments))
        return Transaction(dataset.version, indexing, transaction_properties=dict(properties))
    if change.layout is not None and not change.replace_all:
        operation = relay(dataset, change.layout, change.files)
        return Transaction(dataset.version, operation, transaction_properties=dict(properties))
    new = [FragmentMetadata.from_json(file.fragment) for file in change.files]
    present = dataset.get_fragments()
    if change.replace_all or not present:
        operation = LanceOperation.Overwrite(change.layout.schema if change.layout else dataset.lance_schema, new)
        return Transaction(dataset.version, operation, transaction_properties=dict(properties))
    updated, removed = _mask_rows(dataset, change.removed)
    updated += [FragmentMetadata.from_json(each.file.fragment) for each in change.columns]
    anchor = min(present, key=lambda f: f.fragment_id)
    if anchor.fragment_id not in {f.id for f in updated} | set(removed):
        updated.append(anchor.metadata)
    fields = [f.id() for f in dataset.lance_schema.fields()]
    operation = LanceOperation.Update(removed, updated, new, [], fields, "rewrite_rows")
    if change.columns:
        # Without the offsets no row would count as changed; without the fields an index would answer for old values.
        operation.update_mode = "rewrite_columns"
        operation.fields_modified = sorted({field for each in change.columns for field in each.fields})
        operation.updated_fragment_offsets = {each.fragment_id: each.changed for each in change.columns}
    return Transaction(dataset.version, operation, transaction_properties=dict(properties))


def _mask_rows(dataset: LanceDataset, addresses: Addresses | None) -> tuple[list[FragmentMetadata], list[int]]:
    """Fragments with these rows masked, and the ids of fragments that have no row left. HEAD does not move."""
    updated: list[FragmentMetadata] = []
    removed: list[int] = []
    if addresses is None:
        return updated, removed
    ids, starts = np.unique(addresses >> np.uint64(32), return_index=True)
    for fragment_id, part in zip(ids.tolist(), np.split(addresses, starts[1:]), strict=True):
        with reading(f"mask rows of {dataset.uri}"):
            fragment = dataset.get_fragment(fragment_id)
            if fragment is None:
                raise StorageError(f"storage: fragment {fragment_id} of {dataset.uri} is gone; run the write again")
            kept = fragment.delete_rows((part & np.uint64(0xFFFFFFFF)).tolist())
        if kept is None:
            removed.append(fragment_id)
        else:
            updated.append(kept)
    return updated, removed


def commit_strict(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    """Lands a transaction on the version it was built on, or raises CommitFailed."""
    with committing(f"commit {dataset.uri}"):
        return LanceDataset.commit(dataset, transaction, max_retries=0)


def commit_compaction(dataset: LanceDataset, rewrites: Sequence[RewriteResult]) -> LanceDataset:
    """Lands a staged compaction, two versions further; indexes are made to name the new fragments.

    Lance takes neither properties nor a limit of retries here, and tolerates some other commits: the caller compares
    the version, and asks for HEAD when this fails.
    """
    with committing(f"compact {dataset.uri}"):
        head = dataset.checkout_version(dataset.version)
        Compaction.commit(head, list(rewrites))
        return head


def newest_version(dataset: LanceDataset) -> int:
    """HEAD of an opened dataset."""
    with reading(f"look at {dataset.uri}"):
        return int(dataset.latest_version)


def landed_version(dataset: LanceDataset, transaction: Transaction) -> int | None:
    """Version at which a transaction landed, found by its uuid; None when it did not land."""
    with reading(f"read back {dataset.uri}"):
        newest = dataset.latest_version
        for version in range(transaction.read_version + 1, newest + 1):
            try:
                found = dataset.read_transaction(version)
            except TypeError:
                continue  # a compaction that rewrote indexes cannot be parsed by pylance 14; it is never ours
            if found is not None and found.uuid == transaction.uuid:
                return version
    return None


def at_version(dataset: LanceDataset, version: int) -> LanceDataset:
    """The same dataset, on the same branch, at another version."""
    with reading(f"open {dataset.uri} at version {version}"):
        return dataset.checkout_version(version)


def restore(dataset: LanceDataset, version: int, properties: Mapping[str, str] | None = None) -> LanceDataset:
    """New version of a dataset with the content of an older one.

    Lance refuses it only after a change of schema metadata, which is what `bump` makes: guard it with one.
    """
    with committing(f"restore {dataset.uri}"):
        operation = LanceOperation.Restore(version)
        transaction = Transaction(dataset.version, operation, transaction_properties=dict(properties or {}))
        return LanceDataset.commit(dataset, transaction, max_retries=0)


def bump(dataset: LanceDataset, token: str) -> LanceDataset:
    """New version that differs in schema metadata alone, so that every restore prepared before it is refused."""
    return set_schema_metadata(dataset, {FENCE_KEY: token}, {FENCE_KEY: token})


def set_schema_metadata(
    dataset: LanceDataset, values: Mapping[str, str], properties: Mapping[str, str] | None = None
) -> LanceDataset:
    """New version with these keys of schema-level metadata."""
    with committing(f"set schema metadata of {dataset.uri}"):
        operation = LanceOperation.UpdateConfig(schema_metadata_updates=LanceOperation.UpdateMap(dict(values)))
        transaction = Transaction(dataset.version, operation, transaction_properties=dict(properties or {}))
        return LanceDataset.commit(dataset, transaction, max_retries=0)


def set_primary_key(dataset: LanceDataset, column: str) -> LanceDataset:
    """New version whose rows merge by this column. Lance lets the key be set once and never changed."""
    with committing(f"set the primary key of {dataset.uri}"):
        field = next(f for f in dataset.lance_schema.fields() if f.name() == column)
        operation = LanceOperation.UpdateConfig(
            field_metadata_updates={field.id(): LanceOperation.UpdateMap({PRIMARY_KEY: "true"})}
        )
        return LanceDataset.commit(dataset, Transaction(dataset.version, operation), max_retries=0)


def read_properties(dataset: LanceDataset, version: int) -> Mapping[str, str]:
    """Properties of the transaction that made a version; empty where there is none to read."""
    with reading(f"read version {version} of {dataset.uri}"):
        try:
            transaction = dataset.read_transaction(version)
        except TypeError:
            return {}  # a compaction that rewrote indexes cannot be parsed by pylance 14; it carries none of ours
        return dict(transaction.transaction_properties or {}) if transaction is not None else {}


def merge_manifest_rows(manifest: LanceDataset, rows: pa.Table) -> int:
    """One compare-and-swap of manifest rows by `object_id`; the landed version.

    The key filter that makes two writers of one row collide exists only in `execute()` without an index, so this is
    the one write that is not staged.
    """
    with committing(f"publish {manifest.uri}"):
        (
            manifest.merge_insert("object_id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .conflict_retries(0)
            .use_index(False)
            .execute(rows)
        )
    return int(manifest.version)


def append_log_rows(dataset: LanceDataset, rows: pa.Table) -> int:
    """Appends rows to a commit-log dataset; order among writers does not matter there. How many files it has then."""
    with committing(f"append {dataset.uri}"):
        transaction = lance.fragment.write_fragments(rows, dataset, mode="append", return_transaction=True)
        return len(LanceDataset.commit(dataset, transaction, max_retries=_LOG_RETRIES).get_fragments())


def append_batches(dataset: LanceDataset, batches: Sequence[pa.RecordBatch], options: Mapping[str, str]) -> int:
    """`append_log_rows` of batches, written as they are into one file. Their schema may say how columns are encoded."""
    with committing(f"append {dataset.uri}"):
        fields = {field.name(): field.id() for field in dataset.lance_schema.fields()}
        schema, rows = batches[0].schema, sum(batch.num_rows for batch in batches)
        uri = f"{dataset.uri}/data/{uuid4().hex}.lance"
        file = write_file(uri, schema, batches, [fields[name] for name in schema.names], options)
        operation = LanceOperation.Append([FragmentMetadata(0, [file], rows)])
        transaction = Transaction(dataset.version, operation)
        return int(LanceDataset.commit(dataset, transaction, max_retries=_LOG_RETRIES).version)


def append_strict(dataset: LanceDataset, rows: pa.Table) -> int:
    """Appends rows only to the version that was opened, or raises CommitFailed: what it lacks it still lacks then."""
    with committing(f"append {dataset.uri}"):
        new = lance.fragment.write_fragments(rows, dataset, mode="append")
    change = TableChange(tuple(StagedFile.of(dataset.uri, fragment) for fragment in new))
    return int(commit_strict(dataset, prepare_change(dataset, change, {})).version)


def compact(dataset: LanceDataset, rows: int = 1 << 20, at_once: int | None = None) -> None:
    """Merges the small fragments that commits of a row or two leave, those of fewer than so many rows; the content and
    older versions stay. So many rows `at_once` are in memory.

    Two versions, or none when there is nothing to merge. A concurrent write of the same fragments wins or loses whole.
    """
    with committing(f"compact {dataset.uri}"):
        dataset.optimize.compact_files(target_rows_per_fragment=rows, batch_size=at_once)


def expire(dataset: LanceDataset, older_than: timedelta) -> None:
    """Removes versions of a dataset that belongs to no graph, and what they alone name."""
    with committing(f"expire versions of {dataset.uri}"):
        dataset.cleanup_old_versions(older_than=older_than)


def remove_versions(dataset: LanceDataset, versions: Sequence[int]) -> CleanupStats:
    """Removes these versions of the line that was opened, and files that only they name. Lance refuses the newest
    version and tagged ones.
    """
    with committing(f"remove versions of {dataset.uri}"):
        return dataset.cleanup_old_versions(versions=list(versions), delete_unverified=False)


def set_tag(dataset: LanceDataset, name: str, branch: Branch, version: int) -> None:
    """Makes a tag. Raises CommitFailed when one of that name is there, or the version is not."""
    with committing(f"tag {dataset.uri}"):
        dataset.tags.create(name, (branch, version))


def drop_tag(dataset: LanceDataset, name: str) -> None:
    """Removes a tag."""
    with committing(f"drop a tag of {dataset.uri}"):
        dataset.tags.delete(name)


def create_branch(dataset: LanceDataset, branch: BranchName, parent: Branch, version: int) -> LanceDataset:
    """New Lance branch at a version of its parent. Racing creations corrupt it: callers hold a claim."""
    with one_spelling(str(dataset.uri)), committing(f"branch {dataset.uri}"):
        return dataset.create_branch(branch, (parent, version))


def drop_branch(dataset: LanceDataset, branch: BranchName) -> None:
    """Removes a Lance branch that nothing refers to."""
    with committing(f"drop branch of {dataset.uri}"):
        dataset.branches.delete(branch)


def stamp_manifest(dataset: LanceDataset, config: Mapping[str, str], metadata: Mapping[str, str]) -> LanceDataset:
    """Two versions: table config, then schema-level metadata (storage format 1.5, steps 7 and 8)."""
    with committing(f"stamp {dataset.uri}"):
        dataset.update_config(dict(config))
        dataset.update_schema_metadata(dict(metadata))
    return dataset


__all__ = [
    "CONTENT_KEY",
    "FENCE_KEY",
    "OPERATION_KEY",
    "PRIMARY_KEY",
    "CommitFailed",
    "Outcome",
    "TableChange",
    "append_batches",
    "append_log_rows",
    "append_strict",
    "at_version",
    "bump",
    "commit_compaction",
    "commit_strict",
    "compact",
    "create_branch",
    "create_dataset",
    "drop_branch",
    "expire",
    "landed_version",
    "merge_manifest_rows",
    "newest_version",
    "prepare_change",
    "read_properties",
    "remove_versions",
    "restore",
    "set_primary_key",
    "set_schema_metadata",
    "stamp_manifest",
]


def text_index_in_memory(texts: pa.Table, column: str) -> LanceDataset:
    """A dataset that belongs to no graph and lives in this process, with a full-text index of its column."""
    dataset = lance.write_dataset(texts, f"memory://{uuid4().hex}")
    dataset.create_scalar_index(column, "INVERTED")
    return dataset
