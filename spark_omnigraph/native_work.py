"""Threads of native libraries at work: one that comes to Python while the interpreter ends makes a crash of that.

DataFusion's threads say what they do through `logging`, also of statements that were left or have failed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from types import FrameType

_LIBRARY = "datafusion._internal"
"""Whose threads come to Python by themselves."""
_NAME = b"tokio-rt-worker"
_TASKS = Path("/proc/self/task")
_PAUSE = 0.005
"""Seconds between two looks: a thread that waits for the interpreter looks for it as often."""


def is_at_work(until: float) -> bool:
    """Whether such threads are still at work at this time of `monotonic`; it waits for them no longer. Where the system
    has no `/proc`, those that are in `logging` are seen alone.
    """
    if _LIBRARY not in sys.modules:
        return False
    before = None
    while True:
        seen = None if _is_in_logging() else dict(_workers())
        if seen is not None and seen == before:
            return False
        if monotonic() >= until:
            return True
        before = seen
        sleep(_PAUSE)


def _is_in_logging() -> bool:
    """Whether a thread is there that Python has not started: its first frame is one of `logging`."""
    return any(_first(frame).f_globals.get("__name__") == logging.__name__ for frame in sys._current_frames().values())


def _first(frame: FrameType) -> FrameType:
    while frame.f_back is not None:
        frame = frame.f_back
    return frame


def _workers() -> Iterator[tuple[str, object]]:
    """How often each has waited, where the system counts that; one that runs is equal to nothing."""
    for task in _TASKS.glob("*"):
        try:
            if (task / "comm").read_bytes().strip() != _NAME:  # not always text: the system cuts long names
                continue
            said = (task / "status").read_text()
        except OSError:  # it has ended meanwhile
            continue
        facts = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
        waits = facts["State"].startswith("S")
        yield task.name, facts.get("voluntary_ctxt_switches") if waits else object()
