"""Listings of a local folder for what the object store's client does not list: it stops at names that are no text or
have control characters, and hides the pieces of writes that were interrupted.

No program that wrote to the graph made names of the first kind, and none can ask for them: they are passed over. Links
are listed like files where they lead to one, and never walked into.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime, timezone

_PIECE = re.compile(r".+#[0-9a-f]{1,32}")
"""Names under which a put or a swap writes a file before it gives it its own name."""


def names_in(folder: str) -> list[str]:
    """Names of everything but folders directly in a folder, sorted."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if not entry.is_dir()]
    return sorted(name for name in names if name.isprintable())


def files_in(folder: str) -> Iterator[tuple[str, int, datetime]]:
    """Name, size and time of the regular files directly in a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.isprintable() and entry.is_file():
                facts = entry.stat()
                yield entry.name, facts.st_size, datetime.fromtimestamp(facts.st_mtime, timezone.utc)


def pieces_in(folder: str) -> Iterator[tuple[str, int, datetime]]:
    """Files directly in a folder that a write which was interrupted, as by a full disk, left unnamed."""
    if os.path.isdir(folder):
        yield from (found for found in files_in(folder) if _PIECE.fullmatch(found[0]))
