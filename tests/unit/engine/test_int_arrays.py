"""Sets of whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from spark_omnigraph.engine import int_arrays as sets
from spark_omnigraph.engine.int_arrays import is_range, ranges, upto


def test_numbers_in_order_are_made_once_and_cannot_be_changed() -> None:
    for length in (0, 1, 5, 4, 1000, 3):
        assert upto(length).tolist() == list(range(length))
        assert is_range(upto(length), length)
    assert upto(3).base is upto(1000).base
    with pytest.raises(ValueError, match="read-only"):
        upto(3)[0] = 1


def test_more_than_is_kept_is_made_anew() -> None:
    shared = sets._Shared(most=8)
    assert shared.upto(9).tolist() == list(range(9))
    assert shared.upto(9).base is None
    assert shared.upto(8).base is not None
    assert is_range(shared.upto(9), 9)


@pytest.mark.parametrize(
    ("values", "length", "expected"),
    [([0, 1, 2], 3, True), ([0, 2, 1], 3, False), ([1, 2], 2, False), ([0, 1], 3, False), ([], 0, True)],
)
def test_a_range_is_known_by_its_values(values: list[int], length: int, expected: bool) -> None:
    assert is_range(np.array(values, dtype=np.int64), length) is expected
    assert not is_range(upto(5)[1:4], 3)
    assert not is_range(upto(8)[::2], 4)


def test_another_thread_that_puts_fewer_numbers_there_takes_none_away() -> None:
    class Overtaken(sets._Shared):
        numbers = property(lambda _: np.arange(4), lambda _, __: None)

    assert Overtaken().upto(9).tolist() == list(range(9))


def test_ranges_that_follow_each_other_and_that_do_not() -> None:
    def made(begins: list[int], counts: list[int]) -> list[int]:
        return list(ranges(np.array(begins, dtype=np.int64), np.array(counts, dtype=np.int64)).tolist())

    assert made([0, 2, 2], [2, 0, 3]) == [0, 1, 2, 3, 4]
    assert made([5, 0], [2, 3]) == [5, 6, 0, 1, 2]
    assert made([], []) == []
