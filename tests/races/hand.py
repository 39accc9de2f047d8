"""One process of the stress test: `python -m tests.races.hand ROOT SEED [VERBS]`. Works until its standard input ends.

It says what it is about to try before it tries, since it may not live to tell. Beside the graph of the run there is a
second one, ROOT-side, which is made anew by force again and again, and whose schema changes: it has no branches.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from spark_omnigraph import Graph, LoadOptions, OmnigraphError
from spark_omnigraph.embed.mock import MockEmbedder
from tests.races.erasing import Eraser, copied
from tests.races.framing import Frame, write_frame, write_stream
from tests.races.pins import Pins, digest
from tests.races.states import KEYS, SCHEMA, SCHEMAS, changes, edges, parts, patches, rows
from tests.support.cases import Json
from tests.support.delta_tables import FEED

BRANCHES = [None, None, None, "left", "right"]
REVIEWS = ["review/0", "review/1", "review/2"]
"""Branches that anybody makes, loads, merges and deletes."""
VERBS = {
    "load": 12,
    "mutate": 4,
    "read": 3,
    "recover": 1,
    "branch": 1,
    "review": 6,
    "merge": 6,
    "drop": 2,
    "index": 1,
    "optimize": 1,
    "cleanup": 1,
    "expire": 1,
    "tag": 2,
    "restore": 1,
    "frame": 4,
    "stream": 1,
    "embed": 3,
    "pin": 4,
    "remake": 2,
    "copy": 2,
    "private": 5,
    "evolve": 3,
    "sync": 2,
}
"""How often each is chosen."""
SIDE = 0.3
"""Share of loads, frames, streams and pins that are about the graph which is made anew."""


def side(root: str) -> str:
    """Root of the graph that is made anew."""
    return f"{root}-side"


def say(answer: Json) -> None:
    """With the time by a clock that all processes of a machine share."""
    sys.stdout.write(json.dumps({**answer, "at": time.monotonic()}) + "\n")
    sys.stdout.flush()


class Worker:
    """Chooses operations by its seed alone."""

    def __init__(self, root: str, seed: int, verbs: Collection[str] = VERBS) -> None:
        self._verbs = {verb: often for verb, often in VERBS.items() if verb in verbs}
        self._root, self._seed, self._number = root, seed, 0
        self._dice = random.Random(seed)
        self._pins = Pins()
        self._tags: dict[str, str] = {}
        """What the state showed of each tag that stands."""
        self._eraser = Eraser(root, self._dice, say)

    def step(self) -> None:
        self._number += 1
        verb = self._dice.choices(list(self._verbs), list(self._verbs.values()))[0]
        tag = f"h{self._seed}-{self._number}"
        drawn = "side" if self._dice.random() < SIDE else "main"
        about = drawn if verb in ("load", "frame", "stream", "pin", "cleanup") else "main"
        about = {"remake": "side", "evolve": "side", "private": "private"}.get(verb, about)
        say({"verb": verb, "tag": tag, "outcome": "begins"})
        try:
            answer = getattr(self, f"_{verb}")(tag, about)
        except OmnigraphError as error:
            answer = {"outcome": error.kind, "message": str(error)[:300]}
        except Exception:  # noqa: BLE001 - it is what the run looks for
            answer = {"outcome": "raw", "message": traceback.format_exc()[-2000:]}
        say({"verb": verb, "tag": tag, "graph": about, **answer})

    def _place(self, about: str) -> str:
        return side(self._root) if about == "side" else self._root

    def _load(self, tag: str, about: str) -> Json:
        lines, mode = self._content(tag)
        branch = self._dice.choice(BRANCHES)
        return self._try(tag, lines, mode, branch if about == "main" else None, None, about)

    def _frame(self, tag: str, about: str) -> Json:
        return self._write("frame", tag, about)

    def _stream(self, tag: str, about: str) -> Json:
        return self._write("stream", tag, about)

    def _write(self, verb: str, tag: str, about: str) -> Json:
        """Parts in a frame, by three tasks."""
        own = [f"{tag}-{n}" for n in range(4)]
        mode, keys = self._dice.choice([("merge", KEYS), ("append", own), ("update", KEYS)])
        branch = self._dice.choice(BRANCHES)
        frame = Frame(tag, mode, branch if about == "main" else None, tuple(self._dice.sample(keys, 3)))
        told = {"mode": mode, "branch": frame.branch, "graph": about, "lines": parts(tag, frame.keys)}
        say({"verb": verb, "tag": tag, "outcome": "tries", **told})
        report = (write_frame if verb == "frame" else write_stream)(self._place(about), frame)
        facts = {"commit": report.commit, "base": report.base_commit, "warnings": list(report.warnings)}
        return {"outcome": "returned", **facts}

    def _sync(self, tag: str, _about: str) -> Json:
        """Parts that follow a table which nobody else follows; what else is stored stays."""
        branch, keys = self._dice.choice(BRANCHES), self._dice.sample(KEYS, 3)
        folder = tempfile.gettempdir() if "://" in self._root else os.path.dirname(self._root)
        lake = f"{folder}/lake-{os.getpid()}/{tag}"
        write_deltalake(lake, pa.table({"code": keys, "tag": [tag] * len(keys)}), mode="overwrite", configuration=FEED)
        told = {"mode": "merge", "branch": branch, "graph": "main", "lines": parts(tag, keys)}
        say({"verb": "sync", "tag": tag, "outcome": "tries", **told})
        report = Graph.open(self._root).sync(lake, node="Part", branch=branch, actor=tag)
        return {"outcome": "returned", "commit": report.commit, "warnings": []}

    def _remake(self, tag: str, _about: str) -> Json:
        """An init with force of the second graph."""
        say({"verb": "remake", "tag": tag, "graph": "side", "outcome": "tries", "mode": "remake"})
        Graph.init(side(self._root), SCHEMA, force=True)
        return {"outcome": "returned"}

    def _evolve(self, tag: str, _about: str) -> Json:
        """Another schema of the second graph, which keeps its rows."""
        schema, values = self._dice.choice(SCHEMAS)
        say({"verb": "evolve", "tag": tag, "graph": "side", "outcome": "tries", "mode": "evolve", "branch": None})
        report = Graph.open(side(self._root)).apply_schema(schema, values=values, actor=tag)
        facts = {"commit": report.commit, "base": report.base_commit, "warnings": list(report.warnings)}
        return {"outcome": "returned", **facts}

    def _pin(self, tag: str, about: str) -> Json:
        branch = self._dice.choice(BRANCHES)
        answer = self._pins.step(self._place(about), branch if about == "main" else None, self._dice.random())
        looked = answer.get("root", self._place(about))  # an old pin may be of the other graph
        return {**answer, "graph": "main" if looked == self._root else "side"}

    def _cleanup(self, tag: str, about: str) -> Json:
        report = Graph.open(self._place(about)).cleanup(timedelta(0), confirm=True)
        return {"outcome": "returned", "removed": len(report.items)}

    def _expire(self, tag: str, _about: str) -> Json:
        """No state goes, since the history is looked at in the end; versions that no state shows do."""
        expiry = Graph.open(self._root).cleanup(timedelta(0), keep=10**6, confirm=True, force=True).expiry
        return {"outcome": "returned", "removed": expiry.versions if expiry is not None else 0}

    def _tag(self, tag: str, _about: str) -> Json:
        """A tag is made, looked at, or deleted."""
        graph = Graph.open(self._root)
        if len(self._tags) < 3:
            graph.tag(tag, branch=self._dice.choice(BRANCHES) or "main")
            self._tags[tag] = digest(graph.export(tag=tag))
            return {"outcome": "returned"}
        name = self._dice.choice(sorted(self._tags))
        same = digest(graph.export(tag=name)) == self._tags[name]
        if self._dice.random() < 0.5:
            graph.delete_tag(name)
            del self._tags[name]
        return {"outcome": "same" if same else "bent", "commit_seen": name}

    def _copy(self, tag: str, _about: str) -> Json:
        return copied(self._root, self._dice.choice([None, None, "main"]))

    def _private(self, tag: str, _about: str) -> Json:
        """Something about the graph whose rows are erased."""
        return self._eraser.step(tag)

    def _restore(self, tag: str, _about: str) -> Json:
        """A branch becomes what a commit of it showed, if nobody writes meanwhile."""
        branch = self._dice.choice(BRANCHES)
        graph = Graph.open(self._root)
        state = self._dice.choice(graph.commits(branch=branch or "main", limit=5)).id
        told = {"mode": "restore", "branch": branch, "state": state, "graph": "main"}
        say({"verb": "restore", "tag": tag, "outcome": "tries", **told})
        report = graph.restore(branch=branch, snapshot=state, actor=tag, confirm=True)
        return {"outcome": "returned", "commit": report.commit, "warnings": list(report.warnings)}

    def _branch(self, tag: str, _about: str) -> Json:
        """A branch that only this load writes; whoever is killed on the way may leave it half-made."""
        return self._try(tag, rows(tag, [f"{tag}-a"]), "append", f"b/{tag}", "main", "main")

    def _review(self, tag: str, _about: str) -> Json:
        """A load on a branch under review, which is made if it is not there; some are of rows that others change."""
        branch, base = self._dice.choice(REVIEWS), self._dice.choice(BRANCHES) or "main"
        keys = self._dice.choice([[f"{tag}-a"], [f"{tag}-a", f"{tag}-b"], [self._dice.choice(KEYS)]])
        return self._try(tag, rows(tag, keys), "merge", branch, base, "main")

    def _merge(self, tag: str, _about: str) -> Json:
        """One branch into another; the conflicts of one that was told how to end them are read back."""
        source = self._dice.choice([*REVIEWS, *REVIEWS, "left", "right", "main"])
        target = self._dice.choice([each for each in ["main", "main", "main", "left", *REVIEWS] if each != source])
        side = self._dice.choice(["fail", "fail", "source", "target"])
        told = {"mode": "merge_branch", "source": source, "branch": target, "on_conflict": side}
        say({"verb": "merge", "tag": tag, "outcome": "tries", **told})
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "conflicts.jsonl")
            graph = Graph.open(self._root)
            report = graph.merge_branch(source, target, actor=tag, on_conflict=side, conflicts=file)
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        conflicts = [[row["table"], row["id"]] for row in map(json.loads, lines)]
        heads = {"source_commit": report.source_commit, "target_commit": report.target_commit}
        facts = {"commit": report.commit, "conflicts": conflicts, "warnings": list(report.warnings)}
        return {"outcome": "returned", "came_to": str(report.outcome), **heads, **facts}

    def _drop(self, tag: str, _about: str) -> Json:
        """Deletes a branch under review; what its commits showed is told first, since nobody can read it then."""
        branch = self._dice.choice(REVIEWS)
        reader = Graph.open(self._root, mode="r")
        own = [commit for commit in reader.commits(branch=branch) if commit.branch == branch]
        told = [
            {
                "id": commit.id,
                "parent": commit.parent,
                "merged_parent": commit.merged_parent,
                "rows": list(reader.export(branch=branch, snapshot=commit.id)),
            }
            for commit in own
        ]
        say({"verb": "drop", "tag": tag, "outcome": "buries", "branch": branch, "commits": told})
        gone = Graph.open(self._root).delete_branch(branch)
        return {"outcome": "returned", "branch": branch, "warnings": list(gone.warnings)}

    def _try(self, tag: str, lines: list[str], mode: str, branch: str | None, base: str | None, about: str) -> Json:
        options = LoadOptions(build_indexes=self._dice.random() < 0.2)
        told = {"mode": mode, "branch": branch, "graph": about, "lines": lines}
        say({"verb": "load", "tag": tag, "outcome": "tries", **told})
        graph = Graph.open(self._place(about))
        report = graph.load(lines, mode, branch=branch, base=base, actor=tag, options=options)
        facts = {"commit": report.commit, "base": report.base_commit, "warnings": list(report.warnings)}
        return {"outcome": "returned", **facts}

    def _mutate(self, tag: str, _about: str) -> Json:
        """One node is changed, or goes with its edges."""
        key, branch = self._dice.choice(KEYS), self._dice.choice(BRANCHES)
        mode = self._dice.choice(["update", "delete"])
        what = f'update Part set {{ tag: "{tag}" }}' if mode == "update" else "delete Part"
        say({"verb": "mutate", "tag": tag, "outcome": "tries", "mode": mode, "key": key, "branch": branch})
        result = Graph.open(self._root).mutate(f'query q() {{ {what} where code = "{key}" }}', branch=branch, actor=tag)
        return {"outcome": "returned", "commit": result.commit, "warnings": list(result.warnings)}

    def _embed(self, tag: str, _about: str) -> Json:
        """Vectors for one type or both, which rows lack or all get anew; answers are kept beside the graph."""
        branch, mode = self._dice.choice(BRANCHES), self._dice.choice(["missing", "missing", "all"])
        types = self._dice.choice([["Part"], ["Bin", "Part"]])
        told = {"mode": "embed", "rows": mode, "types": types, "branch": branch}
        say({"verb": "embed", "tag": tag, "outcome": "tries", **told})
        about = types[0] if len(types) == 1 else None
        graph = Graph.open(self._root)
        report = graph.embed(about, embedder=MockEmbedder("m"), mode=mode, branch=branch, actor=tag)
        return {"outcome": "returned", "commit": report.commit, "warnings": list(report.warnings)}

    def _content(self, tag: str) -> tuple[list[str], str]:
        kinds = {
            **{"merge": 5, "new": 4, "shared": 2, "parts": 3, "patches": 4, "edges": 3, "changes": 3},
            "overwrite": 1,
        }
        kind = self._dice.choices(list(kinds), list(kinds.values()))[0]
        keys = self._dice.sample(KEYS, 3)
        if kind == "merge":
            return rows(tag, keys), "merge"
        if kind == "new":
            return rows(tag, [f"{tag}-{n}" for n in range(2)]), "append"
        if kind == "shared":
            return rows(tag, [f"s{self._dice.randrange(30)}"]), "append"
        if kind == "parts":
            return parts(tag, keys), "merge"
        if kind == "patches":
            return patches(tag, keys[:2]), "update"
        if kind == "changes":
            return changes(tag, keys[:2], keys[2]), "changes"
        if kind == "edges":
            return edges(tag, [(keys[0], keys[1]), (keys[1], keys[2])]), "append"
        return rows(tag, KEYS), "overwrite"

    def _read(self, tag: str, _about: str) -> Json:
        branch = self._dice.choice(BRANCHES) or "main"
        found = list(Graph.open(self._root, mode="r").export(branch=branch))
        return {"outcome": "returned", "rows": len(found)}

    def _recover(self, tag: str, _about: str) -> Json:
        return {"outcome": "returned", "recovered": len(Graph.open(self._root).recover())}

    def _optimize(self, tag: str, _about: str) -> Json:
        branch = self._dice.choice(BRANCHES)
        tables = Graph.open(self._root).optimize(branch=branch).tables.values()
        return {"outcome": "returned", "left": sum(table.left is not None for table in tables)}

    def _index(self, tag: str, _about: str) -> Json:
        return {"outcome": "returned", "built": Graph.open(self._root).ensure_indices()}


def main() -> None:
    worker = Worker(sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",") if len(sys.argv) > 3 else VERBS)
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
