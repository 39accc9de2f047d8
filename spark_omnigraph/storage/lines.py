"""Input files as byte ranges, and a range as chunks of lines.

A record belongs to the range in which its line starts. Text never goes through the JVM: whoever works on a range
reads it here. Compressed files are one range each.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn, cast

import numpy as np
import obstore
from obstore.exceptions import NotFoundError as ObjectNotFoundError

from spark_omnigraph.errors import BadRequestError, NotFoundError, StorageError
from spark_omnigraph.records.decode import LineChunk
from spark_omnigraph.records.lines import TextLines
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.globs import fixed_folder, has_magic, matches
from spark_omnigraph.storage.object_file import open_object, split_s3
from spark_omnigraph.storage.objects import open_object_store
from spark_omnigraph.storage.uri import PLACES, Location, has_scheme, locate, plain

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import LocalStore, S3Store

BLOCK = 8 << 20
"""Bytes read at a time; a chunk of lines is about this large."""
RANGE_MIN, RANGE_MAX = 16 << 20, 128 << 20
MEMORY_NAME = "<input>"

Source = str | os.PathLike[str] | Iterable[str]


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input: a file, or lines given in memory (`content`). `stamp` changes when the file does."""

    name: str
    size: int
    stamp: str
    content: bytes | None = None

    @property
    def is_compressed(self) -> bool:
        return self.content is None and self.name.endswith((".gz", ".gzip"))


@dataclass(frozen=True, slots=True)
class InputRange:
    """Bytes `[start, end)` of an input; `index` is its place in input order.

    Of lines given in memory a range carries its own (`text`, which begins with a line), and its file none.
    """

    index: int
    file: InputFile
    start: int
    end: int
    text: bytes | None = None


def list_inputs(source: Source | Sequence[str | os.PathLike[str]], options: dict[str, str]) -> list[InputFile]:
    """Inputs of a load in order: paths, globs, folders (hidden and `_` files left out), `s3://` URIs, or lines.

    A list whose items are all existing paths, globs or URIs counts as paths; any other iterable of text as lines.
    A file that is named twice is read once. NotFoundError names a path that matches nothing.
    """
    if isinstance(source, (str, os.PathLike)):
        if not os.fspath(source).strip():
            raise BadRequestError("the input is an empty path; name a file, a folder, a glob or a URI")
        return _expand(os.fspath(source), options)
    items = list(source)
    if items and all(_looks_like_path(item) for item in items):
        found = [file for item in items for file in _expand(os.fspath(item), options)]
        return list({os.path.abspath(f.name) if "://" not in f.name else f.name: f for f in found}.values())
    content = "\n".join(os.fspath(item) for item in items).encode()
    return [InputFile(MEMORY_NAME, len(content), "memory", content)]


