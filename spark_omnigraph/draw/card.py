"""What there is to show of an object, as values: a sentence, facts, tables, a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from spark_omnigraph.draw.picture import SchemaPicture
from spark_omnigraph.redaction import one_line, redact

GRID_ROWS = 20
"""Rows of a table that an object shows of itself."""
GRID_COLUMNS = 30
CELL = 120
"""Characters of a cell, or of a fact."""
LINE = 300
"""Characters of a line that an object says of itself."""
CHANGES = ("inserted", "updated", "deleted")
_ITEMS = 16
"""Of a list that is shown."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: its first rows, and how many there are in all (None: not known, or no more than these)."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    total: int | None = None

    @property
    def hidden(self) -> int:
        """Rows that are not among these."""
        return max(0, (self.total or 0) - len(self.rows))


@dataclass(frozen=True, slots=True)
class Card:
    """An object as it is shown: what it is, what it says in one line, and more. Facts that are None are left out."""

    title: str
    line: str
    facts: Mapping[str, object] = field(default_factory=dict)
    grids: tuple[Grid, ...] = ()
    notes: tuple[str, ...] = ()
    """Warnings, and what else is to be said in a sentence."""
    picture: SchemaPicture | None = None


def grid(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    total: int | None = None,
    most: int = GRID_ROWS,
) -> Grid:
    """A table of the first of these rows, at most so many; no row beyond is asked for."""
    return Grid(caption, tuple(columns), tuple(tuple(row) for row in islice(rows, most)), total)


def figures_grid(
    caption: str, figures: Mapping[str, Mapping[str, object]], names: str = "type", most: int = GRID_ROWS
) -> Grid:
    """A row for each name, a column for each figure that is not zero everywhere."""
    columns = dict.fromkeys(column for row in figures.values() for column in row)
    shown = [column for column in columns if any(row.get(column) for row in figures.values())]
    rows = ((name, *(row.get(column) for column in shown)) for name, row in sorted(figures.items()))
    return grid(caption, (names, *(column.replace("_", " ") for column in shown)), rows, len(figures), most)


def phases_grid(phases: Mapping[str, float]) -> Grid:
    """Seconds that each phase took."""
    return grid("Phases", ("phase", "seconds"), ((name, round(took, 3)) for name, took in phases.items()), len(phases))


def counts_line(figures: Iterable[Mapping[str, object]], words: Sequence[str] = CHANGES) -> str:
    """`3 inserted, 1 deleted`: sums of figures of all tables, those that are zero left out."""
    rows = list(figures)
    sums = {word: sum(n for row in rows if isinstance(n := row.get(word), int)) for word in words}
    return ", ".join(f"{count:,} {word}" for word, count in sums.items() if count) or "no rows changed"


def commit_line(commit: str | None) -> str:
    """The end of what a write says of itself."""
    return "no commit" if commit is None else f"commit {commit}"


def without_empty(*grids: Grid) -> tuple[Grid, ...]:
    """Those that have rows."""
    return tuple(each for each in grids if each.rows)


def shown(value: object, most: int = CELL) -> str:
    """A value as text in one line, without a secret, cut when it is long; None is nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if value.bit_length() <= 4 * most else f"a number of {value.bit_length()} bits"
    text = redact(_text(value)[: 4 * most])  # more than is shown: half of a secret would not be known as one
    return one_line(text if len(text) <= most else f"{text[:most]}…")


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        more = ", …" if len(value) > _ITEMS else ""
        return f"[{', '.join(_text(each) for each in value[:_ITEMS])}{more}]"
    return f"{value:,}" if isinstance(value, float) else str(value)
