"""Checksums of vectors: stored ones stand on them, so they are the same for ever."""

from __future__ import annotations

import numpy as np

from spark_omnigraph.embed.hashes import checksums

VECTORS = np.array([[0.6, 0.0, 0.8], [-0.6, 0.0, 0.8], [0.6, -0.0, 0.8], [0.8, 0.0, 0.6]], dtype=np.float32)


def test_checksums_are_those_of_the_first_release() -> None:
    assert checksums(VECTORS).tolist() == [
        4703331878781139645, 18114717036235274941, 9314444796099902141, 14467899234254683183,
    ]  # laid out as a table  # fmt: skip


def test_one_changed_bit_and_two_changed_signs_are_seen() -> None:
    """Signs alone leave the length of a vector as it is."""
    vector = np.random.default_rng(3).standard_normal((1, 64)).astype(np.float32)
    before, flips = checksums(vector)[0], []
    for at in range(64):
        for bit in range(32):
            changed = vector.copy()
            changed.view(np.uint32)[0, at] ^= np.uint32(1 << bit)
            flips.append(changed[0])
        for other in range(at):
            changed = vector.copy()
            changed[0, [at, other]] *= -1
            flips.append(changed[0])
    assert len(flips) == 64 * 32 + 64 * 63 // 2
    assert before not in checksums(np.array(flips))


def test_numbers_that_change_places_are_seen() -> None:
    assert len(set(checksums(VECTORS).tolist())) == len(VECTORS)
