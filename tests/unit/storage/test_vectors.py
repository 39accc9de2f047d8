"""The store of vectors: what several writers add at once, and what is said of one that is damaged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph import StorageError
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


def test_vectors_of_which_bytes_were_changed_are_not_handed_out(tmp_path: Path) -> None:
    """What comes back is the vector, almost, or an error that names the place."""
    store = VectorStore(str(tmp_path / "cache"))
    vectors = np.tile(np.array([0.6, 0, 0.8], dtype=np.float32), (64, 1))
    keys = pa.array([f"k{number}" for number in range(64)])
    store.add(3, [answered(keys, vectors)])
    (file,) = (tmp_path / "cache" / "answers_3" / "data").iterdir()
    whole, errors, right = file.read_bytes(), [], 0
    first = whole.index(vectors[:8].tobytes())
    for at in range(first, first + vectors.nbytes, 11):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        answers = store.answers(3)
        found = answers.find(keys)
        try:
            given = answers.reader().take(found)
        except StorageError as error:
            errors.append(error.message)
        else:
            np.testing.assert_allclose(numbers_of(given), vectors, atol=0.01)
            right += 1
    assert min(right, len(errors)) > 5
    assert {"answers_3 is damaged, remove it" in message for message in errors} == {True}
