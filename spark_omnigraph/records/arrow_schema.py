"""The Arrow schema in which rows of a type are stored."""

from __future__ import annotations

import pyarrow as pa

from spark_omnigraph.catalog.types import GIVEN, Catalog, EntityType, NodeType, Property, PropType, Scalar

BLOB = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.string())])
"""What is written for a blob: its bytes, or a reference. A table of two children takes no appends with four."""

INSTANT = pa.timestamp("ms", "UTC")
"""What readers of Arrow know an instant by."""

BLOB_METADATA = {b"ARROW:extension:name": b"lance.blob.v2"}

_SCALARS = {
    Scalar.STRING: pa.string(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.date64(),
    Scalar.BLOB: BLOB,
}
_OF_STORED = {kind: scalar for scalar, kind in _SCALARS.items()}


def property_type(ptype: PropType) -> pa.DataType:
    """Arrow type of a property's column."""
    if ptype.is_vector:
        return pa.list_(pa.field("item", pa.float32()), ptype.dimension or -1)
    scalar = _SCALARS[ptype.scalar]
    return pa.list_(pa.field("item", scalar)) if ptype.is_list else scalar


def stored_type(column: pa.Field) -> PropType | None:
    """The type of property that a stored column has; None for one that no property has."""
    kind, nullable = column.type, column.nullable
    if pa.types.is_fixed_size_list(kind):
        return PropType(Scalar.VECTOR, nullable, dimension=kind.list_size)
    if getattr(kind, "extension_name", None) == BLOB_METADATA[b"ARROW:extension:name"].decode():
        return PropType(Scalar.BLOB, nullable)
    is_list = pa.types.is_list(kind)
    scalar = _OF_STORED.get(kind.value_type if is_list else kind)
    return None if scalar is None else PropType(scalar, nullable, is_list)


def shown_type(ptype: PropType) -> pa.DataType:
    """Arrow type in which values leave: as stored, but for instants. A date64 is taken for a day by its readers."""
    if ptype.scalar is not Scalar.DATETIME:
        return property_type(ptype)
    return pa.list_(pa.field("item", INSTANT)) if ptype.is_list else INSTANT


def physical_schema(entity: EntityType) -> pa.Schema:
    """Columns of a table in stored order: `id`, for edges `src` and `dst`, then the properties by name."""
    leading = ["id"] if isinstance(entity, NodeType) else ["id", "src", "dst"]
    fields = [pa.field(name, pa.string(), nullable=False) for name in leading]
    ordered = sorted(entity.properties, key=lambda p: p.name.encode())
    return pa.schema(fields + [_property_field(p) for p in ordered])


def decoded_catalog(catalog: Catalog, patches: bool) -> Catalog:
    """The schema as records are decoded by: a patch may lack any property."""
    return catalog.with_optional(lambda _: True) if patches else catalog


def decoded_schema(entity: EntityType, patches: bool) -> pa.Schema:
    """Columns of decoded records."""
    return patch_schema(entity) if patches else physical_schema(entity)


def patch_schema(entity: EntityType) -> pa.Schema:
    """Columns of patches of a type: those of its rows, null where a patch lacks them, and for each property whether the
    patch has it. Vectors are lists of any length, since a null of a fixed one takes the place of a value.
    """
    fields = [pa.field(field.name, _loose(field.type)) for field in physical_schema(entity)]
    return pa.schema(fields + [pa.field(GIVEN + prop.name, pa.bool_()) for prop in entity.properties])


def _loose(kind: pa.DataType) -> pa.DataType:
    return pa.list_(kind.value_field) if pa.types.is_fixed_size_list(kind) else kind


def _property_field(prop: Property) -> pa.Field:
    metadata = BLOB_METADATA if prop.type.scalar is Scalar.BLOB else None
    return pa.field(prop.name, property_type(prop.type), nullable=prop.type.nullable, metadata=metadata)
