"""How a job tells people and the scheduler what became of it: the log's last words, the summary, the exit code."""

from __future__ import annotations

import logging
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TextIO

from spark_omnigraph.cli.config import JobConfig, refused_files
from spark_omnigraph.cli.output.log import log_bad_rows, logging_to, standard_error, told
from spark_omnigraph.cli.output.metrics import add_metrics
from spark_omnigraph.cli.output.page import Run, is_page, write_page
from spark_omnigraph.cli.output.streams import silence, write_to
from spark_omnigraph.cli.output.summary import JobEnding, as_line, as_sentence, error_body, summary_of, write_summary
from spark_omnigraph.cli.verb import Verb
from spark_omnigraph.errors import BadRowsError, IoError, OmnigraphError
from spark_omnigraph.progress.shown import is_terminal
from spark_omnigraph.redaction import SECRET_NAME
from spark_omnigraph.storage.targets import why_kept

Write = Callable[[str, Mapping[str, object], JobEnding], None]
"""Writes one file about the run, to a path, from the summary and the ending."""


class JobReport:
    """One run of the program from its start to its summary."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.run_id = uuid.uuid4().hex
        self.config = JobConfig(verb="")
        self.secrets: list[str] = []
        self.storage_options: Mapping[str, str] = {}
        self.inputs: list[tuple[str, int]] = []
        self._started = time.monotonic()
        self._verb: Verb | None = None
        self.hide(environ)

    def begin(self, verb: Verb) -> None:
        """Says which verb runs."""
        self.config = JobConfig(verb=verb.name)
        self._verb = verb

    @property
    def _has_rows(self) -> bool:
        """Whether the answer is rows on standard output, if no file gets them."""
        return self._verb is not None and (
            self._verb.has_rows or self.config.description_format in self._verb.row_formats
        )

    def hide(self, options: Mapping[str, str]) -> None:
        """Keeps the values of options that are named like secrets out of everything that is said from now on."""
        self.secrets += [value for name, value in options.items() if SECRET_NAME.search(name) and value]

    def end(self, ending: JobEnding) -> int:
        """Tells people and the scheduler how the job ended; returns the exit code."""
        with logging_to(standard_error(), self.config, self.run_id, self.secrets) as log:
            self._explain(ending, log)
            seconds = time.monotonic() - self._started
            ending = self._write("summary", self._write_summary, ending, seconds, log)
            ending = self._flush_rows(ending, log)
            ending = self._write("metrics", self._add_metrics, ending, seconds, log)
            if is_page(self.config.report):
                ending = self._write("report", self._write_page, ending, seconds, log)
        summary = summary_of(self.config, self.run_id, seconds, ending)
        self._say_last(summary)
        return ending.exit_code

    def _explain(self, ending: JobEnding, log: logging.Logger) -> None:
        for warning in ending.outcome.warnings if ending.outcome else ():
            log.warning("%s", warning, extra=told("warning"))
        error = ending.error
        if error is None:
            return
        if isinstance(error, BadRowsError):
            log_bad_rows(log, error.summary, self.config.show_rows)
        ours = isinstance(error, OmnigraphError) and self.config.log_level != "debug"
        expected = ours or not isinstance(error, Exception)
        body = error_body(error, ending.left)
        facts = told("error", **{key: value for key, value in body.items() if key != "error"})
        log.error("%s", body["error"], exc_info=None if expected else error, extra=facts)

    def _write(self, key: str, how: Write, ending: JobEnding, seconds: float, log: logging.Logger) -> JobEnding:
        """The job as it ended when the file of an option is written, or could not be."""
        path: str | None = getattr(self.config, key)
        if path is None or key in refused_files(self.config, why_kept):
            return ending
        try:
            how(path, summary_of(self.config, self.run_id, seconds, ending), ending)
        except OmnigraphError as error:
            log.error("--%s: %s", key, error.message)
            return JobEnding(ending.exit_code or error.exit_code, ending.outcome, ending.error or error)
        return ending

    def _write_summary(self, path: str, summary: Mapping[str, object], _ending: JobEnding) -> None:
        write_summary(path, as_line(summary, self.secrets))

    def _add_metrics(self, path: str, summary: Mapping[str, object], _ending: JobEnding) -> None:
        add_metrics(path, summary, self.secrets, self.storage_options)

    def _write_page(self, path: str, summary: Mapping[str, object], ending: JobEnding) -> None:
        run = Run(self.config, summary, ending, datetime.now(timezone.utc), tuple(self.inputs))
        write_page(path, run, self.secrets, self.storage_options)

    def _flush_rows(self, ending: JobEnding, log: logging.Logger) -> JobEnding:
        """The job as it ended when its rows have left the process, or could not."""
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except (OSError, ValueError) as error:
            silence(sys.stdout)
            if self._has_rows and ending.error is None and self.config.output is None:
                reason = getattr(error, "strerror", None) or error
                lost = IoError(f"cannot write to standard output: {reason}")
                log.error("%s", lost.message)
                return JobEnding(lost.exit_code, ending.outcome, lost)
        return ending

    def _say_last(self, summary: Mapping[str, object]) -> None:
        """The last line, where no rows stand: one of JSON, or a sentence at a terminal."""
        stream: TextIO | None = sys.stdout
        if self._has_rows and self.config.output is None:
            stream = standard_error()
        line = as_sentence(summary) if is_terminal(stream) else as_line(summary, self.secrets)
        try:
            write_to(stream, line)
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            # Whoever read our output has left (`… | head`); the exit code tells how it ended all the same.
            silence(stream)
