"""How a job says how far it is: a bar where a person looks, lines of the log elsewhere."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.output.log import ROOT_LOGGER, LogHandler, standard_error
from spark_omnigraph.cli.output.log import Progress as Lines
from spark_omnigraph.progress.bars import Bar
from spark_omnigraph.progress.meter import Progress, unheard
from spark_omnigraph.progress.shown import ShownProgress, bar_for, is_terminal

Emit = Callable[[str], None]


@contextmanager
def progress_of(config: JobConfig, log: logging.Logger, emit: Emit) -> Iterator[tuple[Progress, Emit]]:
    """What a verb tells how far it is, as `--progress` has it, and how it writes its rows, which end the bar where they
    go to the same terminal. While there is a bar, messages stand above it.
    """
    if config.progress == "none":
        yield unheard, emit
        return
    bar = _bar(config, log)
    if bar is None:
        with Lines(log) as lines:
            yield lines, _ending(lines.end, emit)
        return
    with ShownProgress(bar) as shown, _above(shown):
        yield shown, _ending(shown.end, emit)


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


@contextmanager
def _above(shown: ShownProgress) -> Iterator[None]:
    handlers = [each for each in logging.getLogger(ROOT_LOGGER).handlers if isinstance(each, LogHandler)]
    for each in handlers:
        each.above = shown.above
    try:
        yield
    finally:
        for each in handlers:
            each.above = None
