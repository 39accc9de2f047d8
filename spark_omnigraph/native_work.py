"""Threads of native libraries at work: one that comes to Python while the interpreter ends makes a crash of that.

DataFusion's threads say what they do through `logging`, also of statements that were left or have failed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

_LIBRARY = "datafusion._internal"
"""Whose threads come to Python by themselves."""
_NAME = "tokio-rt-worker"
_TASKS = Path("/proc/self/task")
_PAUSE = 0.005
"""Seconds between two looks: a thread that waits for the interpreter looks for it as often."""


def is_at_work(until: float) -> bool:
    """Whether such threads are still at work at this time of `monotonic`; it waits for them no longer. Where the system
    has no `/proc`, those that are in Python are seen alone.
    """
    if _LIBRARY not in sys.modules:
        return False
    before = None
    while True:
        seen = None if _is_in_python() else dict(_workers())
        if seen is not None and seen == before:
            return False
        if monotonic() >= until:
            return True
        before = seen
        sleep(_PAUSE)


def _is_in_python() -> bool:
    """Whether a thread runs Python's code that no Python started."""
    ours = {t.ident for t in threading.enumerate() if not isinstance(t, threading._DummyThread)}
    return any(ident not in ours for ident in sys._current_frames())


def _workers() -> Iterator[tuple[str, object]]:
    """How often each has waited; one that runs is equal to nothing."""
    for task in _TASKS.glob("*"):
        try:
            if (task / "comm").read_text().strip() != _NAME:
                continue
            said = (task / "status").read_text()
        except OSError:  # it has ended meanwhile
            continue
        facts = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
        waits = facts["State"].startswith("S")
        yield task.name, facts["voluntary_ctxt_switches"] if waits else object()
