"""The one compare-and-swap of manifest rows that makes a commit visible (storage format, section 3).

Every publish also updates the sentinel row, so publishes of this library are totally ordered and their
expectations hold atomically. The reference engine collides with us only on equal object ids: when the landed version
is further than base + 1, what lies between is checked again and reported.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from spark_omnigraph.commit.lost import WholeBranch, note_publish
from spark_omnigraph.errors import (
    ExpectedVersionMismatch,
    RecoveryRequiredError,
    StorageError,
    TransactionCommittedError,
)
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitFacts, encode_facts
from spark_omnigraph.manifest.lineage import Commit, head
from spark_omnigraph.manifest.rows import (
    ManifestRow,
    PublishFacts,
    SchemaEpoch,
    TableUpdate,
    Transaction,
    facts_row,
    last_transaction,
    schema_row,
    sentinel_facts,
    sentinel_row,
    transaction_row,
    version_row,
)
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import MANIFEST
from spark_omnigraph.storage.manifest.stamp import migrate, read_format
from spark_omnigraph.storage.manifest.table import publish_rows, read_rows

ATTEMPTS = 12
"""Publishes tried while only tables that this write neither wrote nor read move underneath."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A publish to make: the updates, what must hold, and who makes it."""

    updates: tuple[TableUpdate, ...]
    expectations: Mapping[str, int]
    operation_id: str
    commit_id: str | None
    actor: str | None
    transaction: Transaction | None = None
    rows: tuple[ManifestRow, ...] = ()
    """Tables that a schema change adds and drops."""
    facts: CommitFacts | None = None
    """Of the commit that it makes; without one they are not kept."""
    schema: SchemaTurn | None = None


@dataclass(frozen=True, slots=True)
class SchemaTurn:
    """A schema that a publish ends: its text is kept with it. `only_on`: the version of the manifest that it must be
    built on, where whoever changes the schema did not find it interrupted.
    """

    source: str
    schema_hash: str
    next_hash: str
    only_on: int | None = None

    def check(self, base: int) -> None:
        """ExpectedVersionMismatch when somebody has published since it was planned."""
        if self.only_on is not None and self.only_on != base:
            raise ExpectedVersionMismatch(MANIFEST, self.only_on, base)


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """Where a publish landed; `overtaken` tells what a foreign engine moved meanwhile (empty among our writers)."""

    manifest_version: int
    parent: str | None
    overtaken: tuple[str, ...] = ()
    files: int | None = None
    """Data files of the manifest then; None where they were not counted."""


def publish(whole: WholeBranch, publication: Publication) -> PublishedVersion:
    """Publishes, or raises ExpectedVersionMismatch (a definite loss) or RecoveryRequiredError (outcome unknown)."""
    published = _swap(whole, publication)
    whole.store.saw(whole.branch, published.manifest_version)
    if publication.commit_id is None:  # no row of the commit log will tell of it
        with suppress(StorageError):  # it stands all the same
            note_publish(whole, published.manifest_version, published.parent)
    return published


def _swap(whole: WholeBranch, publication: Publication) -> PublishedVersion:
    store, branch = whole.store, whole.branch
    seen: int | None = None
    failure: CommitFailed | None = None
    for attempt in range(ATTEMPTS):
        dataset = migrate(whole.manifest())
        if seen is not None and int(dataset.version) > seen:
            # A request that was slow, not lost, may take effect after it was looked for.
            late = _read_back(whole, publication, seen)
            if late is not None:
                return late
        base = seen = int(dataset.version)
        rows = store.manifest_rows(dataset)
        check_expectations(read_format(dataset).reduce(branch, base, rows), publication.expectations)
        if publication.schema is not None:
            publication.schema.check(base)
        parent = current_head(store, branch, base, rows)
        commit = publication.commit_id if publication.commit_id is not None else parent
        facts = PublishFacts(publication.operation_id, commit, parent, publication.actor, base)
        versions = (version_row(update) for update in publication.updates)
        new_rows = [*publication.rows, *versions, sentinel_row(facts)]
        if publication.transaction is not None:
            check_transaction(rows, publication.transaction)
            new_rows.append(transaction_row(publication.transaction, publication.operation_id, commit))
        if publication.facts is not None and publication.commit_id is not None:
            new_rows.append(facts_row(publication.commit_id, encode_facts(publication.facts)))
        if publication.schema is not None:
            turn = publication.schema
            new_rows.append(schema_row(SchemaEpoch(base, turn.schema_hash, turn.next_hash), turn.source))
        try:
            landed = publish_rows(dataset, new_rows)
        except CommitFailed as failed:
            failure = failed
            # A client that asks again after a lost answer is refused by its own success: look, whatever it says.
            found = _read_back(whole, publication, base)
            if found is not None:
                return found
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))
            continue
        overtaken = _moved_between(whole, publication, base, landed)
        return PublishedVersion(landed, parent, overtaken, len(dataset.get_fragments()))
    raise StorageError(
        f"storage: the manifest of '{store.root}' took no publish on branch '{display(branch)}' in {ATTEMPTS} attempts"
        ": other writers were first each time, or the store refuses them, as on a full disk. Nothing was published "
        f"({failure}): run it again; many small writes at once go better as a few larger ones"
    )


