"""Schema documents of version 2, from stamp 5 on: they give tables their ids, and say of which history of ids they are.

The catalog is that of `_schema.pg`, as in every format; the documents must be of the same types. Rules are not
compared, since the documents spell them in another way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.ir_document import compact
from spark_omnigraph.catalog.ir_shape import TypeShape
from spark_omnigraph.catalog.types import Catalog, PropType
from spark_omnigraph.errors import DamagedError
from spark_omnigraph.manifest.rows import TableId
from spark_omnigraph.stored import decode

IR_VERSION = 2
_Id = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class AcceptedTables:
    """The tables of an accepted schema by their ids, and the hash under which it was accepted."""

    tables: Mapping[TableKey, TableId]
    schema_hash: str


class _LaterState(msgspec.Struct):
    schema_ir_hash: str
    schema_identity_domain: str


class _LaterProperty(msgspec.Struct):
    name: str
    prop_type: TypeShape


class _LaterType(msgspec.Struct):
    name: str
    type_id: _Id
    table_incarnation_id: _Id
    properties: list[_LaterProperty]


class _LaterDocument(msgspec.Struct):
    ir_version: int
    schema_identity_domain: str
    nodes: list[_LaterType]
    edges: list[_LaterType]


def read_documents(ir: str, state: str, catalog: Catalog) -> AcceptedTables:
    """The tables that both documents tell of. DamagedError says what does not belong to what."""
    document = decode(ir.encode(), _LaterDocument, "_schema.ir.json")
    recorded = decode(state.encode(), _LaterState, "__schema_state.json")
    if document.ir_version != IR_VERSION:
        raise DamagedError(f"_schema.ir.json has version {document.ir_version}, not {IR_VERSION}")
    if document.schema_identity_domain != recorded.schema_identity_domain:
        raise DamagedError("_schema.ir.json and __schema_state.json are of two graphs: their identity domains differ")
    try:
        found = f"sha256:{hashlib.sha256(compact(json.loads(ir)).encode()).hexdigest()}"
    except (ValueError, RecursionError) as error:  # in a member that the shape passes over
        raise DamagedError(f"_schema.ir.json cannot be read: {error}") from error
    if found != recorded.schema_ir_hash:
        raise DamagedError(f"_schema.ir.json is not the document that was accepted ({recorded.schema_ir_hash})")
    types = {
        key(each.name): each
        for key, listed in ((TableKey.node, document.nodes), (TableKey.edge, document.edges))
        for each in listed
    }
    if _columns(types) != {t.table_key: {p.name: p.type for p in t.properties} for t in catalog.tables()}:
        raise DamagedError("_schema.pg does not have the types of _schema.ir.json: it was edited by hand")
    tables = {name: TableId(each.type_id, each.table_incarnation_id) for name, each in types.items()}
    return AcceptedTables(tables, recorded.schema_ir_hash)


def _columns(types: Mapping[TableKey, _LaterType]) -> dict[TableKey, dict[str, PropType]]:
    return {key: {p.name: p.prop_type.build() for p in each.properties} for key, each in types.items()}