def cut(files: Sequence[InputFile], parallelism: int) -> list[InputRange]:
    """Ranges of about equal size, two or more a worker where the input is large enough."""
    total = sum(f.size for f in files)
    size = max(RANGE_MIN, min(RANGE_MAX, -(-total // max(1, 2 * parallelism))))
    ranges: list[InputRange] = []
    for file in files:
        pieces = 1 if file.is_compressed else max(1, -(-file.size // size))
        step = -(-file.size // pieces) if file.size else 0
        bounds = [min(file.size, piece * step) for piece in range(pieces + 1)]
        for start, end in pairwise(bounds):
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

    Raises StorageError when the file changed since it was listed, or cannot be read.
    """
    file = range_.file
    if range_.text is not None:
        yield from _chunks(io.BytesIO(range_.text), range_.start, range_.end, block)
        return
    with reading(f"read {file.name}"), _open(file, options) as stream:
        end = None if file.is_compressed else range_.end
        yield from _chunks(stream, _seek_to_line(stream, range_.start), end, block)


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
def _open(file: InputFile, options: dict[str, str]) -> Iterator[BinaryIO]:
    """The decompressed bytes of an input as a stream."""
    with _open_raw(file, options) as stream:
        if file.is_compressed:
            try:
                with gzip.GzipFile(fileobj=stream) as unpacked:
                    yield cast(BinaryIO, unpacked)
            except gzip.BadGzipFile as error:
                raise BadRequestError(
                    f"input '{file.name}' is no gzip file, as its name says: pack it, or drop the ending"
                ) from error
        else:
            yield stream


def _open_raw(file: InputFile, options: dict[str, str]) -> BinaryIO:
    if file.name.startswith("s3://"):
        return cast(BinaryIO, open_object(file.name, file.stamp, options, buffered=file.is_compressed))
    if _stamp(file.name) != file.stamp:
        raise StorageError(f"storage: input {file.name} changed while it was loaded; run the load again")
    return cast(BinaryIO, open(file.name, "rb", buffering=0))


def _expand(given: str, options: dict[str, str]) -> list[InputFile]:
    text = plain(given)
    if text.startswith("s3://"):
        return _expand_s3(text, options)
    if text.startswith("dbfs:/"):
        text = "/dbfs/" + text.removeprefix("dbfs:/").lstrip("/")
    elif has_scheme(text):
        raise BadRequestError(f"input '{text}' has an unsupported scheme: input is read {PLACES}, or from a mount")
    try:
        return _expand_local(text)
    except OSError as error:
        raise StorageError(f"storage: cannot read input '{error.filename or text}': {error.strerror}") from error


def _expand_local(text: str) -> list[InputFile]:
    path = Path(text)
    if path.is_dir():
        names = [str(p) for p in sorted(_files_below(path))]
    elif path.is_file():
        names = [text]
    else:
        names = sorted(n for n in glob.glob(text, recursive=True) if os.path.isfile(n))
    if not names and not path.is_dir():
        raise NotFoundError(f"input '{text}' not found: no file, folder or glob match")
    return [InputFile(name, os.path.getsize(name), _stamp(name)) for name in names]


def _files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder that are input. A folder in it that may not be listed is an error, not an empty one."""

    def refuse(error: OSError) -> NoReturn:
        raise error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not _is_hidden(Path(name))]
        found = (Path(parent, name) for name in names if not _is_hidden(Path(name)))
        yield from (path for path in found if path.is_file())


def _expand_s3(uri: str, options: dict[str, str]) -> list[InputFile]:
    """The object of that key, else what is below the folder of that key, else what the key matches as a glob: the order
    in which a local path is looked at too.
    """
    bucket, key = split_s3(uri)
    store = open_object_store(locate(bucket, options))
    with reading(f"list {uri}"):
        metas = _named_object(store, key) or _below(store, key) or _matching(store, key)
    if not metas:
        raise NotFoundError(f"input '{uri}' not found: no object matches")
    found = [InputFile(f"{bucket}/{meta['path']}", int(meta["size"]), str(meta["e_tag"])) for meta in metas]
    return sorted(found, key=lambda f: f.name)


def _named_object(store: LocalStore | S3Store, key: str) -> list[ObjectMeta]:
    if not key or key.endswith("/"):
        return []
    try:  # a listing of the key would show what is below it, not itself
        return [obstore.head(store, key)]
    except (FileNotFoundError, ObjectNotFoundError):
        return []


def _below(store: LocalStore | S3Store, key: str) -> list[ObjectMeta]:
    folder = key.rstrip("/")
    prefix = f"{folder}/" if folder else ""
    return [meta for meta in _listed(store, folder) if not _is_hidden(Path(meta["path"].removeprefix(prefix)))]


def _matching(store: LocalStore | S3Store, key: str) -> list[ObjectMeta]:
    if not has_magic(key):
        return []
    return [meta for meta in _listed(store, fixed_folder(key)) if matches(meta["path"], key)]


def _listed(store: LocalStore | S3Store, folder: str) -> Iterator[ObjectMeta]:
    for page in obstore.list(store, folder or None):
        yield from page


def _is_hidden(relative: Path) -> bool:
    return any(part.startswith((".", "_")) for part in relative.parts)


def _stamp(path: str) -> str:
    facts = os.stat(path)
    return f"{facts.st_size}:{facts.st_mtime_ns}"


def _looks_like_path(item: object) -> bool:
    if isinstance(item, str):
        text = item.strip()
        return bool(text) and "\n" not in item and not text.startswith(("{", "//", "["))
    return isinstance(item, os.PathLike)


__all__ = ["InputFile", "InputRange", "Location", "Source", "cut", "list_inputs", "read_chunks"]
