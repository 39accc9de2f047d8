"""The program: arguments → one verb → summary and exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from spark_omnigraph import __version__
from spark_omnigraph.cli.config import JobConfig, Request, resolve, salvage
from spark_omnigraph.cli.host import surroundings
from spark_omnigraph.cli.parser import PROGRAM, build, find_verb, overview, split_arguments
from spark_omnigraph.cli.reporting import log_bad_rows, logging_to, standard_error
from spark_omnigraph.cli.summary import (
    INTERRUPTED,
    REFUSED,
    TERMINATED,
    Ending,
    as_line,
    error_body,
    summary_of,
    write_summary,
)
from spark_omnigraph.cli.verb import Job, Verb
from spark_omnigraph.cli.verbs import VERBS
from spark_omnigraph.errors import BadRowsError, OmnigraphError


class Terminated(BaseException):
    """SIGTERM reached the process: as with an interrupt from the keyboard, the job cleans up and says so."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb and returns its exit code; never raises, so that a notebook can call it too."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["--help"], ["-h"]):
        print_out(overview(VERBS))
        return 0
    if words[:1] == ["--version"]:
        print_out(f"{PROGRAM} {__version__}")
        return 0
    return run(words, os.environ, VERBS)


def script() -> None:
    """Runs the program for whoever calls a function and ignores what it returns: ends the process unless all is well.

    Schedulers that call an entry point take a return for success, and some take any SystemExit for failure.
    """
    code = main()
    if code:
        sys.exit(code)


def run(words: Sequence[str], environ: Mapping[str, str], verbs: Mapping[str, Verb]) -> int:
    """One job from its arguments to its summary."""
    started = time.monotonic()
    run_id = uuid.uuid4().hex
    config = JobConfig(verb="")
    try:
        verb, rest = find_verb(words, verbs)
        if "--help" in rest or "-h" in rest:
            print_out(build(verb).format_help())
            return 0
        config = JobConfig(verb=verb.name)
        request = Request(verb.name, verb.all_options, verb.fixed)
        arguments, mistakes = split_arguments(verb, rest)
        config = salvage(request, arguments)
        config = resolve(request, arguments, environ, mistakes)
    except OmnigraphError as error:
        with logging_to(standard_error(), config, run_id) as log:
            return _finish(config, run_id, started, Ending(error.exit_code, error=error), log)
    with logging_to(standard_error(), config, run_id) as log:
        return _finish(config, run_id, started, _run_verb(verb, config, log, environ), log)


def print_out(text: str) -> None:
    """One line, or several, of standard output."""
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()


def _run_verb(verb: Verb, config: JobConfig, log: logging.Logger, environ: Mapping[str, str]) -> Ending:
    try:
        with _termination_as_exception(), surroundings(f"{PROGRAM} {verb.name}", log, environ) as host:
            outcome = verb.run(Job(config, host, log, print_out))
            return Ending(REFUSED if outcome.refused else 0, outcome=outcome)
    except OmnigraphError as error:
        return Ending(error.exit_code, error=error)
    except KeyboardInterrupt as error:
        return Ending(INTERRUPTED, error=error)
    except Terminated as error:
        return Ending(TERMINATED, error=error)
    except Exception as error:  # noqa: BLE001 - the outermost frame: a scheduler needs the summary of any failure
        return Ending(1, error=error)


def _explain(ending: Ending, config: JobConfig, log: logging.Logger) -> None:
    for warning in ending.outcome.warnings if ending.outcome else ():
        log.warning(warning)
    error = ending.error
    if error is None:
        return
    if isinstance(error, BadRowsError):
        log_bad_rows(log, error.summary)
    expected = not isinstance(error, Exception) or (isinstance(error, OmnigraphError) and config.log_level != "debug")
    log.error("%s", error_body(error)["error"], exc_info=None if expected else error)


def _finish(config: JobConfig, run_id: str, started: float, ending: Ending, log: logging.Logger) -> int:
    """Tells people and the scheduler how the job ended; returns the exit code."""
    _explain(ending, config, log)
    seconds = time.monotonic() - started
    if config.summary is not None:
        try:
            write_summary(config.summary, as_line(summary_of(config, run_id, seconds, ending)))
        except OmnigraphError as error:
            log.error("--summary: %s", error.message)
            ending = Ending(ending.exit_code or 1, ending.outcome, ending.error or error)
    try:
        print_out(as_line(summary_of(config, run_id, seconds, ending)))
    except BrokenPipeError:
        # Whoever read our output has left (`… | head`). Python would complain again while it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ending.exit_code


@contextmanager
def _termination_as_exception() -> Iterator[None]:
    """Turns SIGTERM into `Terminated` while a verb runs. Only the main thread may set signal handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Terminated("terminated")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        # None: a handler that was not set from Python, which Python cannot put back.
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
