"""`init`: a new graph laid out as the storage format says (section 1.5)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from spark_omnigraph.catalog.identity import table_path
from spark_omnigraph.catalog.ir import ir_text
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.commit.claim import refuse_remade
from spark_omnigraph.commit.contract import state_text
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.making import end_stages, refuse_owners, remaking
from spark_omnigraph.commit.owners import remove_orphans
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.errors import (
    AlreadyInitializedError,
    BadRequestError,
    ConflictError,
    IoError,
    NotFoundError,
    StorageError,
    UnsupportedFormatError,
)
from spark_omnigraph.lang.pg import compile_schema, refuse_patterns
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import ManifestRow, table_row, version_row
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.redaction import one_line
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import (
    COMMIT_ACTORS,
    COMMITS,
    COPYING,
    MANIFEST,
    RECOVERIES,
    RECOVERY,
    SCHEMA_IR,
    SCHEMA_SOURCE,
    SCHEMA_STATE,
)
from spark_omnigraph.storage.manifest.commit_log import create_commit_log
from spark_omnigraph.storage.manifest.table import create_manifest
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.tables.commits import create_dataset
from spark_omnigraph.storage.uri import locate, plain
from spark_omnigraph.validate.pattern import InvalidPatternError, Pattern

_SCHEMA_FILES = (SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE)
_TABLE_FOLDER = re.compile(r"(?:nodes|edges)/[0-9a-f]{16}(?:-[0-9a-f]{16})?(?=/|$)")
"""What `table_path` gives, and folders of tables in later formats; whatever else stands there is somebody else's."""
_FOLDERS = ("nodes", "edges")
_NAMED = 5
"""Names that a warning lists."""
_FIRST_VERSION = 1
_FIRST_MANIFEST = 3


