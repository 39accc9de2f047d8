"""One line → one row, with Python values and exact messages: the definition of what a record means.

The fast path hands over every line that it is not sure of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, NodeType, Scalar
from spark_omnigraph.errors import Rule, nearest
from spark_omnigraph.records.json_line import InvalidJsonError, Members, parse_line, show
from spark_omnigraph.records.keys import composite_id, end_id, key_columns, key_text
from spark_omnigraph.records.mode import DecodeOptions, UnknownFields
from spark_omnigraph.records.values import BadValueError, value_reader


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


class BadRecordError(ValueError):
    """A record that is no row: the broken rule, the member that breaks it, and the message of the report."""

    def __init__(self, rule: Rule, message: str, field: str) -> None:
        super().__init__(message)
        self.rule, self.message, self.field = rule, message, field


class ExactDecoder:
    """Decodes single lines of any type of a catalog."""

    def __init__(self, catalog: Catalog, options: DecodeOptions) -> None:
        self._catalog = catalog
        self._options = options
        self._readers: dict[tuple[str, str], _TypeReader | None] = {}

    def decode(self, raw: bytes) -> ExactRow | Refusal:
        """The row on a line, or the first problem: JSON, type, endpoints, members, id and key, values by name."""
        try:
            members = parse_line(raw)
        except InvalidJsonError as error:
            return Refusal("", None, False, None, Rule.INVALID_JSON, f"invalid JSON: {error}")
        kind, name = _kind(members)
        if name is None:
            return Refusal("", None, False, None, Rule.INVALID_ENVELOPE, "expected 'type' or 'edge' field")
        is_edge = kind == "edge"
        reader = self._reader(kind, name)
        if reader is None:
            known = self._catalog.edges if is_edge else self._catalog.nodes
            message = f"unknown {kind} type '{name}'{_nearest(name, tuple(known))}"
            return Refusal("", name, is_edge, "edge" if is_edge else "type", Rule.UNKNOWN_TYPE, message)
        try:
            return ExactRow(reader.table_key, reader.read(members))
        except BadRecordError as bad:
            return Refusal(reader.table_key, name, is_edge, bad.field, bad.rule, bad.message)

    def _reader(self, kind: str, name: str) -> _TypeReader | None:
        if (kind, name) not in self._readers:
            entity = self._catalog.nodes.get(name) if kind == "node" else self._catalog.edge_by_word(name)
            if entity is None:
                return None
            self._readers[kind, name] = _TypeReader(self._catalog, entity, self._options)
        return self._readers[kind, name]


class _TypeReader:
    """Reads the records of one type."""

    def __init__(self, catalog: Catalog, entity: EntityType, options: DecodeOptions) -> None:
        self.table_key = entity.table_key
        self._name = entity.name
        self._ignore_unknown = options.unknown_fields is UnknownFields.IGNORE
        self._properties = [(p.name, value_reader(p, options.blob_schemes)) for p in entity.properties]
        self._known = {"id", *(p.name for p in entity.properties)}
        self._key = key_columns(entity) if isinstance(entity, NodeType) else []
        self._ends: list[tuple[str, str, NodeType, list[tuple[str, Scalar]]]] = []
        if isinstance(entity, EdgeType):
            for member, column, name in (("from", "src", entity.from_type), ("to", "dst", entity.to_type)):
                node = catalog.nodes[name]
                self._ends.append((member, column, node, key_columns(node)))

    def read(self, members: Members) -> dict[str, object]:
        """Columns by name; raises BadRecordError."""
        row: dict[str, object] = {}
        for member, column, node, key in self._ends:
            row[column] = _endpoint(members.get(member), member, node, key)
        data = self._data(members)
        row["id"] = _explicit_id(data)
        for name, _ in self._key:
            if data.get(name) is None:
                message = f"node {self._name} missing @key property '{name}'"
                raise BadRecordError(Rule.KEY_MISSING, message, name)
        for name, read in self._properties:
            try:
                row[name] = read(data.get(name))
            except BadValueError as bad:
                raise BadRecordError(bad.rule, bad.message, name) from None
        if self._key:
            row["id"] = self._checked_key(row)
        return row

    def _data(self, members: Members) -> Members:
        data = members.get("data")
        if data is None:
            return Members()
        if not isinstance(data, Members):
            raise BadRecordError(Rule.INVALID_ENVELOPE, f"'data' must be a JSON object, got {show(data)}", "data")
        if data.repeated is not None and not (self._ignore_unknown and data.repeated not in self._known):
            message = f"invalid JSON: member '{data.repeated}' is repeated"
            raise BadRecordError(Rule.INVALID_JSON, message, data.repeated)
        if not self._ignore_unknown and not self._known.issuperset(data):
            unknown = next(name for name in data if name not in self._known)
            declared = tuple(name for name, _ in self._properties)
            message = f"unknown field '{unknown}' of {self._name}{_nearest(unknown, declared)}"
            raise BadRecordError(Rule.UNKNOWN_FIELD, message, unknown)
        return data

    def _checked_key(self, row: Mapping[str, object]) -> str:
        """The id that the key gives; an explicit id must be the same."""
        texts = [str(key_text(row[name], scalar)) for name, scalar in self._key]
        found = texts[0] if len(texts) == 1 else composite_id(texts)
        given = row["id"]
        if given is not None and given != found:
            names = ", ".join(name for name, _ in self._key)
            message = (
                f"node {self._name} has explicit id '{given}' that does not match @key property "
                f"'{names}' value '{found}'"
            )
            raise BadRecordError(Rule.ID_MISMATCH, message, "id")
        return found


def _kind(members: Members) -> tuple[str, str | None]:
    """Node or edge and the type's name; `type` wins. Values that are not text count as absent."""
    node, edge = members.get("type"), members.get("edge")
    if isinstance(node, str):
        return "node", node
    return "edge", edge if isinstance(edge, str) else None


def _explicit_id(data: Members) -> str | None:
    value = data.get("id")
    if value is not None and not isinstance(value, str):
        raise BadRecordError(Rule.WRONG_TYPE, f"property 'id' expects String, got {show(value)}", "id")
    return value


def _endpoint(value: object, member: str, node: NodeType, key: Sequence[tuple[str, Scalar]]) -> str:
    if value is None:
        raise BadRecordError(Rule.MISSING_ENDPOINT, f"edge missing '{member}'", member)
    found = end_id(value, key)
    if found is None:
        message = f"edge missing '{member}': {show(value)} cannot be the id of a {node.name}"
        raise BadRecordError(Rule.MISSING_ENDPOINT, message, member)
    return found


@lru_cache(maxsize=1024)
def _nearest(name: str, known: tuple[str, ...]) -> str:
    return nearest(name, known)
