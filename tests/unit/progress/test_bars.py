"""Bars: what they draw, which of them is taken, and that they never end the work."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Iterator
from importlib import util
from types import ModuleType, SimpleNamespace
from typing import Any, TextIO

import pytest

from spark_omnigraph.progress import shown
from spark_omnigraph.progress.bars import Bar, NotebookBar, PlainBar, RichBar, TqdmBar, notebook_html, plain_line
from spark_omnigraph.progress.meter import Meter, unheard
from spark_omnigraph.progress.shown import ShownProgress, bar_for, progress_bar
from tests.unit.draw.test_html import Seen

TERMINAL = {"TERM": "xterm"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Still:
    """A clock that does not go."""

    def __call__(self) -> float:
        return 7.0


def metered(phase: str, done: int, total: int) -> Meter:
    meter = Meter(Still())
    meter.told(phase, done, total)
    return meter


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither rich nor tqdm is installed."""
    monkeypatch.setattr(shown, "find_spec", lambda _: None)


def fake(monkeypatch: pytest.MonkeyPatch, installed: str, **members: object) -> ModuleType:
    """A package of this name, which alone is installed."""
    module = ModuleType(installed)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, installed, module)
    monkeypatch.setattr(shown, "find_spec", lambda name: name == installed or None)
    return module


def test_a_line_has_bar_share_parts_and_time() -> None:
    assert plain_line(metered("stage", 6, 12), ("#", ".")) == f"stage {'#' * 12}{'.' * 12}  50%  6 of 12, 0 s left"
    assert plain_line(metered("query", 3, 0)) == "query  3, 0 s so far"
    assert plain_line(Meter(Still())) == "at work  0 s so far"
    assert plain_line(metered("stage", 30, 12), ("#", ".")).startswith(f"stage {'#' * 24} 100%")


def test_the_plain_bar_is_one_line_that_leaves_nothing() -> None:
    stream = Terminal()
    bar = PlainBar(stream)
    bar.draw(metered("stage", 6, 12))
    assert stream.getvalue().startswith("\r\x1b[2Kstage ####")
    bar.above("a message")
    assert stream.getvalue().endswith("\r\x1b[2Ka message\n")
    bar.close()
    assert stream.getvalue().endswith("a message\n"), "nothing is drawn any more, and nothing to take away"


def test_the_plain_bar_is_no_longer_than_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    PlainBar(stream).draw(metered("stage", 6, 12))
    assert len(stream.getvalue()) == len("\r\x1b[2K") + 19


def test_a_terminal_without_blocks_gets_other_characters() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    PlainBar(stream).draw(metered("stage", 6, 12))
    assert b"############............" in stream.buffer.getvalue()


def test_rich_draws_where_it_is_installed() -> None:
    if util.find_spec("rich") is None:
        pytest.skip("rich is not installed here, and is asked for nowhere")
    stream = Terminal()
    bar = bar_for(stream, TERMINAL)
    assert isinstance(bar, RichBar)
    bar.draw(metered("[bold]stage", 6, 12))
    bar.above("a [message]")
    bar.close()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "[bold]stage" in text
    assert "50%" in text
    assert "6 of 12, 0 s left" in text
    assert "a [message]\n" in text


def test_tqdm_draws_where_it_is_installed_and_rich_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    class FakeTqdm:
        def __init__(self, **options: object) -> None:
            calls.append(("made", options["total"], options["leave"]))

        def set_description_str(self, text: str, refresh: bool) -> None:
            calls.append(("named", text, refresh))

        def set_postfix_str(self, text: str, refresh: bool) -> None:
            calls.append(("figures", text, refresh))

        def refresh(self) -> None:
            calls.append(("drawn", self.n, self.total))

        def close(self) -> None:
            calls.append(("closed",))

        n = 0
        total: int | None = None

        @staticmethod
        def write(line: str, file: TextIO) -> None:
            file.write(line + "\n")

    fake(monkeypatch, "tqdm", tqdm=FakeTqdm)
    stream = Terminal()
    bar = bar_for(stream, TERMINAL)
    assert isinstance(bar, TqdmBar)
    bar.draw(metered("stage", 6, 12))
    bar.draw(metered("check", 0, 0))
    bar.above("a message")
    bar.close()
    assert calls == [
        ("made", 12, False), ("named", "stage", False), ("figures", "6 of 12, 0 s left", False), ("drawn", 6, 12),
        ("named", "check", False), ("figures", "0 s so far", False), ("drawn", 0, None), ("closed",),
    ]  # laid out as a table  # fmt: skip
    assert stream.getvalue() == "a message\n"


