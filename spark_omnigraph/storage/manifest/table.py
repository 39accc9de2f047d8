"""The `__manifest` dataset: its Arrow schema, reading rows, and the publish of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.fragment import LanceFragment

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.manifest.branches import stored_branch
from spark_omnigraph.manifest.formats.identity import IDENTITY_COLUMNS
from spark_omnigraph.manifest.rows import (
    FACTS_PREFIX,
    SCHEMA_PREFIX,
    ManifestRow,
    RowKind,
    SchemaEpoch,
    TableId,
    checked,
)
from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.layout import MANIFEST, SCHEMA_VERSION, SCHEMA_VERSION_KEY
from spark_omnigraph.storage.tables.commits import PRIMARY_KEY, create_dataset, merge_manifest_rows, stamp_manifest
from spark_omnigraph.storage.tables.handles import file_path
from spark_omnigraph.storage.uri import Location

SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata={PRIMARY_KEY: "true"}),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("item", pa.string()))),
        pa.field("table_key", pa.string(), nullable=False),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.uint64()),
    ]
)
_FACTS = "base_objects"
_COLUMNS = [name for name in SCHEMA.names if name != _FACTS]


def create_manifest(location: Location, rows: Sequence[ManifestRow]) -> LanceDataset:
    """New manifest with its first rows, config and stamp; ends at version 3 as the format says."""
    dataset = create_dataset(location.join(MANIFEST), SCHEMA, to_arrow(rows), location.options)
    return stamp_manifest(dataset, {"table_version_management": "true"}, {SCHEMA_VERSION_KEY: str(SCHEMA_VERSION)})


def read_rows(dataset: LanceDataset) -> list[ManifestRow]:
    """All rows of an opened manifest version, those with facts of commits left out."""
    return _rows(dataset, None)


def _rows(dataset: LanceDataset, fragments: Sequence[LanceFragment] | None) -> list[ManifestRow]:
    with reading(f"read {dataset.uri}"):
        ids = [name for name in IDENTITY_COLUMNS if name in dataset.schema.names]
        table = dataset.scanner(columns=[*_COLUMNS, *ids], fragments=fragments).to_table()
    table = table.filter(pc.not_equal(table.column("object_type"), RowKind.FACTS))
    columns = [table.column(name).to_pylist() for name in _COLUMNS]
    rows = [
        checked(ManifestRow(object_id, kind, TableKey(key), place, metadata, version, stored_branch(branch), rows))
        for object_id, kind, place, metadata, key, version, branch, rows in zip(*columns, strict=True)
    ]
    if not ids:
        return rows
    pairs = zip(*(table.column(name).to_pylist() for name in ids), strict=True)
    return [r if None in pair else replace(r, identity=TableId(*pair)) for r, pair in zip(rows, pairs, strict=True)]


def read_facts(dataset: LanceDataset, commits: Iterable[str] | None = None) -> dict[str, str]:
    """Facts of all commits of an opened manifest, or of those with these ids, by the id of the commit."""
    condition = is_text_of("object_type", [RowKind.FACTS])
    if commits is not None:
        condition += f" AND {is_text_of('object_id', [FACTS_PREFIX + commit for commit in commits])}"
    with reading(f"read {dataset.uri}"):
        table = dataset.scanner(columns=["object_id", _FACTS], filter=condition).to_table()
    rows = zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True)
    return {name.removeprefix(FACTS_PREFIX): texts[0] for name, texts in rows if texts and texts[0] is not None}


def read_schema_text(dataset: LanceDataset, epoch: SchemaEpoch) -> str | None:
    """The text of a former schema, from a manifest that is not older than its end; None where it is gone."""
    condition = is_text_of("object_id", [f"{SCHEMA_PREFIX}{epoch.until:020d}"])
    with reading(f"read {dataset.uri}"):
        texts = dataset.scanner(columns=[_FACTS], filter=condition).to_table().column(0).to_pylist()
    return next((text[0] for text in texts if text), None)


def content_mark(dataset: LanceDataset) -> str:
    """Says which files a manifest version consists of: another graph, made anew in the same place, has others."""
    names = (file_path(file) for fragment in dataset.get_fragments() for file in fragment.data_files())
    return hashlib.blake2b("\n".join(names).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class _Seen:
    """Rows of the data files read so far, by object id."""

    files: frozenset[str]
    rows: Mapping[str, ManifestRow]


class ManifestReader:
    """Reads newest manifest rows, each data file once: rows are only added, or replaced by those of newer files."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._branches: dict[str, str | None] = {}

    def is_another(self, dataset: LanceDataset, branch_id: str | None) -> bool:
        """Whether a newest manifest lacks a file that was read of it, or its branch has another id: it was compacted,
        or another graph or branch is in its place, which may have begun as this one did, and versions mean something
        else now. A branch that is looked at for the first time tells nothing else than files that were read elsewhere.
        """
        place, files = str(dataset.uri), frozenset(_files(dataset))
        seen = self._seen.get(place)
        known = frozenset[str]().union(*(each.files for each in self._seen.values()))
        is_other = not seen.files <= files if seen is not None else bool(known) and not files <= known
        is_other = is_other or self._branches.get(place, branch_id) != branch_id
        self._branches[place] = branch_id
        return is_other

    def read(self, dataset: LanceDataset) -> list[ManifestRow]:
        """All rows of an opened manifest. Reads everything when files that were seen are gone (a compaction)."""
        fragments = dataset.get_fragments()
        names = [file_path(fragment.data_files()[0]) for fragment in fragments]
        seen = self._seen.get(str(dataset.uri))
        if seen is None or not seen.files <= set(names):
            seen = _Seen(frozenset(), {})
        fresh = [f for f, name in zip(fragments, names, strict=True) if name not in seen.files]
        if fresh:
            rows = {row.object_id: row for row in _rows(dataset, fresh if seen.files else None)}
            seen = _Seen(frozenset(names), {**seen.rows, **rows})
            self._seen[str(dataset.uri)] = seen
        return list(seen.rows.values())


def _files(dataset: LanceDataset) -> list[str]:
    """The file of each fragment of a manifest."""
    return [file_path(fragment.data_files()[0]) for fragment in dataset.get_fragments()]


def publish_rows(dataset: LanceDataset, rows: Sequence[ManifestRow]) -> int:
    """One compare-and-swap of full rows; the manifest version that shows them. Raises CommitFailed."""
    return merge_manifest_rows(dataset, to_arrow(rows))


def to_arrow(rows: Iterable[ManifestRow]) -> pa.Table:
    """Rows as a table with the full schema of the manifest."""
    listed = list(rows)
    columns = {
        "object_id": [r.object_id for r in listed],
        "object_type": [r.kind for r in listed],
        "location": [r.location for r in listed],
        "metadata": [r.metadata for r in listed],
        _FACTS: [None if r.facts is None else [r.facts] for r in listed],
        "table_key": [r.table_key for r in listed],
        "table_version": [r.table_version for r in listed],
        "table_branch": [r.table_branch for r in listed],
        "row_count": [r.row_count for r in listed],
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)
