"""One line → one row, with Python values and exact messages: the definition of what a record means.

The fast path hands over every line that it is not sure of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache

from spark_omnigraph.bad_rows import MISTAKES, Mistake, Rule
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import GIVEN, Catalog, EdgeType, EntityType, NodeType, PropType, Scalar
from spark_omnigraph.records.json_line import InvalidJsonError, Members, parse_line, show
from spark_omnigraph.records.json_texts import value_of_text
from spark_omnigraph.records.jsonl.envelope import ENDS, ENDS_ELSEWHERE, envelope_mistakes
from spark_omnigraph.records.keys import composite_id, end_id, id_form, key_columns, key_text
from spark_omnigraph.records.mode import DecodeOptions, Nulls, UnknownFields
from spark_omnigraph.records.values import BadValueError, value_reader
from spark_omnigraph.redaction import cut
from spark_omnigraph.words import nearest

_UNKNOWN = TableKey()


@dataclass(frozen=True, slots=True)
class DecodedRow:
    """Columns of one row by name; `id` is None when the row gets a new one."""

    table_key: TableKey
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a line is no row: at least one mistake. `table_key` is empty while the type is not known.

    `values` are the columns that could be read all the same.
    """

    table_key: TableKey
    record_type: str | None
    is_edge: bool
    mistakes: tuple[Mistake, ...]
    values: Mapping[str, object] = field(default_factory=dict)


class BadRecordError(ValueError):
    """A member that cannot be read: the broken rule, the member, and the message of the report."""

    def __init__(self, rule: Rule, message: str, field: str) -> None:
        super().__init__(message)
        self.mistake = Mistake(field, rule, message)