@pytest.mark.parametrize("package", ["rich", "tqdm"])
def test_a_package_of_the_name_that_is_another_is_left_alone(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    fake(monkeypatch, package)
    for name in ("rich.progress", "rich.console"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert isinstance(bar_for(Terminal(), TERMINAL), PlainBar)


@pytest.mark.usefixtures("without")
def test_nothing_is_drawn_where_nobody_looks() -> None:
    assert bar_for(io.StringIO(), TERMINAL) is None
    assert bar_for(None, TERMINAL) is None
    assert bar_for(Terminal(), {"TERM": "dumb"}) is None
    assert isinstance(bar_for(Terminal(), {}), PlainBar)
    with progress_bar(io.StringIO()) as progress:
        assert progress is unheard


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """IPython as the kernel of a notebook has it; what it shows."""
    seen: list[str] = []

    class Handle:
        def update(self, html: str) -> None:
            seen.append(html)

    def display(html: str, display_id: bool) -> Handle:
        assert display_id
        seen.append(html)
        return Handle()

    ipython = ModuleType("IPython")
    shell: Any = SimpleNamespace(kernel=object())
    vars(ipython).update(get_ipython=lambda: shell)
    outputs = ModuleType("IPython.display")
    vars(outputs).update(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", outputs)
    return seen


def test_a_notebook_has_one_output_that_is_written_anew(notebook: list[str]) -> None:
    stream = io.StringIO()
    bar = bar_for(stream, {})
    assert isinstance(bar, NotebookBar)
    bar.draw(metered("<b>", 6, 12))
    bar.draw(metered("check", 0, 0))
    bar.above("a message")
    bar.close()
    assert notebook == [
        '<progress value="0.5000"></progress> &lt;b&gt;: 6 of 12, 0 s left',
        "<progress></progress> check: 0 s so far",
        "",
    ]
    assert stream.getvalue() == "a message\n"


def test_a_shell_that_is_no_notebook_is_a_terminal(notebook: list[str], without: None) -> None:
    vars(sys.modules["IPython"]).update(get_ipython=SimpleNamespace)
    assert isinstance(bar_for(Terminal(), TERMINAL), PlainBar)
    assert notebook == []


def test_what_a_notebook_shows_is_text() -> None:
    assert Seen(notebook_html(metered("<script>x</script>", 1, 2))).tags == {"progress"}


class Recorder:
    """A bar that notes what is asked of it."""

    def __init__(self, fails: bool = False) -> None:
        self.lines: list[str] = []
        self.closed = 0
        self._fails = fails

    def draw(self, meter: Meter) -> None:
        self.lines.append(f"{meter.phase} {meter.done} of {meter.total} {meter.rows}")
        if self._fails:
            raise OSError("the terminal has gone")

    def above(self, line: str) -> None:
        self.lines.append(line)

    def close(self) -> None:
        self.closed += 1


def drawn(bar: Bar, **options: float) -> Iterator[ShownProgress]:
    with ShownProgress(bar, **options) as progress:
        progress.begins("stage", 2)
        progress.rows(7)
        progress("stage", 1, 2)
        yield progress


def test_a_bar_follows_what_it_is_told_and_goes() -> None:
    bar = Recorder()
    for progress in drawn(bar, delay=0, tick=60):
        progress.above("a message")
    assert bar.lines == ["stage 0 of 2 None", "stage 1 of 2 7", "a message"]
    assert bar.closed == 1


def test_short_work_needs_no_bar() -> None:
    bar = Recorder()
    for progress in drawn(bar, delay=3600, tick=0.001):
        progress("stage", 2, 2)
    assert bar.lines == []


def test_a_bar_moves_while_nothing_is_told() -> None:
    bar = Recorder()
    for _ in drawn(bar, delay=0, tick=0.001):
        while len(bar.lines) < 5:  # the timeout of tests is the bound
            time.sleep(0.001)
    assert bar.lines[-1] == "stage 1 of 2 7"


def test_a_bar_that_cannot_be_drawn_ends_and_the_work_goes_on() -> None:
    bar = Recorder(fails=True)
    for progress in drawn(bar, delay=0, tick=60):
        progress("stage", 2, 2)
    assert bar.lines == ["stage 0 of 2 None"]


def test_nothing_is_drawn_after_the_end() -> None:
    bar = Recorder()
    for progress in drawn(bar, delay=0, tick=60):
        progress.end()
        progress("stage", 2, 2)
    assert bar.lines[-1] == "stage 1 of 2 7"
