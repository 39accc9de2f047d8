"""The format read a second time, with pylance and JSON alone: checklist 12 of the storage format, for any graph."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from tests.format.test_checklist import fnv1a64
from tests.support.graph_files import Pin, pins

_SCALARS = {
    "String": pa.string(),
    "Bool": pa.bool_(),
    "I32": pa.int32(),
    "I64": pa.int64(),
    "U32": pa.uint32(),
    "U64": pa.uint64(),
    "F32": pa.float32(),
    "F64": pa.float64(),
    "Date": pa.date32(),
    "DateTime": pa.date64(),
}
_ID = pa.field("id", pa.string(), nullable=False)
_ENDS = [pa.field("src", pa.string(), nullable=False), pa.field("dst", pa.string(), nullable=False)]


def check_format(root: Path) -> None:
    """Schema files, hash, tables, columns, pins and ids of a graph with only main agree."""
    ir = json.loads((root / "_schema.ir.json").read_text(encoding="utf-8"))
    state = json.loads((root / "__schema_state.json").read_text(encoding="utf-8"))
    compact = json.dumps(ir, separators=(",", ":"), ensure_ascii=False)
    assert state["schema_ir_hash"] == f"sha256:{hashlib.sha256(compact.encode()).hexdigest()}"
    assert list(root.glob("*.staging")) == []
    assert lance.dataset(str(root / "__manifest")).branches.list() == {}
    shown = pins(root)
    types = {f"node:{t['name']}": t for t in ir["nodes"]} | {f"edge:{t['name']}": t for t in ir["edges"]}
    assert shown.keys() == types.keys()
    for key, pin in shown.items():
        _check_table(root, key, pin, types[key])
    for edge in ir["edges"]:
        table = _rows(root, shown[f"edge:{edge['name']}"], ["src", "dst"])
        for column, end in (("src", edge["from_type"]), ("dst", edge["to_type"])):
            assert set(table[column].to_pylist()) <= set(_rows(root, shown[f"node:{end}"], ["id"])["id"].to_pylist())


def _check_table(root: Path, key: str, pin: Pin, declared: dict[str, Any]) -> None:
    kind, name = key.split(":")
    assert pin.location == f"{kind}s/{fnv1a64(name)}"
    table = lance.dataset(str(root / pin.location))
    assert (table.version, table.count_rows()) == (pin.version, pin.row_count)
    ends = _ENDS if kind == "edge" else []
    assert table.schema.remove_metadata() == pa.schema([_ID, *ends, *map(_field, declared["properties"])])
    ids = _rows(root, pin, ["id"])["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    table.validate()


def _field(prop: dict[str, Any]) -> pa.Field:
    kind = prop["prop_type"]
    return pa.field(prop["name"], _SCALARS[kind["scalar"]], nullable=kind["nullable"])


def _rows(root: Path, pin: Pin, columns: list[str]) -> pa.Table:
    return lance.dataset(str(root / pin.location), version=pin.version).to_table(columns=columns)
