"""Members of JSON lines that say how records change rows: taken out, so that what is left is decoded like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from spark_omnigraph.bad_rows import Mistake, Rule
from spark_omnigraph.records.changes.ranks import (
    CHANGE_NAMES,
    CHANGE_TYPE,
    COMMIT_VERSION,
    NO_VERSION,
    NOT_TOLD,
    OP,
    PREIMAGE,
    UPDATE,
    WORDS,
    BadChangeError,
    RecordChanges,
    unknown_version,
    unknown_word,
)
from spark_omnigraph.records.json_line import BYTE_ORDER_MARK, InvalidJsonError, parse_line
from spark_omnigraph.records.jsonl.column_prefilter import TEXT_ERRORS
from spark_omnigraph.records.jsonl.decode import LineChunk, Rejected, raw_text

_Members = dict[str, msgspec.Raw]
_decode = msgspec.json.Decoder(_Members).decode
_MOST = 2**63 - 1


def changes_in_lines(chunk: LineChunk) -> tuple[LineChunk, RecordChanges, list[Rejected]]:
    """The chunk without those members, what they say of each line, and lines that do not say it.

    Lines that are refused here, and former images of rows, are blank in the chunk that is given back.
    """
    changes, lines = RecordChanges.of(UPDATE, len(chunk.lines)), []
    refused: list[Rejected] = []
    for at, line in enumerate(chunk.lines):
        text = line.removeprefix(BYTE_ORDER_MARK).strip()
        if text and not text.startswith(b"//"):
            try:
                text, changes.ranks[at], changes.versions[at] = _taken(text)
            except BadChangeError as bad:
                refused.append(_rejected(chunk, at, bad.mistake))
                text = b""
        lines.append(b"" if changes.ranks[at] == PREIMAGE else text)
    return replace(chunk, lines=lines), changes, refused


def _taken(text: bytes) -> tuple[bytes, int, int]:
    """A record without the members, its rank and its version."""
    try:
        members = _decode(text)
    except TEXT_ERRORS as error:
        raise BadChangeError(None, f"invalid JSON: {_why(text) or error}", Rule.INVALID_JSON) from None
    repeated: Sequence[str] = parse_line(text).repeated if _may_repeat(text, members) else ()
    name = next((name for name in repeated if name in CHANGE_NAMES), None)
    if name is not None:
        raise BadChangeError(name, f"invalid JSON: member '{name}' is repeated", Rule.INVALID_JSON)
    rank, version = _change(members)
    if not repeated:  # else the decoder says what is wrong with the record
        text = msgspec.json.encode({name: raw for name, raw in members.items() if name not in CHANGE_NAMES})
    return text, rank, version


def _change(members: Mapping[str, msgspec.Raw]) -> tuple[int, int]:
    told = {name: value for name in (OP, CHANGE_TYPE) if (value := _value(members, name)) is not None}
    if len(told) > 1:
        raise BadChangeError(OP, f"a record has '{OP}' or '{CHANGE_TYPE}', not both")
    if not told:
        raise BadChangeError(OP, NOT_TOLD)
    [(name, word)] = told.items()
    rank = WORDS.get(word) if isinstance(word, str) else None
    if rank is None:
        raise unknown_word(name, word)
    version = _value(members, COMMIT_VERSION)
    if version is None:
        return rank, NO_VERSION
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version <= _MOST:
        raise unknown_version(version)
    return rank, version


def _value(members: Mapping[str, msgspec.Raw], name: str) -> object:
    raw = members.get(name)
    try:
        return None if raw is None else msgspec.json.decode(raw)
    except TEXT_ERRORS:
        return bytes(raw or b"").decode("utf-8", "replace")


def _may_repeat(text: bytes, members: Mapping[str, msgspec.Raw]) -> bool:
    """Whether a member may be there twice, of which msgspec gives the last."""
    around = text.replace(bytes(members["data"]), b"", 1) if "data" in members else text
    return b"\\u" in around or any(around.count(b'"%b"' % name.encode()) > 1 for name in members)


def _why(text: bytes) -> str | None:
    """What the exact reader says of a text that is no object."""
    try:
        parse_line(text)
    except InvalidJsonError as error:
        return str(error)
    return None


def _rejected(chunk: LineChunk, at: int, mistake: Mistake) -> Rejected:
    line = chunk.lines[at]
    try:
        kinds: Mapping[str, object] = parse_line(line)
    except InvalidJsonError:
        kinds = {}
    node, edge = (value if isinstance(value := kinds.get(name), str) else None for name in ("type", "edge"))
    return Rejected(
        chunk.first_line + at,
        int(chunk.offsets[at]),
        node if node is not None else edge,
        mistake.field,
        mistake.rule,
        mistake.message,
        raw_text(line),
        node is None and edge is not None,
    )
