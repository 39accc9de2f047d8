"""Values of people (properties that the schema marks `@pii`) kept out of errors and logs; a report file has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from spark_omnigraph.bad_rows import BadRow, BadRowSummary
from spark_omnigraph.catalog.types import Catalog, Check, EdgeType, EntityType, NodeType
from spark_omnigraph.redaction import HIDDEN

MARK = "pii"
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\w.:+-]*")
_ENDS = ("from", "to", "src", "dst")
_IDS = ("id", *_ENDS)


def without_personal(summary: BadRowSummary, catalog: Catalog) -> BadRowSummary:
    """The summary with a sample that shows no value of a marked property: what an error carries, and a log shows."""
    if not any(_marked(entity) for entity in catalog.tables()):
        return summary
    return replace(summary, sample=tuple(_masked(row, catalog) for row in summary.sample))


def personal_message(message: str, catalog: Catalog, type_name: str | None, field: str | None = None) -> str:
    """A message about a row of a type, without its values where these may be of a person.

    What is quoted goes unless it is a text of the schema, and numbers where the property itself is marked. A row whose
    type is unknown is taken for one of a marked type. Ids stay where no key is marked, and names that the schema lacks.
    """
    entities = [entity for entity in catalog.tables() if type_name is None or entity.name == type_name]
    if entities and not any(_is_personal(entity, catalog) for entity in entities):
        return message
    is_id = field in _IDS and entities and not any(_has_personal_id(entity, catalog) for entity in entities)
    if is_id or message.startswith("unknown "):
        return message
    names = _names(catalog)
    text = _QUOTED.sub(lambda found: found[0] if found[0][1:-1] in names else f"'{HIDDEN}'", message)
    if any(field in _marked(entity) for entity in entities):
        text = _NUMBER.sub(HIDDEN, text)
    return text


def _masked(row: BadRow, catalog: Catalog) -> BadRow:
    known = [entity for entity in catalog.tables() if entity.name == row.record_type]
    if known and not any(_is_personal(entity, catalog) for entity in known):
        return row
    shown = tuple(
        replace(each, message=personal_message(each.message, catalog, row.record_type, each.field))
        for each in row.mistakes
    )
    return replace(
        row,
        message=shown[0].message,
        further=shown[1:],
        raw=f"({HIDDEN} the schema marks values of such rows as @{MARK})",
        id=row.id if known and not any(_has_personal_id(entity, catalog) for entity in known) else None,
    )


def _marked(entity: EntityType) -> set[str]:
    return {p.name for p in entity.properties if any(a.name == MARK for a in p.annotations)}


def _is_personal(entity: EntityType, catalog: Catalog) -> bool:
    """Whether rows of a type hold marked values: its own, or ids of nodes whose key is marked."""
    return bool(_marked(entity)) or _has_personal_id(entity, catalog)


def _has_personal_id(entity: EntityType, catalog: Catalog) -> bool:
    """Whether a key of marked values stands in the id of a row, or in the ends of an edge."""
    if not isinstance(entity, EdgeType):
        return isinstance(entity, NodeType) and bool(_marked(entity) & set(entity.key or ()))
    ends = (catalog.nodes.get(name) for name in (entity.from_type, entity.to_type))
    return any(node is not None and _marked(node) & set(node.key or ()) for node in ends)


def _names(catalog: Catalog) -> set[str]:
    return {*_ENDS, "id", "data", "type", "edge", *_of_schema(catalog)}


def _of_schema(catalog: Catalog) -> Iterator[str]:
    for entity in catalog.tables():
        yield entity.name
        for prop in entity.properties:
            yield prop.name
            yield from prop.type.enum_values or ()
        yield from (c.pattern for c in entity.constraints if isinstance(c, Check))
