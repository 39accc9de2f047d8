"""Frame and stream writes of the stress test: the functions that Spark's tasks call, without Spark.

`python -m tests.races.framing ROOT FRAME NUMBER` is one task of a stream: it ends before its batch is committed.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_omnigraph import LoadOptions, LoadReport, OmnigraphError
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.stage import close_stage, open_stage, staging
from spark_omnigraph.graph.load.frame import (
    StagedPart,
    finish_frame_load,
    frame_request,
    plan_frame_load,
    staged_part,
)
from spark_omnigraph.graph.load.load import LoadRequest
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import STAGE

KEY = TableKey.node("Part")
TASKS = 3


@dataclass(frozen=True, slots=True)
class Frame:
    """Parts with a tag, written into one branch by three tasks."""

    tag: str
    mode: str
    branch: str | None
    keys: tuple[str, ...]

    def request(self, *stages: str, transaction: Transaction | None = None) -> LoadRequest:
        options = LoadOptions(build_indexes=False, on_duplicate=OnDuplicate.ERROR)
        return replace(
            frame_request(self.branch, LoadMode(self.mode), self.tag, options),
            stages=stages,
            transaction=transaction,
        )


def write_frame(root: str, frame: Frame) -> LoadReport:
    """What the driver and three tasks of a batch write do."""
    store = GraphStore.open(root)
    stage = open_stage(store, shared=frame.tag)
    try:
        request = frame.request(stage)
        plan = plan_frame_load(store, request, KEY)
        return finish_frame_load(store, request, plan, [_part(GraphStore.open(root), frame, n) for n in range(TASKS)])
    finally:
        close_stage(store, stage)


def write_stream(root: str, frame: Frame) -> LoadReport:
    """One batch of a stream: three tasks at once, each in a process that ends, and then the commit."""
    try:
        return _finish_batch(root, frame, _in_processes(root, frame))
    except OmnigraphError:
        with suppress(OmnigraphError):  # as when the batch is given up
            close_stage(GraphStore.open(root), f"{STAGE}{frame.tag}~")
        raise


def _part(store: GraphStore, frame: Frame, number: int) -> StagedPart:
    keys = list(frame.keys[number::TASKS])
    rows = pa.table({"code": pa.array(keys, pa.string()), "tag": pa.array([frame.tag] * len(keys), pa.string())})
    context = plan_frame_load(store, frame.request(), KEY).context
    return staged_part(context, stage_frame(context, TableInput.of_type(KEY), rows.to_batches(), number))


def _finish_batch(root: str, frame: Frame, done: Sequence[tuple[str, StagedPart]]) -> LoadReport:
    store = GraphStore.open(root)
    shared, parts = {name for name, _ in done}, [part for _, part in done]
    with staging(store) as stage:
        request = frame.request(*shared, stage, transaction=Transaction(frame.tag, 1))
        try:
            return finish_frame_load(store, request, plan_frame_load(store, request, KEY), parts)
        finally:
            close_stage(store, min(shared))


def _in_processes(root: str, frame: Frame) -> list[tuple[str, StagedPart]]:
    told = json.dumps([frame.tag, frame.mode, frame.branch, frame.keys])
    module = [sys.executable, "-m", "tests.races.framing", root, told]
    started = [subprocess.Popen([*module, str(n)], stdout=subprocess.PIPE) for n in range(TASKS)]
    answers = [pickle.loads(process.communicate()[0]) for process in started]
    for answer in answers:
        if isinstance(answer, OmnigraphError):
            raise answer
    return answers


def main() -> None:
    root, told, number = sys.argv[1:]
    tag, mode, branch, keys = json.loads(told)
    try:
        store = GraphStore.open(root)
        shared = open_stage(store, shared=tag)
        answer: object = (shared, _part(store, Frame(tag, mode, branch, tuple(keys)), int(number)))
    except OmnigraphError as error:
        answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main()
