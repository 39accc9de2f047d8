"""Processes load, embed, open and recover one graph, write frames and streams into it, make, merge and delete branches
of it, read old versions, make a second graph anew, and change its schema; some are killed, some stand still and come
back late; between rounds files are damaged by hand. Then the history is checked commit by commit.

    python -m tests.races.stress --seconds 600 --seed 7 [--processes 8] [--storage s3] [--leases short]
                                   [--verbs copy,load]

The seed is printed; it decides which operations each process does in which order, and what happens to whom. How
they meet in time is the machine's affair, so a run is repeated, not replayed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

from spark_omnigraph import Graph, LoadOptions, NotFoundError, OmnigraphError, StorageError
from spark_omnigraph.commit.process import this_process
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import STAGE
from tests.races.damage import Breaker, Damage
from tests.races.erasing import check_erased, make, private
from tests.races.hand import side
from tests.races.history import check_history
from tests.races.remade import check_remade
from tests.races.states import SCHEMA, first_rows
from tests.support.cases import Json
from tests.support.object_store import BUCKET, running_server

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
BRANCHES = ("left", "right")
BLOW_EVERY = 0.7
"""Seconds between two blows, on average."""
ROUND = 30.0
"""Seconds after which everybody is stopped, and files are damaged."""
DAMAGED = 3
"""Files that are damaged between two rounds."""
LONG, LONG_EVERY = 130.0, 240.0
"""Seconds after which a lease as shipped has run out, and how often somebody stands still for so long."""
SETTLED = 180.0
"""Seconds in which what the dead have left must be recovered, with leases and claims as shipped."""


@dataclass
class Tally:
    """What the processes reported, how many were killed in the middle of what, how often one stood still, and what
    came of damaged files.
    """

    answers: list[Json] = field(default_factory=list)
    killed_at: Counter[str] = field(default_factory=Counter)
    stopped: int = 0
    stopped_long: int = 0
    damages: list[Damage] = field(default_factory=list)

    @property
    def killed(self) -> int:
        return self.killed_at.total()

    def counts(self) -> dict[str, int]:
        return dict(sorted(Counter(f"{a['verb']} {a['outcome']}" for a in self.answers).items()))

    def damaged(self) -> dict[str, dict[str, int]]:
        """For each kind of file and way of damage, what came of each thing that was tried."""
        found: dict[str, Counter[str]] = {}
        for damage in self.damages:
            counter = found.setdefault(f"{damage.kind} {damage.way}", Counter())
            counter.update(f"{what}: {outcome}" for what, outcome in damage.outcomes.items())
        return {name: dict(sorted(counter.items())) for name, counter in sorted(found.items())}

    def violations(self) -> list[str]:
        """What must not be: a raw error, an old version that shows something else, or a graph that a damaged file
        made answer wrongly. Versions of the first graph never go.
        """
        damaged = [f"{d.kind} {d.path} {d.way}: {text}" for d in self.damages for text in d.violations]
        return damaged + [json.dumps(a) for a in self.answers if _is_violation(a)]


def _is_violation(answer: Json) -> bool:
    return answer["outcome"] in ("raw", "bent") or (answer["outcome"] == "gone" and answer.get("graph") == "main")


class Hand:
    """One process that works until it is killed or told to stop; its answers are collected by a thread."""

    def __init__(self, root: str, seed: int, log: list[Json], verbs: str = "") -> None:
        self.seed, self.doing = seed, "start"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.races.hand", root, str(seed), *filter(None, [verbs])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "LANCE_LOG": "error"},
            start_new_session=True,  # so that its tasks go with it
        )
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._collect, args=(self.process.stdout, log), daemon=True)
        self._reader.start()

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self._end()

    def tell(self) -> None:
        """That it is to end once it has finished what it is doing."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def stop(self) -> int:
        """Lets it finish what it is doing; its exit code."""
        self.tell()
        return self._end()

    def _end(self) -> int:
        code = self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        return code

    def _collect(self, stream: IO[str], log: list[Json]) -> None:
        for line in stream:
            if not line.endswith("\n"):  # a killed process may leave half a line
                continue
            answer = json.loads(line)
            if answer["outcome"] == "begins":
                self.doing = answer["verb"]
            else:
                log.append(answer)


def give_up_for_dead(store: GraphStore, pid: int, endings: tuple[str, ...] = (".lease", ".claim")) -> None:
    """Leases and claims of a process run out at once, as they would after two minutes."""
    for name in store.objects.list("__recovery"):
        if name.endswith(endings):
            path = f"__recovery/{name}"
            content = store.objects.get(path)
            if content is not None and str(json.loads(content).get("owner")).endswith(f":{pid}"):
                gone = json.dumps({"owner": "killed:0", "token": "killed", "expires_at": 0}).encode()
                with suppress(StorageError):  # it stands still in the middle of its heartbeat
                    store.objects.swap(path, content, gone)


