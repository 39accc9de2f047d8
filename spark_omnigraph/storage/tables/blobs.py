"""Blobs of stored rows: which are null, and what they hold.

Lance 14 stores nulls of a blob column as nulls. Lance 7, the reference engine's, stores each as an empty blob at the
start of a file, where a real empty blob may lie too. Its files show that they have nulls: a page of the column has two
layers, the blobs and what describes them, and one of them is nullable. Pages of Lance 14 have one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypedDict

import pyarrow as pa
from lance import LanceDataset
from lance.file import LanceFileReader

from spark_omnigraph.storage.faults import reading

INLINE, EXTERNAL = 0, 3
"""Kinds of blobs in descriptors: beside the rows, and behind a URI."""

_EXTENSION = "lance.blob.v2"
_LAYERS = re.compile(r"\blayers: \[([^\]]*)\]")
_NULLABLE = "Nullable"

Descriptor = Mapping[str, object]
Rows = tuple[Sequence[int], Sequence[int]]
"""Ids of rows, and their physical addresses."""


class Blob(TypedDict):
    """A blob as it is written: its bytes, or a reference."""

    data: bytes | None
    uri: str | None


def is_blob(column: pa.Field) -> bool:
    """Whether a stored column holds blobs."""
    return getattr(column.type, "extension_name", None) == _EXTENSION


class StoredBlobs:
    """Blobs of one opened table; looks into a data file for nulls only where it has a blob that may be one."""

    def __init__(self, dataset: LanceDataset) -> None:
        self._dataset = dataset
        self._hiding: dict[tuple[str, int], bool] = {}

    def is_null(self, column: str, descriptor: Descriptor | None, address: int) -> bool:
        """Whether the blob of a row is null, by its descriptor and the physical address of the row."""
        if descriptor is None or descriptor["kind"] is None:
            return True
        somewhere = descriptor["position"] or descriptor["size"] or descriptor["blob_uri"]
        if descriptor["kind"] != INLINE or somewhere or not self._dataset.schema.field(column).nullable:
            return False
        place = (column, address >> 32)
        if place not in self._hiding:
            self._hiding[place] = hides_nulls(self._dataset, *place)
        return self._hiding[place]

    def take(self, column: str, described: Sequence[Descriptor | None], rows: Rows) -> list[Blob | None]:
        """The blobs of rows as they could be written again. A reference is copied and never followed."""
        found: list[Blob | None] = [None] * len(described)
        inline: dict[int, int] = {}
        for i, (each, row, address) in enumerate(zip(described, *rows, strict=True)):
            if each is None or self.is_null(column, each, address):
                continue
            if each["kind"] == EXTERNAL:
                found[i] = Blob(data=None, uri=str(each["blob_uri"]))
            else:
                inline[i] = row
        if inline:
            with reading(f"read blobs of column '{column}' of {self._dataset.uri}"):
                blobs = self._dataset.take_blobs(column, ids=list(inline.values()))
                for i, blob in zip(inline, blobs, strict=True):
                    if blob is not None:
                        with blob as opened:
                            found[i] = Blob(data=opened.read(), uri=None)
        return found


def column_with_hidden_nulls(dataset: LanceDataset) -> str | None:
    """A blob column with nulls that Lance would take for empty blobs when it writes its files anew."""
    for field in dataset.schema:
        may = is_blob(field) and field.nullable
        if may and any(hides_nulls(dataset, field.name, f.fragment_id) for f in dataset.get_fragments()):
            return str(field.name)
    return None


def hides_nulls(dataset: LanceDataset, column: str, fragment_id: int) -> bool:
    """Whether a fragment has nulls of a blob column that look like empty blobs."""
    number = next(field.id() for field in dataset.lance_schema.fields() if field.name() == column)
    with reading(f"look for nulls of column '{column}' of {dataset.uri}"):
        fragment = dataset.get_fragment(fragment_id)
        for file in fragment.data_files() if fragment is not None else ():
            if number in file.fields:
                base = dataset.uri if file.base_id is None else dataset.base_paths()[file.base_id].path
                pages = _pages(dataset, f"{base}/data/{file.path}", file.column_indices[file.fields.index(number)])
                return any(_hides_nulls(layers) for page in pages for layers in _LAYERS.findall(page))
    return False


def _hides_nulls(layers: str) -> bool:
    return layers.count("Repdef") > 1 and _NULLABLE in layers


def _pages(dataset: LanceDataset, path: str, column: int) -> list[str]:
    reader = LanceFileReader(path, storage_options=dataset.initial_storage_options)
    return [str(page.encoding) for page in reader.metadata().columns[column].pages]