def check_expectations(snapshot: Snapshot, expectations: Mapping[str, int]) -> None:
    """Raises ExpectedVersionMismatch for the first table (in key order) that a snapshot shows at another version."""
    for key in sorted(expectations):
        if snapshot.pin(key) != expectations[key]:
            raise ExpectedVersionMismatch(key, expectations[key], snapshot.pin(key))


def check_transaction(rows: Sequence[ManifestRow], transaction: Transaction) -> None:
    """Raises TransactionCommittedError when a write of this name, or a later one, was published."""
    last = last_transaction(rows, transaction.app_id)
    if last is not None and last >= transaction.version and not transaction.resets:
        raise TransactionCommittedError(transaction.app_id, transaction.version, last)


def current_head(
    store: GraphStore,
    branch: Branch,
    version: int,
    rows: Sequence[ManifestRow],
    logged: Iterable[Commit] | None = None,
) -> str | None:
    """Id of the newest commit: from the sentinel when ours was the last publish, else from the commit log, which is
    read unless it is given.

    Above our publish may also stand a compaction, and our commit row may still be missing from the log. The log is read
    later than the rows, and may tell of commits that they do not show.
    """
    facts = sentinel_facts(rows)
    if facts is not None and facts.commit is not None and facts.base + 1 == version:
        return facts.commit
    log = store.commits(branch, with_actors=False) if logged is None else logged
    newest = head(each for each in log if each.manifest_version <= version)
    if facts is not None and facts.commit is not None and (newest is None or newest.manifest_version <= facts.base + 1):
        return facts.commit
    return newest.id if newest is not None else None


def _read_back(whole: WholeBranch, publication: Publication, base: int) -> PublishedVersion | None:
    """What became of a publish with a lost answer: ours, or None when it certainly did not land.

    Later publishes overwrite the sentinel, so every manifest version since the base is looked at.
    """
    try:
        newest = int(whole.manifest().version)
        for version in range(base + 1, newest + 1):
            facts = sentinel_facts(read_rows(whole.manifest(version)))
            if facts is not None and facts.operation == publication.operation_id:
                return PublishedVersion(version, facts.parent)
    except StorageError as error:
        raise RecoveryRequiredError(
            f"whether operation {publication.operation_id} was published on branch '{display(whole.branch)}' is not "
            f"known ({error.message}). Run recover: it decides, and says how the write ended"
        ) from error
    return None


def _moved_between(whole: WholeBranch, publication: Publication, base: int, landed: int) -> tuple[str, ...]:
    """Texts for tables that another engine moved between our base and our version."""
    texts = []
    for version in range(base + 1, landed):
        try:
            check_expectations(whole.store.snapshot(whole.branch, version), publication.expectations)
        except StorageError as error:
            # The publish stands whatever this look shows; an error here must not undo it.
            texts.append(f"what another engine published at manifest version {version} could not be read: {error}")
        except ExpectedVersionMismatch as moved:
            texts.append(
                f"another engine published '{moved.table_key}' version {moved.actual} at manifest version {version}, "
                f"while this write relied on version {moved.expected}; check the graph"
            )
    return tuple(texts)
