"""Types of a graph as Spark shows them: the frame of a node or edge type, and the cast of a stored batch to it.

Stored → Spark: U32 → bigint, U64 → decimal(20,0), Date → date, DateTime → timestamp (an instant), Vector →
array<float>, Blob → binary, enum → string. Nothing is lost in that direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_omnigraph.catalog.types import EntityType, PropType, Scalar
from spark_omnigraph.errors import BadRequestError, StorageError
from spark_omnigraph.lang.gq.plan import ResultColumn
from spark_omnigraph.words import nearest

_SCALARS: Mapping[Scalar, DataType] = {
    Scalar.STRING: StringType(),
    Scalar.BOOL: BooleanType(),
    Scalar.I32: IntegerType(),
    Scalar.I64: LongType(),
    Scalar.U32: LongType(),
    Scalar.U64: DecimalType(20, 0),
    Scalar.F32: FloatType(),
    Scalar.F64: DoubleType(),
    Scalar.DATE: DateType(),
    Scalar.DATETIME: TimestampType(),
    Scalar.BLOB: BinaryType(),
    Scalar.VECTOR: ArrayType(FloatType()),
}

_WIDER: Mapping[type[DataType], tuple[type[DataType], ...]] = {
    IntegerType: (LongType, DoubleType),
    FloatType: (DoubleType,),
}
"""Types that hold every value of another exactly, decimals apart."""
_DIGITS: Mapping[type[DataType], int] = {IntegerType: 10, LongType: 19}
_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
"""How Spark is told that instants are in UTC, which before 4.2 they always are."""


def arrow_columns(frame: StructType) -> pa.Schema:
    """Columns of a frame as tasks see them, instants in UTC. BadRequestError for one that Arrow cannot carry."""
    try:
        return to_arrow_schema(frame, **_UTC)
    except (TypeError, ValueError):
        for field in frame.fields:
            _require_arrow(field)
        raise


def _require_arrow(field: StructField) -> None:
    try:
        to_arrow_schema(StructType([field]), **_UTC)
    except (TypeError, ValueError) as error:
        of = field.dataType.simpleString()
        raise BadRequestError(
            f"column '{field.name}' is {of}, which Arrow cannot carry: cast it, or leave it out"
        ) from error


def spark_type(prop: PropType) -> DataType:
    """Spark type of a property; elements of lists and vectors may be null."""
    scalar = _SCALARS[prop.scalar]
    return ArrayType(scalar) if prop.is_list else scalar


def answer_schema(columns: Sequence[ResultColumn]) -> StructType:
    """Columns of the answer to a query. BadRequestError for two names that Spark takes for one."""
    names = [column.name for column in columns]
    first: dict[str, str] = {}
    for place, name in enumerate(names):
        if first.setdefault(name.lower(), name) != name or name in names[:place]:
            other = first[name.lower()]
            alike = f"'{name}'" if other == name else f"'{other}' and '{name}', which Spark does not tell apart"
            raise BadRequestError(f"two columns are called {alike}: give one another name with `as`")
    return StructType([StructField(c.name, spark_type(c.type)) for c in columns])


def frame_schema(entity: EntityType) -> StructType:
    """All columns of a type: `id`, for edges `src` and `dst`, then the properties in their stored order."""
    fields = [StructField(name, StringType(), nullable=False) for name in entity.identity]
    fields += [StructField(p.name, spark_type(p.type), p.type.nullable) for p in entity.properties]
    return StructType(fields)


def select_columns(frame: StructType, columns: Sequence[str], owner: str) -> StructType:
    """The named columns in the asked order. BadRequestError names an unknown or repeated one."""
    if not columns:
        raise BadRequestError(f"no column of {owner} is asked for; name at least one")
    known = {f.name: f for f in frame.fields}
    for place, name in enumerate(columns):
        if name not in known:
            raise BadRequestError(f"{owner} has no column '{name}'{nearest(name, known)} (it has {', '.join(known)})")
        if name in columns[:place]:
            raise BadRequestError(f"column '{name}' is asked for twice")
    return StructType([known[name] for name in columns])


def check_user_schema(frame: StructType, asked: StructType, owner: str) -> None:
    """Refuses a schema given by the user with a column that the graph lacks, or a type that cannot hold its values."""
    selected = select_columns(frame, asked.names, owner)
    for have, want in zip(selected.fields, asked.fields, strict=True):
        if not _holds(want.dataType, have.dataType):
            raise BadRequestError(
                f"column '{have.name}' of {owner} is {have.dataType.simpleString()}, "
                f"the schema given asks for {want.dataType.simpleString()}: give that type or a wider one"
            )
        if have.nullable and not want.nullable:
            raise BadRequestError(f"column '{have.name}' of {owner} may be null, the schema given says NOT NULL")


def arrow_target(frame: StructType) -> pa.Schema:
    """Arrow schema that Spark demands of the batches of a frame, nullability included."""
    target = to_arrow_schema(frame, **_UTC)
    assert isinstance(target, pa.Schema)
    return target


def to_frame(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """A stored batch with the types, nullability and child names of `target`; columns match by position."""
    if batch.schema.equals(target):
        return batch
    return pa.RecordBatch.from_arrays(
        [_cast(column, wanted) for column, wanted in zip(batch.columns, target, strict=True)], schema=target
    )


def _cast(column: pa.Array, wanted: pa.Field) -> pa.Array:
    if column.type.equals(wanted.type):
        return column
    try:
        return column.cast(wanted.type)
    except pa.ArrowInvalid as error:
        raise StorageError(f"storage: column '{wanted.name}' holds a value that Spark cannot show: {error}") from error


def _holds(want: DataType, have: DataType) -> bool:
    """True for the same type, and for one that holds each of its values exactly.

    A DDL text cannot say that the elements of an array are never null.
    """
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return want.containsNull and _holds(want.elementType, have.elementType)
    if isinstance(want, DecimalType):
        digits = _DIGITS.get(type(have)) if not isinstance(have, DecimalType) else have.precision
        return digits is not None and want.precision - want.scale >= digits
    return have == want or type(want) in _WIDER.get(type(have), ())
