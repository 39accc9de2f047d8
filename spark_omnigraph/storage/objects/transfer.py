"""Objects from one store to another, byte by byte, and proof that they arrived."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import obstore
from obstore.exceptions import BaseError

from spark_omnigraph.errors import StorageError
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.objects.small import Objects

_CHUNK = 8 << 20


@dataclass(frozen=True, slots=True)
class Transferred:
    """One object that is in both stores with the same bytes, and whether it was sent now."""

    path: str
    size: int
    sent: bool


def transfer(source: Objects, target: Objects, path: str, there: int | None, to: str | None = None) -> Transferred:
    """Brings an object to the same path of another store, or `to` another one there, unless it is there already with
    these bytes; `there` is the size that a listing of the target shows. It is read back: StorageError when other bytes
    arrived than were sent.
    """
    place, sent, wanted, size = to or path, False, None, 0
    if there is not None:
        wanted, size = digest(source, path)
    if there != size or digest(target, place)[0] != wanted:
        sent, read = True, hashlib.sha256()
        with _transferring(f"copy {path} to {target.location.root}"):
            writer = obstore.open_writer(target.client, place, buffer_size=_CHUNK)
            for chunk in _chunks(source, path):
                read.update(chunk)
                writer.write(chunk)
            writer.close()
        arrived, size = digest(target, place)
        if arrived != read.hexdigest():
            raise StorageError(f"storage: {target.location.join(place)} holds other bytes than were copied; copy again")
    return Transferred(place, size, sent)


def put_checked(target: Objects, path: str, content: bytes, is_there: bool) -> Transferred:
    """Writes an object that was made here, unless it is there, and reads it back. StorageError as above."""
    sent = not is_there or target.get(path, limit=None) != content
    if sent:
        target.put(path, content)
        if target.get(path, limit=None) != content:
            raise StorageError(f"storage: {target.location.join(path)} holds other bytes than were written; copy again")
    return Transferred(path, len(content), sent)


def digest(objects: Objects, path: str) -> tuple[str, int]:
    """SHA-256 and size of an object. StorageError when it is not there."""
    found, size = hashlib.sha256(), 0
    for chunk in _chunks(objects, path):
        found.update(chunk)
        size += len(chunk)
    return found.hexdigest(), size


def _chunks(objects: Objects, path: str) -> Iterator[bytes]:
    with _transferring(f"read {objects.location.join(path)}"):
        for chunk in obstore.get(objects.client, path).stream(min_chunk_size=_CHUNK):
            yield bytes(chunk)


@contextmanager
def _transferring(what: str) -> Iterator[None]:
    try:
        with reading(what):
            yield
    except BaseError as error:
        raise StorageError(f"storage: {what}: {error}") from error
