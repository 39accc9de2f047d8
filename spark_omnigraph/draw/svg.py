"""A schema as SVG: boxes of types, lines between them. Without a script, and with no text but what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from unicodedata import east_asian_width

from spark_omnigraph.draw.card import shown
from spark_omnigraph.draw.layout import Drawing, Line, Placed, Size, lay_out
from spark_omnigraph.draw.picture import DRAWN_PROPERTIES, DrawnEdge, DrawnNode, DrawnProperty, SchemaPicture
from spark_omnigraph.draw.theme import LIGHT, PICTURE_STYLE

_PAD = 9.0
_ROW = 17.0
_HEAD = 25.0
_MARGIN = 12.0
_LETTER = 7.0
"""Width of a letter, roughly: wide enough for the usual fonts, so that no text leaves its box."""
_BOLD = 1.12
"""How much wider a name is."""
_NAME = 40
_TYPE = 28
"""Characters of a name and of a type."""
_HEAD_LENGTH = 8.0


def svg(picture: SchemaPicture, *, alone: bool = True) -> str:
    """The picture; `alone` with its own style sheet, as a file needs it."""
    within, left_out = picture.within_bounds()
    sizes: dict[str, Size] = {f"node:{node.name}": _size(_node_head(node), node.properties) for node in within.nodes}
    sizes |= {f"edge:{edge.name}": _size(_edge_head(edge), edge.properties) for edge in within.edges}
    layout = lay_out(within, sizes)
    body = [_path(line) for line in layout.lines]
    body += [_box(layout.nodes[node.name], "h", _node_head(node), node.properties) for node in within.nodes]
    body += [_box(layout.edges[edge.name], "e", _edge_head(edge), edge.properties) for edge in within.edges]
    below = layout.height + _ROW
    notes = [left_out] if left_out else [] if within.nodes else ["The schema has no types."]
    body += [_text(0, below, note, "d") for note in notes]
    return _whole(layout, body, (sum(_width(note) for note in notes), _ROW * len(notes)), _said(picture), alone)


def _whole(layout: Drawing, body: Sequence[str], notes: Size, said: str, alone: bool) -> str:
    width = max(layout.width, notes[0]) + 2 * _MARGIN
    height = layout.height + notes[1] + 2 * _MARGIN
    box = f"{-_MARGIN:g} {-_MARGIN:g} {width:g} {height:g}"
    style = f"<style>{PICTURE_STYLE}</style>" if alone else ""
    extent = f'width="{width:g}" height="{height:g}"'
    ground = f'<rect x="{-_MARGIN:g}" y="{-_MARGIN:g}" {extent} fill="{LIGHT["bg"]}" class="g"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="og-picture" viewBox="{box}" {extent} '
        f'role="img" aria-label="{escape(said)}" font-family="system-ui,sans-serif" font-size="12">'
        f"{style}{ground}{''.join(body)}</svg>"
    )


def _said(picture: SchemaPicture) -> str:
    nodes, edges = len(picture.nodes), len(picture.edges)
    return f"Schema with {nodes} node type{'' if nodes == 1 else 's'} and {edges} edge type{'' if edges == 1 else 's'}"


def _node_head(node: DrawnNode) -> tuple[str, str]:
    return shown(node.name, _NAME), "" if node.rows is None else f"{node.rows:,}"


def _edge_head(edge: DrawnEdge) -> tuple[str, str]:
    counted = "" if edge.rows is None else f" · {edge.rows:,}"
    return shown(edge.name, _NAME), f"{shown(edge.cardinality, _TYPE)}{counted}"


def _lines(properties: Sequence[DrawnProperty]) -> list[tuple[str, str]]:
    """Name and type of each property that is drawn, those of the key first."""
    ordered = sorted(properties, key=lambda prop: prop.mark != "key")
    fits = len(ordered) <= DRAWN_PROPERTIES
    drawn = ordered if fits else ordered[: DRAWN_PROPERTIES - 1]
    lines = [(shown(p.name, _NAME), f"{shown(p.type, _TYPE)}{f' {p.mark}' if p.mark else ''}") for p in drawn]
    return lines if fits else [*lines, (f"and {len(ordered) - len(drawn)} more", "")]


def _size(head: tuple[str, str], properties: Sequence[DrawnProperty]) -> Size:
    lines = _lines(properties)
    width = max(_width(left) + _width(right) + 3 * _PAD for left, right in [head, *lines])
    width = max(width, _BOLD * _width(head[0]) + _width(head[1]) + 3 * _PAD)
    return max(width, 110.0), _HEAD + (_ROW * len(lines) + _PAD if lines else 0)


def _width(text: str) -> float:
    return sum(2 * _LETTER if east_asian_width(letter) in "WF" else _LETTER for letter in text)


def _box(at: Placed, kind: str, head: tuple[str, str], properties: Sequence[DrawnProperty]) -> str:
    name, said = head
    colour = LIGHT["node" if kind == "h" else "edge"]
    round_ = 4 if kind == "h" else 12
    place = f'x="{at.x:g}" y="{at.y:g}" width="{at.width:g}"'
    parts = [
        f'<rect {place} height="{at.height:g}" rx="{round_}" fill="{LIGHT["bg"]}" stroke="{LIGHT["line"]}" class="b"/>',
        f'<rect {place} height="{_HEAD:g}" rx="{round_}" fill="{colour}" class="{kind}"/>',
        _text(at.x + _PAD, at.y + 17, name, "n"),
    ]
    right = at.x + at.width - _PAD
    if said:
        parts.append(_text(right, at.y + 17, said, "c", end=True))
    for number, (prop, type_) in enumerate(_lines(properties)):
        y = at.y + _HEAD + _ROW * (number + 1) - 1
        parts.append(_text(at.x + _PAD, y, prop, ""))
        parts += [_text(right, y, type_, "d", end=True)] if type_ else []
    return f"<g>{''.join(parts)}</g>"


def _text(x: float, y: float, text: str, kind: str, *, end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    colour = LIGHT["dim" if kind == "d" else "fg"]
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}"{anchor}{named}>{escape(text)}</text>'


def _path(line: Line) -> str:
    """A curve from box to box, straight through what it passes; with a head at the target."""
    first, last = line.places[0], line.places[-1]
    start = first.x + first.width + (_HEAD_LENGTH if line.target is first else 0)
    steps = [f"M{start:g} {_door(first, line, True):g}"]
    x, y = start, _door(first, line, True)
    for place in line.places[1:]:
        end = place.x - (_HEAD_LENGTH if place is line.target else 0)
        door = place.middle if place is not last else _door(last, line, False)
        half = (x + end) / 2
        steps.append(f"C{half:g} {y:g} {half:g} {door:g} {end:g} {door:g}")
        x, y = end, door
        if place is not last:
            x = place.x + place.width
            steps.append(f"H{x:g}")
    drawn = f'<path d="{"".join(steps)}" fill="none" stroke="{LIGHT["dim"]}" class="l"/>'
    if line.target is None:
        return drawn
    tip, y, back = (first.x + first.width, _door(first, line, True), 1) if line.target is first else (last.x, y, -1)
    foot = tip + back * _HEAD_LENGTH
    arrow = f"M{tip:g} {y:g}L{foot:g} {y - 4:g}L{foot:g} {y + 4:g}Z"
    return f'{drawn}<path d="{arrow}" fill="{LIGHT["dim"]}" class="a"/>'


def _door(box: Placed, line: Line, right: bool) -> float:
    """Where a line leaves or enters a side of a box: those of the side share it, in the order of their other ends."""
    other = line.places[1] if right else line.places[-2]
    side = sorted(box.right if right else box.left, key=lambda each: each.middle)
    twins = [number for number, each in enumerate(side) if each is other]
    at = twins[0] if line.target is None or len(twins) == 1 else twins[1]
    return box.y + box.height * (at + 1) / (len(side) + 1)
