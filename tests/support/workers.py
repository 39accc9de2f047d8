"""Other processes as test partners: one JSON line per request, one per answer, over pipes.

A worker runs `serve(handlers)`. The test sends requests; a request that is only written, not awaited, is how two
workers are let go at the same moment: both read from their pipe, so no clock is involved.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

from tests.support.cases import Json

ROOT = Path(__file__).parents[2]
ANSWER_SECONDS = 120.0


class WorkerDiedError(AssertionError):
    """The process ended, or did not answer in time; its standard error is in the message."""


class Worker:
    """`with Worker("tests.races.writer") as w: w.call("load", lines=[…])`"""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "LANCE_LOG": "error", **(environment or {})},
        )
        self._pending = 0
        self._errors: list[str] = []
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._drain.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    @property
    def is_idle(self) -> bool:
        """Alive and owing no answer, so that another test may use it."""
        return self._process.poll() is None and self._pending == 0

    def kill(self) -> None:
        """Ends it whatever it does."""
        self._process.kill()
        self._process.wait()

    def send(self, request: str, **arguments: Json) -> None:
        """Write a request without waiting for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"request": request, **arguments}) + "\n")
        self._process.stdin.flush()
        self._pending += 1

    def receive(self) -> Json:
        """The answer to the oldest request that has none yet."""
        assert self._process.stdout is not None
        guard = threading.Timer(ANSWER_SECONDS, self._process.kill)
        guard.start()
        try:
            line = self._process.stdout.readline()
        finally:
            guard.cancel()
        if not line:
            self._process.wait()
            self._drain.join()
            raise WorkerDiedError(f"exit code {self._process.returncode}\n{''.join(self._errors)}")
        self._pending -= 1
        return json.loads(line)

    def call(self, request: str, **arguments: Json) -> Json:
        self.send(request, **arguments)
        return self.receive()

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)


def serve(handlers: Mapping[str, Callable[..., Json]]) -> None:
    """Answer requests from standard input until it is closed. Whatever else prints goes to standard error."""
    answers: IO[str] = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        arguments = json.loads(line)
        answer = handlers[arguments.pop("request")](**arguments)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
