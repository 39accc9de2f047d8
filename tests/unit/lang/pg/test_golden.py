"""Schemas with the IR and hash that the reference engine makes of them.

The files beside the schemas hold the reference's own output; they are never regenerated from this package.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph.catalog.ir import catalog_from_ir, ir_text
from spark_omnigraph.lang.pg import compile_schema, compile_stored_schema

GOLDEN = Path(__file__).parents[3] / "golden" / "pg"
HASHES: dict[str, str] = json.loads((GOLDEN / "hashes.json").read_text(encoding="utf-8"))


def read(name: str) -> str:
    return (GOLDEN / name).read_bytes().decode()


def test_every_schema_has_its_files() -> None:
    assert {path.stem for path in GOLDEN.glob("*.pg")} == set(HASHES)


@pytest.mark.parametrize("name", HASHES)
def test_ir_and_hash(name: str) -> None:
    catalog = compile_schema(read(f"{name}.pg"))
    assert ir_text(catalog) == read(f"{name}.ir.json")
    assert catalog.ir_hash == HASHES[name]
    assert compile_stored_schema(read(f"{name}.pg")) == catalog


@pytest.mark.parametrize("name", HASHES)
def test_the_ir_reads_back(name: str) -> None:
    assert catalog_from_ir(read(f"{name}.ir.json")) == compile_schema(read(f"{name}.pg"))


def test_the_published_vector_is_among_them() -> None:
    assert HASHES["people"] == "sha256:8e46adc503b0cbcdeb913b1109f08992bf2297ca125992020c20bfe4fe069343"
