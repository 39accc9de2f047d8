"""Fences that are read back: which version's content a table has."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph.commit.fence import content_version
from spark_omnigraph.errors import DamagedError
from spark_omnigraph.storage.tables.commits import CONTENT_KEY, FENCE_KEY, restore

from .builders import foreign_append, make_store


@pytest.mark.parametrize("content", ["3", "9", "0", "-1", "one", "\u00b9", "9" * 40])
def test_a_fence_that_keeps_no_older_version_is_damage_and_no_endless_search(tmp_path: Path, content: str) -> None:
    store = make_store(tmp_path / "g")
    foreign_append(store, "node:A", "a")
    fenced = restore(store.open_dataset("nodes/a"), 1, {FENCE_KEY: "x", CONTENT_KEY: content})
    with pytest.raises(DamagedError, match=r"version 3 of .*nodes/a says that it keeps the content of version"):
        content_version(fenced, 1)
