"""Lance's handles by the names that other rooms use; they hold them and hand them back, and call nothing on them."""

from __future__ import annotations

from typing import TypeAlias

import lance
from lance.fragment import DataFile, LanceFragment

Dataset: TypeAlias = lance.LanceDataset
"""A dataset of the graph at one version."""

PreparedTransaction: TypeAlias = lance.Transaction
"""A change that is ready to land; its uuid is known."""


def file_path(file: DataFile) -> str:
    """The `path` of a data file, for which Lance makes a class each time: of many files that is most of a look."""
    return str(file.__dict__.get("_path") or file.path)


def with_fields(file: DataFile, fields: list[int], columns: list[int]) -> DataFile:
    """A data file as an entry that reads these fields from these of its columns."""
    version = file.file_major_version, file.file_minor_version
    return DataFile(file.path, fields, columns, *version, file.file_size_bytes, file.base_id)


def data_bytes(fragment: LanceFragment) -> int:
    """Bytes of the data files of a fragment, as far as their writers recorded them. One that several columns share is
    named more than once.
    """
    return sum({file_path(file): file.file_size_bytes or 0 for file in fragment.metadata.files}.values())
