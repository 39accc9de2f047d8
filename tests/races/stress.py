"""Processes load, open and recover one graph; some are killed, some stand still and are given up for dead; then the
history is checked commit by commit.

    python -m tests.races.stress --seconds 60 --seed 7 --processes 8

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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from spark_omnigraph import Graph, LoadOptions, StorageError
from spark_omnigraph.commit.process import this_process
from tests.races.history import SCHEMA, check_history, first_rows
from tests.support.cases import Json

ROOT = Path(__file__).parents[2]
BRANCHES = ("left", "right")
BLOW_EVERY = 0.7
"""Seconds between two blows, on average."""


@dataclass
class Tally:
    """What the processes reported, how many were killed, and how often one stood still."""

    answers: list[Json] = field(default_factory=list)
    killed: int = 0
    stopped: int = 0

    def counts(self) -> dict[str, int]:
        return dict(sorted(Counter(f"{a['verb']} {a['outcome']}" for a in self.answers).items()))


class Hand:
    """One process that works until it is killed or told to stop; its answers are collected by a thread."""

    def __init__(self, root: str, seed: int, log: list[Json]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.races.hand", root, str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "LANCE_LOG": "error"},
        )
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=_collect, args=(self.process.stdout, log), daemon=True)
        self._reader.start()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self) -> int:
        """Lets it finish what it is doing; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self._end()

    def _end(self) -> int:
        code = self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        return code


def _collect(stream: IO[str], log: list[Json]) -> None:
    for line in stream:
        if line.endswith("\n"):  # a killed process may leave half a line
            log.append(json.loads(line))


def give_up_for_dead(graph: Graph, pid: int, endings: tuple[str, ...] = (".lease", ".claim")) -> None:
    """Leases and claims of a process run out at once, as they would after two minutes."""
    for name in graph.store.objects.list("__recovery"):
        if name.endswith(endings):
            path = f"__recovery/{name}"
            content = graph.store.objects.get(path)
            if content is not None and str(json.loads(content).get("owner")).endswith(f":{pid}"):
                gone = json.dumps({"owner": "killed:0", "token": "killed", "expires_at": 0}).encode()
                with suppress(StorageError):  # it stands still in the middle of its heartbeat
                    graph.store.objects.swap(path, content, gone)


class Fate:
    """What happens to the processes: some are killed, some stand still for a while and are given up for dead."""

    def __init__(self, root: str, seed: int, processes: int) -> None:
        self._root, self._seed, self._births = root, seed, processes
        self._graph = Graph.open(root, mode="r")
        self._dice, self.tally = random.Random(seed), Tally()
        self.hands = [self._born(n) for n in range(processes)]
        self._still: dict[int, float] = {}

    def strike(self) -> None:
        """One blow, at anybody or at one who is just committing."""
        number = self._dice.randrange(len(self.hands))
        if self._dice.random() < 0.6:
            number = self._committing(number)
        if number in self._still:
            return
        if self._dice.random() < 0.6:
            self._kill(number)
        else:
            os.kill(self.hands[number].process.pid, signal.SIGSTOP)
            give_up_for_dead(self._graph, self.hands[number].process.pid)
            self._still[number] = time.monotonic() + self._dice.uniform(0.3, 3.0)
            self.tally.stopped += 1

    def wake(self, everybody: bool = False) -> None:
        """Lets go on who stood still for long enough."""
        for number, until in list(self._still.items()):
            if everybody or time.monotonic() >= until:
                os.kill(self.hands[number].process.pid, signal.SIGCONT)
                del self._still[number]

    def _kill(self, number: int) -> None:
        pid = self.hands[number].process.pid
        self.hands[number].kill()
        self.tally.killed += 1
        # Its leases need not run out: everybody here sees that it is gone.
        give_up_for_dead(self._graph, pid, (".claim",) if this_process() is not None else (".lease", ".claim"))
        self.hands[number] = self._born(self._births)
        self._births += 1

    def _committing(self, otherwise: int) -> int:
        """Number of a process that holds a lease right now."""
        pids = {hand.process.pid: number for number, hand in enumerate(self.hands)}
        for name in self._graph.store.objects.list("__recovery"):
            content = self._graph.store.objects.get(f"__recovery/{name}") if name.endswith(".lease") else None
            if content is not None:
                pid = int(str(json.loads(content).get("owner", ":0")).rpartition(":")[2] or 0)
                if pid in pids:
                    return pids[pid]
        return otherwise

    def _born(self, number: int) -> Hand:
        return Hand(self._root, self._seed * 1000 + number, self.tally.answers)


def run(root: str, seconds: float, seed: int, processes: int) -> Tally:
    """Lets processes work for a while and strikes at them; ends with nobody at work. Says first how to do it again."""
    print(f"python -m tests.races.stress --seconds {seconds:g} --seed {seed} --processes {processes}", flush=True)
    graph = Graph.init(root, SCHEMA)
    graph.load(first_rows(), options=LoadOptions(build_indexes=False))
    for branch in BRANCHES:
        graph.create_branch(branch)
    fate, dice = Fate(root, seed, processes), random.Random(seed)
    end = time.monotonic() + seconds
    next_blow = time.monotonic() + 2 * BLOW_EVERY
    try:
        while time.monotonic() < end:
            time.sleep(0.02)
            fate.wake()
            if time.monotonic() >= next_blow:
                next_blow = time.monotonic() + dice.uniform(0.5, 1.5) * BLOW_EVERY
                fate.strike()
        fate.wake(everybody=True)
        codes = [hand.stop() for hand in fate.hands]
    except BaseException:
        for hand in fate.hands:
            hand.process.kill()
        raise
    assert codes == [0] * processes, codes
    return fate.tally


def finish(root: str) -> Graph:
    """Everybody is gone: what they left is given up and recovered."""
    reader = Graph.open(root, mode="r")
    for name in reader.store.objects.list("__recovery"):
        if name.endswith((".lease", ".claim")):
            gone = json.dumps({"owner": "gone:0", "token": "gone", "expires_at": 0}).encode()
            reader.store.objects.put(f"__recovery/{name}", gone)
    graph = Graph.open(root)
    graph.recover()
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--root", default=None, help="folder of the graph, kept afterwards (default: a temporary one)")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(10**6)
    with tempfile.TemporaryDirectory() as scratch:
        root = options.root or f"{scratch}/graph"
        tally = run(root, options.seconds, seed, options.processes)
        print(json.dumps({"killed": tally.killed, "stopped": tally.stopped, **tally.counts()}, indent=1), flush=True)
        if options.root:
            Path(f"{root}.answers.json").write_text(json.dumps(tally.answers), encoding="utf-8")
        print(json.dumps(check_history(finish(root), tally.answers), indent=1))


if __name__ == "__main__":
    main()
