"""Orders and groups against Python's own."""

from __future__ import annotations

import math
import random
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph.engine.order import Numbered, SortColumn, codes, groups, ordered

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [None, -5, 0, 3, 2**31 - 1]),
    "uint": (pa.uint64(), [None, 0, 2**63, 2**64 - 1]),
    "float": (pa.float64(), [None, -math.inf, -1.5, -0.0, 0.0, 2.0, math.inf, math.nan]),
    "single": (pa.float32(), [None, -1.5, 0.25, 3.0]),
    "text": (pa.string(), [None, "", "Z", "a", "é", "\U0001f41d"]),
    "bool": (pa.bool_(), [None, False, True]),
    "day": (pa.date32(), [None, -3, 4]),
    "moment": (pa.date64(), [None, -3, 86_400_000]),
}


def array(kind: str, values: list[object]) -> pa.Array:
    of = COLUMNS[kind][0]
    if pa.types.is_date(of):
        return pa.array(values, pa.int32() if of == pa.date32() else pa.int64()).view(of)
    return pa.array(values, of)


def comparable(value: object) -> tuple[int, object]:
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    return (1, value.encode() if isinstance(value, str) else value)


@pytest.mark.parametrize("seed", range(60))
def test_order_is_that_of_the_values(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice([0, 1, 2, 7, 40])
    kinds = chance.sample(sorted(COLUMNS), chance.randint(1, 3))
    values = [[chance.choice(COLUMNS[kind][1]) for _ in range(count)] for kind in kinds]
    down = [chance.random() < 0.5 for _ in kinds]
    keys = [SortColumn.of(array(kind, column), d) for kind, column, d in zip(kinds, values, down, strict=True)]

    def compared(a: int, b: int) -> int:
        for column, is_down in zip(values, down, strict=True):
            x, y = comparable(column[a]), comparable(column[b])
            if x != y:
                return (-1 if x < y else 1) * (-1 if is_down else 1)  # of one kind
        return 0

    expected = sorted(range(count), key=cmp_to_key(compared))
    assert ordered(keys, count).tolist() == expected
    for limit in (0, 1, 3, count, count + 1):
        assert ordered(keys, count, limit).tolist() == expected[:limit]


def test_later_keys_are_asked_for_equal_rows_alone() -> None:
    asked: list[list[int] | None] = []

    def second(at: Any) -> pa.Array:
        asked.append(None if at is None else at.tolist())
        return pa.array([9, 8, 7, 6, 5], pa.int64()).take(pa.array(at))

    first = SortColumn.of(pa.array([1, 2, 2, 3, 3]))
    assert ordered([first, SortColumn(second)], 5).tolist() == [0, 2, 1, 4, 3]
    assert ordered([first, SortColumn(second)], 5, 2).tolist() == [0, 2]
    assert asked == [[1, 2, 3, 4], [1, 2]]
    assert ordered([SortColumn.of(pa.array([3, 1, 2])), SortColumn(second)], 3).tolist() == [1, 2, 0]
    assert len(asked) == 2


@pytest.mark.parametrize("seed", range(30))
def test_groups_are_numbered_by_their_first_row(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice([0, 1, 5, 50])
    kinds = chance.sample(sorted(COLUMNS), chance.randint(0, 3))
    values = [[chance.choice(COLUMNS[kind][1]) for _ in range(count)] for kind in kinds]
    group, first = codes([array(kind, column) for kind, column in zip(kinds, values, strict=True)], count)
    seen: dict[object, int] = {}
    firsts = []
    for row in range(count):
        key = tuple(comparable(column[row]) for column in values)
        if key not in seen:
            seen[key] = len(seen)
            firsts.append(row)
        assert group[row] == seen[key]
    assert first.tolist() == firsts


def test_lists_are_grouped_and_ordered_item_by_item() -> None:
    lists = pa.array([[2], [1, 2], [1], None, [None], [], [1]], pa.list_(pa.int32()))
    assert ordered([SortColumn.of(lists)], 7).tolist() == [3, 5, 4, 2, 6, 1, 0]
    assert codes([lists], 7)[0].tolist() == [0, 1, 2, 3, 4, 5, 2]


def test_groups_are_numbered_by_their_first_row_however_late_it_comes() -> None:
    numbers = np.array([3] * 9_000 + [1] * 3 + [3, 0], dtype=np.int32)
    group, first = groups([Numbered(numbers, 5)], len(numbers))
    assert first.tolist() == [0, 9_000, 9_004]
    assert group[[0, 8_999, 9_000, 9_003, 9_004]].tolist() == [0, 0, 1, 0, 2]
    both, first = groups([Numbered(numbers, 5), Numbered(numbers[::-1].copy(), 5)], len(numbers))
    assert len(first) == len({(a, b) for a, b in zip(numbers.tolist(), numbers[::-1].tolist(), strict=True)})
    assert both[first].tolist() == list(range(len(first)))
