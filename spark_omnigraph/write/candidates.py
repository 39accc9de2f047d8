"""From plan to commit: what an attempt is planned on, forks of what a branch writes first, the write as data."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass

from spark_omnigraph.branch.fork import fork_tables
from spark_omnigraph.commit.contract import Contract, read_catalog, read_contract
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.plan import Identity, PreparedCommit, Published, TableWrite, WriterKind
from spark_omnigraph.commit.publisher import check_transaction, current_head
from spark_omnigraph.errors import InternalError
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.staged import TableTarget


@dataclass(frozen=True, slots=True)
class Base:
    """What an attempt is planned on: the schema, the newest snapshot of the branch, and the commit that it shows."""

    contract: Contract
    snapshot: Snapshot
    commit: str | None
    branch_id: str | None

    @property
    def unchanged(self) -> Published:
        """The outcome of a write that has nothing to do."""
        return Published(None, None, self.snapshot.version, {})


def capture(
    store: GraphStore, branch: Branch, transaction: Transaction | None = None, contract: Contract | None = None
) -> Base:
    """What stands now; reads alone. A `contract` is given by who has checked something against it already.

    TransactionCommittedError for a write of that name that was committed before, UnsupportedFormatError for a graph of
    a format that is only read.
    """
    contract = contract if contract is not None else read_contract(store)
    branch_id = store.branch_id(branch)  # first: what is read of a branch that is made anew now will not pass for it
    snapshot, rows = store.snapshot_with_rows(branch)
    store.require_writable()
    if transaction is not None:
        check_transaction(rows, transaction)
    return Base(contract, snapshot, current_head(store, branch, snapshot.version, rows), branch_id)


def fork_first(store: GraphStore, snapshot: Snapshot, tables: Collection[str]) -> None:
    """Makes sure that the branch has what it is going to write for the first time."""
    if any(snapshot.entry(key).branch != snapshot.branch for key in tables):
        fork_tables(store, snapshot, tables)
        reach(CrashPoint.FORKED)


def target_of(
    store: GraphStore, snapshot: Snapshot, key: str, branch: Branch, beside: tuple[str, ...] = ()
) -> TableTarget:
    """A table as the snapshot pins it, in its folder on one of the two branches that have it before it is written."""
    entry = snapshot.entry(key)
    return TableTarget(entry.table_key, store.table_uri(entry.location, branch), entry.version, entry.row_count, beside)


def candidate(
    store: GraphStore, base: Base, kind: WriterKind, actor: str | None, changes: dict[str, TableChange], read: Set[str]
) -> PreparedCommit:
    """A checked write as data. It relies on the tables that it changes and on those that it `read`."""
    snapshot = base.snapshot
    writes = tuple(TableWrite(snapshot.entry(key), snapshot.branch, change) for key, change in changes.items())
    for write in writes:
        folder = store.table_uri(write.entry.location, write.branch)
        if not all(file.uri.startswith(f"{folder}/data/") for file in write.change.staged):
            where = display(write.branch)
            raise InternalError(f"rows of '{write.table_key}' were staged outside the folder that '{where}' writes")
    pins = {key: snapshot.pin(key) for key in sorted(read - changes.keys())}
    identity = Identity(new_ulid(), new_ulid(), actor, kind)
    schema_hash = base.contract.schema_hash
    return PreparedCommit(identity, snapshot.branch, schema_hash, writes, pins, branch_id=base.branch_id)


def maintenance(
    store: GraphStore, kind: WriterKind, branch: Branch, branch_id: str | None, *writes: TableWrite
) -> PreparedCommit:
    """A write that changes no row and makes no commit. The id is that of before it looked at what it writes."""
    identity, schema_hash = Identity(new_ulid(), None, None, kind), read_catalog(store).ir_hash
    return PreparedCommit(identity, branch, schema_hash, writes, branch_id=branch_id)
