"""One line → one row, with Python values and exact messages: the definition of what a record means.

The fast path hands over every line that it is not sure of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, NodeType, Property
from spark_omnigraph.errors import Rule
from spark_omnigraph.records.json_line import InvalidJsonError, Members, parse_line, show
from spark_omnigraph.records.keys import composite_id, endpoint_id, key_text
from spark_omnigraph.records.mode import UnknownFields
from spark_omnigraph.records.values import BadValueError, stored_value


@dataclass(frozen=True, slots=True)
class ExactRow:
    """Columns of one row by name; `id` is None when the row gets a new one."""

    table_key: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a line is no row. `table_key` is empty while the type is not known."""

    table_key: str
    record_type: str | None
    is_edge: bool
    field: str | None
    rule: Rule
    message: str


class _RefusedError(Exception):
    def __init__(self, rule: Rule, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.rule, self.message, self.field = rule, message, field


class ExactDecoder:
    """Decodes single lines of any type of a catalog."""

    def __init__(self, catalog: Catalog, unknown_fields: UnknownFields) -> None:
        self._catalog = catalog
        self._unknown_fields = unknown_fields

    def decode(self, raw: bytes) -> ExactRow | Refusal:
        """The row on a line, or the first problem: JSON, type, endpoints, members, id and key, values by name."""
        try:
            members = parse_line(raw)
        except InvalidJsonError as error:
            return Refusal("", None, False, None, Rule.INVALID_JSON, f"invalid JSON: {error}")
        kind, name = _kind(members)
        entity = self._entity(kind, name)
        table_key = entity.table_key if entity is not None else ""
        try:
            if entity is None:
                raise self._unknown(kind, name)
            return ExactRow(table_key, self._values(entity, members))
        except _RefusedError as refused:
            is_edge = kind == "edge"
            return Refusal(table_key, name, is_edge, refused.field, refused.rule, refused.message)

    def _entity(self, kind: str, name: str | None) -> EntityType | None:
        if name is None:
            return None
        return self._catalog.nodes.get(name) if kind == "node" else self._catalog.edge_by_word(name)

    def _unknown(self, kind: str, name: str | None) -> _RefusedError:
        if name is None:
            return _RefusedError(Rule.INVALID_ENVELOPE, "expected 'type' or 'edge' field")
        known = self._catalog.nodes if kind == "node" else self._catalog.edges
        field = "type" if kind == "node" else "edge"
        return _RefusedError(Rule.UNKNOWN_TYPE, f"unknown {kind} type '{name}'{_nearest(name, known)}", field)

    def _values(self, entity: EntityType, members: Members) -> dict[str, object]:
        row: dict[str, object] = {}
        if isinstance(entity, EdgeType):
            row["src"] = self._endpoint(members, "from", entity.from_type)
            row["dst"] = self._endpoint(members, "to", entity.to_type)
        data = self._data(entity, members)
        row["id"] = _explicit_id(data)
        if isinstance(entity, NodeType):
            _require_key(entity, data)
        for prop in entity.properties:
            row[prop.name] = _value(prop, data)
        if isinstance(entity, NodeType) and entity.key is not None:
            row["id"] = _checked_key(entity, entity.key, row)
        return row

    def _endpoint(self, members: Members, name: str, type_name: str) -> str:
        value = members.get(name)
        if value is None:
            raise _RefusedError(Rule.MISSING_ENDPOINT, f"edge missing '{name}'", name)
        found = endpoint_id(value, self._catalog.nodes[type_name])
        if found is None:
            message = f"edge missing '{name}': {show(value)} cannot be the id of a {type_name}"
            raise _RefusedError(Rule.MISSING_ENDPOINT, message, name)
        return found

    def _data(self, entity: EntityType, members: Members) -> Members:
        data = members.get("data")
        if data is None:
            return Members()
        if not isinstance(data, Members):
            raise _RefusedError(Rule.INVALID_ENVELOPE, f"'data' must be a JSON object, got {show(data)}", "data")
        declared = [p.name for p in entity.properties]
        known = {"id", *declared}
        ignore = self._unknown_fields is UnknownFields.IGNORE
        if data.repeated is not None and not (ignore and data.repeated not in known):
            raise _RefusedError(Rule.INVALID_JSON, f"invalid JSON: member '{data.repeated}' is repeated", data.repeated)
        unknown = next((name for name in data if name not in known), None)
        if unknown is not None and not ignore:
            message = f"unknown field '{unknown}' of {entity.name}{_nearest(unknown, declared)}"
            raise _RefusedError(Rule.UNKNOWN_FIELD, message, unknown)
        return data


def _kind(members: Members) -> tuple[str, str | None]:
    """Node or edge and the type's name; `type` wins. Values that are not text count as absent."""
    node, edge = members.get("type"), members.get("edge")
    if isinstance(node, str):
        return "node", node
    return "edge", edge if isinstance(edge, str) else None


def _explicit_id(data: Members) -> str | None:
    value = data.get("id")
    if value is not None and not isinstance(value, str):
        raise _RefusedError(Rule.WRONG_TYPE, f"property 'id' expects String, got {show(value)}", "id")
    return value


def _require_key(entity: NodeType, data: Members) -> None:
    for name in entity.key or ():
        if data.get(name) is None:
            raise _RefusedError(Rule.KEY_MISSING, f"node {entity.name} missing @key property '{name}'", name)


def _value(prop: Property, data: Members) -> object:
    try:
        return stored_value(prop, data.get(prop.name))
    except BadValueError as bad:
        raise _RefusedError(bad.rule, bad.message, prop.name) from None


def _checked_key(entity: NodeType, key: tuple[str, ...], row: Mapping[str, object]) -> str:
    """The id that the key gives; an explicit id must be the same."""
    scalars = {p.name: p.type.scalar for p in entity.properties}
    texts = [str(key_text(row[name], scalars[name])) for name in key]
    found = texts[0] if len(texts) == 1 else composite_id(texts)
    given = row["id"]
    if given is not None and given != found:
        message = (
            f"node {entity.name} has explicit id '{given}' that does not match @key property "
            f"'{', '.join(key)}' value '{found}'"
        )
        raise _RefusedError(Rule.ID_MISMATCH, message, "id")
    return found


def _nearest(name: str, known: Mapping[str, object] | list[str]) -> str:
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean '{near[0]}'?" if near else ""
