"""Cards and tables as HTML: escaped, bounded, one style sheet, no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from spark_omnigraph.draw.card import CELL, GRID_COLUMNS, Card, Grid, shown
from spark_omnigraph.draw.svg import svg
from spark_omnigraph.draw.theme import PAGE, STYLE


def card_html(card: Card) -> str:
    """An object as a notebook shows it."""
    parts = [f"<h3>{text(card.title)}</h3>", f"<p>{text(card.line, 4 * CELL)}</p>", notes_html(card.notes)]
    parts += [facts_html(card.facts)]
    parts += [grid_html(each) for each in card.grids]
    if card.picture is not None:
        parts.append(f'<div class="og-wide">{svg(card.picture, alone=False)}</div>')
    return f'<div class="og og-card"><style>{STYLE}</style>{"".join(parts)}</div>'


def page_html(title: str, body: str) -> str:
    """A whole page, which loads nothing from anywhere."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text(title)}</title><style>{STYLE}{PAGE}</style></head>\n"
        f'<body class="og"><main>\n{body}\n</main></body></html>\n'
    )


def text(value: object, most: int = CELL) -> str:
    """A value as escaped text."""
    return escape(shown(value, most))


def facts_html(facts: Mapping[str, object], most: int = 2 * CELL) -> str:
    """Names and values; those that are None are left out."""
    lines = (f"<dt>{text(name)}</dt><dd>{text(value, most)}</dd>" for name, value in facts.items() if value is not None)
    found = "".join(lines)
    return f"<dl>{found}</dl>" if found else ""


def notes_html(notes: Sequence[str], most: int = 20) -> str:
    """Sentences that matter, such as warnings."""
    told = [*notes[:most], *([f"and {len(notes) - most:,} more"] if len(notes) > most else [])]
    return "".join(f'<p class="og-note">{text(note, 4 * CELL)}</p>' for note in told)


def grid_html(grid: Grid, most: int = CELL) -> str:
    """A table; numbers to the right."""
    columns = grid.columns[:GRID_COLUMNS]
    numeric = [_is_numeric([row[at] for row in grid.rows]) for at in range(len(columns))]
    marks = [' class="og-num"' if each else "" for each in numeric]
    head = "".join(f"<th{mark}>{text(name)}</th>" for name, mark in zip(columns, marks))
    rows = "".join(
        f"<tr>{''.join(f'<td{mark}>{text(value, most)}</td>' for value, mark in zip(row, marks))}</tr>"
        for row in grid.rows
    )
    left = []
    if grid.hidden:
        left.append(f"{grid.hidden:,} more rows")
    if len(grid.columns) > len(columns):
        left.append(f"{len(grid.columns) - len(columns):,} more columns")
    more = f'<p class="og-dim">and {" and ".join(left)}</p>' if left else ""
    caption = f"<caption>{text(grid.caption)}</caption>" if grid.caption else ""
    return (
        f'<div class="og-wide"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{more}'
    )


def bars_html(seconds: Mapping[str, float]) -> str:
    """A bar for each phase, as long as it took."""
    longest = max(seconds.values(), default=0.0) or 1.0
    parts = []
    for name, took in seconds.items():
        share = max(0.0, min(100.0, 100 * took / longest))
        parts.append(
            f'<span>{text(name)}</span><span class="og-bar"><span style="width:{share:.1f}%"></span></span>'
            f'<span class="og-num">{took:.3f} s</span>'
        )
    return f'<div class="og-bars">{"".join(parts)}</div>' if parts else ""


def _is_numeric(values: Sequence[object]) -> bool:
    numbers = [isinstance(value, (int, float)) and not isinstance(value, bool) for value in values if value is not None]
    return bool(numbers) and all(numbers)
