"""How the rows of one type are written in this input: what a look at a few of them tells the column decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, NodeType, Property, Scalar
from spark_omnigraph.records.columns import Reading
from spark_omnigraph.records.json_line import InvalidJsonError, Members, parse_line
from spark_omnigraph.records.keys import key_columns

SAMPLE_ROWS = 8
SAMPLE_BYTES = 1 << 14
"""What is looked at, always at least one record."""
_DATES = (Scalar.DATE, Scalar.DATETIME)


class EndForm(Enum):
    """How `from` or `to` is written."""

    TEXT = "text"
    WHOLE = "whole"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """What the column decoder asks for. `extra` says that records have members beside those that matter."""

    readings: tuple[Reading, ...]
    ends: tuple[EndForm, EndForm]
    has_ids: bool
    extra: bool


def guess_layout(catalog: Catalog, entity: EntityType, sample: Sequence[bytes]) -> RecordLayout:
    """The layout that fits most of the sample. A wrong guess costs time, never a wrong value."""
    records = [record for record in map(_parse, sample) if record is not None]
    data = [d for d in (record.get("data") for record in records) if isinstance(d, Members)]
    readings = tuple(_reading(prop, [d.get(prop.name) for d in data]) for prop in entity.properties)
    wanted = {"data"}
    ends = (EndForm.TEXT, EndForm.TEXT)
    if isinstance(entity, EdgeType):
        wanted |= {"from", "to"}
        ends = (
            _end_form(catalog.nodes[entity.from_type], [record.get("from") for record in records]),
            _end_form(catalog.nodes[entity.to_type], [record.get("to") for record in records]),
        )
    return RecordLayout(readings, ends, any("id" in d for d in data), any(record.keys() - wanted for record in records))


def _parse(raw: bytes) -> Members | None:
    try:
        return parse_line(raw)
    except InvalidJsonError:
        return None


def _reading(prop: Property, values: Sequence[object]) -> Reading:
    seen = [value for value in values if value is not None]
    if prop.type.is_list or not seen:
        return Reading(prop)
    if prop.type.scalar in _DATES:
        return Reading(prop, whole=isinstance(seen[0], int))
    return Reading(prop, wide=prop.type.scalar.is_integer and any(isinstance(value, float) for value in seen))


def _end_form(node: NodeType, values: Sequence[object]) -> EndForm:
    first = next((value for value in values if value is not None), None)
    columns = key_columns(node)
    if isinstance(first, list) and len(columns) > 1:
        return EndForm.LIST
    if isinstance(first, int) and not isinstance(first, bool) and len(columns) == 1:
        scalar = columns[0][1]
        return EndForm.WHOLE if scalar.is_integer or scalar in _DATES else EndForm.TEXT
    return EndForm.TEXT
