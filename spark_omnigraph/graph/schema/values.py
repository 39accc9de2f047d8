"""Values for stored rows: `Type.prop=JSON`, or `Type.prop=@other` for what each row has in another property.

JSON has no value that begins with `@`, so the two are never mistaken for each other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.migration.properties import Values
from spark_omnigraph.catalog.migration.steps import (
    AddProperty,
    Fill,
    FixedValue,
    FromColumn,
    RequireProperty,
    SchemaStep,
)
from spark_omnigraph.catalog.types import Catalog, EntityType, Property
from spark_omnigraph.errors import BadRequestError, NotFoundError
from spark_omnigraph.manifest.facts import decode_facts
from spark_omnigraph.records.values import BadValueError, value_reader
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.table import read_facts
from spark_omnigraph.words import nearest

SCHEMA_APPLY = "schema_apply"
"""The operation of a commit that changes the schema."""


def values_of(desired: Catalog, given: Mapping[str, object]) -> Values:
    """Values by table and property. Keys are `Type.prop` of the desired schema, or `node:Type.prop` where a node and an
    edge type have one name; a value is what JSON gives, or a `FromColumn`.

    Raises NotFoundError for an unknown type or property, BadRequestError for a value that the property cannot store.
    """
    found: dict[tuple[TableKey, str], Fill] = {}
    for place, value in given.items():
        entity, prop = _property(desired, place)
        if (entity.table_key, prop.name) in found:
            raise BadRequestError(f"two values are given for '{place}'")
        found[entity.table_key, prop.name] = value if isinstance(value, FromColumn) else _fixed(place, prop, value)
    return found


def _property(desired: Catalog, place: object) -> tuple[EntityType, Property]:
    if not isinstance(place, str) or not place.partition(".")[2]:
        raise BadRequestError(f"a value for stored rows is given for 'Type.property', not {as_shown(place)}")
    name, _, prop_name = place.partition(".")
    types = [each for each in desired.tables() if name in (each.name, each.table_key)]
    if not types:
        hint = nearest(name, (each.name for each in desired.tables()))
        raise NotFoundError(f"no type '{name}' in the new schema, for which '{place}' is given a value{hint}")
    if len(types) > 1:
        raise BadRequestError(f"'{place}' may be of a node or of an edge: write 'node:{place}' or 'edge:{place}'")
    prop = types[0].property(prop_name)
    if prop is None:
        hint = nearest(prop_name, (each.name for each in types[0].properties))
        raise NotFoundError(f"no property '{prop_name}' of '{name}' in the new schema, which is given a value{hint}")
    return types[0], prop


def _fixed(place: str, prop: Property, value: object) -> FixedValue:
    if value is None:
        raise BadRequestError(f"null is no value for stored rows of '{place}': leave it out")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequestError(
            f"the value for stored rows of '{place}' is none that JSON can carry: {as_shown(value)}"
        ) from error
    try:
        return FixedValue(value_reader(prop)(value))
    except BadValueError as error:
        raise BadRequestError(f"the value for stored rows of '{place}': {error.message}") from error


def values_given_by(steps: Iterable[SchemaStep]) -> Values:
    """What the steps of a change give stored rows."""
    return {
        (step.table_key, step.property_name): step.value
        for step in steps
        if isinstance(step, AddProperty | RequireProperty) and step.value is not None
    }


def digest_of(values: Values) -> str | None:
    """SHA-256 of values for stored rows, None of none: by it a change that is made again is known."""
    if not values:
        return None
    listed = [
        (*place, fill.column if isinstance(fill, FromColumn) else [fill.value])
        for place, fill in sorted(values.items(), key=lambda each: each[0])
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def digest_of_last_change(store: GraphStore) -> str | None:
    """That of the values which the last change of the schema gave; None where nobody knows."""
    facts = {commit: decode_facts(text) for commit, text in read_facts(store.manifest(None)).items()}
    changes = [commit for commit, each in facts.items() if each is not None and each.operation == SCHEMA_APPLY]
    last = facts[max(changes)] if changes else None
    return None if last is None else last.input_digest
