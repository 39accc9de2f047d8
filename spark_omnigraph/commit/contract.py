"""The schema contract: the three schema files must agree (storage format 8.5)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import ConflictError, DamagedError, SchemaFilesError
from spark_omnigraph.lang.pg import compile_stored_schema
from spark_omnigraph.storage.graph_store import GraphStore, SchemaFiles
from spark_omnigraph.storage.layout import SCHEMA_IR, SCHEMA_SOURCE, SCHEMA_STATE
from spark_omnigraph.stored import Count, decode

_STATE_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Contract:
    """The accepted schema, its text, and the hash that writes expect to stand until they are published."""

    catalog: Catalog
    source: str
    schema_hash: str


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
    files = store.schema_files()
    catalog = _compiled(files.source)
    recorded = _recorded_hash(store, files)
    if recorded is not None and recorded != catalog.ir_hash:
        raise SchemaFilesError(
            f"{SCHEMA_SOURCE} of '{store.root}' does not compile to the recorded schema ({recorded}): it was edited by "
            "hand, or a schema change was interrupted. Put back the text that belongs to it"
        )
    return Contract(catalog, files.source, catalog.ir_hash)


@lru_cache(maxsize=32)
def _compiled(source: str) -> Catalog:
    """Catalogs are values, so that one text needs to be compiled once."""
    return compile_stored_schema(source)


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


def _recorded_hash(store: GraphStore, files: SchemaFiles) -> str | None:
    if files.ir is None and files.state is None:
        return None
    if files.ir is None or files.state is None:
        missing = SCHEMA_IR if files.ir is None else SCHEMA_STATE
        raise SchemaFilesError(f"'{store.root}' lacks {missing}, which goes with its other schema files: put it back")
    return _state_hash(store, files.state.encode())


def _state_hash(store: GraphStore, text: bytes) -> str:
    try:
        state = decode(text, _State, f"{SCHEMA_STATE} of '{store.root}'")
    except DamagedError as error:
        raise SchemaFilesError(f"{error.message}. Put the right one back") from error
    if state.format_version != _STATE_FORMAT:
        raise SchemaFilesError(
            f"{SCHEMA_STATE} of '{store.root}' has format {state.format_version}, not {_STATE_FORMAT}: put the right "
            "one back, or upgrade spark_omnigraph when a newer release wrote it"
        )
    return state.schema_ir_hash


class _State(msgspec.Struct):
    format_version: Count
    schema_ir_hash: str


def refuse_schema_change(store: GraphStore) -> None:
    """ConflictError while a schema change runs, and after one that died: then nobody else changes the graph."""
    if store.has_schema_lock():
        raise ConflictError(
            "a schema change is running, or died: nothing else is changed until it is over. One that died is seen to "
            "by a read-write open some minutes later, or by recover"
        )
