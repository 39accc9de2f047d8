"""What a person reads: log lines on standard error, as text or JSON, progress of long work, and bad rows."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TextIO

from spark_omnigraph.bad_rows import BadRow, BadRowSummary
from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.progress.shown import is_terminal
from spark_omnigraph.redaction import cut, one_line, redact, visible
from spark_omnigraph.words import counted

ROOT_LOGGER = "spark_omnigraph"
SHOWN_BAD_ROWS = 10
SHOWN_RAW = 200
PROGRESS_SECONDS = 5.0
SHOWN_AT_A_TERMINAL = 3
"""Raw rows in messages to a person who did not say how many; a log is kept, and gets none."""
_PLAIN = "plain"
_FACTS = "facts"
_BREAK = re.compile(r"\n(?=\S)")
_MOVED_IN = "\n  "


@contextmanager
def logging_to(
    stream: TextIO | None, config: JobConfig, run_id: str, secrets: Sequence[str] = ()
) -> Iterator[logging.Logger]:
    """Sends the package's log to `stream` while a job runs, and restores the logger afterwards. Nothing that is said
    shows one of the `secrets`.
    """
    logger = logging.getLogger(ROOT_LOGGER)
    before = (logger.level, logger.propagate)
    handler = LogHandler(stream) if stream is not None else logging.NullHandler()
    handler.setFormatter(JsonFormatter(run_id, secrets) if config.log_format == "json" else TextFormatter(secrets))
    logger.addHandler(handler)
    logger.setLevel(config.log_level.upper())
    logger.propagate = False
    try:
        yield logging.getLogger(f"{ROOT_LOGGER}.job")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


if TYPE_CHECKING:
    _TextHandler = logging.StreamHandler[TextIO]
else:
    _TextHandler = logging.StreamHandler  # it takes no type before Python 3.11


class LogHandler(_TextHandler):
    """Writes messages to a stream, or hands them to whoever keeps a bar below them."""

    above: Callable[[str], None] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.above is None:
            super().emit(record)
            return
        try:
            self.above(self.format(record))
        except Exception:  # noqa: BLE001 - as the base class has it: a message that cannot be written stops no work
            self.handleError(record)


class TextFormatter(logging.Formatter):
    """`12:30:01 message`; the level is shown from warnings on. What `speaker` says stands as it is.

    Lines after the first one of a message are moved in, so that no text within can pass for a line of the log.
    """

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        super().__init__()
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        message = visible(redact(record.getMessage(), self._secrets))
        if getattr(record, _PLAIN, False):
            return message
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        stack = f"\n{_stack(self, record, self._secrets)}" if record.exc_info else ""
        return f"{stamp} {level}{_BREAK.sub(_MOVED_IN, message)}{stack}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: the message, and what it says as members (`told`)."""

    def __init__(self, run_id: str, secrets: Sequence[str] = ()) -> None:
        super().__init__()
        self._run_id = run_id
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "run_id": self._run_id,
            "message": record.getMessage(),
            **getattr(record, _FACTS, {}),
        }
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return safe_json(line, self._secrets)


def _stack(formatter: logging.Formatter, record: logging.LogRecord, secrets: Sequence[str]) -> str:
    assert record.exc_info is not None
    return visible(redact(formatter.formatException(record.exc_info), secrets))


def safe_json(value: object, secrets: Sequence[str] = ()) -> str:
    """A value as one line of JSON, without secrets and without characters that a terminal obeys."""
    return visible(json.dumps(redacted(value, secrets), ensure_ascii=False, default=str))


