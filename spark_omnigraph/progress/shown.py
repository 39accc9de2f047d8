"""A `Progress` that moves a bar, where somebody looks at one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TextIO

from spark_omnigraph.progress.bars import Bar, NotebookBar, PlainBar, RichBar, TqdmBar
from spark_omnigraph.progress.meter import Meter, Progress, unheard

DELAY = 0.5
"""Seconds of work that needs no bar."""
TICK = 0.25


class ShownProgress:
    """A `Progress` with a bar, which appears when work takes long enough, and moves while nothing is told, too.

    A context manager: the bar is gone when it ends, and `above` writes lines that stay.
    """

    def __init__(self, bar: Bar, delay: float = DELAY, tick: float = TICK) -> None:
        self._bar = bar
        self._meter = Meter()
        self._delay, self._tick = delay, tick
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._ticking = threading.Thread(target=self._move, daemon=True)

    def __enter__(self) -> ShownProgress:
        self._ticking.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()
        self._ticking.join()

    def end(self) -> None:
        """Takes the bar away for good."""
        with self._lock:
            self._ended.set()
            self._safely(self._bar.close)

    def begins(self, phase: str, total: int) -> None:
        """A phase of so many parts begins; 0 where there is nothing to count."""
        with self._lock:
            self._meter.begins(phase, total)
            self._draw()

    def __call__(self, phase: str, done: int, total: int) -> None:
        with self._lock:
            self._meter.told(phase, done, total)
            self._draw()

    def rows(self, count: int) -> None:
        """So many rows were in the parts of this phase."""
        with self._lock:
            self._meter.rows = count

    def above(self, line: str) -> None:
        """Writes a line that stays."""
        with self._lock:
            self._bar.above(line)

    def _move(self) -> None:
        while not self._ended.wait(self._tick):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        if self._meter.seconds >= self._delay and not self._ended.is_set():
            self._safely(lambda: self._bar.draw(self._meter))

    def _safely(self, show: Callable[[], None]) -> None:
        """A bar that cannot be drawn, as where the terminal has gone, is no reason to end the work."""
        try:
            show()
        except (OSError, ValueError):
            self._ended.set()


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees what is written to a stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def bar_for(stream: TextIO | None, environ: Mapping[str, str]) -> Bar | None:
    """The bar for where this process speaks: of rich or tqdm at a terminal, where one is installed. None where nobody
    looks, and at a terminal that moves no cursor.
    """
    if is_notebook():
        return NotebookBar(stream)
    if stream is None or not is_terminal(stream) or environ.get("TERM") == "dumb":
        return None
    for package, kind in (("rich", RichBar), ("tqdm", TqdmBar)):
        if find_spec(package) is not None:
            try:
                return kind(stream)
            except (ImportError, AttributeError):  # a package of this name that is another, or half of it
                continue
    return PlainBar(stream)


@contextmanager
def progress_bar(stream: TextIO | None = None) -> Iterator[Progress]:
    """A bar for `LoadOptions.progress` and `WatchedExecutor`, at a terminal and in a notebook; elsewhere it shows
    nothing. It is drawn on standard error unless told otherwise, and is gone afterwards.
    """
    bar = bar_for(sys.stderr if stream is None else stream, os.environ)
    if bar is None:
        yield unheard
        return
    with ShownProgress(bar) as shown:
        yield shown
