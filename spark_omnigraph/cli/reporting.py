"""What a person reads: log lines on standard error, as text or JSON, progress of long work, and bad rows."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TextIO

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.cli.config import JobConfig

ROOT_LOGGER = "spark_omnigraph"
SHOWN_BAD_ROWS = 10
SHOWN_RAW = 200
PROGRESS_SECONDS = 5.0
_PLAIN = "plain"


@contextmanager
def logging_to(stream: TextIO, config: JobConfig, run_id: str) -> Iterator[logging.Logger]:
    """Sends the package's log to `stream` while a job runs, and restores the logger afterwards."""
    logger = logging.getLogger(ROOT_LOGGER)
    before = (logger.level, logger.propagate)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(run_id) if config.log_format == "json" else TextFormatter())
    logger.addHandler(handler)
    logger.setLevel(config.log_level.upper())
    logger.propagate = False
    try:
        yield logging.getLogger(f"{ROOT_LOGGER}.job")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


class TextFormatter(logging.Formatter):
    """`12:30:01 message`; the level is shown from warnings on. What `speaker` says stands as it is."""

    def format(self, record: logging.LogRecord) -> str:
        if getattr(record, _PLAIN, False):
            return record.getMessage()
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        stack = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{stamp} {level}{record.getMessage()}{stack}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self._run_id = run_id

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "run_id": self._run_id,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def speaker(log: logging.Logger) -> Callable[[str], None]:
    """A function that logs lines of an answer, such as a table: without a time, where the log is text."""

    def say(line: str) -> None:
        log.info("%s", line, extra={_PLAIN: True})

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
    return f"{value:,}" if isinstance(value, int) else str(value)


class Progress:
    """Progress of long work as log lines: at most one in some seconds, and the last one of each phase."""

    def __init__(
        self,
        log: logging.Logger,
        every: float = PROGRESS_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._every = every
        self._clock = clock
        self._last = clock()
        self._shown: str | None = None

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = self._clock()
        # Short work says nothing: a phase ends with a line only when one was due before.
        if now - self._last < self._every and not (done >= total and self._shown == phase):
            return
        self._last = now
        self._shown = phase if done < total else None
        share = f" ({100 * done // total}%)" if total else ""
        self._log.info("%s: %s of %s%s", phase, f"{done:,}", f"{total:,}", share)


def log_bad_rows(log: logging.Logger, summary: BadRowSummary) -> None:
    """Says how many rows are bad, why, and shows the first ones with their place."""
    rules = ", ".join(f"{rule} {count:,}" for rule, count in sorted(summary.per_rule.items(), key=lambda kv: -kv[1]))
    log.warning("%s: %s", counted(summary.total, "bad row"), rules)
    say = speaker(log)
    for row in summary.sample[:SHOWN_BAD_ROWS]:
        for mistake in row.mistakes:
            where = ".".join(part for part in (row.record_type, mistake.field) if part)
            say(f"  {row.place}: {f'{where}: ' if where else ''}{mistake.rule}: {mistake.message}")
        say(f"      {row.raw[:SHOWN_RAW]}{'…' if len(row.raw) > SHOWN_RAW else ''}")
    hidden = summary.total - min(len(summary.sample), SHOWN_BAD_ROWS)
    if summary.report is not None:
        say(f"  all of them are in {summary.report}")
    elif hidden > 0:
        say(f"  and {hidden:,} more; --bad-rows PATH writes all of them")


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def standard_error() -> TextIO:
    """The stream for people, looked up late so that a notebook's or a test's replacement is honoured."""
    return sys.stderr
