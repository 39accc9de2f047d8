"""Lance indexes of a table: which there are, and building segments that a later commit makes visible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import lance
import pyarrow.compute as pc
from lance import LanceDataset
from lance.bitmap import Bitmap

from spark_omnigraph.errors import DamagedError
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.scan import LOST_COLUMN

if TYPE_CHECKING:
    from lance.lance.indices import IndexDescription

MOST_SEGMENTS = 8
"""Segments of one index from which it is built anew as one: every search asks each of them."""
FALLEN_BEHIND = 64
"""Files that an index of ids does not cover from which a write extends it: until then each look-up opens them all."""
CAUGHT_UP_ROWS = 1_000_000
"""Rows that a write indexes on the side; more are left to the verbs `index` and `optimize`."""


TEXT_SETTINGS: Mapping[str, object] = {
    "lance_tokenizer": None,
    "base_tokenizer": "simple",
    "language": "English",
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "custom_stop_words": None,
    "ascii_folding": True,
    "split_identifiers": False,
    "split_on_numerics": False,
}
"""How the words of a text are told by the indexes of the format (Lance's defaults); others find other rows."""
VECTOR_SETTINGS: Mapping[str, object] = {"metric_type": "L2"}


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """A part of an index: its id, the fragments it covers, the generation of its files (`version`), their size where
    it is known, and by number the base folder that holds them (None: the table's own).
    """

    uuid: str
    fragments: frozenset[int]
    version: int
    dataset_version: int
    size: int | None = None
    base: int | None = None


@dataclass(frozen=True, slots=True)
class IndexCoverage:
    """An index, its columns, how many rows it covers, and which fragments of the table it does not."""

    name: str
    columns: tuple[str, ...]
    kind: str
    rows: int
    segments: tuple[IndexSegment, ...]
    uncovered: tuple[int, ...]
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def generations(self) -> frozenset[int]:
        """Versions of its segments' files. More than one never work together: they name rows in different ways."""
        return frozenset(segment.version for segment in self.segments)

    @property
    def is_inherited(self) -> bool:
        """Whether files of it lie with the line that the table was forked from. Lance compacts such a table, writes the
        index anew beside the fork, and goes on to look for it where the former one was.
        """
        return any(segment.base is not None for segment in self.segments)


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """What the index folders of a table hold: bytes by base and segment id, and which bases were looked into."""

    sizes: Mapping[tuple[int | None, str], int]
    bases: frozenset[int | None]

    def lack(self, segment: IndexSegment) -> bool:
        """Whether files of a segment are gone, as far as a listing shows."""
        return segment.base in self.bases and self.sizes.get((segment.base, segment.uuid), 0) < (segment.size or 1)

    def unnamed(self, indexes: Sequence[IndexCoverage]) -> list[str]:
        """Ids of segments that no index of these has: left by older versions, or of a kind that this Lance does not
        know and therefore does not list.
        """
        found = {uuid for _, uuid in self.sizes}
        return sorted(found - {segment.uuid for index in indexes for segment in index.segments})


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """An index that a table should have: `kind` is BTREE, INVERTED or IVF_FLAT."""

    column: str
    kind: str

    def is_met_by(self, index: IndexCoverage) -> bool:
        """Whether an index is one of this kind on this column alone, whatever its name."""
        found = index.kind.upper()
        return index.columns == (self.column,) and (found == self.kind or {found[:4], self.kind[:4]} == {"IVF_"})

    def is_sound(self, index: IndexCoverage, files: IndexFiles | None) -> bool:
        """Whether an index that meets this works as it should: by the settings of the format, of one generation, and
        with all its files.
        """
        expected = {"INVERTED": TEXT_SETTINGS, "IVF_FLAT": VECTOR_SETTINGS}.get(self.kind, {})
        return (
            has_settings(index, expected)
            and len(index.generations) <= 1
            and not (files is not None and any(files.lack(segment) for segment in index.segments))
        )

    def best(self, indexes: Sequence[IndexCoverage], files: IndexFiles | None) -> IndexCoverage | None:
        """The index that meets this, a sound one where there are several; None when it is missing."""
        met = [index for index in indexes if self.is_met_by(index)]
        return min(met, key=lambda index: not self.is_sound(index, files), default=None)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What is done to an index that is there: it gets what it lacks, as another segment up to a limit, or becomes
    whole; with `whole` it is never extended. Files tell what is lost.
    """

    most_segments: int = MOST_SEGMENTS
    files: IndexFiles | None = None
    whole: bool = False
    anew: bool = False
    """Also one that covers everything and works is built again, and one that cannot be, or that the schema does not ask
    for, goes: it holds values of rows that are gone.
    """

    def suits(self, index: IndexCoverage, segments: int | None = None) -> bool:
        """Whether an index may stay with so many segments, by default those that it has. One segment is asked for
        before the table is compacted: then it must be the table's own.
        """
        count = len(index.segments) if segments is None else segments
        return count <= self.most_segments and not (self.most_segments == 1 and index.is_inherited)


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """Staged segments that nothing names yet, those that they take the place of, and the column they are for."""

    column: str
    segments: tuple[lance.Index, ...] = ()
    replaced: tuple[lance.Index, ...] = ()


def has_settings(index: IndexCoverage, expected: Mapping[str, object]) -> bool:
    """Whether an index was built by these settings; one that an index does not tell counts as the expected one."""
    return all(index.settings.get(name, value) == value for name, value in expected.items())


def coverage(dataset: LanceDataset) -> list[IndexCoverage]:
    """Indexes of an opened table in name order."""
    with reading(f"list indexes of {dataset.uri}"):
        found = dataset.describe_indices()
        present = {fragment.fragment_id for fragment in dataset.get_fragments()} if found else set()
    return sorted((_coverage(index, present) for index in found), key=lambda i: i.name)


def _coverage(found: IndexDescription, present: set[int]) -> IndexCoverage:
    segments = tuple(
        IndexSegment(
            s.uuid,
            frozenset(s.fragment_ids),
            int(s.index_version),
            int(s.dataset_version_at_last_update),
            s.size_bytes,
            s.base_id,
        )
        for s in found.segments
    )
    covered = frozenset().union(*(s.fragments for s in segments))
    left = tuple(sorted(present - covered))
    kind, columns, settings = str(found.index_type), tuple(found.field_names), dict(found.details or {})
    return IndexCoverage(found.name, columns, kind, int(found.num_rows_indexed), segments, left, settings)


def is_due(want: WantedIndex, indexes: Sequence[IndexCoverage], upkeep: Upkeep | None) -> bool:
    """Whether an index is missing or, with upkeep, does not cover everything, has too many segments or is unsound."""
    met = want.best(indexes, upkeep.files if upkeep is not None else None)
    if met is None or upkeep is None:
        return met is None
    return upkeep.anew or bool(met.uncovered) or not upkeep.suits(met) or not want.is_sound(met, upkeep.files)


def is_behind(want: WantedIndex, indexes: Sequence[IndexCoverage], rows: int) -> bool:
    """Whether an index that finds rows by value leaves out so many files that look-ups of small writes have become
    slow, and of so few rows that a write may make up for it. One of many rows that would be built anew waits.
    """
    met = want.best(indexes, None) if want.kind == "BTREE" else None
    if met is None or len(met.uncovered) < FALLEN_BEHIND:
        return False
    grows = len(met.segments) < MOST_SEGMENTS
    return (rows - met.rows if grows else rows) <= CAUGHT_UP_ROWS


def build(dataset: LanceDataset, want: WantedIndex, upkeep: Upkeep | None) -> IndexBuild:
    """Stages an index that is missing and, with upkeep, what an existing one does not cover yet: as another segment,
    or as one for everything where it cannot be extended or would have too many.

    Without segments when there is nothing to do: a vector column without values has nothing to be trained on.
    """
    if want.column not in dataset.schema.names:
        raise DamagedError(f"storage: {dataset.uri} has no column '{want.column}', and the schema has: {LOST_COLUMN}")
    indexes, nothing = coverage(dataset), IndexBuild(want.column)
    if not is_due(want, indexes, upkeep):
        return nothing
    met = want.best(indexes, upkeep.files if upkeep is not None else None)
    with reading(f"index {dataset.uri}"):
        if met is not None and upkeep is not None and _can_grow(want, met, upkeep):
            added = _segment(dataset, want, list(met.uncovered), met.name)
            if added is None or met.generations == {added.index_version}:
                return IndexBuild(want.column, (added,)) if added is not None else nothing
        everything = [fragment.fragment_id for fragment in dataset.get_fragments()]
        name = met.name if met is not None else f"{want.column}_idx"
        segment = _segment(dataset, want, everything, name)
        # One of another kind may stand under the name that this one gets.
        old = [index for index in indexes if want.is_met_by(index) or index.name == name]
        if segment is not None:
            return IndexBuild(want.column, (segment,), named(dataset, old))
        return IndexBuild(want.column, (), named(dataset, old)) if upkeep is not None and upkeep.anew else nothing


def _can_grow(want: WantedIndex, met: IndexCoverage, upkeep: Upkeep) -> bool:
    """Whether an index may get another segment, as far as is known before that is built."""
    return (
        not upkeep.whole
        and met.kind.upper() == want.kind
        and want.is_sound(met, upkeep.files)
        and upkeep.suits(met, len(met.segments) + bool(met.uncovered))
    )


def _segment(dataset: LanceDataset, want: WantedIndex, fragments: list[int], name: str) -> lance.Index | None:
    """A staged segment; None for vectors where there are none."""
    if want.kind == "IVF_FLAT" and not has_values(dataset, want.column, fragments):
        return None
    segment = dataset.create_index_uncommitted(
        want.column,
        index_type=want.kind,
        name=name,
        metric="L2",
        num_partitions=1 if want.kind == "IVF_FLAT" else None,
        fragment_ids=fragments,
        replace=True,
    )
    # An unfinished text segment commits and then fails every search.
    return dataset.merge_existing_index_segments([segment]) if want.kind == "INVERTED" else segment


def named(dataset: LanceDataset, indexes: Sequence[IndexCoverage]) -> tuple[lance.Index, ...]:
    """Indexes as Lance wants them named for their removal."""
    ids = {field.name(): field.id() for field in dataset.lance_schema.fields()}
    return tuple(
        lance.Index(s.uuid, i.name, [ids[c] for c in i.columns], s.dataset_version, Bitmap(s.fragments), s.version)
        for i in indexes
        for s in i.segments
    )


def unlisted(uuids: Iterable[str]) -> tuple[lance.Index, ...]:
    """Segments of which nothing but the id is known, for their removal; Lance passes over those that are not there."""
    return tuple(lance.Index(uuid, "", [], 0, Bitmap(set()), 0) for uuid in uuids)


def has_values(dataset: LanceDataset, column: str, fragments: Sequence[int] | None = None) -> bool:
    """Whether a column holds anything but nulls, in these fragments or anywhere."""
    chosen = None if fragments is None else [f for f in dataset.get_fragments() if f.fragment_id in set(fragments)]
    scanner = dataset.scanner(columns=[column], filter=f"`{column}` IS NOT NULL", limit=1, fragments=chosen)
    return any(batch.num_rows and pc.count(batch.column(0)).as_py() for batch in scanner.to_batches())
