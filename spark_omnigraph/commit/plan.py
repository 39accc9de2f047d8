"""A write as data, one type a stage: what is to be done, what is armed, what has landed, what is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.facts import CommitFacts
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.manifest.snapshot import TableEntry
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.handles import Dataset, PreparedTransaction
from spark_omnigraph.storage.tables.staged import StagedFile
from spark_omnigraph.words import TextEnum, is_text


class WriterKind(TextEnum):
    """Kinds of writes, by the names that sidecars record (storage format 6.1)."""

    LOAD = "Load"
    MUTATION = "Mutation"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"

    @classmethod
    def of(cls, recorded: str) -> WriterKind | str:
        """The kind of that name; the name itself when it is one of a later engine.

        >>> WriterKind.of("Load"), WriterKind.of("Vacuum")
        (<WriterKind.LOAD: 'Load'>, 'Vacuum')
        """
        return cls(recorded) if recorded in set(cls) else recorded


@dataclass(frozen=True, slots=True)
class Identity:
    """Made before the first attempt, so that a doubtful outcome can be read back and recognised."""

    operation_id: str
    commit_id: str | None
    actor: str | None
    writer_kind: WriterKind

    def __post_init__(self) -> None:
        """BadRequestError for an actor that could not be read back from what is recorded."""
        if self.actor is not None and not is_text(self.actor):
            raise BadRequestError(f"an actor is a text in UTF-8, not {as_shown(self.actor)}")


@dataclass(frozen=True, slots=True)
class TableWrite:
    """One table of a write.

    `entry` is what the snapshot showed; `branch` is where the commit lands (a fork when it differs from
    `entry.branch`).
    """

    entry: TableEntry
    branch: Branch
    change: TableChange
    is_new: bool = False
    """A table that the snapshot does not show: a schema change adds it. `entry` is then HEAD of its dataset."""

    @property
    def table_key(self) -> TableKey:
        return self.entry.table_key

    @property
    def landing(self) -> int:
        """Version at which the write stands once it has landed."""
        return self.entry.version + self.change.versions

    @property
    def shown(self) -> int:
        """Version that is visible before it lands, 0 for none."""
        return 0 if self.is_new else self.entry.version

    @property
    def row_count(self) -> int:
        """Rows of the table once it has landed."""
        stored = 0 if self.change.replace_all else self.entry.row_count
        return stored + self.change.added - self.change.masked


@dataclass(frozen=True, slots=True)
class SchemaWrite:
    """What a schema change does besides what it writes to tables: schema files, and tables that are shown no more, by
    the version that is shown. `lock` is the name of its lock, `planned_on` the version of the manifest that it was
    planned on: it is published on that alone.
    """

    accepted: str
    desired: Catalog
    source: str
    lock: str
    planned_on: int
    dropped: Mapping[TableKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A checked write. `reads` maps each table that validation looked at to the version it saw."""

    identity: Identity
    branch: Branch
    schema_hash: str
    writes: tuple[TableWrite, ...]
    reads: Mapping[str, int] = field(default_factory=dict)
    transaction: Transaction | None = None
    """The name of the write, published with it; refused when it was published before."""
    rewound: Mapping[str, int | None] = field(default_factory=dict)
    """Applications that a restore sets back, and to which number, None for none."""
    stages: tuple[str, ...] = ()
    """Under which its files were staged; see `stage.staging`."""
    keeps_files: bool = False
    """Its files stay when nothing landed: another attempt of the same write reads them."""
    merged: str | None = None
    """The head of the branch that this write merges: the second parent of its commit, also where no table changes."""
    planned_on: int | None = None
    """Version of the manifest on which a merge was planned; what it publishes is newer."""
    facts: CommitFacts | None = None
    """What the history will say of it."""
    branch_id: str | None = None
    """Of the branch that it was planned on: refused on one that was made anew under the name."""
    schema: SchemaWrite | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to publish: no table advances, and there is no commit without one."""
        return not (self.writes or self.rewound) and self.transaction is None and not self.stands_alone

    @property
    def stands_alone(self) -> bool:
        """Whether it makes a commit also where no table changes: as a merge, or a change of the schema."""
        return self.merged is not None or self.schema is not None

    @property
    def staged(self) -> tuple[StagedFile, ...]:
        """Files that nothing names until it lands."""
        return tuple(file for write in self.writes for file in write.change.staged)

    @property
    def tables(self) -> frozenset[str]:
        """Keys of all tables written or read."""
        return frozenset(self.reads) | {w.table_key for w in self.writes} | frozenset(self.dropped)

    @property
    def dropped(self) -> Mapping[TableKey, int]:
        """Tables that are shown no more, by the version that is shown."""
        return self.schema.dropped if self.schema is not None else {}

    def expectations(self) -> dict[str, int]:
        """Table → version that must still be visible when the write is published."""
        return {**self.reads, **dict(self.dropped.items()), **{w.table_key: w.shown for w in self.writes}}


@dataclass(frozen=True, slots=True)
class BoundWrite:
    """A table write bound to the dataset at its pin, with the transaction that will land (its uuid is known).

    A compaction has no transaction of ours: Lance makes its two when it lands.
    """

    write: TableWrite
    dataset: Dataset
    transaction: PreparedTransaction | None


@dataclass(frozen=True, slots=True)
class ArmedCommit:
    """The sidecar is durable; `bound` says what may have landed if this process dies now."""

    prepared: PreparedCommit
    bound: tuple[BoundWrite, ...]


@dataclass(frozen=True, slots=True)
class LandedTable:
    """A table whose HEAD is ours and not yet visible."""

    bound: BoundWrite
    dataset: Dataset

    @property
    def version(self) -> int:
        return int(self.dataset.version)


@dataclass(frozen=True, slots=True)
class Published:
    """The write is visible. `commit_id` is None for maintenance, which makes no commit."""

    commit_id: str | None
    parent: str | None
    manifest_version: int
    versions: Mapping[str, int]
    warnings: tuple[str, ...] = ()
