"""The commit-graph datasets: `_graph_commits.lance` and `_graph_commit_actors.lance` (storage format, section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import datetime

import lance
import pyarrow as pa
from lance import LanceDataset

from spark_omnigraph.catalog.dates import moment
from spark_omnigraph.errors import DamagedError, StorageError, VersionExpiredError
from spark_omnigraph.manifest.branches import Branch, display, stored_branch
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.redaction import excerpt
from spark_omnigraph.storage.faults import CommitFailed, reading
from spark_omnigraph.storage.layout import COMMIT_ACTORS, COMMITS, RECOVERIES, branch_path
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.tables.commits import append_log_rows, append_strict, create_dataset
from spark_omnigraph.storage.uri import Location
from spark_omnigraph.storage.versions import stored_since

COMMIT_SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("manifest_branch", pa.string()),
        pa.field("manifest_version", pa.uint64(), nullable=False),
        pa.field("parent_commit_id", pa.string()),
        pa.field("merged_parent_commit_id", pa.string()),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)
ACTOR_SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("actor_id", pa.string(), nullable=False),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)
RECOVERY_SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("sidecar_writer_kind", pa.string(), nullable=False),
        pa.field("per_table_outcomes_json", pa.string(), nullable=False),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)
_ATTEMPTS = 20
_NEWEST_FILES = 2
"""Files of the log that are read to find the newest commit."""


@dataclass(frozen=True, slots=True)
class RecoveryAudit:
    """One row of the recoveries dataset; the fields are its columns in order."""

    commit_id: str
    kind: str
    for_actor: str | None
    operation_id: str
    writer_kind: str
    outcomes: str
    created_micros: int

    @property
    def created_at(self) -> datetime:
        """When the write was settled, in UTC."""
        return moment(self.created_micros)


def create_commit_log(location: Location, genesis: Commit) -> None:
    """Both datasets, with the genesis commit."""
    create_dataset(location.join(COMMITS), COMMIT_SCHEMA, _commit_rows(genesis), location.options)
    create_dataset(location.join(COMMIT_ACTORS), ACTOR_SCHEMA, None, location.options)


def open_log(location: Location, name: str, branch: Branch) -> LanceDataset:
    """One of the log datasets at its newest version, on a branch."""
    with reading(f"open {name}"):
        return lance.dataset(location.join(branch_path(name, branch)), storage_options=dict(location.options) or None)


def append_commit(location: Location, commit: Commit) -> dict[str, int]:
    """Adds the commit row on its branch, then the actor row on the main line. Not idempotent: look first. How many
    files each of the datasets has then.
    """
    log = open_log(location, COMMITS, commit.branch)
    files = {branch_path(COMMITS, commit.branch): append_log_rows(log, _commit_rows(commit))}
    return files | _append_actor(location, commit)


def _append_actor(location: Location, commit: Commit) -> dict[str, int]:
    if commit.actor is None:
        return {}
    log = open_log(location, COMMIT_ACTORS, None)
    return {COMMIT_ACTORS: append_log_rows(log, _actor_row(commit, commit.actor))}


def complete_commit(location: Location, commit: Commit) -> dict[str, int]:
    """Adds what is missing of a commit: its row, or that of its actor. A writer may have died between the two. Says how
    many files each dataset has that it added to.
    """
    if not has_commit(location, commit.branch, commit.id):
        return append_commit(location, commit)
    if commit.actor is not None and commit.id not in _read_actors(location):
        return _append_actor(location, commit)
    return {}


def read_commits(location: Location, branch: Branch, with_actors: bool = True) -> list[Commit]:
    """All commits that a branch sees, with their actors if they are asked for; unordered."""
    log = open_log(location, COMMITS, branch)
    with reading("read the commit log"):
        rows = log.to_table().to_pylist()
    actors = _read_actors(location) if with_actors else {}
    by_id = {row["graph_commit_id"]: row for row in rows}  # a writer and its recovery may both have added the row
    return [replace(_to_commit(row), actor=actors.get(key)) for key, row in by_id.items()]


def log_up_to(location: Location, branch: Branch, manifest_version: int) -> tuple[int, list[Commit]]:
    """The newest version of a branch's log that has no commit above a manifest version, and commits up to that version
    which it lacks: writers add their rows in another order than they publish.

    Rows are only ever added, so the version is found by bisection.
    """
    log = open_log(location, COMMITS, branch)
    with reading("read the commit log"):
        versions = list(stored_since(Objects(location), branch_path(COMMITS, branch)))
        low, high = 0, len(versions) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if _newest_version(log.checkout_version(versions[middle])) <= manifest_version:
                low = middle
            else:
                high = middle - 1
        if low == 0 and _newest_version(log.checkout_version(versions[0])) > manifest_version:
            _refuse_expired(log, branch, versions[0], manifest_version)
        known = set(log.checkout_version(versions[low]).to_table(columns=["graph_commit_id"])[0].to_pylist())
    rows = (commit for commit in read_commits(location, branch) if commit.manifest_version <= manifest_version)
    return versions[low], [commit for commit in rows if commit.id not in known]


def _refuse_expired(log: LanceDataset, branch: Branch, oldest: int, manifest_version: int) -> None:
    """VersionExpiredError where the versions of a log do not go back to where its line begins."""
    facts: Mapping[str, object] = {} if branch is None else log.branches.list().get(branch, {})
    if oldest > int(str(facts.get("parent_version", 1))):
        raise VersionExpiredError(
            f"the commit log of branch '{display(branch)}' as of manifest version {manifest_version} is not stored any "
            "more: a clean-up let it expire; begin at a newer state, or at a tag"
        )


def _newest_version(log: LanceDataset) -> int:
    return max(log.to_table(columns=["manifest_version"])[0].to_pylist(), default=0)


def copy_commits(location: Location, branch: Branch, commits: Iterable[Commit]) -> None:
    """Adds rows of commits that were made elsewhere to the log of a branch; their actors are known already."""
    rows = [_commit_rows(commit) for commit in commits]
    if rows:
        append_log_rows(open_log(location, COMMITS, branch), pa.concat_tables(rows))


def find_commit(location: Location, branch: Branch, commit_id: str) -> Commit | None:
    """The commit with this id among those that a branch sees."""
    log = open_log(location, COMMITS, branch)
    with reading("read the commit log"):
        rows = log.to_table(filter=is_text_of("graph_commit_id", [commit_id])).to_pylist()
    if not rows:
        return None
    return replace(_to_commit(rows[0]), actor=_read_actors(location).get(commit_id))


def newest_logged(location: Location, branch: Branch) -> tuple[int, str] | None:
    """Manifest version and id of the newest commit that was made on this very branch, or None. Looks at the newest
    files of the log only: rows are added in about the order of their commits, a few by recoveries later.
    """
    log = open_log(location, COMMITS, branch)
    columns = ["graph_commit_id", "manifest_branch", "manifest_version"]
    with reading("read the commit log"):
        rows = log.scanner(columns=columns, fragments=log.get_fragments()[-_NEWEST_FILES:]).to_table().to_pylist()
    own = (row for row in rows if stored_branch(_optional(row["manifest_branch"])) == branch)
    return max(((int(row["manifest_version"]), str(row["graph_commit_id"])) for row in own), default=None)


def has_commit(location: Location, branch: Branch, commit_id: str) -> bool:
    """Whether a branch sees a commit row with this id."""
    log = open_log(location, COMMITS, branch)
    with reading("read the commit log"):
        return int(log.count_rows(filter=is_text_of("graph_commit_id", [commit_id]))) > 0


def read_recoveries(location: Location) -> list[RecoveryAudit]:
    """All audit rows, oldest first; none while nothing was ever recovered."""
    if not _has_recoveries(location):
        return []
    log = open_log(location, RECOVERIES, None)
    with reading("read the recoveries"):
        table = log.to_table()
    times = table.column("created_at").cast(pa.int64()).to_pylist()
    columns = [table.column(name).to_pylist() for name in RECOVERY_SCHEMA.names[:-1]]
    rows = [RecoveryAudit(*values) for values in zip(*columns, times, strict=True)]
    return sorted(rows, key=lambda r: (r.created_micros, r.operation_id))


def audit_recovery(location: Location, audit: RecoveryAudit) -> None:
    """Adds an audit row unless its write has one, also when two recoveries of it meet here. The dataset is created on
    the first one.
    """
    values = dict(zip(RECOVERY_SCHEMA.names, astuple(audit), strict=True))
    rows = pa.Table.from_pydict({k: [v] for k, v in values.items()}, schema=RECOVERY_SCHEMA)
    if not _has_recoveries(location):
        try:
            create_dataset(location.join(RECOVERIES), RECOVERY_SCHEMA, None, location.options)
        except CommitFailed as failed:
            if not _has_recoveries(location):
                raise StorageError(
                    f"storage: {location.root}/{RECOVERIES} cannot be made ({failed}); look at the store, then recover "
                    "again"
                ) from failed
    failure: CommitFailed | None = None
    for _ in range(_ATTEMPTS):
        log = open_log(location, RECOVERIES, None)
        with reading("read the recoveries"):
            found = log.to_table(columns=["operation_id"]).column(0).to_pylist()
        if audit.operation_id in found:
            return
        try:
            append_strict(log, rows)
        except CommitFailed as failed:
            failure = failed  # somebody else added a row, or ours is there and its answer was lost: look again
        else:
            return
    raise StorageError(
        f"storage: the recovery of {audit.operation_id} could not be recorded in {location.root}/{RECOVERIES} "
        f"({failure}); look at the store, then recover again"
    )


def _has_recoveries(location: Location) -> bool:
    return Objects(location).has_prefix(f"{RECOVERIES}/_versions")


def _read_actors(location: Location) -> dict[str, str]:
    log = open_log(location, COMMIT_ACTORS, None)
    with reading("read the commit actors"):
        table = log.to_table(columns=["graph_commit_id", "actor_id"])
    return dict(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))


def _to_commit(row: dict[str, object]) -> Commit:
    created = row["created_at"]
    micros = pa.scalar(created, pa.timestamp("us")).value
    if micros is None:
        raise DamagedError(
            f"{COMMITS} has a row of commit '{excerpt(str(row['graph_commit_id']))}' without a time, which no engine "
            "writes. Put the folder back from a backup"
        )
    return Commit(
        id=str(row["graph_commit_id"]),
        branch=stored_branch(_optional(row["manifest_branch"])),
        manifest_version=int(str(row["manifest_version"])),
        parent=_optional(row["parent_commit_id"]),
        merged_parent=_optional(row["merged_parent_commit_id"]),
        created_micros=int(micros),
    )


def _optional(value: object) -> str | None:
    return None if value is None else str(value)


def _commit_rows(commit: Commit) -> pa.Table:
    row = {
        "graph_commit_id": commit.id,
        "manifest_branch": commit.branch,
        "manifest_version": commit.manifest_version,
        "parent_commit_id": commit.parent,
        "merged_parent_commit_id": commit.merged_parent,
        "created_at": commit.created_micros,
    }
    return pa.Table.from_pydict({k: [v] for k, v in row.items()}, schema=COMMIT_SCHEMA)


def _actor_row(commit: Commit, actor: str) -> pa.Table:
    row = {"graph_commit_id": commit.id, "actor_id": actor, "created_at": commit.created_micros}
    return pa.Table.from_pydict({k: [v] for k, v in row.items()}, schema=ACTOR_SCHEMA)