def remove_stages(store: GraphStore, seed: int) -> None:
    """Stages of frames and streams that a process which is gone has left, by hand, as the documents have it."""
    for name in store.objects.list("__recovery"):
        if name.startswith(f"{STAGE}h{seed}-"):
            store.objects.remove(f"__recovery/{name}")


class Fate:
    """What happens to the processes: some are killed, some stand still for a while. With short leases those are given
    up for dead; as shipped, whoever is killed is seen to be gone, and whoever stands still must do so for long.
    """

    def __init__(self, root: str, seed: int, processes: int, leases: str, end: float, verbs: str) -> None:
        self._verbs = verbs
        self._root, self._seed, self._births, self._short, self._end = root, seed, 0, leases == "short", end
        self._stores = [GraphStore.open(root), GraphStore.open(side(root)), GraphStore.open(private(root))]
        self._dice, self.tally = random.Random(seed), Tally()
        self.hands: list[Hand] = []
        self._processes = processes
        self._still: dict[int, float] = {}
        self._long_until = 0.0

    @property
    def is_late(self) -> bool:
        """Whether somebody stands still for long just now."""
        return time.monotonic() < self._long_until

    def begin(self) -> None:
        self.hands = [self._born() for _ in range(self._processes)]

    def strike(self) -> None:
        """One blow, at anybody or at one who is just committing."""
        number = self._dice.randrange(len(self.hands))
        if self._dice.random() < 0.6:
            number = self._committing(number)
        if number in self._still or self.hands[number].doing == "start":
            return  # nothing of the graph has been touched yet
        if self._dice.random() < 0.6:
            self._kill(number)
            self.hands[number] = self._born()
        else:
            self._stop(number)

    def wake(self, everybody: bool = False) -> None:
        """Lets go on who stood still for long enough."""
        for number, until in list(self._still.items()):
            if everybody or time.monotonic() >= until:
                os.kill(self.hands[number].process.pid, signal.SIGCONT)
                del self._still[number]

    def pause(self) -> None:
        """One who is committing is killed, the others finish what they are doing."""
        self.wake(everybody=True)
        victim = self._committing(0)
        self._kill(victim)
        self._finish([hand for number, hand in enumerate(self.hands) if number != victim])
        self.tally.damages += Breaker(self._root, self._dice, self.tally.answers).strike(DAMAGED)
        self.begin()

    def end(self) -> None:
        self.wake(everybody=True)
        self._finish(self.hands)

    def _finish(self, hands: list[Hand]) -> None:
        for hand in hands:
            hand.tell()
        codes = [hand.stop() for hand in hands]
        assert codes == [0] * len(hands), codes

    def _kill(self, number: int) -> None:
        hand = self.hands[number]
        hand.kill()
        self.tally.killed_at[hand.doing] += 1
        for store in self._stores:
            remove_stages(store, hand.seed)
            if self._short:
                # Its leases need not run out: everybody here sees that it is gone.
                endings = (".claim",) if this_process() is not None else (".lease", ".claim")
                give_up_for_dead(store, hand.process.pid, endings)

    def _stop(self, number: int) -> None:
        pid, now = self.hands[number].process.pid, time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        self._still[number] = now + self._dice.uniform(0.3, 3.0)
        self.tally.stopped += 1
        if self._short:
            for store in self._stores:
                give_up_for_dead(store, pid)
        elif now + LONG < self._end and now > self._long_until - LONG + LONG_EVERY:
            self._still[number] = self._long_until = now + LONG
            self.tally.stopped_long += 1

    def _committing(self, otherwise: int) -> int:
        """Number of a process that holds a lease right now."""
        pids = {hand.process.pid: number for number, hand in enumerate(self.hands)}
        for store in self._stores:
            for name in store.objects.list("__recovery"):
                content = store.objects.get(f"__recovery/{name}") if name.endswith(".lease") else None
                if content is not None:
                    pid = int(str(json.loads(content).get("owner", ":0")).rpartition(":")[2] or 0)
                    if pid in pids:
                        return pids[pid]
        return otherwise

    def _born(self) -> Hand:
        self._births += 1
        return Hand(self._root, self._seed * 1000 + self._births - 1, self.tally.answers, self._verbs)


