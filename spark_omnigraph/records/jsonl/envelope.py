"""What stands around `data` in a record: which members there may be, and the one shape that is read by columns."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from spark_omnigraph.bad_rows import Mistake, Rule
from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType
from spark_omnigraph.records.json_line import MAX_DEPTH, Members
from spark_omnigraph.records.jsonl.column_prefilter import TEXT_ERRORS
from spark_omnigraph.redaction import cut
from spark_omnigraph.words import nearest

ENVELOPE = ("type", "edge", "from", "to", "data")
ENDS = ("from", "to")
ENDS_ELSEWHERE = {"src": "from", "source": "from", "dst": "to", "target": "to"}
"""What people call the ends of an edge, and the members that name them."""
_NULL = b"null"
_NOTHING = msgspec.Raw()
_NAMES = tuple(f'"{name}"'.encode() for name in ENVELOPE)


def envelope_mistakes(members: Members, entity: EntityType | None, ignore_unknown: bool) -> Iterator[Mistake]:
    """What is wrong with the members of a record, their values aside. A null of a known name is no member.

    With `ignore_unknown` other members pass, but for those that would be lost without a word: `id`, names that the type
    declares, and names that differ from known ones in case alone.
    """
    declared = frozenset(misplaceable(entity)) if entity is not None else frozenset({"id"})
    for name in members.repeated:
        if not ignore_unknown or name in ENVELOPE or name in declared:
            yield Mistake(name, Rule.INVALID_JSON, f"invalid JSON: member '{cut(name)}' is repeated")
    if members.get("type") is not None and members.get("edge") is not None:
        yield Mistake("edge", Rule.INVALID_ENVELOPE, "a record has 'type' or 'edge', not both")
    is_node = entity is not None and not isinstance(entity, EdgeType)
    for name, value in members.items():
        if name in ENVELOPE:
            if is_node and name in ENDS and value is not None and (not ignore_unknown or name in declared):
                yield Mistake(name, Rule.UNKNOWN_FIELD, f"'{name}' belongs to edges; a property: write it in data")
        elif not ignore_unknown or (value is not None and name in declared) or name.lower() in ENVELOPE:
            yield Mistake(name, Rule.UNKNOWN_FIELD, _unknown(name, name in declared, is_node))


def misplaceable(entity: EntityType) -> tuple[str, ...]:
    """Names that mean something in `data` of a type and nothing beside it."""
    taken = set(ENVELOPE) if isinstance(entity, EdgeType) else {"type", "edge", "data"}
    return tuple(name for name in ("id", *(p.name for p in entity.properties)) if name not in taken)


def _unknown(name: str, is_declared: bool, is_node: bool) -> str:
    hint = "" if is_declared else nearest(name, ENVELOPE)
    if name in ENDS_ELSEWHERE and not is_declared and not is_node:
        hint = f"; an edge calls it '{ENDS_ELSEWHERE[name]}'"
    return f"unknown field '{cut(name)}' beside 'data'{hint or '; write it in data'}"


class _Envelope(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The members, as they are written."""

    type: msgspec.Raw = _NOTHING
    edge: msgspec.Raw = _NOTHING
    source: msgspec.Raw = msgspec.field(name="from", default=_NOTHING)
    target: msgspec.Raw = msgspec.field(name="to", default=_NOTHING)
    data: msgspec.Raw = _NOTHING


class EnvelopeReader:
    """Takes records apart without looking into their data. Of records that may break a rule it says nothing."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._decode = msgspec.json.Decoder(_Envelope).decode
        self._types: dict[tuple[bytes, bytes], EntityType] = {}

    def read(self, line: bytes) -> tuple[EntityType, bytes] | None:
        """Type and text of a record; None when only the row decoder can say what it is."""
        envelope = self._open(line)
        if envelope is None:
            return None
        names = bytes(envelope.type), bytes(envelope.edge)
        entity = self._types.get(names) or self._find(*names)
        if entity is None:
            return None
        self._types[names] = entity
        text = _text(envelope, isinstance(entity, EdgeType))
        return None if text is None else (entity, text)

    def strip(self, text: bytes, is_edge: bool) -> bytes | None:
        """A text without members that are null; None when only the row decoder can say what it is.

        The member that named the type was cut off before: another of its name, though null, is one too many.
        """
        envelope = self._open(text)
        if envelope is None or _given(envelope.type) or _given(envelope.edge):
            return None
        if envelope.edge if is_edge else envelope.type:
            return None
        return _text(envelope, is_edge)

    def _open(self, line: bytes) -> _Envelope | None:
        if line.count(b"[") + line.count(b"{") > MAX_DEPTH:
            return None
        try:
            envelope = self._decode(line)
        except TEXT_ERRORS:
            return None
        return envelope if _each_once(line, bytes(envelope.data)) else None

    def _find(self, type_name: bytes, edge_name: bytes) -> EntityType | None:
        if _given(type_name) and _given(edge_name):
            return None
        node, edge = _string(type_name), _string(edge_name)
        if node is not None:
            return self._catalog.nodes.get(node)
        return None if edge is None else self._catalog.edge_by_word(edge)


def _given(raw: msgspec.Raw | bytes) -> bool:
    return bytes(raw) not in (b"", _NULL)


def _each_once(line: bytes, data: bytes) -> bool:
    """Whether surely no member is there twice, which the decoder would pass over."""
    around = line.replace(data, b"", 1) if data.startswith(b"{") else line
    return b"\\u" not in around and all(around.count(name) <= 1 for name in _NAMES)


def _string(raw: bytes) -> str | None:
    try:
        return msgspec.json.decode(raw, type=str)
    except TEXT_ERRORS:
        return None


def _text(envelope: _Envelope, is_edge: bool) -> bytes | None:
    ends = ((b'"from":', envelope.source), (b'"to":', envelope.target))
    members = [b'"data":' + bytes(envelope.data)] if envelope.data else []
    if is_edge:
        members += [name + bytes(value) for name, value in ends if value]
    elif _given(envelope.source) or _given(envelope.target):
        return None
    return b"{%b}" % b",".join(members)
