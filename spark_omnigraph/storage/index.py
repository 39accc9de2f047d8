"""Lance indexes of a table: which there are, and building segments that a later commit makes visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import pyarrow.compute as pc
from lance import LanceDataset
from lance.bitmap import Bitmap

from spark_omnigraph.storage.faults import reading

if TYPE_CHECKING:
    from lance.lance.indices import IndexDescription

MOST_SEGMENTS = 8
"""Segments of one index from which it is built anew as one: every search asks each of them."""


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """A part of an index: its id, and the fragments it covers."""

    uuid: str
    fragments: frozenset[int]
    version: int
    dataset_version: int


@dataclass(frozen=True, slots=True)
class IndexCoverage:
    """An index, its columns, how many rows it covers, and which fragments of the table it does not."""

    name: str
    columns: tuple[str, ...]
    kind: str
    rows: int
    segments: tuple[IndexSegment, ...]
    uncovered: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """An index that a table should have: `kind` is BTREE, INVERTED or IVF_FLAT."""

    column: str
    kind: str

    def is_met_by(self, index: IndexCoverage) -> bool:
        """Whether an index is one of this kind on this column alone, whatever its name."""
        found = index.kind.upper()
        return index.columns == (self.column,) and (found == self.kind or {found[:4], self.kind[:4]} == {"IVF_"})


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """Staged segments that nothing names yet, those that they take the place of, and the column they are for."""

    column: str
    segments: tuple[lance.Index, ...] = ()
    replaced: tuple[lance.Index, ...] = ()


def coverage(dataset: LanceDataset) -> list[IndexCoverage]:
    """Indexes of an opened table in name order."""
    with reading(f"list indexes of {dataset.uri}"):
        found = dataset.describe_indices()
        present = {fragment.fragment_id for fragment in dataset.get_fragments()} if found else set()
    return sorted((_coverage(index, present) for index in found), key=lambda i: i.name)


def _coverage(found: IndexDescription, present: set[int]) -> IndexCoverage:
    segments = tuple(
        IndexSegment(s.uuid, frozenset(s.fragment_ids), int(s.index_version), int(s.dataset_version_at_last_update))
        for s in found.segments
    )
    covered = frozenset().union(*(s.fragments for s in segments))
    left = tuple(sorted(present - covered))
    kind, columns = str(found.index_type), tuple(found.field_names)
    return IndexCoverage(found.name, columns, kind, int(found.num_rows_indexed), segments, left)


def is_due(want: WantedIndex, indexes: Sequence[IndexCoverage], limit: int | None) -> bool:
    """Whether an index is missing or, with a limit of segments, does not cover everything or has more of them."""
    met = next((index for index in indexes if want.is_met_by(index)), None)
    return met is None or (limit is not None and (bool(met.uncovered) or len(met.segments) > limit))


def build(dataset: LanceDataset, want: WantedIndex, limit: int | None) -> IndexBuild:
    """Stages an index that is missing and, with a limit of segments, what an existing one does not cover yet: as
    another segment, or as one for everything where there would be more than the limit.

    Without segments when there is nothing to do: a vector column without values has nothing to be trained on.
    """
    indexes = coverage(dataset)
    if not is_due(want, indexes, limit):
        return IndexBuild(want.column)
    fragments, old = _work(dataset, indexes, want, limit)
    with reading(f"index {dataset.uri}"):
        if want.kind == "IVF_FLAT" and not has_values(dataset, want.column, fragments):
            return IndexBuild(want.column)
        segment = _segment(dataset, want, fragments, old.name if old is not None else None)
        whole = old is not None and fragments != list(old.uncovered)
        return IndexBuild(want.column, (segment,), tuple(_named(dataset, old)) if old is not None and whole else ())


def _work(
    dataset: LanceDataset, indexes: Sequence[IndexCoverage], want: WantedIndex, limit: int | None
) -> tuple[list[int], IndexCoverage | None]:
    """Fragments to index, and the index that they are added to or that is built anew."""
    everything = [fragment.fragment_id for fragment in dataset.get_fragments()]
    met = next((index for index in indexes if want.is_met_by(index)), None)
    if met is None:
        # One of another kind may stand under the name that this one gets.
        return everything, next((i for i in indexes if i.name == f"{want.column}_idx"), None)
    grown = limit is not None and len(met.segments) + bool(met.uncovered) > limit
    return everything if grown else list(met.uncovered), met


def _segment(dataset: LanceDataset, want: WantedIndex, fragments: list[int], name: str | None) -> lance.Index:
    partitions = 1 if want.kind == "IVF_FLAT" else None
    segment = dataset.create_index_uncommitted(
        want.column,
        index_type=want.kind,
        name=name,
        metric="L2",
        num_partitions=partitions,
        fragment_ids=fragments,
        replace=True,
    )
    # An unfinished text segment commits and then fails every search.
    return dataset.merge_existing_index_segments([segment]) if want.kind == "INVERTED" else segment


def _named(dataset: LanceDataset, index: IndexCoverage) -> list[lance.Index]:
    """An index as Lance wants it named for its removal."""
    ids = {field.name(): field.id() for field in dataset.lance_schema.fields()}
    fields = [ids[column] for column in index.columns]
    return [
        lance.Index(s.uuid, index.name, fields, s.dataset_version, Bitmap(s.fragments), s.version)
        for s in index.segments
    ]


def has_values(dataset: LanceDataset, column: str, fragments: Sequence[int] | None = None) -> bool:
    """Whether a column holds anything but nulls, in these fragments or anywhere."""
    chosen = None if fragments is None else [f for f in dataset.get_fragments() if f.fragment_id in set(fragments)]
    scanner = dataset.scanner(columns=[column], filter=f"`{column}` IS NOT NULL", limit=1, fragments=chosen)
    return any(batch.num_rows and pc.count(batch.column(0)).as_py() for batch in scanner.to_batches())
