"""A table with three stored people, and what a task is told about it."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.mode import DecodeOptions, LoadMode
from spark_omnigraph.staging.receipt import StageContext, StagedFragment
from spark_omnigraph.storage.input.ranges import InputFile, InputRange
from spark_omnigraph.storage.tables.keys import read_staged
from spark_omnigraph.storage.tables.staged import TableTarget

SCHEMA = """
node Person { name: String @key  age: I32? @range(age, 0..150) }
node File { name: String @key  content: Blob?  size: I32? }
edge Knows: Person -> Person
"""
PERSON, FILE, KNOWS = TableKey.node("Person"), TableKey.node("File"), TableKey.edge("Knows")


def catalog() -> Catalog:
    return compile_schema(SCHEMA)


def people(*names: str, age: int | None = None) -> pa.Table:
    rows = [{"id": name, "name": name, "age": age} for name in names]
    return pa.Table.from_pylist(rows, physical_schema(catalog().nodes["Person"]))


def target(folder: Path, key: TableKey = PERSON, stored: pa.Table | None = None) -> TableTarget:
    """A table of so many rows, in one file; its stable row ids and its addresses count from 0."""
    entity = catalog().table(key)
    assert entity is not None
    schema = physical_schema(entity)
    rows = schema.empty_table() if stored is None else stored
    uri = str(folder / key.replace(":", "-"))
    made = lance.write_dataset(rows, uri, schema=schema, data_storage_version="2.2", enable_stable_row_ids=True)
    return TableTarget(key, uri, made.version, rows.num_rows)


def context(*targets: TableTarget, mode: LoadMode = LoadMode.APPEND, validate: bool = True) -> StageContext:
    return StageContext(catalog(), mode, DecodeOptions(), {t.table_key: t for t in targets}, validate=validate)


def range_of(*lines: str, index: int = 0) -> InputRange:
    text = "".join(f"{line}\n" for line in lines).encode()
    return InputRange(index, InputFile("<lines>", len(text), ""), 0, len(text), text)


def person(name: str, age: int | None = None) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def ids(fragment: StagedFragment) -> list[str]:
    """Ids of the rows of a staged file, in its order."""
    found: list[str] = read_staged(fragment.file, ["id"], {})["id"].to_pylist()
    return found