def redacted(value: object, secrets: Sequence[str] = ()) -> object:
    """A JSON value whose texts show no secret."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, Mapping):
        return {key: redacted(item, secrets) for key, item in value.items()}
    return [redacted(item, secrets) for item in value] if isinstance(value, (list, tuple)) else value


def told(text: str = "", **facts: object) -> dict[str, dict[str, object]]:
    """What a message says, as members of its JSON line; as `extra` of a logging call."""
    return {_FACTS: {"event": text, **facts} if text else facts}


def speaker(log: logging.Logger) -> Callable[[str], None]:
    """A function that logs lines of an answer, such as a table: without a time, where the log is text."""

    def say(line: str) -> None:
        log.info("%s", one_line(line), extra={_PLAIN: True})

    return say


def say_table(log: logging.Logger, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Logs a table: numbers to the right, None as nothing."""
    say = speaker(log)
    cells = [list(headers), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(headers))]
    numeric = [bool(rows) and all(isinstance(row[column], int) for row in rows) for column in range(len(headers))]
    for line in cells:
        padded = (text.rjust(n) if right else text.ljust(n) for text, n, right in zip(line, widths, numeric))
        say("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else one_line(str(value))


class Progress:
    """Progress of long work as log lines: one in some seconds, and the last one of each phase.

    As a context manager it speaks too while nothing is done yet: a part may take longer than those seconds.
    """

    def __init__(
        self,
        log: logging.Logger,
        every: float = PROGRESS_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._every = every
        self._clock = clock
        self._began = self._last = clock()
        self._shown: str | None = None
        self._state = "at work"
        self._rows: int | None = None
        self._ended = threading.Event()
        self._waiting = threading.Thread(target=self._wait, daemon=True)

    def __enter__(self) -> Progress:
        self._waiting.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()
        self._waiting.join()

    def end(self) -> None:
        """Says nothing more."""
        self._ended.set()

    def rows(self, count: int) -> None:
        """So many rows were in the parts of this phase."""
        self._rows = count

    def begins(self, phase: str, total: int) -> None:
        """A phase of so many parts begins; 0 where there is nothing to count."""
        self._rows = None
        self._state = f"{phase}: 0 of {total:,} (0%)" if total else phase

    def _wait(self) -> None:
        while not self._ended.wait(self._every):
            now = self._clock()
            if now - self._last >= self._every:
                self._last = now
                self._log.info("%s, %.0f s so far", self._state, now - self._began, extra=told("progress"))

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = self._clock()
        share = f" of {total:,} ({100 * done // total}%)" if total else ""
        self._state = f"{phase}: {done:,}{share}"
        # Short work says nothing: a phase ends with a line only when one was due before.
        if now - self._last < self._every and not (done >= total and self._shown == phase):
            return
        self._last = now
        self._shown = phase if done < total else None
        facts: dict[str, object] = {"phase": phase, "done": done, "total": total}
        if self._rows is not None:
            facts["rows"] = self._rows
        self._log.info("%s", self._state, extra=told("progress", **facts))


def log_bad_rows(log: logging.Logger, summary: BadRowSummary, show_rows: int | None = None) -> None:
    """Says how many rows are bad, why, and where the first ones stand; the text of `show_rows` of them, or of a few at
    a terminal.
    """
    rules = ", ".join(f"{rule} {count:,}" for rule, count in sorted(summary.per_rule.items(), key=lambda kv: -kv[1]))
    counts = {"total": summary.total, "per_rule": dict(summary.per_rule), "report": summary.report}
    log.warning("%s: %s", counted(summary.total, "bad row"), rules, extra=told("bad_rows", **counts))
    raw = _raw_rows(show_rows)
    for number, row in enumerate(summary.sample[: max(SHOWN_BAD_ROWS, raw)]):
        _log_bad_row(log, row, number < raw)
    say = speaker(log)
    hidden = summary.total - min(len(summary.sample), max(SHOWN_BAD_ROWS, raw))
    if summary.report is not None:
        say(f"  all of them are in {summary.report}")
    elif hidden > 0:
        say(f"  and {hidden:,} more; --bad-rows PATH writes all of them")


def _raw_rows(wanted: int | None) -> int:
    if wanted is not None:
        return wanted
    return SHOWN_AT_A_TERMINAL if is_terminal(standard_error()) else 0


def _log_bad_row(log: logging.Logger, row: BadRow, with_text: bool) -> None:
    """An event a mistake: a line of text, or one JSON object; with the last one comes the row's own text."""
    shown = f"{row.raw[:SHOWN_RAW]}{'…' if len(row.raw) > SHOWN_RAW else ''}"
    for number, mistake in enumerate(row.mistakes, 1):
        where = ".".join(cut(part) for part in (row.record_type, mistake.field) if part)
        text = one_line(f"  {row.place}: {f'{where}: ' if where else ''}{mistake.rule}: {mistake.message}")
        facts: dict[str, object] = {
            "rule": str(mistake.rule),
            "file": row.file,
            "line": row.line,
            "id": row.id,
            "type": row.record_type,
            "field": mistake.field,
            "reason": mistake.message,
        }
        if with_text and number == len(row.mistakes):
            text += f"\n      {one_line(shown)}"
            facts["raw"] = shown
        log.info("%s", text, extra={_PLAIN: True, **told("bad_row", **facts)})


def standard_error() -> TextIO | None:
    """The stream for people, looked up late so that a notebook's or a test's replacement is honoured. None when the
    process was started without one.
    """
    return sys.stderr
