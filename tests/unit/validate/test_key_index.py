"""KeyIndex and TextIndex against a dictionary: whatever the strings, and even if all hashes were equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spark_omnigraph.validate import key_index
from spark_omnigraph.validate.key_index import KeyIndex, TextIndex, all_distinct, hash_strings, hash_text

TEXT = st.text(max_size=30) | st.sampled_from(["", "a", "a\0", "aaaaaaaa", "aaaaaaaaa", "ä" * 9, "x" * 300])


def check(keys: list[str], values: list[str]) -> None:
    index = KeyIndex(pa.array(keys, pa.string()))
    for value, place in zip(values, index.find(pa.array(values, pa.string())).tolist(), strict=True):
        if value in keys:
            assert keys[place] == value
        else:
            assert place == -1


@given(st.lists(TEXT, max_size=40), st.lists(TEXT, max_size=40))
def test_it_finds_what_a_dictionary_finds(keys: list[str], others: list[str]) -> None:
    check(keys, [*others, *keys])


@given(st.lists(TEXT, max_size=20), st.lists(TEXT, max_size=20))
def test_the_answer_does_not_rest_on_hashes(keys: list[str], others: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index, "hash_strings", lambda values: np.full(len(values), 7, dtype=np.uint64))
        check(keys, [*others, *keys])


def check_rows(column: list[str], texts: list[str]) -> None:
    """Looked for one by one, all together, and together since buckets are large."""
    values = pa.array(column, pa.string())
    expected = [(number, row) for number, text in enumerate(texts) for row, value in enumerate(column) if value == text]
    for few, most in ((1 << 10, 1 << 10), (0, 0), (1 << 10, 0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(key_index, "_FEW_TEXTS", few)
            patch.setattr(key_index, "_FEW_ROWS", most)
            which, rows = TextIndex(values).find(texts, lambda at: values.take(pa.array(at)))
        assert list(zip(which.tolist(), rows.tolist(), strict=True)) == expected


@given(st.lists(TEXT, max_size=40), st.lists(TEXT, max_size=10))
def test_rows_of_texts_that_repeat_are_all_found(column: list[str], others: list[str]) -> None:
    check_rows(column, list(dict.fromkeys([*others, *column[::2]])))


@given(st.lists(TEXT, max_size=20), st.lists(TEXT, max_size=10))
def test_rows_do_not_rest_on_hashes_either(column: list[str], others: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index, "hash_strings", lambda values: np.full(len(values), 7, dtype=np.uint64))
        patch.setattr(key_index, "hash_text", lambda _: 7)
        check_rows(column, list(dict.fromkeys([*others, *column])))


@given(TEXT)
@example("ä" * 127 + "ab")
@example("ä" * 127 + "abc")
def test_one_text_has_the_hash_that_it_has_among_others(text: str) -> None:
    [found] = hash_strings(pa.array(["before", text, "after"], pa.string()))[1:2].tolist()
    assert hash_text(text) == found


def test_rows_of_a_large_column_stand_in_many_buckets() -> None:
    values = pa.array([f"person-{i % 40_000}" for i in range(100_000)])
    index = TextIndex(values)
    assert index.bytes <= 12 * len(values) + 8 * 65_537
    which, rows = index.find(["person-39999", "none", "person-7"], lambda at: values.take(pa.array(at)))
    assert list(zip(which.tolist(), rows.tolist(), strict=True)) == [
        *((0, row) for row in (39_999, 79_999)),
        *((2, row) for row in (7, 40_007, 80_007)),
    ]


@given(st.lists(st.none() | TEXT, min_size=1, max_size=30), st.integers(0, 5), st.integers(0, 5))
def test_a_slice_hashes_like_a_copy(values: list[str | None], left: int, right: int) -> None:
    whole = pa.array(values, pa.string())
    part = whole[left : len(values) - right]
    copy = pa.array(part.to_pylist(), pa.string())
    assert hash_strings(part).tolist() == hash_strings(copy).tolist()


def test_many_keys_fill_several_tables() -> None:
    keys = [f"person-{i}" for i in range(50_000)]
    index = KeyIndex(pa.array(keys))
    assert len(index) == 50_000
    assert index.find(pa.array(keys)).tolist() == list(range(50_000))
    assert not index.contains(pa.array([f"person-{i}" for i in range(50_000, 60_000)])).any()


def test_hashes_of_similar_keys_differ() -> None:
    texts = [f"{i:026d}" for i in range(100_000)] + [f"k{i}" for i in range(100_000)]
    assert len(np.unique(hash_strings(pa.array(texts)))) == 200_000


def test_chunked_values() -> None:
    index = KeyIndex(pa.array(["a", "b"]))
    assert index.contains(pa.chunked_array([["a", "x"], ["b"]])).tolist() == [True, False, True]
    assert index.contains(pa.chunked_array([], pa.string())).tolist() == []


def test_repeats_are_found_in_any_chunk_and_hashes_alone_prove_none(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"w{i}" for i in range(1000)]
    assert all_distinct(pa.chunked_array([words[:400], [], words[400:]], pa.string()))
    assert not all_distinct(pa.chunked_array([words[:400], [*words[400:], "w7"]], pa.string()))
    assert all_distinct(pa.chunked_array([], pa.string()))
    monkeypatch.setattr(key_index, "hash_strings", lambda part: np.zeros(len(part), dtype=np.uint64))
    assert all_distinct(pa.chunked_array([words], pa.string()))
    assert not all_distinct(pa.chunked_array([[*words, "w7"]], pa.string()))


def test_long_strings_among_short_ones_are_found_and_told_apart() -> None:
    long = ["a" * 300, "a" * 299 + "b", "b" * 257, "a" * 256, "é" * 5000]
    check([*long, "", "a"], [text + "x" for text in long])
    assert len(np.unique(hash_strings(pa.array(long)))) == len(long)


def test_one_long_string_does_not_cost_the_others_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[int, int]] = []
    mix = key_index._mix

    def counted(*given: Any) -> None:
        steps.append((len(given[3]), int(given[3].max())))
        mix(*given)

    monkeypatch.setattr(key_index, "_mix", counted)
    hash_strings(pa.array(["short", "x" * 1_000_000, "another one"]))
    # What is mixed together, a word a step, is never longer than the bound of short strings.
    assert steps == [(3, 11)]