class RowDecoder:
    """Decodes single lines of any type of a catalog. With `constants` numbers that are not finite may be spelt out."""

    def __init__(self, catalog: Catalog, options: DecodeOptions, constants: bool = False) -> None:
        self._catalog = catalog
        self._options = options
        self._constants = constants
        self._readers: dict[tuple[str, str], _TypeReader | None] = {}

    def decode(self, raw: bytes, deletes: bool = False) -> DecodedRow | Refusal:
        """The row on a line, or its mistakes: JSON, type, members, endpoints, id and key, values by name. Of one that
        `deletes` a row only what gives the id is read.
        """
        try:
            members = parse_line(raw, self._constants)
        except InvalidJsonError as error:
            return Refusal(_UNKNOWN, None, False, (Mistake(None, Rule.INVALID_JSON, f"invalid JSON: {error}"),))
        kind, name = _kind(members)
        is_edge = kind == "edge"
        if name is None:
            nameless = Mistake(None, Rule.INVALID_ENVELOPE, "expected 'type' or 'edge' field")
            # What is no record at all needs no word about each of its members.
            return Refusal(_UNKNOWN, None, False, (nameless, *envelope_mistakes(members, None, True))[:MISTAKES])
        reader = self._reader(kind, name)
        if reader is None:
            known = self._catalog.edges if is_edge else self._catalog.nodes
            message = f"unknown {kind} type '{cut(name)}'{_nearest(name, tuple(known))}"
            unknown = Mistake("edge" if is_edge else "type", Rule.UNKNOWN_TYPE, message)
            return Refusal(_UNKNOWN, name, is_edge, self._with_envelope(unknown, members))
        row, mistakes = reader.read_id(members) if deletes else reader.read(members)
        if not mistakes:
            return DecodedRow(reader.table_key, row)
        return Refusal(reader.table_key, name, is_edge, tuple(mistakes[:MISTAKES]), row)

    def _with_envelope(self, first: Mistake, members: Members) -> tuple[Mistake, ...]:
        return (first, *envelope_mistakes(members, None, self._options.unknown_fields is UnknownFields.IGNORE))[
            :MISTAKES
        ]

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
        self._entity = entity
        self._name = entity.name
        self._ignore_unknown = options.unknown_fields is UnknownFields.IGNORE
        self._coerce = options.coerce
        self._edge_id = options.edge_id if isinstance(entity, EdgeType) else None
        self._patches = options.patches
        self._keeps_nulls = options.patches and options.nulls is Nulls.KEEP
        self._properties = [(p.name, value_reader(p, options.blob_schemes, options.coerce)) for p in entity.properties]
        self._declared = tuple(p.name for p in entity.properties)
        self._known = {"id", *self._declared}
        self._key = key_columns(entity) if isinstance(entity, NodeType) else []
        self._ends: list[tuple[str, str, NodeType, list[tuple[str, Scalar]]]] = []
        if isinstance(entity, EdgeType):
            for member, column, name in (("from", "src", entity.from_type), ("to", "dst", entity.to_type)):
                node = catalog.nodes[name]
                self._ends.append((member, column, node, key_columns(node)))

    def read(self, members: Members) -> tuple[dict[str, object], list[Mistake]]:
        """Columns by name, those aside that cannot be read, and all mistakes."""
        row: dict[str, object] = {}
        mistakes = list(envelope_mistakes(members, self._entity, self._ignore_unknown))
        self._read_ends(members, row, mistakes)
        data = self._data(members, mistakes)
        if data is not None:
            self._read_data(data, row, mistakes)
        return row, mistakes

    def read_id(self, members: Members) -> tuple[dict[str, object], list[Mistake]]:
        """The columns that an id follows from, and all mistakes in them: `id`, a key, or the ends of an edge that is
        known by these.
        """
        row: dict[str, object] = {}
        mistakes = list(envelope_mistakes(members, self._entity, self._ignore_unknown))
        data = self._data(members, mistakes)
        if data is None:
            return row, mistakes
        mistakes += self._strange(data)
        self._read_explicit(data, row, mistakes)
        lacks = row.get("id") is None
        if self._edge_id is not None and lacks:
            self._read_ends(members, row, mistakes)
        elif lacks and not self._key:
            mistakes.append(Mistake("id", Rule.KEY_MISSING, f"a record that deletes a {self._name} needs its 'id'"))
        if lacks or all(data.get(name) is not None for name, _ in self._key):
            self._read_properties(data, row, mistakes, {name for name, _ in self._key}.union(self._edge_id or ()))
        return row, mistakes

    def _data(self, members: Members, mistakes: list[Mistake]) -> Members | None:
        data = members.get("data")
        if data is None:
            return Members()
        if isinstance(data, Members):
            return data
        message = f"'data' must be a JSON object, got {show(data)}"
        mistakes.append(Mistake("data", Rule.INVALID_ENVELOPE, message))
        return None

    def _read_ends(self, members: Members, row: dict[str, object], mistakes: list[Mistake]) -> None:
        for member, column, node, key in self._ends:
            if self._patches and members.get(member) is None:
                continue
            try:
                row[column] = _endpoint(self._end(members.get(member), key), member, node, key)
            except BadRecordError as bad:
                mistakes.append(bad.mistake)

    def _end(self, value: object, key: Sequence[tuple[str, Scalar]]) -> object:
        """What `from` or `to` says: a text may spell the key that it names."""
        if not self._coerce or not isinstance(value, str) or len(key) != 1:
            return value
        return value_of_text(PropType(key[0][1]), value)

    def _read_data(self, data: Members, row: dict[str, object], mistakes: list[Mistake]) -> None:
        mistakes += self._strange(data)
        self._read_explicit(data, row, mistakes)
        self._read_properties(data, row, mistakes, self._known)

    def _read_explicit(self, data: Members, row: dict[str, object], mistakes: list[Mistake]) -> None:
        try:
            row["id"] = _explicit_id(data)
        except BadRecordError as bad:
            mistakes.append(bad.mistake)

    def _read_properties(self, data: Members, row: dict[str, object], mistakes: list[Mistake], names: Set[str]) -> None:
        """Some of the properties, the key among them."""
        given = {name for name in self._declared if name in data and not (self._keeps_nulls and data[name] is None)}
        missing = list(self._lost_keys(data, given))
        for name in missing:
            mistakes.append(Mistake(name, Rule.KEY_MISSING, self._nameless(name)))
        if self._patches:
            row |= {GIVEN + name: name in given for name in self._declared}
        for name, read in self._properties:
            if name in missing or name not in (given if self._patches else names):
                continue
            try:
                row[name] = read(data.get(name))
            except BadValueError as wrong:
                mistakes.append(Mistake(name, wrong.rule, wrong.message))
        if self._key and all(name in row for name, _ in self._key):
            self._read_key(row, mistakes)

    def _lost_keys(self, data: Members, given: Set[str]) -> Iterator[str]:
        """What a record lacks to name its row: properties of the key, for which a patch may give the id instead."""
        by_id = self._patches and data.get("id") is not None and given.isdisjoint(name for name, _ in self._key)
        if self._patches and not self._key and data.get("id") is None:
            yield "id"
        if not by_id:
            yield from (name for name, _ in self._key if data.get(name) is None)

    def _nameless(self, name: str) -> str:
        if name == "id":
            return f"a patch of {self._name} needs the 'id' of its row"
        return f"node {self._name} missing @key property '{name}'"

    def _strange(self, data: Members) -> Iterator[Mistake]:
        """Members that are repeated or not declared."""
        for name in data.repeated:
            if not self._ignore_unknown or name in self._known:
                yield Mistake(name, Rule.INVALID_JSON, f"invalid JSON: member '{cut(name)}' is repeated")
        if not self._ignore_unknown and not self._known.issuperset(data):
            for name in data:
                if name not in self._known:
                    message = f"unknown field '{cut(name)}' of {self._name}{self._instead(name)}"
                    yield Mistake(name, Rule.UNKNOWN_FIELD, message)

    def _instead(self, name: str) -> str:
        """What to do about a member that is not declared: an end of an edge stands beside `data`."""
        end = ENDS_ELSEWHERE.get(name, name)
        if self._ends and end in ENDS:
            return f"; it belongs beside 'data', as '{end}'"
        return _nearest(name, self._declared)

    def _read_key(self, row: dict[str, object], mistakes: list[Mistake]) -> None:
        """Takes the id that the key gives; an explicit id must be the same."""
        texts = [str(key_text(row[name], scalar)) for name, scalar in self._key]
        found = texts[0] if len(texts) == 1 else composite_id(texts)
        given = row.get("id")
        if given is not None and given != found:
            names = ", ".join(name for name, _ in self._key)
            message = (
                f"node {self._name} has explicit id '{cut(given)}' that does not match @key property "
                f"'{names}' value '{cut(found)}'"
            )
            mistakes.append(Mistake("id", Rule.ID_MISMATCH, message))
        row["id"] = found


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
        message = f"edge missing '{member}': {show(value)} cannot be the id of a {node.name}{id_form(node)}"
        raise BadRecordError(Rule.MISSING_ENDPOINT, message, member)
    return found


@lru_cache(maxsize=1024)
def _nearest(name: str, known: tuple[str, ...]) -> str:
    return nearest(name, known)
