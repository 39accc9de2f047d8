from __future__ import annotations

import io
import json
import logging
import time

import pytest

from spark_omnigraph.bad_rows import BadRow, BadRowSummary, Rule
from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.output.log import Progress, log_bad_rows, logging_to, say_table, speaker

CONFIG = JobConfig(verb="ingest")


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def heard() -> tuple[logging.Logger, list[str]]:
    log = logging.Logger("test", logging.INFO)
    handler = Lines()
    log.addHandler(handler)
    return log, handler.lines


def row(line: int, raw: str = "{}") -> BadRow:
    return BadRow("a.jsonl", line, 10 * line, "Film", "year", Rule.RANGE, "3 is not in 1888..2100", raw)


def test_text_shows_the_level_from_warnings_on_and_answers_as_they_are() -> None:
    stream = io.StringIO()
    with logging_to(stream, CONFIG, "r1") as log:
        log.info("working")
        log.warning("careful")
        speaker(log)("100% as it is")
        log.debug("hidden")
    lines = stream.getvalue().splitlines()
    assert [line[8:] for line in lines[:2]] == [" working", " warning: careful"]
    assert lines[2:] == ["100% as it is"]


def test_json_is_one_object_a_line() -> None:
    stream = io.StringIO()
    with logging_to(stream, JobConfig(verb="ingest", log_format="json", log_level="debug"), "r1") as log:
        log.debug("two\nlines")
        try:
            raise ValueError("why")
        except ValueError:
            log.exception("broken")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["level"], first["run_id"], first["message"]) == ("debug", "r1", "two\nlines")
    assert first["time"].endswith("+00:00")
    assert "ValueError: why" in second["stack"]


def test_the_logger_is_left_as_it_was() -> None:
    logger = logging.getLogger("spark_omnigraph")
    before = (logger.level, logger.propagate, list(logger.handlers))
    with logging_to(io.StringIO(), CONFIG, "r1"):
        assert logger.propagate is False
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_messages_of_the_library_are_heard() -> None:
    stream = io.StringIO()
    with logging_to(stream, CONFIG, "r1"):
        logging.getLogger("spark_omnigraph.commit.recovery").warning("swept")
    assert "warning: swept" in stream.getvalue()


def test_progress_is_spaced_out(heard: tuple[logging.Logger, list[str]]) -> None:
    log, lines = heard
    now = [0.0]
    progress = Progress(log, every=5.0, clock=lambda: now[0])
    for second in range(13):
        now[0] = float(second)
        progress("stage", second, 12)
    assert lines == ["stage: 5 of 12 (41%)", "stage: 10 of 12 (83%)", "stage: 12 of 12 (100%)"]


def test_work_speaks_before_its_first_part_is_done(heard: tuple[logging.Logger, list[str]]) -> None:
    log, lines = heard
    now = [0.0]
    with Progress(log, every=0.01, clock=lambda: now[0]) as progress:
        now[0] = 5.0
        spoken(lines, 1)
        progress("stage", 0, 12)
        now[0] = 7.0
        spoken(lines, 2)
        now[0] = 7.005
    assert lines == ["at work, 5 s so far", "stage: 0 of 12 (0%), 7 s so far"]
    assert not progress._waiting.is_alive(), "nothing is said when the work has ended"


def spoken(lines: list[str], count: int) -> None:
    while len(lines) < count:  # the timeout of tests is the bound
        time.sleep(0.001)


def test_short_work_has_no_progress(heard: tuple[logging.Logger, list[str]]) -> None:
    log, lines = heard
    progress = Progress(log, every=5.0, clock=lambda: 1.0)
    progress("stage", 0, 1)
    progress("stage", 1, 1)
    progress("check", 0, 0)
    assert lines == []


def test_bad_rows_are_shown_with_place_rule_and_text(heard: tuple[logging.Logger, list[str]]) -> None:
    log, lines = heard
    summary = BadRowSummary(1200, {"range": 1199, "unique": 1}, tuple(row(n) for n in range(1, 21)))
    log_bad_rows(log, summary, show_rows=2)
    assert lines[0] == "1,200 bad rows: range 1,199, unique 1"
    assert lines[1:4] == [
        "  a.jsonl:1: Film.year: range: 3 is not in 1888..2100\n      {}",
        "  a.jsonl:2: Film.year: range: 3 is not in 1888..2100\n      {}",
        "  a.jsonl:3: Film.year: range: 3 is not in 1888..2100",
    ]
    assert lines[-1] == "  and 1,190 more; --bad-rows PATH writes all of them"
    assert len(lines) == 1 + 10 + 1


def test_bad_rows_name_the_report(heard: tuple[logging.Logger, list[str]]) -> None:
    log, lines = heard
    log_bad_rows(log, BadRowSummary(1, {"range": 1}, (row(7, "x" * 500),), "bad.jsonl"), show_rows=1)
    assert lines[0] == "1 bad row: range 1"
    assert lines[1].splitlines()[1] == "      " + "x" * 200 + "…"
    assert lines[-1] == "  all of them are in bad.jsonl"


def test_tables_have_numbers_on_the_right(heard: tuple[logging.Logger, list[str]]) -> None:
    log, lines = heard
    say_table(log, ("type", "rows", "branch"), [("node:Film", 3201, None), ("edge:Directed", 7, "dev")])
    assert lines == ["type            rows  branch", "node:Film      3,201", "edge:Directed      7  dev"]
