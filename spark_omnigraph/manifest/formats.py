"""Which stamps of the internal format are known, and how the manifest rows of each are read.

The stamp is the only thing that tells: what it does not name is refused, in reading too, since rows of a later format
can look like ours and mean something else. A format that is to be read gets a line in `FORMATS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_omnigraph.errors import UnsupportedFormatError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.rows import ManifestRow
from spark_omnigraph.manifest.snapshot import Snapshot, reduce_rows

COLUMNS = frozenset(
    (
        "object_id",
        "object_type",
        "location",
        "metadata",
        "base_objects",
        "table_key",
        "table_version",
        "table_branch",
        "row_count",
    )
)
"""Columns of a manifest up to stamp 4."""
LATER_KINDS = frozenset(("graph_commit", "graph_head"))
"""Kinds of rows that manifests have from stamp 4 on."""
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_RELEASES = {4: "0.8", 5: "a release between 0.8 and 0.9", 6: "0.9 or 0.10"}

Reduce = Callable[[Branch, int, Iterable[ManifestRow]], Snapshot]
"""Branch, manifest version and rows → what they show."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a graph of one stamp is read."""

    stamp: int
    reduce: Reduce


def _reduce_oldest(branch: Branch, version: int, rows: Iterable[ManifestRow]) -> Snapshot:
    """Graphs without a stamp are of the oldest format, unless they hold what only later ones have."""
    listed = list(rows)
    later = next((row.kind for row in listed if row.kind in LATER_KINDS), None)
    if later is not None:
        raise UnsupportedFormatError(
            f"manifest version {version} has no stamp of the internal format, or the oldest, and rows of kind "
            f"'{later}' that only later formats have: it is damaged, or its init did not end. Put __manifest back from "
            "a backup, or open the graph with the release that wrote it"
        )
    return reduce_rows(branch, version, listed)


FORMATS: Mapping[int, Format] = {
    1: Format(1, _reduce_oldest),
    2: Format(2, reduce_rows),
    3: Format(3, reduce_rows),
}


def format_of(stamp: str | None, columns: Sequence[str], place: str) -> Format:
    """The format of a manifest by its stamp. Without one it is the oldest, if it has the columns of that.

    Raises UnsupportedFormatError.
    """
    if stamp is None:
        if COLUMNS.issuperset(columns):
            return FORMATS[1]
        extra = ", ".join(sorted(set(columns) - COLUMNS))
        raise _damaged(place, f"no stamp of the internal format, and columns of a later one ({extra})")
    if not _NUMBER.fullmatch(stamp):
        raise _damaged(place, f"the stamp {stamp[:40]!r} of the internal format, which is no number from 1 on")
    number = int(stamp)
    if number in FORMATS:
        return FORMATS[number]
    by = f", which release {_RELEASES[number]} of omnigraph writes" if number in _RELEASES else ""
    raise UnsupportedFormatError(
        f"graph at '{place}' has internal schema version {number}{by}; this release reads and writes {min(FORMATS)} to "
        f"{max(FORMATS)}. Upgrade spark_omnigraph, or export the graph with the release that wrote it and ingest the "
        "export into a new one"
    )


def _damaged(place: str, what: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"graph at '{place}' has {what}: it is damaged, or its init did not end. Put __manifest back from a backup, or "
        "open the graph with the release that wrote it"
    )
