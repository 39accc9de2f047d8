"""Bars: those of rich and tqdm, one of plain characters, and one for notebooks."""

from __future__ import annotations

import shutil
from html import escape
from importlib import import_module
from typing import Any, Protocol, TextIO

from spark_omnigraph.progress.meter import Meter

_CELLS = 24
_FULL, _EMPTY = "█", "░"


class Bar(Protocol):
    """A place where a meter is shown. All calls come one at a time."""

    def draw(self, meter: Meter) -> None:
        """Shows what is known now."""

    def above(self, line: str) -> None:
        """Writes a line that stays, before the bar."""

    def close(self) -> None:
        """Takes the bar away."""


class PlainBar:
    """One line of a terminal, drawn anew."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_drawn = False
        encoding = getattr(stream, "encoding", None) or "ascii"
        try:
            (_FULL + _EMPTY).encode(encoding)
            self._cells = _FULL, _EMPTY
        except UnicodeEncodeError:
            self._cells = "#", "."

    def draw(self, meter: Meter) -> None:
        line = plain_line(meter, self._cells)[: max(shutil.get_terminal_size().columns - 1, 1)]
        self._stream.write(f"\r\x1b[2K{line}")
        self._stream.flush()
        self._is_drawn = True

    def above(self, line: str) -> None:
        self.close()
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def close(self) -> None:
        if self._is_drawn:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
        self._is_drawn = False


def plain_line(meter: Meter, cells: tuple[str, str] = (_FULL, _EMPTY)) -> str:
    """A meter as one line: `stage ████░░░░ 50%  6 of 12, 40,000 rows, 7 s left`."""
    name = meter.phase or "at work"
    if meter.share is None:
        return f"{name}  {meter.figures()}"
    full = int(meter.share * _CELLS)
    return f"{name} {cells[0] * full}{cells[1] * (_CELLS - full)} {100 * meter.share:3.0f}%  {meter.figures()}"


class RichBar:
    """The bar of the package rich."""

    def __init__(self, stream: TextIO) -> None:
        rich = import_module("rich.progress")
        console = import_module("rich.console").Console(file=stream)
        name, figures = (
            rich.TextColumn(f"{{task.{which}}}", markup=False) for which in ("description", "fields[figures]")
        )
        shown = (name, rich.BarColumn(), rich.TaskProgressColumn(), figures)
        quiet = {"transient": True, "auto_refresh": False, "redirect_stdout": False, "redirect_stderr": False}
        self._bar: Any = rich.Progress(*shown, console=console, **quiet)
        self._task: Any = None

    def draw(self, meter: Meter) -> None:
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task("", total=None, figures="")
        told = {"description": meter.phase or "at work", "figures": meter.figures()}
        self._bar.update(self._task, total=meter.total or None, completed=meter.done, refresh=True, **told)

    def above(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self._task is not None:
            self._bar.stop()
        self._task = None


class TqdmBar:
    """The bar of the package tqdm."""

    def __init__(self, stream: TextIO) -> None:
        self._make: Any = import_module("tqdm").tqdm
        self._stream = stream
        self._bar: Any = None

    def draw(self, meter: Meter) -> None:
        if self._bar is None:
            layout = "{desc} {bar} {percentage:3.0f}%  {postfix}"
            self._bar = self._make(total=meter.total or None, file=self._stream, leave=False, bar_format=layout)
        self._bar.total, self._bar.n = meter.total or None, meter.done
        self._bar.set_description_str(meter.phase or "at work", refresh=False)
        self._bar.set_postfix_str(meter.figures(), refresh=False)
        self._bar.refresh()

    def above(self, line: str) -> None:
        self._make.write(line, file=self._stream)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


class NotebookBar:
    """An output of a notebook, written anew: plain HTML that every theme shows."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._display: Any = import_module("IPython.display")
        self._handle: Any = None

    def draw(self, meter: Meter) -> None:
        shown = self._display.HTML(notebook_html(meter))
        if self._handle is None:
            self._handle = self._display.display(shown, display_id=True)
        else:
            self._handle.update(shown)

    def above(self, line: str) -> None:
        if self._stream is not None:
            self._stream.write(f"{line}\n")

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update(self._display.HTML(""))
        self._handle = None


def notebook_html(meter: Meter) -> str:
    """A meter as HTML."""
    value = "" if meter.share is None else f' value="{meter.share:.4f}"'
    return f"<progress{value}></progress> {escape(meter.phase or 'at work')}: {escape(meter.figures())}"
