"""How a job says how far it is: a bar where a person looks, lines of the log elsewhere."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.output.log import ROOT_LOGGER, LogHandler, standard_error
from spark_omnigraph.cli.output.log import Progress as Lines
from spark_omnigraph.progress.bars import Bar
from spark_omnigraph.progress.meter import Progress, unheard
from spark_omnigraph.progress.shown import ShownProgress, bar_for, is_terminal

Emit = Callable[[str], None]
Listener = ShownProgress | Lines


class BegunProgress:
    """A `Progress` that shows itself once it is told something: what never tells of itself is over soon."""

    def __init__(self, show: Callable[[], AbstractContextManager[Listener]]) -> None:
        self._show = show
        self._stack = ExitStack()
        self._listener: Listener | None = None

    def __enter__(self) -> BegunProgress:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def begins(self, phase: str, total: int) -> None:
        """A phase of so many parts begins; 0 where there is nothing to count."""
        self._begun().begins(phase, total)

    def __call__(self, phase: str, done: int, total: int) -> None:
        self._begun()(phase, done, total)

    def rows(self, count: int) -> None:
        """So many rows were in the parts of this phase."""
        self._begun().rows(count)

    def end(self) -> None:
        """Shows nothing more."""
        if self._listener is not None:
            self._listener.end()

    def _begun(self) -> Listener:
        if self._listener is None:
            self._listener = self._stack.enter_context(self._show())
        return self._listener


@contextmanager
def progress_of(config: JobConfig, log: logging.Logger, emit: Emit) -> Iterator[tuple[Progress, Emit]]:
    """What a verb tells how far it is, as `--progress` has it, and how it writes its rows, which end the bar where they
    go to the same terminal. While there is a bar, messages stand above it.
    """
    if config.progress == "none":
        yield unheard, emit
        return
    bar = _bar(config, log)
    with BegunProgress(lambda: Lines(log) if bar is None else _below_messages(bar)) as progress:
        yield progress, _ending(progress.end, emit)


@contextmanager
def _below_messages(bar: Bar) -> Iterator[ShownProgress]:
    handlers = [each for each in logging.getLogger(ROOT_LOGGER).handlers if isinstance(each, LogHandler)]
    with ShownProgress(bar) as shown:
        for each in handlers:
            each.above = shown.above
        try:
            yield shown
        finally:
            for each in handlers:
                each.above = None


def _ending(end: Callable[[], None], emit: Emit) -> Emit:
    if not (is_terminal(sys.stdout) and is_terminal(standard_error())):
        return emit

    def write(line: str) -> None:
        end()
        emit(line)

    return write


def _bar(config: JobConfig, log: logging.Logger) -> Bar | None:
    """None where lines are wanted: in a log for programs, in one of warnings alone, and where nobody looks."""
    if config.progress == "log" or config.log_format != "text" or not log.isEnabledFor(logging.INFO):
        return None
    return bar_for(standard_error(), os.environ)
