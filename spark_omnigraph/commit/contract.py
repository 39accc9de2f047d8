"""The schema contract: the three schema files must agree (storage format 8.5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

import msgspec

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import CatalogError, DamagedError, OmnigraphError, SchemaFilesError, SchemaParseError
from spark_omnigraph.lang.pg import compile_stored_schema
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.formats.documents import AcceptedTables, read_documents
from spark_omnigraph.manifest.rows import TableId, former_epochs
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.memory import LruCache
from spark_omnigraph.storage.graph_store import GraphStore, SchemaFiles
from spark_omnigraph.storage.layout import SCHEMA_IR, SCHEMA_SOURCE, SCHEMA_STATE, STAGED
from spark_omnigraph.storage.manifest.former import former_catalog, is_same, schema_text_of
from spark_omnigraph.storage.manifest.seen import Seen, version_seen
from spark_omnigraph.storage.manifest.table import read_schema_text
from spark_omnigraph.stored import Count, decode

_STATE_FORMAT = 1
_LOOKS = 3
"""Times that a snapshot is read anew since its schema changed meanwhile."""

_FORMER_STATES = 64
"""Older states whose schema is kept once it was made out, and states of pinned handles that are kept."""


@dataclass(frozen=True, slots=True)
class Contract:
    """The accepted schema, its text, and the hash that writes expect to stand until they are published."""

    catalog: Catalog
    source: str
    schema_hash: str
    tables: Mapping[TableKey, TableId] | None = None
    """Its tables by their ids, in formats that give them some."""


def read_contract(store: GraphStore) -> Contract:
    """Reads and checks the schema files. SchemaFilesError when they do not belong together, UnsupportedFormatError when
    that is because the graph is of a format that is not known.
    """
    try:
        return _read_contract(store)
    except SchemaFilesError:
        store.manifest(None)
        raise


def _read_contract(store: GraphStore) -> Contract:
    """Twice where the files do not belong together: a change that is published may be giving them their names."""
    for _ in range(2):
        files = store.schema_files()
        found = _of_files(store, files)
        if found is not None:
            return found
        catalog = _stored_catalog(store, files.source)
        if _staged_hash(store) == catalog.ir_hash:
            return Contract(catalog, files.source, catalog.ir_hash)
    recorded = _recorded(store, files)
    raise SchemaFilesError(
        f"{SCHEMA_SOURCE} of '{store.root}' does not compile to the recorded schema"
        f"{'' if recorded is None else f' ({recorded.schema_ir_hash})'}: it was edited by hand, or a schema change was "
        "interrupted. Put back the text that belongs to it"
    )


def _of_files(store: GraphStore, files: SchemaFiles) -> Contract | None:
    """The contract of files that belong together; None where the text has not the recorded hash."""
    catalog = _stored_catalog(store, files.source)
    recorded = _recorded(store, files)
    if recorded is not None and recorded.format_version > _STATE_FORMAT:
        return _with_ids(store, files, catalog)
    of_text = recorded is None or recorded.schema_ir_hash == catalog.ir_hash
    return Contract(catalog, files.source, catalog.ir_hash) if of_text else None


def _stored_catalog(store: GraphStore, source: str) -> Catalog:
    """What the text of a graph says. A text that says nothing is the graph's fault and not its reader's."""
    try:
        return compile_stored_schema(source)
    except (SchemaParseError, CatalogError) as error:
        raise SchemaFilesError(
            f"{SCHEMA_SOURCE} of '{store.root}' is no schema ({error.message.splitlines()[0]}): put back the text that "
            "belongs to it"
        ) from error


def _with_ids(store: GraphStore, files: SchemaFiles, catalog: Catalog) -> Contract:
    """The contract of a format whose documents give tables their ids."""
    try:
        accepted = _accepted(files.source, files.ir or "", files.state or "")
    except DamagedError as error:
        raise SchemaFilesError(
            f"the schema files of '{store.root}': {error.message}. Put the right ones back"
        ) from error
    return Contract(catalog, files.source, accepted.schema_hash, accepted.tables)


@lru_cache(maxsize=32)
def _accepted(source: str, ir: str, state: str) -> AcceptedTables:
    """Values too, so that the same texts need to be read once."""
    return read_documents(ir, state, compile_stored_schema(source))


def _staged_hash(store: GraphStore) -> str | None:
    """Of the schema whose files are staged."""
    state = store.objects.get(SCHEMA_STATE + STAGED)
    return None if state is None else _state_hash(store, state)


_FORMER: LruCache[tuple[str, str, str, int, str], Contract] = LruCache(_FORMER_STATES)
_PINNED: LruCache[tuple[str, str, str, int], tuple[Seen, tuple[Contract, Snapshot]]] = LruCache(_FORMER_STATES)


def contract_at(store: GraphStore, snapshot: Snapshot, present: Contract) -> Contract:
    """The schema of what a snapshot shows, by the one that was read before it: that, or a former one that an apply has
    kept. `present` itself where nobody kept the former one; then properties that are not stored yet are null.
    """
    if snapshot.is_unrecorded or (snapshot.branch is not None and not _fits(snapshot, present)):
        return _former(store, snapshot, present)
    if not _fits(snapshot, present):
        raise SchemaFilesError(
            f"the schema files of '{store.root}' are of other tables than manifest version {snapshot.version} shows: "
            "they belong to another graph, or a schema change was interrupted. Put the right ones back"
        )
    epoch = snapshot.epoch
    if epoch is None:
        return present
    if snapshot.former is not None:
        text = read_schema_text(store.manifest(snapshot.branch), epoch)
        return present if text is None else _known(text, epoch.schema_hash) or present
    if present.schema_hash != epoch.schema_hash or epoch.next_hash == epoch.schema_hash:
        return present
    # The change is published and its files have not got their names yet; unless another engine took it back since.
    staged = store.objects.get(SCHEMA_SOURCE + STAGED)
    found = None if staged is None else _known(staged.decode(errors="replace"), epoch.next_hash)
    return found or read_contract(store)


def _former(store: GraphStore, snapshot: Snapshot, present: Contract) -> Contract:
    """The schema of a state that only its tables tell of, which are opened for it once."""
    key = (store.root, snapshot.mark, display(snapshot.branch), snapshot.version, present.schema_hash)
    found = _FORMER.get(key)
    if found is None:
        stored = {key: store.open_table(entry).schema for key, entry in snapshot.entries.items()}
        catalog = former_catalog(stored, snapshot, present.catalog, present.tables)
        same = catalog is present.catalog
        found = present if same else Contract(catalog, schema_text_of(catalog), catalog.ir_hash)
        _FORMER.put(key, found)
    return found


def _fits(snapshot: Snapshot, present: Contract) -> bool:
    """Whether a schema is of the tables that a snapshot shows, as far as ids tell."""
    entries = snapshot.entries.values()
    return is_same(entries, present.tables or {}) if present.tables or any(e.identity for e in entries) else True


def former_catalogs(store: GraphStore, since: int = 0) -> Iterator[Catalog]:
    """Schemas that the graph had before, the newest first, back to the first that nobody kept, or to the one of a
    version of main.
    """
    manifest = store.manifest(None)
    for epoch in takewhile(lambda epoch: epoch.until >= since, former_epochs(store.manifest_rows(manifest))):
        text = read_schema_text(manifest, epoch)
        found = None if text is None else _known(text, epoch.schema_hash)
        if found is None:
            return
        yield found.catalog


def _known(source: str, schema_hash: str) -> Contract | None:
    """The contract of a text, None for one that has not this hash."""
    try:
        catalog = compile_stored_schema(source)
    except OmnigraphError:
        return None
    return Contract(catalog, source, schema_hash) if catalog.ir_hash == schema_hash else None


def view(store: GraphStore, find: Callable[[], Snapshot]) -> tuple[Contract, Snapshot]:
    """A snapshot and its schema: the hash is read before the snapshot and the text after it, and they belong together,
    so that neither a change nor a new graph came in between, unless the graph had another one then.
    """
    for _ in range(_LOOKS):
        before = store.schema_file(SCHEMA_STATE)
        snapshot = find()
        present = _of_files(store, store.schema_files(before))
        if present is not None and (snapshot.is_unrecorded or _fits(snapshot, present)):
            return contract_at(store, snapshot, present), snapshot
    return contract_at(store, snapshot, read_contract(store)), snapshot


def pinned_view(
    store: GraphStore, branch: Branch, version: int, mark: str, find: Callable[[], Snapshot]
) -> tuple[Contract, Snapshot]:
    """Like `view`, of one state, which `mark` tells from others of its number: it is read once, and shown for as long
    as the file of its manifest is there.
    """
    key = (store.root, mark, display(branch), version)
    seen, kept = version_seen(store.objects, branch, version), _PINNED.get(key)
    if kept is not None and kept[0] == seen:
        return kept[1]
    found = view(store, find)
    if seen is not None:
        _PINNED.put(key, (seen, found))
    return found


def read_catalog(store: GraphStore) -> Catalog:
    """The accepted schema of a graph."""
    return read_contract(store).catalog


def current_hash(store: GraphStore) -> str:
    """Hash of the schema that the graph has now."""
    state = store.objects.get(SCHEMA_STATE)
    if state is None:
        return read_contract(store).schema_hash
    return _state_hash(store, state)


def state_text(schema_hash: str) -> str:
    """Content of `__schema_state.json`."""
    body = {"format_version": _STATE_FORMAT, "schema_ir_hash": schema_hash, "schema_identity_version": 1}
    return json.dumps(body, indent=2)


def _recorded(store: GraphStore, files: SchemaFiles) -> _State | None:
    if files.ir is None and files.state is None:
        return None
    if files.ir is None or files.state is None:
        missing = SCHEMA_IR if files.ir is None else SCHEMA_STATE
        raise SchemaFilesError(f"'{store.root}' lacks {missing}, which goes with its other schema files: put it back")
    return _state(store, files.state.encode())


def _state_hash(store: GraphStore, text: bytes) -> str:
    return _state(store, text).schema_ir_hash


def _state(store: GraphStore, text: bytes) -> _State:
    """The state file, of the version that goes with the stamp; the oldest goes with most, and is not asked about."""
    try:
        state = decode(text, _State, f"{SCHEMA_STATE} of '{store.root}'")
    except DamagedError as error:
        raise SchemaFilesError(f"{error.message}. Put the right one back") from error
    if state.format_version != _STATE_FORMAT and state.format_version != store.form().documents:
        raise SchemaFilesError(
            f"{SCHEMA_STATE} of '{store.root}' has format {state.format_version}, not {store.form().documents}: put "
            "the right one back, or upgrade spark_omnigraph when a newer release wrote it"
        )
    return state


class _State(msgspec.Struct):
    format_version: Count
    schema_ir_hash: str
