"""The store of vectors: what several writers add at once, and what is said of one that is damaged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph import StorageError
from spark_omnigraph.storage.vectors import VectorStore, answered

WRITERS = 6


@pytest.mark.parametrize("_round", range(3))
def test_the_first_answers_of_several_writers_all_stay(tmp_path: Path, _round: int) -> None:
    store, turn = VectorStore(str(tmp_path / "cache")), Barrier(WRITERS)
    texts = [str(number) for number in range(WRITERS)]

    def add(number: int) -> None:
        turn.wait()
        store.add(2, [answered(pa.array([texts[number]]), np.array([[number, 1]], dtype=np.float32))])

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(add, range(WRITERS)))
    answers = store.answers(2)
    found = answers.reader().take(answers.find(pa.array(texts)))
    assert found.to_pylist() == [[number, 1.0] for number in range(WRITERS)]


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
