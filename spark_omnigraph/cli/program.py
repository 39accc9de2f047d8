"""The program: arguments → one verb → summary and exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from spark_omnigraph import __version__
from spark_omnigraph.cli.config import resolve, salvage
from spark_omnigraph.cli.derived.printed import WORDS, printed
from spark_omnigraph.cli.host import surroundings
from spark_omnigraph.cli.output.ending import JobReport
from spark_omnigraph.cli.output.log import logging_to, standard_error
from spark_omnigraph.cli.output.progress import progress_of
from spark_omnigraph.cli.output.streams import emit, print_out
from spark_omnigraph.cli.output.summary import INTERRUPTED, REFUSED, TERMINATED, JobEnding, left_by
from spark_omnigraph.cli.parser import HELP, PROGRAM, build, family, find_verb, overview, split_arguments
from spark_omnigraph.cli.registry import VERBS
from spark_omnigraph.cli.request import Request
from spark_omnigraph.cli.verb import Job, Verb
from spark_omnigraph.errors import OmnigraphError, RecoveryRequiredError, UsageError
from spark_omnigraph.limits import is_left_behind, name_option
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.redaction import redact


class Terminated(BaseException):
    """SIGTERM reached the process: as with an interrupt from the keyboard, the job cleans up and says so."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb and returns its exit code; never raises, so that a notebook can call it too.

    Without a verb it prints the help and returns 2: whoever lost the arguments must not take that for work done.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if not words or words in ([HELP], [HELP, "--help"]) or words[:1] in (["--help"], ["-h"]):
            print_out(overview(VERBS, WORDS))
            return 0 if words else UsageError.exit_code
        if words[:1] == ["--version"]:
            print_out(f"{PROGRAM} {__version__}")
            return 0
    except OSError:
        return 1
    return run(words, os.environ, VERBS)


def script() -> None:
    """Runs the program for whoever calls a function and ignores what it returns: ends the process unless all is well.

    Schedulers that call an entry point take a return for success, and some take any SystemExit for failure.
    """
    code = main()
    if is_left_behind():
        # All is said and flushed; a thread in the middle of a long step must not make a crash of the end.
        os._exit(code)
    if code:
        sys.exit(code)


def run(words: Sequence[str], environ: Mapping[str, str], verbs: Mapping[str, Verb]) -> int:
    """One job from its arguments to its summary."""
    report = JobReport(environ)
    try:
        try:
            text = _help_asked(words, verbs) or printed(words, verbs)
            if text is not None:
                print_out(text)
                return 0
            verb, rest = find_verb(words, verbs)
            report.begin(verb)
            of_all = {each.name: each.all_options for each in verbs.values()}
            request = Request(verb.name, verb.all_options, verb.fixed, of_all)
            arguments, mistakes = split_arguments(verb, rest, verbs)
            report.config = salvage(request, arguments)
            report.config = resolve(request, arguments, environ, mistakes)
        except OmnigraphError as error:
            return report.end(JobEnding(error.exit_code, error=error))
        with logging_to(standard_error(), report.config, report.run_id, report.secrets) as log:
            ending = _run_verb(verb, report, log, environ)
        return report.end(ending)
    except KeyboardInterrupt as error:
        return report.end(JobEnding(INTERRUPTED, error=error))
    except Exception as error:  # noqa: BLE001 - the outermost frame: whatever it is, the caller gets a summary
        return report.end(JobEnding(1, error=error))


def _help_asked(words: Sequence[str], verbs: Mapping[str, Verb]) -> str | None:
    """The help that the words ask for: of a verb, or of the verbs that begin with `branch`; None when they do not."""
    asked = words[:1] == [HELP]
    rest = words[1:] if asked else words
    if not asked and not {"--help", "-h"} & set(rest):
        return None
    several = family([word for word in rest if word not in ("--help", "-h")], verbs)
    return overview(several) if several else build(find_verb(rest, verbs)[0]).format_help()


def _run_verb(verb: Verb, report: JobReport, log: logging.Logger, environ: Mapping[str, str]) -> JobEnding:
    config = report.config
    try:
        meta = {key: redact(value, report.secrets) for key, value in config.meta.items()}
        said = CommitOrigin(verb.name, report.run_id, metadata=meta)
        with (
            _termination_as_exception(),
            surroundings(f"{PROGRAM} {verb.name}", log, environ) as host,
            progress_of(config, log, emit) as (progress, write),
        ):
            report.storage_options = host.storage_options(config)
            report.hide(report.storage_options)
            outcome = verb.run(Job(config, host, log, write, said, report.inputs, progress))
            return JobEnding(REFUSED if outcome.refused else 0, outcome=outcome)
    except (Exception, KeyboardInterrupt, Terminated) as error:  # noqa: BLE001 - a scheduler needs the summary of any
        return replace(_ending_of(error), left=left_by(verb, config))


def _ending_of(error: BaseException) -> JobEnding:
    """The end of a verb that raised. What a signal stopped was stopped by it, whatever failed on the way out, as the
    clean-up of Spark does; but a write that has to be recovered is told as such.
    """
    found = error if isinstance(error, RecoveryRequiredError) else _signal_behind(error) or error
    if isinstance(found, KeyboardInterrupt):
        return JobEnding(INTERRUPTED, error=found)
    if isinstance(found, Terminated):
        return JobEnding(TERMINATED, error=found)
    if not isinstance(found, OmnigraphError):
        return JobEnding(1, error=found)
    name_option(found)
    return JobEnding(found.exit_code, error=found)


def _signal_behind(error: BaseException) -> BaseException | None:
    """The signal during whose handling an error was raised."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if isinstance(each, KeyboardInterrupt | Terminated):
            return each
        if id(each) not in seen:
            seen.add(id(each))
            waiting += [behind for behind in (each.__cause__, each.__context__) if behind is not None]
    return None


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
