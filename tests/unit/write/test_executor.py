"""Work in processes of this machine."""

from __future__ import annotations

import os
import signal

import pytest

from spark_omnigraph import LocalExecutor, StorageError


def killed(item: int) -> int:
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_a_killed_worker_is_an_error_of_ours_and_the_next_work_has_new_ones() -> None:
    with pytest.raises(StorageError, match="a worker process ended before its work was done"):
        list(LocalExecutor(2).map(killed, [0, 1, 2, 3]))
    assert list(LocalExecutor(2).map(abs, [-1, -2])) == [1, 2]
