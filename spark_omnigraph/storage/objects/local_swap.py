"""Compare-and-swap and compare-and-delete of files: a local file system has neither for whole objects.

Swaps and removals of one object take turns at a lock on the file itself. A process that stands still in its turn so
keeps others from this object and from no other, and what it is about to replace is not removed behind its back.
"""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from spark_omnigraph.errors import StorageError

SWAP_WAIT = 10.0
"""Seconds that a swap or a removal waits for its turn; less than a heartbeat takes to come again."""
_POLL = 0.005


def swap_file(path: str, expected: bytes, content: bytes) -> bool:
    """Replaces a file only while its content is `expected`. FileNotFoundError when there is none."""
    with _turn(path, SWAP_WAIT) as file:
        if file.read(len(expected) + 1) != expected:
            return False
        fresh = f"{path}#{uuid.uuid4().hex}"
        try:
            with open(fresh, "wb") as new:
                new.write(content)
            os.replace(fresh, path)
        except OSError:
            with suppress(OSError):  # a full disk is told of, not what it left
                os.unlink(fresh)
            raise
    return True


def remove_file(path: str, expected: bytes | None, wait: float | None = None) -> bool:
    """Removes a file, only while its content is `expected` if that is given. FileNotFoundError when there is none."""
    with _turn(path, SWAP_WAIT if wait is None else wait) as file:
        if expected is not None and file.read(len(expected) + 1) != expected:
            return False
        os.unlink(path)
    return True


@contextmanager
def _turn(path: str, wait: float) -> Iterator[IO[bytes]]:
    """The file at this path while nobody else swaps or removes it. Whoever waited at a file that is not there any more
    begins again at the one in its place. StorageError when somebody keeps it for long, as one does that is stopped.
    """
    end = time.monotonic() + wait
    while True:
        with _open(path) as file:
            _lock(file, wait, end)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                yield file
                return


def _open(path: str) -> IO[bytes]:
    """Some file systems lock only what is open for writing; whoever may not write may still replace."""
    try:
        return open(path, "r+b")
    except PermissionError:
        return open(path, "rb")


def _lock(file: IO[bytes], wait: float, end: float) -> None:
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise StorageError(
                    f"storage: {file.name} is locked by another process for longer than {wait:g} s; one that stands "
                    "still has to go on or to be ended"
                ) from None
            time.sleep(_POLL)
