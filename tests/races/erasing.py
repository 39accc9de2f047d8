"""A third graph, ROOT-private, whose rows are erased for good while others load, merge, tag and tidy it, and copies.

Rows have names that nobody gives twice. So at the end a row stands that was acknowledged and that nobody meant to
erase; and of one that was erased no file has the name, once another run has ended what was stopped.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterable
from datetime import timedelta

from spark_omnigraph import Graph, NotFoundError, OmnigraphError
from tests.races.pins import digest
from tests.support.cases import Json

SCHEMA = "node Person { name: String @key  note: String? @index }\nedge Knows: Person -> Person"
HUB = "hub"


def private(root: str) -> str:
    """Root of the graph whose rows are erased."""
    return f"{root}-private"


def make(root: str) -> None:
    Graph.init(private(root), SCHEMA).load([_person(HUB)])


def _person(name: str) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "note": f"note of {name}"}})


class Eraser:
    """What one process does to the private graph. `say` tells before what is tried."""

    def __init__(self, root: str, dice: random.Random, say: Callable[[Json], None]) -> None:
        self._root, self._dice, self._say = private(root), dice, say

    def step(self, tag: str) -> Json:
        ways = [self._load, self._load, self._erase, self._erase, self._tidy, self._expire, self._tag]
        way = self._dice.choice(ways)
        return way(tag)

    def _tries(self, tag: str, mode: str, **facts: object) -> None:
        self._say({"verb": "private", "tag": tag, "graph": "private", "outcome": "tries", "mode": mode, **facts})

    def _load(self, tag: str) -> Json:
        names = [f"secret-{tag}-{n}" for n in range(2)]
        self._tries(tag, "private_load", names=names)
        edge = {"edge": "Knows", "from": names[0], "to": HUB}
        report = Graph.open(self._root).load([*map(_person, names), json.dumps(edge)], "merge")
        return {"outcome": "returned", "mode": "private_load", "names": names, "commit_seen": report.commit}

    def _erase(self, tag: str) -> Json:
        luck = self._dice.random()
        names = self._names() or ["nobody"]
        name = names[int(luck * len(names))]
        self._tries(tag, "private_erase", names=[name])
        report = Graph.open(self._root).erase("Person", name, confirm=True)
        return {"outcome": "returned", "mode": "private_erase", "names": [name], "done": report.done}

    def _names(self) -> list[str]:
        """Who is there, but for the one to whom edges lead; nobody where that cannot be told now."""
        try:
            found = [json.loads(line)["data"].get("name") for line in Graph.open(self._root, mode="r").export()]
        except OmnigraphError:
            return []
        return sorted({name for name in found if name not in (None, HUB)})

    def _tidy(self, tag: str) -> Json:
        return {"outcome": "returned", "removed": len(Graph.open(self._root).optimize().tables)}

    def _expire(self, tag: str) -> Json:
        report = Graph.open(self._root).cleanup(timedelta(0), keep=2, confirm=True, force=True)
        return {"outcome": "returned", "removed": len(report.items)}

    def _tag(self, tag: str) -> Json:
        graph = Graph.open(self._root)
        graph.tag(tag)
        graph.delete_tag(tag)
        return {"outcome": "returned"}


def copied(root: str, branch: str | None) -> Json:
    """A copy of all branches, or of one state, to a folder of its own: each branch shows there what its newest commit
    shows in the graph, for as long as that has the branch.
    """
    source = Graph.open(root)
    with tempfile.TemporaryDirectory() as folder:
        report = source.copy(f"{folder}/c", branch=branch)
        made = Graph.open(f"{folder}/c")
        same = True
        for name in made.branches() if branch is None else []:
            head = made.commits(branch=name, limit=1)[0].id
            try:
                there = digest(source.export(branch=name, snapshot=head))
            except NotFoundError:  # the branch was deleted, or made anew, since
                continue
            same = same and digest(made.export(branch=name)) == there
        list(made.export())
    return {"outcome": "returned" if same else "bent", "files": report.files}


def check_erased(graph: Graph, answers: Iterable[Json]) -> dict[str, int]:
    """Proves what the head of this module says; counts of what was looked at."""
    own = [answer for answer in answers if answer.get("graph") == "private"]
    erased = {name for a in own if a.get("mode") == "private_erase" for name in a["names"]} - {"nobody"}
    loaded = [a["names"] for a in own if a.get("mode") == "private_load" and a["outcome"] == "returned"]
    tried = {name for a in own if a.get("mode") == "private_load" for name in a["names"]}
    for tag in graph.tags():
        graph.delete_tag(tag.name)
    shown = {json.loads(line)["data"].get("name") for line in graph.export()} - {None, HUB}
    lost = {name for names in loaded for name in names} - erased - shown
    assert lost == set(), f"acknowledged, not erased, and gone: {sorted(lost)[:5]}"
    assert shown <= tried, f"nobody loaded {sorted(shown - tried)[:5]}"
    for name in sorted(erased):
        report = graph.erase("Person", name, confirm=True)
        assert report.done, f"'{name}' is kept by {report.blocked_by}, {report.held[:3]}"
    files = [each.path for kind in ("nodes", "edges") for each in graph.store.objects.walk(kind)]
    content = {path: graph.store.objects.get(path, limit=None) or b"" for path in files}
    left = [(name, path) for name in erased for path in content if f'{name}"'.encode() in content[path]]
    left += [(name, path) for name in erased for path in content if f"note of {name}".encode() in content[path]]
    assert left == [], f"erased, and in files: {left[:5]}"
    return {"loaded": len(tried), "erased": len(erased), "erased at once": sum(a.get("done", False) for a in own)}
