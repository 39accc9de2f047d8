"""Looking through folders on a local disk: links are never walked into, so nothing outside of the root is met.

The root itself may be a link, and so may the folders above it. Names that are no text, or have control characters, are
passed over: no program that wrote to the graph made those, and no client of the store can ask for them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from spark_omnigraph.errors import StorageError

_PIECE = re.compile(r".+#[0-9a-f]{1,32}")
"""Names under which a put or a swap writes a file before it gives it its own name."""

_TICK, _COARSE_TICK = 20_000_000, 2_100_000_000
"""Nanoseconds in which the times of files go on at the latest, and where they are of whole seconds."""


class FileStamp(NamedTuple):
    """What tells a file from another one in its place, and from itself before it was changed."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @property
    def may_recur(self) -> bool:
        """Whether it was changed just now: a change in the same tick of the clock would give it the same stamp."""
        tick = _TICK if self.changed % 1_000_000_000 else _COARSE_TICK
        return time.time_ns() - self.changed < tick


def file_stamp(path: str) -> FileStamp:
    """The stamp of a file that is there."""
    # Opened, since a network file system may know a name's facts of a while ago by itself.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        facts = os.fstat(file)
    finally:
        os.close(file)
    return FileStamp(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def names_in(folder: str) -> list[str]:
    """Names of everything but folders directly in a folder, sorted; a link is listed like what it leads to."""
    return sorted(entry.name for entry in _listed(folder) if not entry.is_dir())


def find_pieces(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Path below the root, and facts, of what writes that were interrupted, as by a full disk, left unnamed."""
    for entry in _entries(root, ""):
        if _PIECE.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with suppress(FileNotFoundError):  # it got its name meanwhile
                yield os.path.relpath(entry.path, root), entry.stat(follow_symlinks=False)


def special_in(folder: str) -> str | None:
    """The path of a pipe, a socket or a device directly in a folder: whoever opens one may wait for ever."""
    try:
        entries = _listed(folder)
    except OSError:  # there is none, or whoever opens a file in it will say why it cannot
        return None
    strange = (each.path for each in entries if not (each.is_file() or each.is_dir()))
    return next((path for path in strange if os.path.exists(path)), None)  # a link may lead nowhere


def walk_files(root: str, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Path below the root, and facts, of each regular file below a folder; none where a link is on the way to it."""
    if any(os.path.islink(each) for each in _ancestors(root, folder)):
        return
    for entry in _entries(root, folder):
        if entry.is_file(follow_symlinks=False) and not _PIECE.fullmatch(entry.name):
            with suppress(FileNotFoundError):  # it went meanwhile
                yield os.path.relpath(entry.path, root), entry.stat(follow_symlinks=False)


def find_links(root: str, folder: str) -> list[str]:
    """Paths below the root of all symbolic links at a folder, on the way to it and below it."""
    above = [os.path.relpath(each, root) for each in _ancestors(root, folder) if os.path.islink(each)]
    if above:
        return above
    return sorted(os.path.relpath(entry.path, root) for entry in _entries(root, folder) if entry.is_symlink())


def require_inside(root: str, folders: set[str]) -> None:
    """StorageError when one of these folders is another one than its path says: what is removed there would be gone
    from outside of the root.
    """
    for folder in sorted(folders):
        link = next((each for each in _ancestors(root, folder) if os.path.islink(each)), None)
        if link is not None:
            raise StorageError(
                f"storage: {link} is a symbolic link, and nothing is removed through one: what it leads to may be "
                "outside of the graph"
            )


def _ancestors(root: str, folder: str) -> list[str]:
    """The folders from below the root down to this one."""
    found = [root]
    for part in folder.split("/"):
        if part not in ("", "."):
            found.append(os.path.join(found[-1], part))
    return found[1:]


def _entries(root: str, folder: str) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder but folders."""
    waiting = [os.path.join(root, folder) if folder else root]
    while waiting:
        try:
            entries = _listed(waiting.pop())
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            else:
                yield entry


def _listed(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return [entry for entry in found if entry.name.isprintable()]
