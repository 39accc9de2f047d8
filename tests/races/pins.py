"""Readers of old versions: they go on seeing exactly what they saw, or are told that it is gone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from spark_omnigraph import Graph, NotFoundError
from tests.support.cases import Json

MOST = 6


def digest(lines: Iterable[str]) -> str:
    """Of rows, in whatever order."""
    return hashlib.blake2b("\n".join(sorted(lines)).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class _Pin:
    root: str
    branch: str | None
    commit: str
    handle: Graph
    seen: str

    def look(self, fresh: bool) -> str:
        """What it sees now, through the handle of then or one that names the commit anew."""
        handle = self.handle
        if fresh:
            handle = Graph.open(self.root, mode="r").at(branch=self.branch or "main", snapshot=self.commit)
        return digest(handle.export())


class Pins:
    """The pins of one process."""

    def __init__(self) -> None:
        self._pins: list[_Pin] = []

    def step(self, root: str, branch: str | None, luck: float) -> Json:
        """A new pin, or a look at an old one, as `luck` in [0, 1) has it."""
        if self._pins and (luck < 0.7 or len(self._pins) == MOST):
            return self._check(self._pins[int(luck * 997) % len(self._pins)], int(luck * 1009) % 2 == 0)
        graph = Graph.open(root, mode="r")
        commits = graph.commits(branch=branch or "main")
        commit = commits[int(luck * 991) % min(len(commits), 3)]
        handle = graph.at(branch=branch or "main", snapshot=commit.id)
        self._pins.append(_Pin(root, branch, commit.id, handle, digest(handle.export())))
        return {"outcome": "pinned"}

    def _check(self, pin: _Pin, fresh: bool) -> Json:
        facts = {"commit_seen": pin.commit, "root": pin.root, "fresh": fresh}
        try:
            found = pin.look(fresh)
        except NotFoundError as error:
            self._pins.remove(pin)
            return {"outcome": "gone", "message": str(error)[:300], **facts}
        if found == pin.seen:
            return {"outcome": "same", **facts}
        self._pins.remove(pin)
        return {"outcome": "bent", **facts}
