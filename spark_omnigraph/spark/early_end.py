"""Workers whose driver takes no more rows: Spark closes the connection, and that is no error.

Whoever asks for fewer rows than there are (`show`, `limit`, `take`), and the planner of a data source once it has its
answer, leaves a worker in the middle of its last write. PySpark's daemon then prints the traceback of a
`BrokenPipeError`, line by line, into the output of the driver. No configuration turns that off, and the daemon of the
planner cannot be chosen.
"""

from __future__ import annotations

import sys
import traceback
from types import ModuleType

_DAEMON = "pyspark.daemon"
_LAST_WRITE = "worker"
"""The function of the daemon that flushes what a finished task has written."""


def expect_early_ends() -> None:
    """In a worker that PySpark's daemon forked: that nobody takes the last write is not printed. Does nothing in any
    other process, and every other error is printed as it was.
    """
    daemon = sys.modules.get("__main__")
    spec = getattr(daemon, "__spec__", None)
    if daemon is not None and spec is not None and spec.name == _DAEMON and hasattr(daemon, "traceback"):
        daemon.__dict__["traceback"] = _Quiet(traceback.__name__)


class _Quiet(ModuleType):
    """The module `traceback` as the daemon sees it."""

    def __getattr__(self, name: str) -> object:
        return getattr(traceback, name)

    def print_exc(self) -> None:
        """Prints the error at hand, unless it says that nobody took the last write."""
        error = sys.exc_info()[1]
        at = traceback.extract_tb(error.__traceback__) if error is not None else []
        ended = isinstance(error, (BrokenPipeError, ConnectionResetError)) and bool(at) and at[-1].name == _LAST_WRITE
        if not ended:
            traceback.print_exc()
