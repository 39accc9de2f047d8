"""How fragments become partitions."""

from __future__ import annotations

import pytest

from spark_omnigraph.spark.reader import group_fragments
from spark_omnigraph.storage.scan import FragmentSize

MB = 1 << 20


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([], []),
        ([(0, 10, MB)], [(0,)]),
        ([(0, 10, MB)] * 3, [(0, 0, 0)]),
        ([(0, 10, 70 * MB), (1, 10, 30 * MB), (2, 10, 30 * MB), (3, 10, 30 * MB), (4, 1, 1)], [(0,), (1, 2, 3), (4,)]),
        ([(0, 600_000, MB), (1, 300_000, MB), (2, 300_000, MB), (3, 10, MB)], [(0,), (1, 2), (3,)]),
        ([(0, 0, 90 * MB), (1, 5, MB)], [(1,)]),
        ([(i, 5, 0) for i in range(4)], [(0, 1, 2, 3)]),
    ],
)
def test_small_neighbours_share_a_partition(sizes: list[tuple[int, int, int]], groups: list[tuple[int, ...]]) -> None:
    found = group_fragments([FragmentSize(*s) for s in sizes], most_bytes=64 * MB, most_rows=500_000)
    assert found == groups
