"""What our code does while it waits, told to the test; threads of other libraries go on sleeping."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

_OURS = ("spark_omnigraph", "tests")


def when_we_sleep(monkeypatch: pytest.MonkeyPatch, wait: Callable[[float], None]) -> None:
    """Calls `wait` in place of `time.sleep`, where that is called from here. A process in which Spark ran keeps a
    thread of py4j that sleeps, too.
    """
    real = time.sleep

    def sleep(seconds: float) -> None:
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        (wait if caller.partition(".")[0] in _OURS else real)(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
