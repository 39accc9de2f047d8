"""Which files may be written: no folder, none of the graph's own, and none that the work reads."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from spark_omnigraph.storage.input.globs import has_magic
from spark_omnigraph.storage.uri import is_inside, plain


def why_not(path: str, graph: str, read: Iterable[str]) -> str | None:
    """Why a file may not be written, as the end of a sentence; None when it may. Links are followed."""
    if graph and is_inside(path, graph):
        return f"lies inside the graph {graph}, whose files are its own: name a file elsewhere"
    if path.endswith("/") or os.path.isdir(plain(path)):
        return "is a folder: name a file in it"
    return next(
        (f"is read ({name}) and would be replaced: name another file" for name in read if _is_read(path, name)), None
    )


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
