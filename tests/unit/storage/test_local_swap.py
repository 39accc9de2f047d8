"""Swaps and removals of one file take turns: what is about to be replaced is not removed behind its back."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph.errors import StorageError
from spark_omnigraph.storage.objects import local_swap as room
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import locate


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    objects = Objects(locate(tmp_path))
    objects.put("f/a", b"1")
    return objects


class Held:
    """The next replacement of a file stands still, as in a process that is stopped or whose disk hangs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self._plain = os.replace
        monkeypatch.setattr(os, "replace", self._replace)

    def _replace(self, *arguments: Any) -> None:
        self.reached.set()
        assert self.go_on.wait(60)
        self._plain(*arguments)


def begin(pool: ThreadPoolExecutor, held: Held, swap: Callable[[], bool]) -> Future[bool]:
    done = pool.submit(swap)
    assert held.reached.wait(60)
    return done


def test_a_removal_waits_for_the_swap_that_began_before(
    objects: Objects, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held = Held(monkeypatch)
    with ThreadPoolExecutor() as pool:
        swapped = begin(pool, held, lambda: objects.swap("f/a", b"1", b"2"))
        removed = pool.submit(objects.remove, "f/a")
        assert not removed.done()
        held.go_on.set()
        assert (swapped.result(60), removed.result(60)) == (True, True)
    assert list((tmp_path / "f").iterdir()) == [], "nothing comes back"


def test_a_removal_of_what_was_seen_leaves_what_came_meanwhile(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    with ThreadPoolExecutor() as pool:
        swapped = begin(pool, held, lambda: objects.swap("f/a", b"1", b"2"))
        removed = pool.submit(objects.remove, "f/a", b"1")
        held.go_on.set()
        assert (swapped.result(60), removed.result(60)) == (True, False)
    assert objects.get("f/a") == b"2"
    assert objects.remove("f/a", b"2")
    assert objects.remove("f/a", b"2"), "a missing one is fine"
    assert not objects.swap("f/a", b"2", b"3")
    assert objects.get("f/a") is None


def test_who_stands_still_in_a_swap_keeps_others_from_that_object_alone(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.put("f/b", b"1")
    held = Held(monkeypatch)
    with ThreadPoolExecutor() as pool:
        swapped = begin(pool, held, lambda: objects.swap("f/a", b"1", b"2"))
        monkeypatch.undo()
        monkeypatch.setattr(room, "SWAP_WAIT", 0.05)
        words = r"f/a is locked by another process for longer than 0\.05 s; one that stands still has to go on"
        with pytest.raises(StorageError, match=words):
            objects.swap("f/a", b"1", b"3")
        with pytest.raises(StorageError, match=r"f/a is locked by another process for longer than 0\.01 s"):
            objects.remove("f/a", wait=0.01)
        assert objects.swap("f/b", b"1", b"2")
        assert objects.remove("f/b")
        held.go_on.set()
        assert swapped.result(60)
    assert objects.get("f/a") == b"2"


def test_of_many_swaps_and_removals_each_acts_on_what_it_saw(objects: Objects) -> None:
    """A chain of contents: each number is swapped in once, whoever it is that does it."""

    def climb(_: int) -> int:
        won = 0
        while (now := int(objects.get("f/a") or b"0")) < 60:
            won += objects.swap("f/a", b"%d" % now, b"%d" % (now + 1))
        return won

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(climb, range(8))) == 59
        assert sorted(pool.map(lambda _: objects.remove("f/a", b"60"), range(8))) == [True] * 8
    assert objects.list("f") == []


def test_a_swap_that_cannot_write_leaves_nothing(
    objects: Objects, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StorageError, match="No space left"):
        objects.swap("f/a", b"1", b"2")
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["a"]


def test_a_file_that_may_not_be_written_may_be_replaced(tmp_path: Path, objects: Objects) -> None:
    (tmp_path / "f" / "a").chmod(0o444)
    assert objects.swap("f/a", b"1", b"2")
    with (tmp_path / "f" / "a").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the turn is over
    assert objects.remove("f/a", b"2")
