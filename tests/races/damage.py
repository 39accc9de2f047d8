"""Files that are lost or damaged by hand while nobody is at work, and what may be seen of it.

Whatever is asked of such a graph gives a right answer or a typed error; and once the file is put back, everything is
there that was there before, whatever was run in between: clean-up, recovery and a load among it.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from spark_omnigraph import Graph, LoadOptions, OmnigraphError, StorageError
from spark_omnigraph.manifest.branches import Branch, stored_branch
from spark_omnigraph.manifest.rows import ManifestRow, sentinel_facts
from spark_omnigraph.storage.layout import INDICES, MANIFEST, RECOVERY, branch_path, manifest_file
from spark_omnigraph.storage.manifest.table import read_rows
from tests.races.pins import digest
from tests.races.states import KEYS, node, parts, shown
from tests.support.cases import Json

BRANCHES = ("main", "left", "right")
PLAIN = LoadOptions(build_indexes=False)
OVERWRITTEN = ("table version", "manifest version")
"""Kinds of files of which nobody may write another in the same place."""


@dataclass(frozen=True, slots=True)
class _Picture:
    """A branch: ids of its commits, its rows at the last of them and now; None while a write is pending on it."""

    commits: tuple[str, ...]
    at_last: str
    now: str | None


@dataclass
class Damage:
    """One file, what was done to it, and what came of each thing that was tried."""

    kind: str
    path: str
    way: str
    outcomes: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)


class Breaker:
    """Damages one file at a time and puts it back."""

    def __init__(self, root: str, dice: random.Random, log: list[Json]) -> None:
        self._root, self._dice, self._log, self._number = root, dice, log, 0

    def strike(self, kinds: int) -> list[Damage]:
        """Damages a file of some kinds, one after the other: what a writer left that died comes first, since recovery
        removes it.
        """
        order = ["sidecar", "lease", *self._dice.sample(["index", "table version", "manifest version"], 3)]
        found: list[Damage] = []
        for kind in order:
            paths = list(self._paths(kind))
            if paths and len(found) < kinds:
                found.append(self._damage(kind, self._dice.choice(paths)))
        return found

    def _paths(self, kind: str) -> Iterator[str]:
        store = Graph.open(self._root, mode="r").store
        if kind in ("sidecar", "lease"):
            ending = ".json" if kind == "sidecar" else ".lease"
            yield from (f"{RECOVERY}/{name}" for name in store.objects.list(RECOVERY) if name.endswith(ending))
        elif kind == "index":
            files = [f for folder in ("nodes", "edges") for f in store.objects.walk(folder) if f"/{INDICES}/" in f.path]
            yield from (f.path for f in sorted(files, key=lambda f: f.modified)[-10:])
        else:
            for name in BRANCHES:
                branch = stored_branch(name)
                if kind == "manifest version":
                    newest = int(store.manifest(branch).version)
                    yield f"{branch_path(MANIFEST, branch)}/{manifest_file(newest)}"
                    continue
                for entry in store.snapshot(branch).entries.values():
                    yield f"{branch_path(entry.location, entry.branch)}/{manifest_file(entry.version)}"

    def _damage(self, kind: str, path: str) -> Damage:
        objects = Graph.open(self._root, mode="r").store.objects
        self._number += 1
        done = Damage(kind, path, self._dice.choice(["removed", "cut"]))
        before = {branch: self._picture(branch) for branch in BRANCHES}
        content = objects.get(path, None)
        assert content is not None, f"{path} is not there"
        cut = content[: len(content) // 2]
        lost = self._lost(path) if kind == "manifest version" else None
        if done.way == "removed":
            objects.delete(path)
        else:
            objects.put(path, cut)
        for what, probe in self._probes(done, before).items():
            self._try(done, what, probe)
        now = objects.get(path, None)
        if now in (None, cut):
            objects.put(path, content)
        elif now != content and kind in OVERWRITTEN and not (lost and self._is_replaced(*lost)):
            done.violations.append(f"another {path} was written over what was lost")
        for branch in BRANCHES:
            self._try(done, f"afterwards {branch}", partial(self._compare, branch, before[branch]))
            if done.outcomes[f"afterwards {branch}"] != "right":
                done.violations.append(f"{branch} is not as before: {done.outcomes[f'afterwards {branch}']}")
        return done

    def _lost(self, path: str) -> tuple[Branch, list[ManifestRow]]:
        """The branch of a newest manifest version, and what only that version shows: nothing of one that was only
        compacted.
        """
        store = Graph.open(self._root, mode="r").store
        branch = next(
            b for b in map(stored_branch, BRANCHES) if path.startswith(f"{branch_path(MANIFEST, b)}/_versions/")
        )
        newest = int(store.manifest(branch).version)
        below: list[ManifestRow] = []
        with suppress(StorageError):  # below the first version of a branch is none of its own
            below = read_rows(store.manifest(branch, newest - 1)) if newest > 1 else []
        return branch, [row for row in read_rows(store.manifest(branch)) if row not in below]

    def _is_replaced(self, branch: Branch, rows: list[ManifestRow]) -> bool:
        """Whether what was lost is there again: a compaction showed nothing new, and a commit whose writer died before
        it could tell of it was published anew by recovery, from its sidecar.
        """
        facts = sentinel_facts(rows)
        own = facts is not None and facts.commit != facts.parent
        known = {commit.id for commit in Graph.open(self._root, mode="r", branch=branch or "main").commits()}
        return not rows or (own and facts is not None and facts.commit in known)

    def _probes(self, done: Damage, before: dict[str, _Picture]) -> dict[str, Callable[[], str]]:
        """What is tried, in this order; the load is left out where it would wait for a lease that cannot be read."""
        root = self._root
        reads = {f"read {b}": lambda b=b: self._compare(b, before[b]) for b in BRANCHES}
        again = {f"{name} again": read for name, read in reads.items()}
        probes: dict[str, Callable[[], str]] = {**reads, "look up": self._look_up}
        if (done.kind, done.way) != ("lease", "cut"):
            probes["load"] = self._load
        probes["recover"] = lambda: f"recovered {len(Graph.open(root).recover())}"
        probes["cleanup"] = lambda: f"removed {len(_cleaned(root))}"
        return {**probes, **again}

    def _try(self, done: Damage, what: str, probe: Callable[[], str]) -> None:
        try:
            done.outcomes[what] = probe()
        except OmnigraphError as error:
            done.outcomes[what] = error.kind if not what.startswith("afterwards") else f"{error.kind}: {error}"
        except AssertionError as error:
            done.violations.append(f"{what}: {error}")
            done.outcomes[what] = "wrong"
        except Exception:  # noqa: BLE001 - it is what the run looks for
            done.violations.append(f"{what}: {traceback.format_exc()[-1500:]}")
            done.outcomes[what] = "raw"

    def _picture(self, branch: str) -> _Picture:
        graph = Graph.open(self._root, mode="r", branch=branch)
        ids = _ids(graph)
        pending = any(name.endswith(".json") for name in graph.store.objects.list(RECOVERY))
        now = None if pending else digest(graph.export())
        return _Picture(ids, digest(graph.at(snapshot=ids[-1]).export()), now)

    def _compare(self, branch: str, before: _Picture) -> str:
        """Fails where anything is answered that is not right."""
        graph = Graph.open(self._root, mode="r", branch=branch)
        if graph.lost is not None:
            return "told that publishes are lost"
        ids = _ids(graph)
        assert ids[: len(before.commits)] == before.commits, f"commits of {branch} are gone"
        assert digest(graph.at(snapshot=before.commits[-1]).export()) == before.at_last, f"{branch} shows other rows"
        if ids == before.commits and before.now is not None:
            assert digest(graph.export()) == before.now, f"{branch} shows other rows now"
        return "right"

    def _look_up(self) -> str:
        """Single rows by id, for which an index may be asked."""
        graph = Graph.open(self._root, mode="r")
        rows = shown(graph.export())
        for key in KEYS:
            found = graph.entity("node:Part", key)
            value = None if found is None else node(str(found["tag"]), found["vec"])
            assert value == rows.get(("Part", key)), f"{key} is {value} by its id"
        return "right"

    def _load(self) -> str:
        tag = f"d{self._number}-{self._dice.randrange(10**6)}"
        told: Json = {"verb": "load", "tag": tag, "graph": "main"}
        lines = parts(tag, [f"{tag}-a"])
        tries = {"outcome": "tries", "mode": "append", "branch": None, "lines": lines, "at": time.monotonic()}
        self._log.append({**told, **tries})
        try:
            commit = Graph.open(self._root).load(lines, actor=tag, options=PLAIN).commit
        except OmnigraphError as error:
            self._log.append({**told, "outcome": error.kind, "at": time.monotonic()})
            raise
        self._log.append({**told, "outcome": "returned", "commit": commit, "at": time.monotonic()})
        return "loaded"


def _ids(graph: Graph) -> tuple[str, ...]:
    """Of the commits of a branch, oldest first."""
    return tuple(commit.id for commit in graph.commits()[::-1])


def _cleaned(root: str) -> tuple[object, ...]:
    return tuple(Graph.open(root).cleanup(timedelta(0), confirm=True).items)
