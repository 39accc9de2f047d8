"""Input files as byte ranges, and a range as chunks of lines.

A record belongs to the range in which its line starts. Text never goes through the JVM: whoever works on a range
reads it here. Compressed files are one range each.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from typing import BinaryIO, cast

import numpy as np

from spark_omnigraph.errors import BadRequestError, IoError
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.jsonl.decode import LineChunk
from spark_omnigraph.records.jsonl.lines import TextLines
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.input.foreign import HEAD, looks_like, way_out
from spark_omnigraph.storage.input.globs import is_packed
from spark_omnigraph.storage.objects.files import open_object

BLOCK = 8 << 20
"""Bytes read at a time; a chunk of lines is about this large."""
RANGE_MIN, RANGE_MAX = 16 << 20, 128 << 20


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input: a file, or lines given in memory (`content`). `stamp` changes when the file does."""

    name: str
    size: int
    stamp: str
    content: bytes | None = None
    table: TableInput | None = None
    """How its rows are read, when it is a table; None of JSON lines."""

    @property
    def is_compressed(self) -> bool:
        return self.content is None and is_packed(self.name)


@dataclass(frozen=True, slots=True)
class InputRange:
    """Bytes `[start, end)` of an input, or row groups and batches of one that is a table; `index` is its place in input
    order.

    Of lines given in memory a range carries its own (`text`, which begins with a line), and its file none.
    """

    index: int
    file: InputFile
    start: int
    end: int
    text: bytes | None = None


