"""Functions as providers, and the names under which answers are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spark_omnigraph.embed.callables import embedder_of
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.hashes import cache_key, text_hash
from spark_omnigraph.embed.vectors import checked
from spark_omnigraph.errors import EmbeddingConfigError


def embedded(answer: Any, texts: int = 2) -> Any:
    return embedder_of(lambda given: answer).embed(["t"] * texts, dimension=2, role=Role.DOCUMENT)


ANSWERS: list[Any] = [[[3, 4], [0, -2]], ((3.0, 4.0), (0.0, -2.0)), np.array([[3, 4], [0, -2]])]


@pytest.mark.parametrize("answer", ANSWERS)
def test_anything_like_an_array_becomes_unit_vectors(answer: Any) -> None:
    found = embedded(answer)
    np.testing.assert_allclose(found.vectors, [[0.6, 0.8], [0.0, -1.0]], rtol=1e-6)
    assert not found.failures


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([[1, 2]], r"was given 2 texts and must return as many vectors, got an array of shape \(1, 2\)"),
        ([1, 2], r"shape \(2,\)"),
        (None, r"shape \(\)"),
        ([[1, 2], [1]], "must return one list of numbers a text, all of one length"),
        ([["a", "b"], ["c", "d"]], "must return one list of numbers a text"),
        ([["1", "2"], ["3", "4"]], "must return one list of numbers a text"),
        (np.ones((2, 2), dtype=complex), "must return one list of numbers a text"),
        (np.ones((2, 2), dtype="datetime64[s]"), "must return one list of numbers a text"),
        ([[1, 2, 3], [1, 2, 3]], "embedding dimension mismatch: expected 2, got 3"),
    ],
)
def test_another_answer_is_an_error(answer: Any, message: str) -> None:
    with pytest.raises(EmbeddingConfigError, match=message):
        embedded(answer)


def test_numbers_that_are_no_vector_fail_alone() -> None:
    found = embedded([[1, float("nan")], [0, 0], [0, 5]], 3)
    assert dict(found.failures) == {
        0: "embedding component 1 is not finite (nan)",
        1: "embedding has zero norm (no direction)",
    }
    assert np.isnan(found.vectors[:2]).all()
    assert found.vectors[2].tolist() == [0, 1]


def test_the_function_is_not_asked_for_nothing() -> None:
    assert embedded(None, 0).vectors.shape == (0, 2)


def test_functions_without_a_name_are_not_taken_for_each_other() -> None:
    assert embedder_of(len).identity != embedder_of(len).identity
    assert embedder_of(len, "m").identity == embedder_of(min, "m").identity


def test_an_error_of_the_function_is_its_own() -> None:
    def broken(texts: list[str]) -> list[list[float]]:
        raise LookupError("no model")

    with pytest.raises(LookupError, match="no model"):
        embedder_of(broken).embed(["a"], dimension=2, role=Role.QUERY)


def test_squares_are_added_from_left_to_right() -> None:
    """Each of the last squares is too small for a sum of 1, and together they would round the length up."""
    row = [1.0, 2.0**-12, 2.0**-12, 2.0**-24] + [2.0**-27] * 1000
    vectors, _ = checked([row], len(row))
    assert vectors[0, 0] == 1.0


@pytest.mark.parametrize("row", [[3e38] * 4, [1e-30, 0, 0, 0], [1e-7, 0, 0, 0]])
def test_lengths_that_a_float_cannot_hold_are_no_direction(row: list[float]) -> None:
    _, failures = checked([row], 4)
    assert failures == {0: "embedding has zero norm (no direction)"}


def test_keys_tell_all_their_parts() -> None:
    parts: list[tuple[str, int, Role, str]] = [
        ("a", 1, Role.QUERY, "t"),
        ("b", 1, Role.QUERY, "t"),
        ("a", 2, Role.QUERY, "t"),
        ("a", 1, Role.DOCUMENT, "t"),
        ("a", 1, Role.QUERY, "u"),
        ("a1", 1, Role.QUERY, "t"),
        ("a", 11, Role.QUERY, "t"),
        ("a", 1, Role.QUERY, "queryt"),
    ]
    assert len({cache_key(*each) for each in parts}) == len(parts)
    assert cache_key(*parts[0]) == cache_key(*parts[0])
    assert text_hash("") != text_hash("\ud800") != text_hash("a")
    assert text_hash("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_number_that_is_masked_is_none() -> None:
    rows = np.ma.masked_array([[1.0, 0.0], [1.0, 0.0]], mask=[[False, False], [False, True]])
    found = embedder_of(lambda texts: rows).embed(["a", "b"], dimension=2, role=Role.DOCUMENT)
    assert (found.vectors[0].tolist(), list(found.failures)) == ([1, 0], [1])
