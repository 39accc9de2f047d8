"""Records written in an unusual order or with more members: to the one shape that the bulk reader reads."""

from __future__ import annotations

import msgspec

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType
from spark_omnigraph.records.json_line import MAX_DEPTH
from spark_omnigraph.records.screen import TEXT_ERRORS

_NOTHING = msgspec.Raw()


class _Envelope(msgspec.Struct, gc=False):
    """The members that matter, as they are written."""

    type: msgspec.Raw = _NOTHING
    edge: msgspec.Raw = _NOTHING
    source: msgspec.Raw = msgspec.field(name="from", default=_NOTHING)
    target: msgspec.Raw = msgspec.field(name="to", default=_NOTHING)
    data: msgspec.Raw = _NOTHING


class EnvelopeReader:
    """Takes records apart without looking into their data."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._decode = msgspec.json.Decoder(_Envelope).decode
        self._types: dict[tuple[bytes, bytes], EntityType] = {}

    def read(self, line: bytes) -> tuple[EntityType, bytes] | None:
        """Type and text of a record; None when only the exact reader can say what it is."""
        envelope = self._open(line)
        if envelope is None:
            return None
        names = bytes(envelope.type), bytes(envelope.edge)
        entity = self._types.get(names) or self._find(*names)
        if entity is None:
            return None
        self._types[names] = entity
        return entity, _text(envelope, isinstance(entity, EdgeType))

    def strip(self, text: bytes, is_edge: bool) -> bytes | None:
        """A text without the members that do not matter; None when it has a `type` or `edge` of its own."""
        envelope = self._open(text)
        if envelope is None or bytes(envelope.type) or bytes(envelope.edge):
            return None
        return _text(envelope, is_edge)

    def _open(self, line: bytes) -> _Envelope | None:
        if line.count(b"[") + line.count(b"{") > MAX_DEPTH:
            return None
        try:
            return self._decode(line)
        except TEXT_ERRORS:
            return None

    def _find(self, type_name: bytes, edge_name: bytes) -> EntityType | None:
        node, edge = _string(type_name), _string(edge_name)
        if node is not None:
            return self._catalog.nodes.get(node)
        return None if edge is None else self._catalog.edge_by_word(edge)


def _string(raw: bytes) -> str | None:
    try:
        return msgspec.json.decode(raw, type=str)
    except TEXT_ERRORS:
        return None


def _text(envelope: _Envelope, is_edge: bool) -> bytes:
    members = [b'"data":' + bytes(envelope.data)] if envelope.data else []
    if is_edge:
        ends = ((b'"from":', envelope.source), (b'"to":', envelope.target))
        members += [name + bytes(value) for name, value in ends if value]
    return b"{%b}" % b",".join(members)