def byte_bounds(file: InputFile, size: int) -> list[int]:
    """Where ranges of a file begin and end that have about so many bytes."""
    pieces = 1 if file.is_compressed else max(1, -(-file.size // size))
    step = -(-file.size // pieces) if file.size else 0
    return [min(file.size, piece * step) for piece in range(pieces + 1)]


def cut(
    files: Sequence[InputFile], parallelism: int, bounds: Callable[[InputFile, int], list[int]] = byte_bounds
) -> list[InputRange]:
    """Ranges of about equal size, two or more a worker where the input is large enough."""
    total = sum(f.size for f in files)
    size = max(RANGE_MIN, min(RANGE_MAX, -(-total // max(1, 2 * parallelism))))
    ranges: list[InputRange] = []
    for file in files:
        for start, end in pairwise(bounds(file, size)):
            ranges.append(_range(len(ranges), file, start, end))
    return ranges


def _range(index: int, file: InputFile, start: int, end: int) -> InputRange:
    if file.content is None:
        return InputRange(index, file, start, end)
    first, after = _line_start(file.content, start), _line_start(file.content, end)
    return InputRange(index, replace(file, content=None), first, after, file.content[first:after])


def _line_start(content: bytes, at: int) -> int:
    """The first place at or after a byte where a line starts, or the end."""
    if at == 0:
        return 0
    found = content.find(b"\n", at - 1)
    return found + 1 if found >= 0 else len(content)


def read_chunks(range_: InputRange, options: dict[str, str], block: int = BLOCK) -> Iterator[LineChunk]:
    """Lines that start in a range, in order. Offsets are those of the decompressed file.

    Raises IoError when the file changed since it was listed, or cannot be read.
    """
    if range_.text is not None:
        yield from _chunks(io.BytesIO(range_.text), range_.start, range_.end, block)
        return
    yield from _lines(range_, options, block, _refuse_foreign)


def read_lines(range_: InputRange, options: dict[str, str]) -> Iterator[LineChunk]:
    """Lines of a file that start in a range, whatever they hold."""
    yield from _lines(range_, options, BLOCK, None)


def _lines(
    range_: InputRange, options: dict[str, str], block: int, check: Callable[[InputFile, BinaryIO], None] | None
) -> Iterator[LineChunk]:
    file = range_.file
    with reading(f"read {file.name}"), open_unpacked(file, options) as stream:
        end = None if file.is_compressed else range_.end
        if range_.start == 0 and check is not None:
            check(file, stream)
            stream.seek(0)
        yield from _chunks(stream, _seek_to_line(stream, range_.start), end, block)


def _refuse_foreign(file: InputFile, stream: BinaryIO) -> None:
    """Says once what a file is whose every line would be bad."""
    found = looks_like(stream.read(HEAD))
    if found is not None:
        inside = "what is packed in " if file.is_compressed else ""
        raise BadRequestError(f"{inside}input '{file.name}' looks like {found}, not like JSON lines: {way_out(found)}")


def _seek_to_line(stream: BinaryIO, start: int) -> int | None:
    """Moves to the first line that starts at or after `start`; None when there is none."""
    if start == 0:
        return 0
    position = start - 1
    stream.seek(position)
    while piece := stream.read(1 << 16):
        found = piece.find(b"\n")
        if found >= 0:
            stream.seek(position + found + 1)
            return position + found + 1
        position += len(piece)
    return None


def _chunks(stream: BinaryIO, position: int | None, end: int | None, block: int) -> Iterator[LineChunk]:
    if position is None:
        return
    carry, line = b"", 0
    while end is None or position < end:
        piece = stream.read(block if end is None else min(block, end - position))
        if not piece:
            break
        position += len(piece)
        if end is not None and position >= end and not piece.endswith(b"\n"):
            rest = _rest_of_line(stream)
            piece += rest
            position += len(rest)
        text = carry + piece
        cut_at = text.rfind(b"\n")
        if cut_at < 0:
            carry = text
            continue
        carry = text[cut_at + 1 :]
        chunk = _chunk(text[:cut_at], position - len(text), line)
        yield chunk
        line += len(chunk.lines)
    if carry:
        yield _chunk(carry, position - len(carry), line)


def _chunk(text: bytes, offset: int, first_line: int) -> LineChunk:
    breaks = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == 10)
    offsets = np.empty(len(breaks) + 1, dtype=np.int64)
    offsets[0] = offset
    offsets[1:] = breaks + (offset + 1)
    return LineChunk(TextLines(text, offsets - offset), offsets, first_line)


def _rest_of_line(stream: BinaryIO) -> bytes:
    """Bytes up to and with the next line break; what follows may have been read from the stream too."""
    parts: list[bytes] = []
    while piece := stream.read(1 << 16):
        found = piece.find(b"\n")
        if found >= 0:
            parts.append(piece[: found + 1])
            break
        parts.append(piece)
    return b"".join(parts)


@contextmanager
def open_unpacked(file: InputFile, options: dict[str, str]) -> Iterator[BinaryIO]:
    """The decompressed bytes of an input as a stream."""
    with open_raw(file, options, file.is_compressed) as stream:
        if not file.is_compressed:
            yield stream
            return
        if stream.read(2) not in (b"", b"\x1f\x8b"):
            raise BadRequestError(f"input '{file.name}' is no gzip file, as its name says: pack it, or drop the ending")
        stream.seek(0)
        try:
            with gzip.GzipFile(fileobj=stream) as unpacked:
                yield cast(BinaryIO, unpacked)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BadRequestError(
                f"input '{file.name}' is a damaged gzip file ({error}): get it anew; nothing of it was taken"
            ) from error


def open_raw(file: InputFile, options: dict[str, str], buffered: bool = False) -> BinaryIO:
    """The bytes of an input as they are stored. IoError when it changed since it was listed."""
    if file.name.startswith("s3://"):
        return cast(BinaryIO, open_object(file.name, file.stamp, options, buffered=buffered))
    if file_stamp(os.stat(file.name)) != file.stamp:
        raise IoError(f"storage: input {file.name} changed while it was loaded; run the load again")
    return cast(BinaryIO, open(file.name, "rb", buffering=0))


def input_digest(files: Sequence[InputFile]) -> str | None:
    """Which input it was, without reading it: a hash of name, size and stamp of each file in order, the stamp being the
    time of the last change or the object's e-tag; of lines given in memory a hash of the lines. None without input.
    """
    if not files:
        return None
    known = [[f.name, f.size, f.stamp if f.content is None else sha256(f.content).hexdigest()] for f in files]
    return f"sha256:{sha256(json.dumps(known).encode()).hexdigest()}"


def file_stamp(facts: os.stat_result) -> str:
    """What changes when a local file does."""
    return f"{facts.st_size}:{facts.st_mtime_ns}"
