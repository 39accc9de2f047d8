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


def data_bytes(fragment: LanceFragment) -> int:
    """Bytes of the data files of a fragment, as far as their writers recorded them. One that several columns share is
    named more than once.
    """
    return sum({file.path: file.file_size_bytes or 0 for file in fragment.metadata.files}.values())
