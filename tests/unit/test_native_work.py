"""Threads of native libraries that may come to Python are waited for."""

from __future__ import annotations

import _thread
import logging
import sys
import threading
from pathlib import Path
from time import monotonic

import pytest

from spark_omnigraph import native_work
from spark_omnigraph.native_work import is_at_work


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Threads of a process as its system tells of them: none."""
    monkeypatch.setattr(native_work, "_TASKS", tmp_path)
    monkeypatch.setitem(sys.modules, native_work._LIBRARY, sys)
    return tmp_path


def thread(tasks: Path, name: str, state: str) -> None:
    at = tasks / str(len(list(tasks.iterdir())))
    at.mkdir()
    (at / "comm").write_text(f"{name}\n")
    (at / "status").write_text(f"Name:\t{name}\nState:\t{state}\nvoluntary_ctxt_switches:\t7\n")


@pytest.mark.parametrize(
    ("name", "state", "works"),
    [
        ("tokio-rt-worker", "S (sleeping)", False),
        ("tokio-rt-worker", "R (running)", True),
        ("tokio-rt-worker", "D (disk sleep)", True),
        ("another", "R (running)", False),
    ],
)
def test_a_worker_that_does_not_wait_is_at_work(tasks: Path, name: str, state: str, works: bool) -> None:
    thread(tasks, name, state)
    assert is_at_work(monotonic() + (0.02 if works else 60)) is works


def test_names_need_not_be_text_and_systems_need_not_count(tasks: Path) -> None:
    """A name is cut within a character, and a sandbox says less of a thread."""
    for number, name in enumerate([b"m\xc3\xb6rder-worker-\xc3\n", b"tokio-rt-worker\n"]):
        (tasks / str(number)).mkdir()
        (tasks / str(number) / "comm").write_bytes(name)
        (tasks / str(number) / "status").write_text("Name:\tx\nState:\tS (sleeping)\n")
    assert not is_at_work(monotonic() + 60)


def test_a_worker_that_ran_between_two_looks_is_at_work(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(range(3))
    monkeypatch.setattr(native_work, "_workers", lambda: [("1", min(next(looks), 1))])
    assert not is_at_work(monotonic() + 60)
    assert list(looks) == []  # 0, then 1, then 1 again


def test_a_thread_that_begins_in_logging_is_at_work(tasks: Path) -> None:
    logger, goes, came = logging.Logger("native"), threading.Event(), threading.Event()

    class Waits(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            came.set()
            assert goes.wait(60)

    logger.addHandler(Waits())
    _thread.start_new_thread(logger.handle, (logger.makeRecord("native", logging.INFO, "", 0, "", (), None),))
    assert came.wait(60)
    assert is_at_work(monotonic() + 0.02)
    goes.set()
    assert not is_at_work(monotonic() + 60)


def test_other_threads_are_their_callers_own(tasks: Path) -> None:
    goes, came = threading.Event(), threading.Event()

    def work() -> None:
        came.set()
        goes.wait(60)

    _thread.start_new_thread(work, ())
    assert came.wait(60)
    assert not is_at_work(monotonic() + 60)
    goes.set()


def test_without_the_library_nothing_is_waited_for(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thread(tasks, "tokio-rt-worker", "R (running)")
    monkeypatch.delitem(sys.modules, native_work._LIBRARY)
    assert not is_at_work(monotonic())
