"""The mock provider, against a second implementation of its definition, number by number."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest

from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import EmbeddingConfigError

MASK = (1 << 64) - 1


def f32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def by_hand(text: str, dimension: int) -> list[float]:
    """The definition in Python's own numbers: integers of 64 bits, each step rounded where it says so."""
    state = 14695981039346656037
    for byte in text.encode():
        state = ((state ^ byte) * 1099511628211) & MASK
    raw = []
    for _ in range(dimension):
        state ^= (state << 13) & MASK
        state ^= state >> 7
        state ^= (state << 17) & MASK
        raw.append(f32(f32(f32(float(state) / 2.0**64) * 2) - 1))
    total = 0.0
    for value in raw:
        total += value * value
    norm = f32(total**0.5)
    return [f32(value / norm) for value in raw]


TEXTS = ["", "a", "alpha", "Der Öfen 🜂 über", "x" * 700, "line\nbreak", "a", "été", "\u0000"]


@pytest.mark.parametrize("dimension", [1, 3, 256, 1025])
def test_every_number_is_that_of_the_definition(dimension: int) -> None:
    found = MockEmbedder().embed(TEXTS, dimension=dimension, role=Role.DOCUMENT)
    assert found.vectors.dtype == np.float32
    assert found.vectors.tolist() == [by_hand(text, dimension) for text in TEXTS]
    assert not found.failures


def test_more_texts_than_are_made_together_keep_their_places() -> None:
    texts = [f"text {number % 300}" * (number % 5) for number in range(700)]
    found = MockEmbedder().embed(texts, dimension=4, role=Role.QUERY).vectors
    for at in (0, 255, 256, 511, 699):
        assert found[at].tolist() == by_hand(texts[at], 4)


def test_no_texts_have_no_vectors() -> None:
    assert MockEmbedder().embed([], dimension=4, role=Role.QUERY).vectors.shape == (0, 4)


def test_a_vector_has_a_component() -> None:
    with pytest.raises(EmbeddingConfigError, match="greater than zero"):
        MockEmbedder().embed(["a"], dimension=0, role=Role.QUERY)


def test_the_name_of_the_model_is_kept_and_changes_no_number() -> None:
    named = pickle.loads(pickle.dumps(MockEmbedder("m9")))
    assert named.model == "m9"
    assert named.identity != MockEmbedder().identity
    assert named.embed(["a"], dimension=3, role=Role.QUERY).vectors.tolist() == [by_hand("a", 3)]
