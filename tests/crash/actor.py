"""Another process that writes, indexes or recovers, and stands still for real (SIGSTOP) at a named point.

Run as a module it is that process; `Actor` is the test's end of it. Nothing here waits for a time: the process
announces that it stops, and the kernel says when it has.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import IO

from spark_omnigraph import Graph, OmnigraphError
from spark_omnigraph.commit import lease
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.commit.realign import realign_all
from spark_omnigraph.storage.objects import small as objects
from spark_omnigraph.write import attempts
from spark_omnigraph.write.attempts import ATTEMPTS
from tests.crash.worlds import WRITERS, refused_first_publish, run
from tests.support.cases import Json

ROOT = Path(__file__).parents[2]
ANSWER_SECONDS = 120.0


class ActorDiedError(AssertionError):
    """The process ended before it answered."""


class Actor:
    """The test's end. `start` lets it go; then `stopped`, `resume` and `answer` follow."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.actor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "LANCE_LOG": "error"},
        )
        self._pending = 0
        self._early: Json | None = None

    def __enter__(self) -> Actor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()  # also ends a process that stands still
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    @property
    def is_ready(self) -> bool:
        """Alive and owing no answer, so that another test may use it."""
        return self._process.poll() is None and self._pending == 0

    def start(self, root: Path, work: str, point: CrashPoint, **options: Json) -> None:
        """Begins some work that stops at a point. Options: `replan` lets a load plan again; its `clock` is off by so
        many seconds; it `sleeps` for so many before it goes on.
        """
        assert self._process.stdin is not None
        request = {"root": str(root), "work": work, "point": point.value, **options}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        self._pending += 1

    def stopped(self) -> bool:
        """Blocks until the process stands still (True), or is done without having reached the point (False)."""
        line = self._line()
        if "stopping" not in line:
            self._early = line
            return False
        _, status = os.waitpid(self._process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        state = Path(f"/proc/{self._process.pid}/stat")
        if state.exists():
            assert state.read_text().rsplit(")", 1)[1].split()[0] == "T"
        return True

    def resume(self) -> Json:
        """Lets it go on; its answer."""
        os.kill(self._process.pid, signal.SIGCONT)
        return self._line()

    def answer(self) -> Json:
        """What it answered instead of standing still."""
        assert self._early is not None
        return self._early

    def kill(self) -> None:
        """Ends it where it stands."""
        self._process.kill()
        self._process.wait()

    def _line(self) -> Json:
        assert self._process.stdout is not None
        guard = threading.Timer(ANSWER_SECONDS, self._process.kill)
        guard.start()
        try:
            line = self._process.stdout.readline()
        finally:
            guard.cancel()
        if not line:
            raise ActorDiedError(f"exit code {self._process.wait()}")
        answer = json.loads(line)
        self._pending -= "stopping" not in answer
        return answer


# ---------------------------------------------------------------------------------------------------------------------
# The process itself.


class Clock:
    """The clock of this process, which may be wrong, or find after a stop that its machine slept."""

    def __init__(self) -> None:
        self._real = time.time
        self.off_by = 0.0

    def time(self) -> float:
        return self._real() + self.off_by


def take_turns_at_swaps() -> threading.Lock:
    """While this lock is held no thread renews a lease: a process that stands still in there keeps the lease locked,
    which other tests are about.
    """
    turn, plain = threading.Lock(), objects.swap_file

    def swap_file(path: str, expected: bytes, content: bytes) -> bool:
        with turn:
            return plain(path, expected, content)

    objects.swap_file = swap_file
    return turn


def _work(request: Json) -> Json:
    once = request["work"] in WRITERS and request["work"] != "mutation" and not request.get("replan")
    attempts.ATTEMPTS = 1 if once else ATTEMPTS
    with refused_first_publish() if request["point"].startswith("undo_") else nullcontext():
        return _answer(request)


def _answer(request: Json) -> Json:
    root, work = request["root"], request["work"]
    try:
        if work == "recover":
            return {"outcome": "returned", "recovered": [r.kind.value for r in Graph.open(root).recovered]}
        if work == "realign":
            return {"outcome": "returned", "realigned": realign_all(Graph.open(root, mode="r").store)}
        graph = Graph.open(root)
        if work == "index":
            return {"outcome": "returned", "built": graph.ensure_indices(), "commit": None}
        if work == "optimize":
            return {"outcome": "returned", "left": [t.left for t in graph.optimize().tables.values()], "commit": None}
        report = run(graph, WRITERS[work])
        return {"outcome": "returned", "commit": report.commit, "warnings": list(report.warnings)}
    except OmnigraphError as error:
        return {"outcome": error.kind, "message": str(error)}


def _heartbeat_stops(stop: Callable[[], None], request: Json) -> Json:
    """At `landed_all` the writer waits until the next heartbeat of its lease has come as far as the stop."""
    reached = threading.Event()

    def beat() -> None:
        stop()
        reached.set()  # afterwards: the writer is not to come any further before it stands still

    lease.TERM = 0.03
    with ExitStack() as stack:
        stack.callback(setattr, lease, "TERM", 60.0)

        def wait_for_a_beat() -> None:
            stack.enter_context(stop_at(CrashPoint.HEARTBEAT, beat))
            assert reached.wait(ANSWER_SECONDS)

        stack.enter_context(stop_at(CrashPoint.LANDED_ALL, wait_for_a_beat))
        return _work(request)


def main() -> None:
    answers: IO[str] = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(value: Json) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    clock = Clock()
    time.time = clock.time

    turn = take_turns_at_swaps()

    def stand_still() -> None:
        with turn:
            say({"stopping": True})
            os.kill(os.getpid(), signal.SIGSTOP)
        clock.off_by += request.get("sleeps", 0.0)

    for line in sys.stdin:
        request = json.loads(line)
        clock.off_by = request.get("clock", 0.0)
        point = CrashPoint(request["point"])
        if point is CrashPoint.HEARTBEAT:
            say(_heartbeat_stops(stand_still, request))
        else:
            with stop_at(point, stand_still):
                say(_work(request))


if __name__ == "__main__":
    main()
