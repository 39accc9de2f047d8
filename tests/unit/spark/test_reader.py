"""How fragments become partitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_omnigraph.storage.tables.scan import PARTITION_BYTES, PARTITION_ROWS, FragmentSize, group_fragments

MB = 1 << 20


@pytest.mark.parametrize(
    ("sizes", "slots", "groups"),
    [
        ([], 2, []),
        ([(10, MB)], 2, [(0,)]),
        ([(10, MB)] * 3, 2, [(0, 1, 2)]),
        ([(10, 0)] * 4, 2, [(0, 1, 2, 3)]),
        ([(0, 90 * MB), (5, MB)], 2, [(1,)]),
        ([(500_000, 15 * MB)] * 6, 2, [(0, 1, 2), (3, 4, 5)]),
        ([(500_000, 15 * MB)] * 6, 1, [(0, 1, 2), (3, 4, 5)]),
        ([(500_000, 15 * MB)] * 6, 8, [(0,), (1,), (2,), (3,), (4,), (5,)]),
        ([(100_000, 3 * MB)] * 3, 2, [(0,), (1, 2)]),
        ([(10, 70 * MB), (10, 30 * MB), (10, 30 * MB), (10, 30 * MB)], 2, [(0,), (1,), (2, 3)]),
    ],
)
def test_neighbours_share_the_work(sizes: list[tuple[int, int]], slots: int, groups: list[tuple[int, ...]]) -> None:
    found = group_fragments([FragmentSize(n, *size) for n, size in enumerate(sizes)], slots)
    assert found == groups


@given(st.lists(st.tuples(st.integers(0, 2_000_000), st.integers(0, 90 * MB)), max_size=40), st.integers(1, 16))
def test_every_row_is_in_one_partition_of_bounded_size(sizes: list[tuple[int, int]], slots: int) -> None:
    fragments = [FragmentSize(n, *size) for n, size in enumerate(sizes)]
    groups = group_fragments(fragments, slots)
    assert [i for group in groups for i in group] == [f.id for f in fragments if f.rows]
    for group in groups:
        if len(group) > 1:
            largest = max(fragments[i].bytes for i in group)
            assert sum(fragments[i].bytes for i in group) <= PARTITION_BYTES + 2 * largest
            assert sum(fragments[i].rows for i in group) <= PARTITION_ROWS + 2 * max(fragments[i].rows for i in group)
