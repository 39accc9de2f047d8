from __future__ import annotations

import time

import pyarrow as pa
import pytest

from spark_omnigraph.records.ulid import new_ulids

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _number(text: str) -> int:
    value = 0
    for letter in text:
        value = value * 32 + ALPHABET.index(letter)
    return value


@pytest.mark.parametrize("count", [0, 1, 2, 1023, 1024, 1025, 5000])
def test_ids_are_distinct_ascending_and_valid(count: int) -> None:
    ids = new_ulids(count)
    ids.validate(full=True)
    texts = ids.to_pylist()
    assert ids.type == pa.string()
    assert len(set(texts)) == count
    assert texts == sorted(texts)
    assert all(len(text) == 26 and set(text) <= set(ALPHABET) and text[0] <= "7" for text in texts)
    numbers = [_number(text) for text in texts]
    assert numbers == list(range(numbers[0], numbers[0] + count)) if count else numbers == []


def test_the_first_ten_characters_are_the_time() -> None:
    before = time.time_ns() // 1_000_000
    millis = _number(new_ulids(1)[0].as_py()[:10])
    assert before <= millis <= time.time_ns() // 1_000_000


def test_calls_do_not_repeat_ids() -> None:
    texts = [text for _ in range(200) for text in new_ulids(50).to_pylist()]
    assert len(set(texts)) == len(texts)
