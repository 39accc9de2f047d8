"""Finds the few texts that make the column decoder fail, without building rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from spark_omnigraph.catalog.dates import DATE_MAX, DATE_MIN, INSTANT_MAX, INSTANT_MIN
from spark_omnigraph.catalog.types import INTEGER_RANGES, EntityType, NodeType, Scalar
from spark_omnigraph.records.columns import Reading
from spark_omnigraph.records.jsonl.record_layout import EndForm, RecordLayout

_LARGEST_BOUND = 2**63 - 1
"""msgspec takes no larger one; what exceeds UInt64 is found by halving instead."""
_PLAIN: dict[Scalar, Any] = {
    Scalar.STRING: str,
    Scalar.BOOL: bool,
    Scalar.F32: float,
    Scalar.F64: float,
    Scalar.BLOB: str,
}
_ENDS: dict[EndForm, Any] = {EndForm.TEXT: str, EndForm.WHOLE: int, EndForm.LIST: list[str]}

TEXT_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for text that is not what it was asked for."""


class ColumnPrefilter:
    """Says which texts have members of the right kinds. A filter, not a proof: it may let bad ones pass."""

    def __init__(self, entity: EntityType, layout: RecordLayout, refuse_unknown: bool) -> None:
        fields = [_field(at, reading) for at, reading in enumerate(layout.readings)]
        if layout.has_ids:
            fields.append(("id", str | None, None))
        data = msgspec.defstruct("Data", fields, forbid_unknown_fields=refuse_unknown, gc=False, kw_only=True)
        envelope: list[Any] = [("data", data if _has_required(fields) else data | None, _optional(fields))]
        if not isinstance(entity, NodeType):
            envelope += [
                (f"end{at}", _ENDS[form], msgspec.field(name=name))
                for at, (name, form) in enumerate(zip(("from", "to"), layout.ends))
            ]
        record = msgspec.defstruct("Record", envelope, forbid_unknown_fields=refuse_unknown, gc=False, kw_only=True)
        self._decode = msgspec.json.Decoder(record).decode

    def passing(self, texts: Sequence[bytes]) -> list[int]:
        """Positions of the texts that pass."""
        decode = self._decode
        good = []
        for at, text in enumerate(texts):
            try:
                decode(text)
            except TEXT_ERRORS:
                continue
            good.append(at)
        return good


def _field(at: int, reading: Reading) -> tuple[str, Any, Any]:
    ptype = reading.prop.type
    kind = _kind(reading)
    if ptype.is_vector:
        kind = Annotated[list[float], msgspec.Meta(min_length=ptype.dimension, max_length=ptype.dimension)]
    elif ptype.is_list:
        item: Any = kind | None
        kind = list[item]
    name = reading.prop.name
    if not ptype.nullable:
        return f"property{at}", kind, msgspec.field(name=name)
    return f"property{at}", kind | None, msgspec.field(name=name, default=None)


def _kind(reading: Reading) -> Any:
    scalar = reading.prop.type.scalar
    if scalar.is_integer:
        return float if reading.wide else _bounded(*INTEGER_RANGES[scalar])
    if scalar is Scalar.DATE:
        return _bounded(DATE_MIN, DATE_MAX) if reading.whole else str
    if scalar is Scalar.DATETIME:
        return _bounded(INSTANT_MIN, INSTANT_MAX) if reading.whole else str
    return _PLAIN.get(scalar, float)


def _bounded(low: int, high: int) -> Any:
    return Annotated[int, msgspec.Meta(ge=low, le=high if high <= _LARGEST_BOUND else None)]


def _has_required(fields: Sequence[tuple[str, Any, Any]]) -> bool:
    return any(getattr(default, "default", None) is msgspec.NODEFAULT for _, _, default in fields)


def _optional(fields: Sequence[tuple[str, Any, Any]]) -> Any:
    return msgspec.NODEFAULT if _has_required(fields) else None
