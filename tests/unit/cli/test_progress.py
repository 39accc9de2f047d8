"""How a job says how far it is: a bar at a terminal, which is one of the system here, and lines elsewhere."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TextIO

import pytest

from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.output import progress as output
from spark_omnigraph.cli.output.log import Progress, logging_to
from spark_omnigraph.cli.program import main
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.progress import shown as places
from spark_omnigraph.progress.bars import RichBar
from spark_omnigraph.progress.shown import ShownProgress

SCHEMA = 'node Film { name: String @key  year: I32?  vec: Vector(2)? @embed("name") }'
ERASE = "\r\x1b[2K"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")  # no line is cut, however long a time it tells
    monkeypatch.setattr(output, "ShownProgress", partial(ShownProgress, delay=0, tick=60))  # work is short here
    Graph.init("g", SCHEMA)
    for part in (1, 2):
        lines = [{"type": "Film", "data": {"name": f"{part}-{number}"}} for number in range(500)]
        Path(f"{part}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


class Terminal:
    """Standard error as a terminal of the system."""

    def __init__(self) -> None:
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self.stream = open(theirs, "w", encoding="utf-8")  # noqa: SIM115 - it is open as long as the test

    def close(self) -> None:
        self.stream.close()
        os.close(self._ours)

    def run(self, *words: str, rows_too: bool = False) -> str:
        """What a run of the program that goes well shows here."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys, "stderr", self.stream)
            if rows_too:
                patched.setattr(sys, "stdout", self.stream)
            assert main(words) == 0
        self.stream.flush()
        found = b""
        while True:
            try:
                found += os.read(self._ours, 1 << 16)
            except BlockingIOError:
                return found.decode().replace("\r\n", "\n")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "find_spec", lambda _: None)


LOAD = ["ingest", "--graph", "g", "--input", "1.jsonl", "2.jsonl", "--load-concurrency", "1"]


@pytest.mark.usefixtures("place", "plain")
def test_a_load_at_a_terminal_has_a_bar_with_rows_below_its_messages(terminal: Terminal) -> None:
    text = terminal.run(*LOAD)
    drawn = [line.partition("\n")[0] for line in text.split(ERASE)]
    assert any(line.startswith("stage ░░░░░░░░░░░░░░░░░░░░░░░░   0%  0 of 2, ") for line in drawn)
    assert any(line.startswith("stage ████████████░░░░░░░░░░░░  50%  1 of 2, 500 rows, ") for line in drawn)
    assert any(line.startswith("check  ") for line in drawn)
    assert any(line.startswith("commit  ") for line in drawn)
    # What stays when every line was erased as it says: messages alone.
    kept = [line.rpartition(ERASE)[2] for line in text.split("\n")]
    assert [line[9:] for line in kept if line] == [
        f"input: 2 files, {Path('1.jsonl').stat().st_size * 2:,} bytes",
        "node:Film: read 1,000, valid 1,000, inserted 1,000",
        f"commit {Graph.open('g', mode='r').commits()[0].id} on branch main",
    ]


@pytest.mark.usefixtures("place")
def test_the_bar_of_rich_leaves_messages_too(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="it is installed with the tools of the checks, and asked for nowhere")
    made: list[RichBar] = []

    def make(stream: TextIO) -> RichBar:
        made.append(RichBar(stream))
        return made[-1]

    monkeypatch.setattr(places, "RichBar", make)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.run(*LOAD))
    assert made
    assert "1 of 2, 500 rows" in text
    assert "node:Film: read 1,000, valid 1,000, inserted 1,000\n" in text


@pytest.mark.usefixtures("place", "plain")
@pytest.mark.parametrize(
    "options", [["--progress", "none"], ["--progress", "log"], ["--log-format", "json"], ["--log-level", "warning"]]
)
def test_a_bar_can_be_switched_off(terminal: Terminal, options: list[str]) -> None:
    assert "\x1b" not in terminal.run(*LOAD, *options)


@pytest.mark.usefixtures("place", "plain")
def test_a_log_has_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(LOAD) == 0
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert "░" not in shown


@pytest.mark.usefixtures("place", "plain")
def test_rows_that_go_to_the_same_terminal_end_the_bar(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.run(*LOAD)
    query = "query all() { match { $f: Film } return { $f.name } order { $f.name } limit 2 }"
    text = terminal.run("query", "--graph", "g", "-e", query, "--format", "jsonl", rows_too=True)
    assert '{"f.name": "1-0"}\n{"f.name": "1-1"}\n' in text.replace('":"', '": "')
    assert ERASE not in text.partition('"1-0"')[2]


@pytest.mark.usefixtures("place", "plain")
def test_other_work_on_executors_tells_of_itself(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(LOAD) == 0
    Graph.open("g").create_branch("draft")
    change = '{"type": "Film", "data": {"name": "1-0", "year": 1999}}'
    Path("change.jsonl").write_text(change)
    assert main(["merge", "--graph", "g", "--input", "change.jsonl", "--branch", "draft"]) == 0
    Graph.open("g").load(['{"type": "Film", "data": {"name": "1-1", "year": 1998}}'], "merge")  # no fast-forward
    shown = terminal.run("branch", "merge", "draft", "--graph", "g")
    assert "compare ████████████████████████ 100%  1 of 1, 0 s left" in shown
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    shown = terminal.run("embed", "--graph", "g", "--type", "Film", "--no-cache")
    assert "ask ████████████████████████ 100%" in shown
    assert "write ████████████████████████ 100%" in shown


@pytest.mark.usefixtures("place", "plain")
def test_what_never_tells_of_itself_has_no_bar(terminal: Terminal) -> None:
    assert "\x1b" not in terminal.run("commits", "--graph", "g")


def test_a_line_for_programs_has_the_rows() -> None:
    stream = io.StringIO()
    with logging_to(stream, JobConfig(verb="ingest", log_format="json"), "r1") as log:
        lines = Progress(log, every=0)
        lines.begins("stage", 2)
        lines.rows(500)
        lines("stage", 1, 2)
    told = json.loads(stream.getvalue())
    assert (told["message"], told["rows"], told["done"], told["total"]) == ("stage: 1 of 2 (50%)", 500, 1, 2)
