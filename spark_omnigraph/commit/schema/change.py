"""What recovery has to know of a schema change: its staged schema files, the tables it adds and those it drops.

A change moves tables, stages three schema files, publishes, and gives the files their names (storage format, section
8.7). So a change that is not published is finished only if all its files are staged, belong together, and fit the
tables that it would leave; everything else is undone, and its files go. A published one has its files named. The format
would name staged files first and decide then, and could so leave a new schema beside old tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.commit.contract import read_contract
from spark_omnigraph.commit.lease import SKEW, TERM
from spark_omnigraph.commit.publisher import SchemaTurn
from spark_omnigraph.commit.schema.files import FILES, discard_files, hash_of, name_files, staged_schema
from spark_omnigraph.commit.schema.lock import unlock
from spark_omnigraph.commit.sidecar import Registration, Sidecar
from spark_omnigraph.errors import SchemaFilesError
from spark_omnigraph.lang.pg import compile_stored_schema
from spark_omnigraph.manifest.rows import ManifestRow, TableUpdate, table_row, tombstone_row, version_row
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import SCHEMA_SOURCE, SCHEMA_STATE, STAGED, branch_path


@dataclass(frozen=True, slots=True)
class SchemaRows:
    """What a finished change publishes besides its pins: rows, and the versions that they expect to be shown."""

    rows: tuple[ManifestRow, ...] = ()
    expectations: tuple[tuple[str, int], ...] = ()


class SchemaChange:
    """The schema side of one interrupted change."""

    def __init__(self, store: GraphStore, sidecar: Sidecar) -> None:
        self._store = store
        self._sidecar = sidecar

    def is_shown(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot shows the tables that it adds, and none that it drops."""
        added = all(each.table_key in snapshot.entries for each in self._sidecar.registrations)
        return added and all(snapshot.pin(each.table_key) == 0 for each in self._sidecar.tombstones)

    def is_staged(self, snapshot: Snapshot) -> bool:
        """Whether everything that is left to do is to publish it and to name its files."""
        staged = staged_schema(self._store)
        if staged is None or not all(self._exists(each) for each in self._sidecar.registrations):
            return False
        catalog = staged[1]
        if self._sidecar.next_hash not in (None, catalog.ir_hash):
            return False
        keys = set(snapshot.entries) - {t.table_key for t in self._sidecar.tombstones}
        keys |= {r.table_key for r in self._sidecar.registrations}
        return keys == {entity.table_key for entity in catalog.tables()}

    def rows(self, snapshot: Snapshot) -> SchemaRows:
        """Registrations that a snapshot lacks and tombstones for tables that it still shows."""
        rows: list[ManifestRow] = []
        expected: dict[str, int] = {}
        for each in self._sidecar.registrations:
            if each.table_key not in snapshot.entries:
                rows += [table_row(each.table_key, each.path), version_row(self._update(each))]
                expected[each.table_key] = 0
        for tombstone in self._sidecar.tombstones:
            if tombstone.table_key in snapshot.entries:
                rows.append(tombstone_row(tombstone.table_key, tombstone.version))
                expected[tombstone.table_key] = tombstone.version - 1
        return SchemaRows(tuple(rows), tuple(expected.items()))

    def turn(self) -> SchemaTurn | None:
        """The schema that the finished change ends, None where it is over already."""
        present, staged = read_contract(self._store), staged_schema(self._store)
        if staged is None or staged[1].ir_hash == present.schema_hash:
            return None
        return SchemaTurn(present.source, present.schema_hash, staged[1].ir_hash)

    def promote(self) -> None:
        """Gives every staged file its name; those that have it already are fine."""
        name_files(self._store)

    def discard(self) -> None:
        """Removes what is staged."""
        discard_files(self._store)

    def unlock(self) -> None:
        """Removes the branch by which the change kept everybody else out; whoever made it is gone."""
        unlock(self._store)

    def _exists(self, registration: Registration) -> bool:
        return self._store.objects.has_prefix(f"{branch_path(registration.path, registration.branch)}/_versions")

    def _update(self, registration: Registration) -> TableUpdate:
        path = branch_path(registration.path, registration.branch)
        dataset = self._store.open_dataset(path)
        version, rows = int(dataset.version), int(dataset.count_rows())
        return self._store.table_update(registration.table_key, path, registration.branch, version, rows)


def reconcile(store: GraphStore) -> None:
    """Staged schema files that no sidecar speaks of (storage format, section 8.8): named, or removed.

    Files of the last minutes may be those of a change that is running, and are left. SchemaFilesError when nobody can
    tell which schema the graph has.
    """
    found = {each.path: each.modified for each in store.objects.files("") if each.path.endswith(STAGED)}
    staged = [name for name in FILES if name + STAGED in found]
    if not staged or datetime.now(timezone.utc) < max(found.values()) + timedelta(seconds=TERM + SKEW):
        return
    live = _catalog(store, SCHEMA_SOURCE)
    if SCHEMA_SOURCE not in staged:  # a change died while it named its files
        state = store.objects.get(SCHEMA_STATE + STAGED)
        if state is not None and hash_of(state) != live.ir_hash:
            if set(store.snapshot(None).entries) == _keys(live):  # naming begins with the text: this is no part of that
                discard_files(store)
                return
            raise _unclear(store, staged, f"{SCHEMA_STATE}{STAGED} is not that of {SCHEMA_SOURCE}")
        name_files(store)
        return
    new = _catalog(store, SCHEMA_SOURCE + STAGED)
    shown = set(store.snapshot(None).entries)
    if new.ir_hash == live.ir_hash:
        discard_files(store)
    elif _keys(new) == _keys(live):
        raise _unclear(store, staged, "it has the tables of both schemas")
    elif shown == _keys(live):
        discard_files(store)
    elif shown == _keys(new):
        name_files(store)
    else:
        raise _unclear(store, staged, "its tables are those of neither schema")


def _catalog(store: GraphStore, name: str) -> Catalog:
    content = store.objects.get(name)
    try:
        return compile_stored_schema((content or b"").decode())
    except UnicodeDecodeError as error:
        raise SchemaFilesError(
            f"{name} of '{store.root}' is not UTF-8 text (byte {error.start + 1}); put back the right one, or remove "
            f"what ends in '{STAGED}' to keep the schema"
        ) from error


def _keys(catalog: Catalog) -> set[str]:
    return {entity.table_key for entity in catalog.tables()}


def _unclear(store: GraphStore, staged: Iterable[str], why: str) -> SchemaFilesError:
    names = ", ".join(name + STAGED for name in staged)
    return SchemaFilesError(
        f"a schema change of '{store.root}' died and left {names}, and the graph does not tell whether it took effect: "
        f"{why}. Remove these files to keep the schema, or take '{STAGED}' off their names to accept the new one"
    )
