"""Objects outside a graph as files: inputs are read by ranges, reports are written whole."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError

from spark_omnigraph.errors import IoError
from spark_omnigraph.storage.objects.small import open_object_store
from spark_omnigraph.storage.uri import locate

if TYPE_CHECKING:
    from obstore.store import LocalStore, S3Store

_GZIP_BUFFER = 8 << 20


class ObjectFile(io.RawIOBase):
    """An object as a stream that can be sought; every read is one request."""

    def __init__(self, store: LocalStore | S3Store, key: str, size: int) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: memoryview | bytearray) -> int:  # type: ignore[override]  # what io hands over
        end = min(self._size, self._at + len(buffer))
        if end <= self._at:
            return 0
        data = memoryview(obstore.get_range(self._store, self._key, start=self._at, end=end))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_object(uri: str, stamp: str | None, options: Mapping[str, str], *, buffered: bool) -> IO[bytes]:
    """The object as a stream; `buffered` for whoever reads in small pieces.

    Raises IoError when it is another object than the one whose entity tag was `stamp`; None of one that never changes.
    """
    bucket, key = split_s3(uri)
    store = open_object_store(locate(bucket, options))
    meta = obstore.head(store, key)
    if stamp is not None and str(meta["e_tag"]) != stamp:
        raise IoError(f"storage: input {uri} changed while it was loaded; run the load again")
    raw = ObjectFile(store, key, int(meta["size"]))
    return io.BufferedReader(raw, _GZIP_BUFFER) if buffered else raw  # type: ignore[return-value]  # RawIOBase is one


def put_file(uri: str, content: IO[bytes], options: Mapping[str, str]) -> None:
    """Writes a file's content to `s3://bucket/key`, in parts when it is large, replacing what is there."""
    bucket, key = split_s3(uri)
    try:
        obstore.put(open_object_store(locate(bucket, options)), key, content)
    except (BaseError, OSError, ValueError, RuntimeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise IoError(f"storage: cannot write {uri}: {lines[0]}") from error


def split_s3(uri: str) -> tuple[str, str]:
    """`s3://bucket` and the key of an object, in which `?` and `#` are letters like any other."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return f"s3://{bucket}", key.lstrip("/")
