"""Which files may be written: no folder, none of the graph's own, none that the work reads, where there is leave."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from spark_omnigraph.storage.input.globs import has_magic
from spark_omnigraph.storage.uri import DELTA, DELTA_EXTRA, is_inside, plain

if TYPE_CHECKING:
    from deltalake import DeltaTable

_WRITABLE = {
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "timestampNtz",
    "variantType",
}
"""Features of a table that `deltalake` 1.6.6 keeps when it writes; others it refuses after the work, or breaks."""
_IDENTITY_COLUMNS = 6
"""The writer version that stands for them where features are not listed."""


def why_not(path: str, graph: str, read: Iterable[str]) -> str | None:
    """Why a file may not or cannot be written, as the end of a sentence; None when it may. Links are followed. Of a
    Delta table, `delta:…`, whether rows can be added.
    """
    if path.startswith(DELTA):
        place = plain(path[len(DELTA) :])
        return (
            why_no_delta()
            or why_kept(path, graph, read)
            or _why_unwritable(f"{place}/_delta_log")
            or _why_no_rows(place)
        )
    return why_kept(path, graph, read) or _why_unwritable(plain(path))


def why_kept(path: str, graph: str, read: Iterable[str]) -> str | None:
    """Why what stands at a path must stay, whatever else became of the disk, as the end of a sentence."""
    if "\0" in path:
        return "has a zero byte, which no path has"
    if path.startswith(DELTA):
        place = path[len(DELTA) :].rstrip("/")
        if os.path.isfile(plain(place)):
            return "is a file: name a folder for the table"
        path = f"{place}/_delta_log/0"
    if graph and is_inside(path, graph):
        return f"lies inside the graph {graph}, whose files are its own: name a file elsewhere"
    if path.endswith("/") or os.path.isdir(plain(path)):
        return "is a folder: name a file in it"
    return next(
        (f"is read ({name}) and would be replaced: name another file" for name in read if _is_read(path, name)), None
    )


def why_no_delta() -> str | None:
    """Why no Delta table can be written here, as the end of a sentence; None where one can."""
    if find_spec("deltalake") is not None:
        return None
    return f"is a Delta table, and the package deltalake is not here: {DELTA_EXTRA}"


def why_unwritable(table: DeltaTable) -> str | None:
    """Which feature of a table `deltalake` does not write, or writes wrongly, as the end of a sentence."""
    protocol = table.protocol()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    if protocol.min_writer_version == _IDENTITY_COLUMNS:
        features.add("identityColumns")
    unknown = sorted(features - _WRITABLE)
    if not unknown:
        return None
    return (
        f"has the table feature '{unknown[0]}', and is not written to without Spark: name another table, or export "
        "with --executor spark in a session that has Delta"
    )


def _why_no_rows(place: str) -> str | None:
    """Whether a table on this machine takes no rows. One elsewhere is left to the writing."""
    if "://" in place or not os.path.isdir(f"{place}/_delta_log"):
        return None
    package, errors = import_module("deltalake"), import_module("deltalake.exceptions")
    try:
        return why_unwritable(package.DeltaTable(place))
    except errors.TableNotFoundError:
        return None
    except errors.DeltaError as error:
        return f"cannot be read as a Delta table: {' '.join(str(error).split())[:300]}"


def _why_unwritable(path: str) -> str | None:
    """Found before the work, not after it. What cannot be known without writing is left to the writing."""
    if "://" in path:
        return None
    try:
        place = Path(path)
        if not _is_there(place) or place.is_file():  # it is made, or takes the place of another
            place = next(folder for folder in place.absolute().parents if _is_there(folder))
            if not place.is_dir():
                return f"cannot be written: {place} is no folder; name a file elsewhere"
        may = os.access(place, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
        return None if may else f"cannot be written: {place} does not allow it; name another file"
    except OSError as error:
        return f"cannot be written: {error.strerror}; name another file"


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_read(path: str, name: str) -> bool:
    """Whether a file stands there already, and an input, a folder of inputs, or a glob names it."""
    target, source = plain(path), plain(name)
    if "://" in target or "://" in source:
        return target == source
    if not os.path.exists(target):
        return False
    if os.path.isdir(source):
        return is_inside(target, source)
    names = glob.iglob(source, recursive=True) if has_magic(source) and not os.path.exists(source) else [source]
    return any(os.path.exists(found) and os.path.samefile(found, target) for found in names)
