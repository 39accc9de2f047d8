"""The store of vectors: what several writers add at once, and what is said of one that is damaged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from spark_omnigraph import StorageError
from spark_omnigraph.storage import vectors as storage_vectors
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.vectors import VectorStore, answered, numbers_of

WRITERS = 6


@pytest.mark.parametrize("_round", range(3))
def test_the_first_answers_of_several_writers_all_stay(tmp_path: Path, _round: int) -> None:
    store, turn = VectorStore(str(tmp_path / "cache")), Barrier(WRITERS)
    texts, angles = [str(number) for number in range(WRITERS)], np.arange(WRITERS)
    turned = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def add(number: int) -> None:
        turn.wait()
        store.add(2, [answered(pa.array([texts[number]]), turned[number : number + 1])])

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(add, range(WRITERS)))
    answers = store.answers(2)
    found = answers.reader().take(answers.find(pa.array(texts)))
    assert found.to_pylist() == turned.tolist()


@pytest.mark.parametrize("part", ["data", "_versions"])
def test_a_damaged_store_says_that_it_may_go(tmp_path: Path, part: str) -> None:
    store = VectorStore(str(tmp_path / "cache"))
    store.record("here", pa.array(["a"]), pa.array(["k"]), "m")
    store.add(2, [answered(pa.array(["k"]), np.ones((1, 2), dtype=np.float32))])
    for name in ("rows", "answers_2"):
        for file in (tmp_path / "cache" / name / part).iterdir():
            file.write_bytes(b"x")
    with pytest.raises(StorageError, match="rows is damaged, remove it"):
        store.recorded("here")
    with pytest.raises(StorageError, match="answers_2 is damaged, remove it"):
        store.answers(2).find(pa.array(["k"]))


def test_a_vector_of_which_a_bit_was_changed_is_not_handed_out(tmp_path: Path) -> None:
    """Also where its length is as before, or almost; and every other one is."""
    store = VectorStore(str(tmp_path / "cache"))
    vectors, keys = _unit_vectors(32, 6), pa.array([f"k{number}" for number in range(32)])
    store.add(6, [answered(keys, vectors)])
    (file,) = (tmp_path / "cache" / "answers_6" / "data").iterdir()
    whole = file.read_bytes()
    first = whole.index(vectors.tobytes())
    for bit in range(0, 8 * vectors.nbytes, 173):  # every place in a number, about
        at, owner = first + bit // 8, bit // 8 // (6 * 4)
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit % 8]) + whole[at + 1 :])
        answers = store.answers(6)
        found = answers.find(keys)
        with pytest.raises(StorageError, match=r"is not as it was written.*answers_6 is damaged, remove it"):
            answers.reader().take(found[owner : owner + 1])
        with pytest.raises(StorageError, match="answers_6 is damaged, remove it"):
            list(answers.all())
        given = answers.reader().take(np.delete(found, owner))
        assert numbers_of(given).tobytes() == np.delete(vectors, owner, axis=0).tobytes()


def test_a_store_without_checksums_is_used_as_it_is(tmp_path: Path) -> None:
    """One of an earlier version: read, added to, and a vector whose length has changed is found all the same."""
    store, vectors = VectorStore(str(tmp_path / "cache")), _unit_vectors(4, 3)
    old = answered(pa.array(["a", "b"]), vectors[:2]).select(["key", "at", "vector"])
    lance.write_dataset(pa.table(old), str(tmp_path / "cache" / "answers_3"), data_storage_version="2.2")
    store.add(3, [answered(pa.array(["c", "d"]), vectors[2:])])
    answers, keys = store.answers(3), pa.array(["d", "a", "c", "b"])
    given = answers.reader().take(answers.find(keys))
    assert numbers_of(given).tobytes() == vectors[[3, 0, 2, 1]].tobytes()
    assert [len(each) for each in answers.all()] == [2, 2]
    store.add(3, [answered(pa.array(["e"]), 2 * vectors[:1])])
    answers = store.answers(3)
    with pytest.raises(StorageError, match="answers_3 is damaged, remove it"):
        answers.reader().take(answers.find(pa.array(["e"])))


def test_a_store_that_an_earlier_version_makes_at_this_moment_is_added_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, vectors = VectorStore(str(tmp_path / "cache")), _unit_vectors(2, 3)

    def too_late(uri: str, *_: object) -> None:
        old = answered(pa.array(["a"]), vectors[:1]).select(["key", "at", "vector"])
        lance.write_dataset(pa.table(old), uri, data_storage_version="2.2")
        raise CommitFailed(Outcome.UNKNOWN, "it is there")

    monkeypatch.setattr(storage_vectors, "create_dataset", too_late)
    store.add(3, [answered(pa.array(["b"]), vectors[1:])])
    answers = store.answers(3)
    given = answers.reader().take(answers.find(pa.array(["b", "a"])))
    assert numbers_of(given).tobytes() == vectors[[1, 0]].tobytes()


def _unit_vectors(count: int, dimension: int) -> npt.NDArray[np.float32]:
    numbers = np.random.default_rng(7).standard_normal((count, dimension))
    found: npt.NDArray[np.float32] = (numbers / np.linalg.norm(numbers, axis=1, keepdims=True)).astype(np.float32)
    return found
