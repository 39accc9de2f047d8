"""The three schema files on their way: staged under other names, given their own ones, or removed (storage format 8.7).

They are staged by whoever changes the schema before it publishes, and named afterwards; recovery knows by them how far
it came.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from spark_omnigraph.catalog.ir import catalog_from_ir, ir_text
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.commit.announced import announced
from spark_omnigraph.commit.contract import state_text
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.plan import PreparedCommit, SchemaWrite
from spark_omnigraph.commit.publisher import SchemaTurn
from spark_omnigraph.errors import DamagedError, OmnigraphError
from spark_omnigraph.lang.pg import compile_stored_schema
from spark_omnigraph.manifest.rows import ManifestRow, table_row, tombstone_row
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import SCHEMA_IR, SCHEMA_SOURCE, SCHEMA_STATE, STAGED
from spark_omnigraph.stored import decode

FILES = (SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE)
"""In the order in which they are staged and named."""


def stage_files(store: GraphStore, schema: SchemaWrite, still: Callable[[], None]) -> None:
    """Stages the files of a new schema. `still` is asked before each: it raises for who may have been taken for dead,
    since the next change stages files of the same names.
    """
    for name, content in _contents(schema).items():
        still()
        store.objects.put(name + STAGED, content)
        reach(CrashPoint.SCHEMA_FILE_STAGED)


def _contents(schema: SchemaWrite) -> dict[str, bytes]:
    texts = (schema.source, ir_text(schema.desired), state_text(schema.desired.ir_hash))
    return {name: text.encode() for name, text in zip(FILES, texts, strict=True)}


def take_back_files(store: GraphStore, schema: SchemaWrite) -> None:
    """Removes what this change has staged, but nothing of the next one: who was taken for dead has lost its lease."""
    if schema.lock in announced(store).schemas:
        for name, content in _contents(schema).items():
            store.objects.remove(name + STAGED, content)


def name_files(store: GraphStore) -> None:
    """Gives every staged file its name; those that have it already are fine."""
    for name in FILES:
        content = store.objects.get(name + STAGED)
        if content is not None:
            store.objects.put(name, content)
            store.objects.delete(name + STAGED)
            reach(CrashPoint.SCHEMA_FILE_NAMED)


def discard_files(store: GraphStore) -> None:
    """Removes what is staged."""
    for name in FILES:
        store.objects.delete(name + STAGED)


def staged_schema(store: GraphStore) -> tuple[str, Catalog] | None:
    """Text and catalog of what is staged, None unless all files are there and belong together."""
    source, ir, state = (store.objects.get(name + STAGED) for name in FILES)
    if source is None or ir is None or state is None:
        return None
    try:
        text = source.decode()
        catalog = compile_stored_schema(text)
        fits = catalog_from_ir(ir.decode()).ir_hash == catalog.ir_hash == hash_of(state)
    except (OmnigraphError, UnicodeDecodeError):
        return None
    return (text, catalog) if fits else None


def hash_of(state: bytes) -> str | None:
    """The hash that a state file names."""
    try:
        return decode(state, _StateHash, SCHEMA_STATE).schema_ir_hash
    except DamagedError:
        return None


class _StateHash(msgspec.Struct):
    schema_ir_hash: str


def schema_rows(prepared: PreparedCommit) -> tuple[ManifestRow, ...]:
    """Rows by which a write adds tables and hides others, besides their versions."""
    added = (table_row(write.table_key, write.entry.location) for write in prepared.writes if write.is_new)
    hidden = (tombstone_row(key, version + 1) for key, version in prepared.dropped.items())
    return (*added, *hidden)


def schema_turn(prepared: PreparedCommit) -> SchemaTurn | None:
    """The schema that a write ends."""
    schema = prepared.schema
    if schema is None:
        return None
    return SchemaTurn(schema.accepted, prepared.schema_hash, schema.desired.ir_hash, schema.planned_on)
