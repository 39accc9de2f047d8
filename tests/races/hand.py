"""One process of the stress test: `python -m tests.races.hand ROOT SEED`. Works until its standard input ends.

It says what it is about to try before it tries, since it may not live to tell.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading

from spark_omnigraph import Graph, LoadOptions, OmnigraphError
from tests.races.history import KEYS, edges, parts, rows
from tests.support.cases import Json

BRANCHES = [None, None, None, "left", "right"]


def say(answer: Json) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


class Worker:
    """Chooses operations by its seed alone."""

    def __init__(self, root: str, seed: int) -> None:
        self._root, self._seed, self._number = root, seed, 0
        self._dice = random.Random(seed)

    def step(self) -> None:
        self._number += 1
        verbs = ["load", "mutate", "read", "recover", "branch", "index", "optimize"]
        verb = self._dice.choices(verbs, [12, 4, 3, 1, 1, 1, 1])[0]
        tag = f"h{self._seed}-{self._number}"
        try:
            answer = getattr(self, f"_{verb}")(tag)
        except OmnigraphError as error:
            answer = {"outcome": error.kind, "message": str(error)[:300]}
        say({"verb": verb, "tag": tag, **answer})

    def _load(self, tag: str) -> Json:
        lines, mode = self._content(tag)
        return self._try(tag, lines, mode, self._dice.choice(BRANCHES), None)

    def _branch(self, tag: str) -> Json:
        """A branch that only this load writes; whoever is killed on the way may leave it half-made."""
        return self._try(tag, rows(tag, [f"{tag}-a"]), "append", f"b/{tag}", "main")

    def _try(self, tag: str, lines: list[str], mode: str, branch: str | None, base: str | None) -> Json:
        options = LoadOptions(build_indexes=self._dice.random() < 0.2)
        say({"verb": "load", "tag": tag, "outcome": "tries", "lines": lines, "mode": mode, "branch": branch})
        graph = Graph.open(self._root)
        report = graph.load(lines, mode, branch=branch, base=base, actor=tag, options=options)
        return {"outcome": "returned", "commit": report.commit, "warnings": list(report.warnings)}

    def _mutate(self, tag: str) -> Json:
        """One node is changed, or goes with its edges."""
        key, branch = self._dice.choice(KEYS), self._dice.choice(BRANCHES)
        mode = self._dice.choice(["update", "delete"])
        what = f'update Part set {{ tag: "{tag}" }}' if mode == "update" else "delete Part"
        say({"verb": "mutate", "tag": tag, "outcome": "tries", "mode": mode, "key": key, "branch": branch})
        result = Graph.open(self._root).mutate(f'query q() {{ {what} where code = "{key}" }}', branch=branch, actor=tag)
        return {"outcome": "returned", "commit": result.commit, "warnings": list(result.warnings)}

    def _content(self, tag: str) -> tuple[list[str], str]:
        kind = self._dice.choices(["merge", "new", "shared", "parts", "edges", "overwrite"], [5, 4, 2, 3, 3, 1])[0]
        keys = self._dice.sample(KEYS, 3)
        if kind == "merge":
            return rows(tag, keys), "merge"
        if kind == "new":
            return rows(tag, [f"{tag}-{n}" for n in range(2)]), "append"
        if kind == "shared":
            return rows(tag, [f"s{self._dice.randrange(30)}"]), "append"
        if kind == "parts":
            return parts(tag, keys), "merge"
        if kind == "edges":
            return edges(tag, [(keys[0], keys[1]), (keys[1], keys[2])]), "append"
        return rows(tag, KEYS), "overwrite"

    def _read(self, tag: str) -> Json:
        branch = self._dice.choice(BRANCHES) or "main"
        found = list(Graph.open(self._root, mode="r").export(branch=branch))
        return {"outcome": "returned", "rows": len(found)}

    def _recover(self, tag: str) -> Json:
        return {"outcome": "returned", "recovered": len(Graph.open(self._root).recover())}

    def _optimize(self, tag: str) -> Json:
        branch = self._dice.choice(BRANCHES)
        tables = Graph.open(self._root).optimize(branch=branch).tables.values()
        return {"outcome": "returned", "left": sum(table.left is not None for table in tables)}

    def _index(self, tag: str) -> Json:
        return {"outcome": "returned", "built": Graph.open(self._root).ensure_indices()}


def main() -> None:
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    told = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        told.set()

    threading.Thread(target=listen, daemon=True).start()
    while not told.is_set():
        worker.step()
    os._exit(0)  # a library's threads must not keep a process that is done


if __name__ == "__main__":
    main()
