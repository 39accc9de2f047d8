"""A forced init beside one writer, both made to stop between any two of their steps, with clean-up in the gaps."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from spark_omnigraph import Graph, LoadOptions, OmnigraphError
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.commit.stage import close_stage, open_stage, staging
from spark_omnigraph.graph.load.frame import (
    StagedPart,
    finish_frame_load,
    frame_request,
    plan_frame_load,
    staged_part,
)
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import STAGE

SCHEMA = "node Part { code: String @key  tag: String }"
KEY = TableKey.node("Part")
PLAIN = LoadOptions(build_indexes=False, on_duplicate=OnDuplicate.ERROR)
WAIT = 60.0
WRITER_POINTS = [
    CrashPoint.STAGE_OPENED,
    CrashPoint.PLANNED,
    CrashPoint.STAGED,
    CrashPoint.CHECKED,
    CrashPoint.BOUND,
    CrashPoint.LEASED,
    CrashPoint.ARMED,
    CrashPoint.LANDED_FIRST,
    CrashPoint.LANDED_ALL,
    CrashPoint.PUBLISHED,
    CrashPoint.RECORDED,
    CrashPoint.DISARMED,
]
MAKING_POINTS = [point for point in CrashPoint if point.name.startswith("MAKING_")]


def line(code: str) -> str:
    return json.dumps({"type": "Part", "data": {"code": code, "tag": "new"}})


def codes(root: Path) -> set[str]:
    """Ids of all rows, read by a handle of its own."""
    return {json.loads(each)["data"]["code"] for each in Graph.open(root, mode="r").export()}


def load(root: Path) -> None:
    Graph.open(root).load([line("w1"), line("w2"), line("w3")], options=PLAIN)


def _part(store: GraphStore, number: int) -> StagedPart:
    frame = pa.table({"code": [f"w{number}"], "tag": ["new"]})
    request = frame_request(None, LoadMode.APPEND, None, PLAIN)
    context = plan_frame_load(store, request, KEY).context
    return staged_part(context, stage_frame(context, TableInput.of_type(KEY), frame.to_batches(), number))


def frame(root: Path) -> None:
    """What the driver and three tasks of a batch write do."""
    store = GraphStore.open(root)
    stage = open_stage(store)
    try:
        request = replace(frame_request(None, LoadMode.APPEND, None, PLAIN), stages=(stage,))
        plan = plan_frame_load(store, request, KEY)
        finish_frame_load(store, request, plan, [_part(GraphStore.open(root), n) for n in (1, 2, 3)])
    finally:
        close_stage(store, stage)


def task(root: Path, batch: str, number: int) -> tuple[str, StagedPart]:
    """What a task of a stream does; its process may be gone afterwards."""
    store = GraphStore.open(root)
    return open_stage(store, shared=batch), _part(store, number)


def finish_batch(root: Path, batch: str, done: list[tuple[str, StagedPart]]) -> None:
    """What the commit of a batch does, in a process of its own."""
    store = GraphStore.open(root)
    shared, parts = {name for name, _ in done}, [part for _, part in done]
    with staging(store) as stage:
        request = replace(
            frame_request(None, LoadMode.APPEND, None, PLAIN),
            stages=(*shared, stage),
            transaction=Transaction(batch, 1),
        )
        try:
            finish_frame_load(store, request, plan_frame_load(store, request, KEY), parts)
        finally:
            close_stage(store, min(shared))


def _in_processes(root: Path, batch: str) -> list[tuple[str, StagedPart]]:
    """Three tasks at once, each in a process that ends before the batch is committed."""
    module = [sys.executable, "-m", "tests.races.remaking", str(root), batch]
    started = [subprocess.Popen([*module, str(n)], stdout=subprocess.PIPE) for n in (1, 2, 3)]
    answers = [pickle.loads(process.communicate()[0]) for process in started]
    for answer in answers:
        if isinstance(answer, OmnigraphError):
            raise answer
    return answers


def stream(root: Path, processes: bool = False) -> None:
    batch = uuid4().hex
    try:
        parts = _in_processes(root, batch) if processes else [task(root, batch, n) for n in (1, 2, 3)]
        finish_batch(root, batch, parts)
    except OmnigraphError:
        with suppress(OmnigraphError):  # as when the batch is given up
            close_stage(GraphStore.open(root), f"{STAGE}{batch}~")
        raise


WRITERS: dict[str, Callable[[Path], None]] = {
    "load": load,
    "frame": frame,
    "stream": stream,
    "stream of processes": lambda root: stream(root, processes=True),
}


@dataclass
class Run:
    """What became of both: None when it was acknowledged, else the error."""

    order: tuple[str, ...]
    writer: OmnigraphError | None = None
    init: OmnigraphError | None = None
    seen: set[str] = field(default_factory=set)
    """Rows that a reader found right after the writer was acknowledged, before the other one went on."""
    cleanups: int = 0
    met: bool = False
    unexpected: list[BaseException] = field(default_factory=list)


class Side:
    """One of the two, in a thread that stops at a point until it is let go."""

    def __init__(self, work: Callable[[], object], point: CrashPoint) -> None:
        self.error: OmnigraphError | None = None
        self.unexpected: BaseException | None = None
        self.stopped = False
        self._work, self._point = work, point
        self._pause, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Runs it as far as the point, or to its end."""
        self._thread.start()
        assert self._pause.wait(WAIT), f"{self._point} is not reached and nothing ends"

    def go(self) -> None:
        """Lets it go on."""
        self._go.set()

    def finish(self) -> None:
        self.go()
        self._thread.join(WAIT)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with stop_at(self._point, self._stop):
                self._work()
        except OmnigraphError as error:
            self.error = error
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.unexpected = error
        self._pause.set()

    def _stop(self) -> None:
        self.stopped = True
        self._pause.set()
        assert self._go.wait(WAIT)


def make(root: Path) -> Path:
    Graph.init(root, SCHEMA).load([json.dumps({"type": "Part", "data": {"code": "old", "tag": "old"}})], options=PLAIN)
    return root


def remake(root: Path) -> None:
    Graph.init(root, SCHEMA, force=True)


def run(root: Path, writer: str, at: CrashPoint, making: CrashPoint, init_first: bool, cleans: bool) -> Run:
    """One goes as far as its point, then the other as far as its own; then the first one ends, then the other."""
    found = Run((making.value, at.value) if init_first else (at.value, making.value))

    def write() -> None:
        WRITERS[writer](root)
        found.seen = codes(root)

    sides = [Side(write, at), Side(lambda: remake(root), making)]
    order = sides[::-1] if init_first else sides
    for step in (order[0].start, order[1].start, order[0].finish, order[1].finish):
        step()
        if cleans:
            with suppress(OmnigraphError):  # it may meet half of a graph
                Graph.open(root).cleanup(timedelta(0), confirm=True)
                found.cleanups += 1
    found.writer, found.init = sides[0].error, sides[1].error
    found.met = sides[0].stopped and sides[1].stopped
    found.unexpected = [side.unexpected for side in sides if side.unexpected is not None]
    return found


def main() -> None:
    root, batch, number = sys.argv[1:]
    try:
        answer: object = task(Path(root), batch, int(number))
    except OmnigraphError as error:
        answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main()
