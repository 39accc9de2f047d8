"""Which stamps of the internal format are known, how a graph of each is read, and which one is written.

The stamp is the only thing that tells: what it does not name is refused, in reading too, since rows of a later format
can look like ours and mean something else. A format that is to be read gets a line in `FORMATS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_omnigraph.errors import UnsupportedFormatError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.formats.commit_rows import LATER_KINDS, commits_of
from spark_omnigraph.manifest.formats.identity import IDENTITY_COLUMNS, reduce_by_identity
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import ManifestRow
from spark_omnigraph.manifest.snapshot import Snapshot, reduce_rows

WRITTEN = 3
"""The stamp that is written; older ones are brought up to it, later ones are only read."""
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
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_RELEASES = {4: "0.8", 5: "a release between 0.8 and 0.9", 6: "0.9 or 0.10"}

Reduce = Callable[[Branch, int, Iterable[ManifestRow]], Snapshot]
"""Branch, manifest version and rows → what they show."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a graph of one stamp is read."""

    stamp: int
    reduce: Reduce
    commits: Callable[[Iterable[ManifestRow]], list[Commit]] | None = None
    """The commits that manifest rows tell of; None where they stand in datasets of their own."""
    documents: int = 1
    """Version of the schema documents, `_schema.ir.json` and `__schema_state.json`."""

    @property
    def is_written(self) -> bool:
        """Whether graphs of it are written, or brought up to what is."""
        return self.stamp <= WRITTEN

    @property
    def release(self) -> str:
        """The release of the reference engine that writes it."""
        return _RELEASES.get(self.stamp, "0.7 or before")

    @property
    def note(self) -> str:
        """What whoever reads a graph of it is to know."""
        return (
            f"internal schema version {self.stamp}, of release {self.release} of omnigraph: it is only read; convert "
            "makes a graph of it that can be written"
        )

    def refusal(self, place: str) -> UnsupportedFormatError:
        """What to raise before anything is written to a graph that is only read."""
        return UnsupportedFormatError(
            f"graph at '{place}' has internal schema version {self.stamp}, which release {self.release} of omnigraph "
            f"writes and this one only reads. `spark-omnigraph convert {place} TO`, or `Graph.convert(to)`, makes a "
            "graph of it that can be written; the release that wrote it can write it, too"
        )


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
    4: Format(4, reduce_rows, commits_of),
    5: Format(5, reduce_by_identity, commits_of, documents=2),
    6: Format(6, reduce_by_identity, commits_of, documents=2),
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
    found = FORMATS.get(int(stamp))
    if found is None:
        raise UnsupportedFormatError(
            f"graph at '{place}' has internal schema version {stamp}; this release reads {min(FORMATS)} to "
            f"{max(FORMATS)}, and writes {WRITTEN}. Upgrade spark_omnigraph, or export the graph with the release that "
            "wrote it and ingest the export into a new one"
        )
    has_identity = IDENTITY_COLUMNS[0] in columns
    if columns and has_identity != (found.documents > 1):
        word = "has" if has_identity else "lacks"
        raise _damaged(place, f"stamp {stamp} of the internal format, and its manifest {word} {IDENTITY_COLUMNS[0]}")
    return found


def _damaged(place: str, what: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"graph at '{place}' has {what}: it is damaged, or its init did not end. Put __manifest back from a backup, or "
        "open the graph with the release that wrote it"
    )
