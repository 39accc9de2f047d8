"""Commits as manifest rows, from stamp 4 on: each publish brings the row of its commit along, and nothing changes it.

Rows of a branch's manifest are its own and those of where it came from, up to there. So its newest commit is the one
with the greatest version; the row `graph_head:<branch>` says the same, and is not there before the branch is written.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from spark_omnigraph.errors import DamagedError
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import ManifestRow, decoded
from spark_omnigraph.redaction import excerpt
from spark_omnigraph.stored import Count

_COMMIT = "graph_commit"
LATER_KINDS = frozenset((_COMMIT, "graph_head"))
"""Kinds of rows that manifests have from stamp 4 on."""


class _CommitRow(msgspec.Struct):
    created_at: Count
    parent_commit_id: str | None = None
    merged_parent_commit_id: str | None = None
    actor_id: str | None = None


def commits_of(rows: Iterable[ManifestRow]) -> list[Commit]:
    """All commits that the rows tell of, unordered. DamagedError for one without a time or a version."""
    return [_commit(row) for row in rows if row.kind == _COMMIT]


def _commit(row: ManifestRow) -> Commit:
    body = decoded(row.metadata or "", _CommitRow, row)
    if row.table_version is None:
        raise DamagedError(
            f"manifest row '{excerpt(row.object_id)}' is a commit without a version, which no engine writes. Put "
            "__manifest back from a backup"
        )
    return Commit(
        row.object_id,
        row.table_branch,
        row.table_version,
        body.parent_commit_id,
        body.merged_parent_commit_id,
        body.created_at,
        body.actor_id,
    )
