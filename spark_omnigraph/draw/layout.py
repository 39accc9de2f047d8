"""Where the boxes of a picture stand, and where its lines run: layers from left to right.

Every edge type is a box of its own, in a layer between those of node types: to the right of its source, or of both of
its ends when these do not stand in that order. So each line runs between the right side of one box and the left side
of another; one that passes a layer takes a free place there, and no line crosses a box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from spark_omnigraph.draw.picture import SchemaPicture

NODE_LAYERS = 3
"""Layers of node types; deeper ones share the last, with their edges beside them."""
LAYER_GAP = 56.0
BOX_GAP = 18.0
PASSING = 6.0
"""Height of the place that a line takes in a layer that it passes."""
DEPTH = 64
"""Steps of a chain of types that are followed."""
_SWEEPS = 6

Size = tuple[float, float]


@dataclass(slots=True)
class Placed:
    """A box, or the place of a line that passes (without a name): its upper left corner and its size."""

    name: str
    layer: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    left: list[Placed] = field(default_factory=list)
    right: list[Placed] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Line:
    """From the box on the left to that on the right, through what it passes."""

    places: tuple[Placed, ...]
    target: Placed | None
    """The box that has the head of the arrow: that of the type at the target of the edge."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes of node types and edge types by name, lines, and the size of the whole."""

    nodes: Mapping[str, Placed]
    edges: Mapping[str, Placed]
    lines: tuple[Line, ...]
    width: float
    height: float


def lay_out(picture: SchemaPicture, sizes: Mapping[str, Size]) -> Drawing:
    """Places all boxes; `sizes` by `node:NAME` and `edge:NAME`."""
    ranks = _ranks(picture)
    nodes = {n.name: Placed(n.name, 2 * ranks[n.name], *sizes[f"node:{n.name}"]) for n in picture.nodes}
    edges, lines = {}, []
    layers: list[list[Placed]] = [[] for _ in range(2 * NODE_LAYERS)]
    for node in nodes.values():
        layers[node.layer].append(node)
    for edge in picture.edges:
        source, target = nodes[edge.source], nodes[edge.target]
        box = Placed(edge.name, min(source.layer, target.layer) + 1, *sizes[f"edge:{edge.name}"])
        layers[box.layer].append(box)
        edges[edge.name] = box
        lines += [Line(_way(layers, source, box), None), Line(_way(layers, target, box), target)]
    _order(layers)
    width, height = _place(layers)
    return Drawing(nodes, edges, tuple(lines), width, height)


def _ranks(picture: SchemaPicture) -> dict[str, int]:
    """Layers of node types: one after the types whose edges lead to it, as far as there are layers and no circle."""
    names = [node.name for node in picture.nodes]
    out: dict[str, list[str]] = {name: [] for name in names}
    for edge in picture.edges:
        out[edge.source].append(edge.target)
    after: dict[str, int] = {}
    open_: set[str] = set()

    def depth(name: str, room: int) -> int:
        """Longest way from here that meets no type twice, of at most `room` steps."""
        if name in after:
            return after[name]
        if room == 0:
            return 0
        open_.add(name)
        ways = [1 + depth(end, room - 1) for end in out[name] if end not in open_]
        open_.discard(name)
        after[name] = min(max(ways, default=0), NODE_LAYERS - 1)
        return after[name]

    deepest = max((depth(name, DEPTH) for name in names), default=0)
    ranks = {name: deepest - after.get(name, 0) for name in names}
    touched = {end for edge in picture.edges for end in (edge.source, edge.target)}
    alone = [name for name in names if name not in touched]
    return {**ranks, **{name: number % (deepest + 1 if deepest else NODE_LAYERS) for number, name in enumerate(alone)}}


def _way(layers: Sequence[list[Placed]], end: Placed, box: Placed) -> tuple[Placed, ...]:
    first, last = (end, box) if end.layer < box.layer else (box, end)
    places = [first]
    for layer in range(first.layer + 1, last.layer):
        passing = Placed("", layer, 0.0, PASSING)
        layers[layer].append(passing)
        places.append(passing)
    places.append(last)
    for before, behind in pairwise(places):
        before.right.append(behind)
        behind.left.append(before)
    return tuple(places)


def _order(layers: Sequence[list[Placed]]) -> None:
    """Each layer by the mean place of what its boxes are tied to, from the left and from the right in turns."""
    place: dict[int, float] = {}

    def number(layer: list[Placed]) -> None:
        for at, box in enumerate(layer):
            place[id(box)] = (at + 0.5) / len(layer)

    for layer in layers:
        number(layer)
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            mean = {}
            for box in layer:
                tied = box.left + box.right
                mean[id(box)] = sum(place[id(each)] for each in tied) / len(tied) if tied else place[id(box)]
            layer.sort(key=lambda box: (mean[id(box)], box.name))
            number(layer)


def _place(layers: Sequence[list[Placed]]) -> Size:
    heights = [sum(box.height for box in layer) + BOX_GAP * max(0, len(layer) - 1) for layer in layers]
    tallest, x = max(heights, default=0.0), 0.0
    for layer, height in zip(layers, heights):
        if not layer:
            continue
        width, y = max(box.width for box in layer), (tallest - height) / 2
        for box in layer:
            box.width = box.width or width
            box.x, box.y = x + (width - box.width) / 2, y
            y += box.height + BOX_GAP
        x += width + LAYER_GAP
    return max(0.0, x - LAYER_GAP), tallest