def run(root: str, seconds: float, seed: int, processes: int, leases: str = "short", verbs: str = "") -> Tally:
    """Lets processes work for a while and strikes at them; ends with nobody at work. Says first how to do it again."""
    command = f"python -m tests.races.stress --seconds {seconds:g} --seed {seed} --processes {processes}"
    print(f"{command} --leases {leases}", flush=True)
    graph = Graph.init(root, SCHEMA)
    graph.load(first_rows(), options=LoadOptions(build_indexes=False))
    for branch in BRANCHES:
        graph.create_branch(branch)
    Graph.init(side(root), SCHEMA)
    make(root)
    end = time.monotonic() + seconds
    fate, dice = Fate(root, seed, processes, leases, end, verbs), random.Random(seed)
    next_blow, next_pause = time.monotonic() + 2 * BLOW_EVERY, time.monotonic() + ROUND
    try:
        fate.begin()
        while (now := time.monotonic()) < end:
            time.sleep(0.02)
            fate.wake()
            if now >= next_blow:
                next_blow = now + dice.uniform(0.5, 1.5) * BLOW_EVERY
                fate.strike()
            if now >= next_pause and now + ROUND / 2 < end and not fate.is_late:
                fate.pause()
                next_pause = time.monotonic() + ROUND
        fate.end()
    except BaseException:
        for hand in fate.hands:
            with suppress(ProcessLookupError):
                os.killpg(hand.process.pid, signal.SIGKILL)
        raise
    return fate.tally


def finish(root: str, leases: str = "short") -> Graph:
    """Everybody is gone: what they left is given up, unless leases are as shipped, and recovered."""
    if leases == "short":
        store = GraphStore.open(root)
        for name in store.objects.list("__recovery"):
            if name.endswith((".lease", ".claim")):
                gone = json.dumps({"owner": "gone:0", "token": "gone", "expires_at": 0}).encode()
                store.objects.put(f"__recovery/{name}", gone)
    graph = _patiently(lambda: Graph.open(root))
    _patiently(graph.recover)
    assert graph.interrupted() == [], "interrupted writes are left"
    assert graph.running() == [], "writes are left that nobody runs"
    assert not graph.store.has_schema_lock(), "the lock of a schema change is left that nobody runs"
    return graph


def finish_side(root: str, leases: str = "short") -> Graph:
    """Like `finish`, for the graph that was made anew; where an init died half-way, it is made once more. The checker
    asks whether there was such an init before it lets go of what was acknowledged.
    """
    try:
        Graph.open(side(root), mode="r")
    except (NotFoundError, StorageError):
        return _patiently(lambda: Graph.init(side(root), SCHEMA, force=True))
    return finish(side(root), leases)


def _patiently(step: Callable[[], T]) -> T:
    """Tries for as long as leases and claims of the dead may last."""
    deadline = time.monotonic() + SETTLED
    while True:
        try:
            return step()
        except OmnigraphError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(1.0)


def check(root: str, tally: Tally, leases: str = "short") -> tuple[dict[str, dict[str, int]], list[str]]:
    """What was looked at in either graph, and all violations."""
    violations, counts = tally.violations(), {}
    mine = [answer for answer in tally.answers if answer.get("graph") not in ("side", "private")]
    checks: dict[str, Callable[[], dict[str, int]]] = {
        "main": lambda: check_history(finish(root, leases), mine),
        "side": lambda: check_remade(finish_side(root, leases), tally.answers),
        "private": lambda: check_erased(finish(private(root), leases), tally.answers),
    }
    for name, look in checks.items():
        try:
            counts[name] = look()
        except (AssertionError, OmnigraphError) as error:
            violations.append(f"{name}: {type(error).__name__}: {error}")
    return counts, violations


@contextmanager
def place(storage: str, scratch: str) -> Iterator[str]:
    """Root of a new graph on the local disk, or on an S3 server of this run, whose options go to all processes."""
    if storage == "local":
        yield f"{scratch}/graph"
        return
    with running_server(Path(scratch)) as server:
        os.environ.update(server.environment)
        yield f"s3://{BUCKET}/graph"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--storage", choices=["local", "s3"], default="local")
    parser.add_argument("--leases", choices=["shipped", "short"], default="shipped")
    parser.add_argument("--verbs", default="", help="only these, with commas between them (default: all)")
    parser.add_argument("--root", default=None, help="folder of the graph, kept afterwards (default: a temporary one)")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(10**6)
    with tempfile.TemporaryDirectory() as scratch, place(options.storage, scratch) as chosen:
        root = options.root or chosen
        tally = run(root, options.seconds, seed, options.processes, options.leases, options.verbs)
        told = {"killed": tally.killed, "killed at": dict(tally.killed_at), "stopped": tally.stopped}
        told |= {"stopped for long": tally.stopped_long, "damaged": tally.damaged(), **tally.counts()}
        print(json.dumps(told, indent=1), flush=True)
        if options.root:
            Path(f"{root}.answers.json").write_text(json.dumps(tally.answers), encoding="utf-8")
        counts, violations = check(root, tally, options.leases)
        print(json.dumps({"checked": counts, "violations": violations}, indent=1))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
