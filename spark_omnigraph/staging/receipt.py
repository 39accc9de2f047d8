"""What a task is told, and what it returns: picklable values."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EntityType
from spark_omnigraph.embed.counts import Properties
from spark_omnigraph.errors import InternalError
from spark_omnigraph.manifest.snapshot import no_table
from spark_omnigraph.records.changes.ranks import RecordChanges, joined_changes
from spark_omnigraph.records.jsonl.decode import Rejected
from spark_omnigraph.records.mode import DecodeOptions, LoadMode
from spark_omnigraph.staging.filling import VectorFill, accepting
from spark_omnigraph.storage.tables.staged import StagedFile, TableTarget
from spark_omnigraph.storage.tables.staged import packed as packed_rows

REPORT_LIMIT = 1_000_000
"""Bad rows of one range that are reported in full; further ones are counted only."""

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StageContext:
    """What every task of a load needs; picklable. `targets` lists the tables that rows may go to."""

    catalog: Catalog
    mode: LoadMode
    decode: DecodeOptions
    targets: Mapping[str, TableTarget]
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    validate: bool = True
    fill: VectorFill | None = None
    """Who gives vectors to rows without one; None: nobody."""
    adopt_edges: bool = False
    """Whether an edge whose id follows from its ends takes the id of a stored one with the same ends."""
    looks: bool = False
    """Whether rows are only looked at: nothing is written, and the logs of changes name all rows."""
    compares: bool = False
    """Whether rows are left out that are stored as they are."""

    @property
    def accepted(self) -> Catalog:
        """The schema as records are read and checked by: vectors may be missing that are filled in later."""
        return self.catalog if self.fill is None else accepting(self.catalog)

    def entity(self, table_key: str) -> EntityType:
        """The type whose rows a table holds."""
        found = self.catalog.table(table_key)
        if found is None:
            raise InternalError(f"rows of the unknown table '{table_key}'")
        return found

    def target(self, table_key: str) -> TableTarget:
        """Where rows of a type go; NotFoundError when the graph has no table of it."""
        found = self.targets.get(table_key)
        if found is None:
            raise no_table(TableKey(table_key))
        return found


@dataclass(frozen=True, slots=True)
class KnownEdges:
    """Of stored edges that have the ends of new ones, how many have another id than follows from these, and for how
    many new ones there are several; and how many with the id of a new one have other ends.
    """

    foreign: int = 0
    ambiguous: int = 0
    taken: int = 0

    def __add__(self, other: KnownEdges) -> KnownEdges:
        return KnownEdges(self.foreign + other.foreign, self.ambiguous + other.ambiguous, self.taken + other.taken)


@dataclass(frozen=True, slots=True)
class StagedFragment:
    """One staged file. The first `hits` rows replace stored rows at `removed` (physical addresses).

    `ordinals` gives each row's ordinal, or None when they run from `first_ordinal` without a gap. `lines`, kept for
    frames alone, gives each row's line, or None when it is the ordinal.
    """

    file: StagedFile
    hits: int
    first_ordinal: int
    ordinals: bytes | None
    removed: bytes | None
    lines: bytes | None = None

    def row_ordinals(self) -> Int64s:
        if self.ordinals is None:
            return np.arange(self.first_ordinal, self.first_ordinal + self.file.rows, dtype=np.int64)
        return np.cumsum(np.frombuffer(zlib.decompress(self.ordinals), dtype=np.int32), dtype=np.int64)

    def row_lines(self) -> Int64s:
        if self.lines is None:
            return self.row_ordinals()
        return np.cumsum(np.frombuffer(zlib.decompress(self.lines), dtype=np.int32), dtype=np.int64)

    def removed_addresses(self) -> npt.NDArray[np.uint64]:
        return unpacked_addresses(self.removed)


@dataclass(frozen=True, slots=True)
class RangeReceipt:
    """What one task did. `rejected` holds the bad rows (see `unpack_rejected`), `bad` counts all of them per table.

    `per_rule` counts mistakes, of which a row may have several.
    """

    index: int
    lines: int
    read: Mapping[str, int]
    bad: Mapping[str, int]
    per_rule: Mapping[str, int]
    rejected: bytes
    staged: Mapping[str, tuple[StagedFragment, ...]]
    given_ids: frozenset[str]
    unfilled: Mapping[str, Int64s] = field(default_factory=dict)
    """Ordinals of rows, by table, that were left out since they got no vector: a second pass leaves them out too."""
    changes: Mapping[str, bytes] = field(default_factory=dict)
    """In mode `changes`: the packed `ChangeLog` of each table."""
    new_ids: Mapping[str, int] = field(default_factory=dict)
    """How many staged rows, by table, got an id that they did not bring."""
    known_edges: KnownEdges = field(default_factory=KnownEdges)
    """Stored edges that have the ends of those of the range."""
    unchanged: Mapping[str, bytes] = field(default_factory=dict)
    """By table the packed addresses of stored rows that were compared, and are as the range has them."""
    properties: Properties = field(default_factory=dict)
    """What it took to give rows the vectors that they lack."""

    @property
    def bad_total(self) -> int:
        return sum(self.bad.values())

    @property
    def files(self) -> Iterator[StagedFile]:
        """All files that it staged."""
        return (fragment.file for fragments in self.staged.values() for fragment in fragments)

    def unpack_rejected(self) -> list[Rejected]:
        """Bad rows of the range in line order, at most REPORT_LIMIT."""
        if not self.rejected:
            return []
        loaded: list[Rejected] = pickle.loads(zlib.decompress(self.rejected))
        return loaded


@dataclass(frozen=True, slots=True, eq=False)
class ChangeLog:
    """What the rows of one table in one range do, by ordinal; and ordinal, line and id of those that are in no staged
    file, which are those that delete.
    """

    changes: RecordChanges
    ordinals: Int64s
    lines: Int64s
    ids: pa.Array

    @classmethod
    def joined(cls, logs: Sequence[ChangeLog]) -> ChangeLog:
        """That of several runs of rows in order."""
        return cls(
            joined_changes([log.changes for log in logs]),
            np.concatenate([log.ordinals for log in logs]),
            np.concatenate([log.lines for log in logs]),
            pa.concat_arrays([log.ids for log in logs]),
        )

    def packed(self) -> bytes:
        """As bytes that are small enough to travel."""
        arrays = self.changes.ranks, self.changes.versions, self.ordinals, self.lines
        ids = packed_rows(pa.table({"id": self.ids}))
        return zlib.compress(pickle.dumps((arrays, ids)), 1)

    @classmethod
    def unpacked(cls, data: bytes) -> ChangeLog:
        """What `packed` packed."""
        (ranks, versions, ordinals, lines), ids = pickle.loads(zlib.decompress(data))
        column = pa.ipc.open_stream(ids).read_all().column("id").combine_chunks()
        return cls(RecordChanges(ranks, versions), ordinals, lines, column)


def packed(values: npt.NDArray[np.int32] | npt.NDArray[np.uint64]) -> bytes:
    """Whole numbers, small where neighbours are close."""
    # Differences, which wrap around exactly: of neighbouring rows next to nothing travels.
    return zlib.compress(np.diff(values, prepend=values.dtype.type(0)).tobytes(), 1)


def unpacked_addresses(data: bytes | None) -> npt.NDArray[np.uint64]:
    """Addresses that `packed` packed; none of None."""
    if data is None:
        return np.empty(0, dtype=np.uint64)
    return np.cumsum(np.frombuffer(zlib.decompress(data), dtype=np.uint64), dtype=np.uint64)