def create_graph(
    uri: str | os.PathLike[str],
    schema: str | os.PathLike[str],
    force: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> GraphStore:
    """Makes a graph from `.pg` text, or from the path of a `.pg` file.

    Raises AlreadyInitializedError when one is there and `force` is False. With `force` the old graph is removed first;
    WriterBusyError or ConflictError, before anything is, while somebody writes to it or a write awaits recovery. When
    creation fails half-way, the schema files go and the root can be used again.
    """
    source = schema_text(schema)
    catalog = accept_schema(source)
    location = locate(uri, storage_options)
    store = GraphStore(location, Objects(location, create=True))
    _refuse_later(store) if force else _refuse_existing(store)
    store.objects.probe(RECOVERY)
    if force:
        with remaking(store) as hold:
            _purge(store, hold)
            _create(store, source, catalog)
    else:
        with staging(store):
            remove_orphans(store)
            refuse_remade(store)
            _create(store, source, catalog)
    return store


def _create(store: GraphStore, source: str, catalog: Catalog) -> None:
    if not store.objects.create(SCHEMA_SOURCE, source.encode()):
        raise AlreadyInitializedError(store.root)
    reach(CrashPoint.MAKING_SCHEMA_WRITTEN)
    try:
        _lay_out(store, catalog)
    except (CommitFailed, StorageError) as failure:
        for name in _SCHEMA_FILES:
            store.objects.delete(name)
        raise StorageError(
            f"storage: '{store.root}' could not be initialised: {failure}; empty the folder, or init with force"
        ) from failure
    reach(CrashPoint.MAKING_CREATED)


def accept_schema(source: str) -> Catalog:
    """The catalog of a schema that is to be accepted. SchemaParseError for what a load could not check later."""
    catalog = compile_schema(source)
    if "check" in source:  # else it is read twice for nothing
        refuse_patterns(source, _why_unusable)
    return catalog


def _why_unusable(pattern: str) -> str | None:
    try:
        Pattern(pattern)
    except InvalidPatternError as error:
        reason = str(error)
        large = "too large" in reason
        return f"{reason}; counted repeats of classes such as \\w take room: lower the counts" if large else reason
    return None


def check_root(
    uri: str | os.PathLike[str], force: bool = False, storage_options: Mapping[str, str] | None = None
) -> None:
    """Raises what `create_graph` would for a place where no graph can be made, without touching it."""
    location = locate(uri, storage_options)
    if location.is_local and not os.path.exists(location.root):
        return
    store = GraphStore(location, Objects(location))
    if force:
        _refuse_later(store)
        refuse_owners(store)
    else:
        _refuse_existing(store)


def strangers(uri: str | os.PathLike[str]) -> list[str]:
    """The first names in a local folder that are none of a graph's: who makes a graph there may mean another folder."""
    location = locate(uri)
    if not location.is_local or not os.path.isdir(location.root):
        return []
    names = sorted(n for n in os.listdir(location.root) if n not in _FOLDERS and not n.startswith(("_", ".")))
    return names[:_NAMED]


def schema_text(schema: str | os.PathLike[str]) -> str:
    """`.pg` text itself, or the content of the file that a path names."""
    if isinstance(schema, str) and (not schema.strip() or "{" in schema or "\n" in schema):
        return schema.removeprefix("\ufeff")
    path = Path(plain(schema))
    try:
        if not path.is_file():
            found = "is a folder" if path.is_dir() else "not found"
            raise NotFoundError(f"schema file '{one_line(str(path))}' {found}")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise IoError(f"cannot read the schema file '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequestError(f"the schema file '{path}' is not UTF-8 text (byte {error.start + 1})") from error


def _lay_out(store: GraphStore, catalog: Catalog) -> None:
    store.objects.put(SCHEMA_IR, ir_text(catalog).encode())
    store.objects.put(SCHEMA_STATE, state_text(catalog.ir_hash).encode())
    rows: list[ManifestRow] = []
    for entity in catalog.tables():
        path = table_path(entity.table_key)
        create_dataset(store.location.join(path), physical_schema(entity), None, store.location.options)
        update = store.table_update(entity.table_key, path, None, _FIRST_VERSION, 0)
        rows += [table_row(entity.table_key, path), version_row(update)]
    reach(CrashPoint.MAKING_TABLES_CREATED)
    genesis = Commit(new_ulid(), None, _FIRST_MANIFEST, None, None, time.time_ns() // 1000)
    create_commit_log(store.location, genesis)
    create_manifest(store.location, rows)  # last: without it there is no graph


def _refuse_existing(store: GraphStore) -> None:
    if any(store.objects.get(name) is not None for name in _SCHEMA_FILES):
        raise AlreadyInitializedError(store.root)
    if COPYING in store.objects.list(RECOVERY):
        raise ConflictError(f"a copy to '{store.root}' is under way, or did not end: run it again, or init with force")


def _refuse_later(store: GraphStore) -> None:
    """A graph of a format that is only read is not removed either: who writes it is not looked for."""
    if store.objects.get(SCHEMA_SOURCE) is None or not store.objects.has_prefix(f"{MANIFEST}/_versions"):
        return
    form = None
    with suppress(StorageError, UnsupportedFormatError):  # what cannot be read may be made anew
        form = store.form()
    if form is not None and not form.is_written:
        raise form.refusal(store.root)


def _purge(store: GraphStore, hold: Callable[[], None]) -> None:
    """What says that a graph is here goes first, then what readers and writers begin with: half of a graph is none."""
    hold()
    for name in (*_SCHEMA_FILES, f"{RECOVERY}/{COPYING}"):
        store.objects.delete(name)
    reach(CrashPoint.MAKING_SCHEMA_GONE)
    store.objects.purge(MANIFEST, hold)
    reach(CrashPoint.MAKING_MANIFEST_GONE)
    for folder in (*_table_folders(store), COMMITS, COMMIT_ACTORS, RECOVERIES):
        store.objects.purge(folder, hold)
    reach(CrashPoint.MAKING_REMOVED)
    end_stages(store)
    reach(CrashPoint.MAKING_STAGES_ENDED)
    hold()


def _table_folders(store: GraphStore) -> list[str]:
    """Folders of tables, of types too that the manifest does not name any more; links in place of one are some, too."""
    paths = [path for folder in _FOLDERS for path in store.objects.links(folder)]
    links = {path for path in paths if "/" not in path}
    paths += [each.path for folder in _FOLDERS for each in store.objects.walk(folder)]
    return sorted(links | {found[0] for path in paths if (found := _TABLE_FOLDER.match(path)) is not None})
