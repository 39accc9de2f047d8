"""The job `embed` is killed again and again: the provider is asked again for little, and the graph is old or new.

When it dies is decided by how many requests it has sent, not by a clock.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from tests.support.embedding_server import EmbeddingServer

ROOT = Path(__file__).parents[2]
BATCH, PARALLEL, KEPT = 4, 2, 24
AGAIN = BATCH * PARALLEL + KEPT
"""Texts that a run which was killed may have asked for in vain: under way, and answered since the last commit."""
PATIENCE = 120.0


def start(graph: Graph, server: EmbeddingServer) -> subprocess.Popen[str]:
    limits = ["--batch", str(BATCH), "--parallel", str(PARALLEL), "--cache-every", str(KEPT)]
    return subprocess.Popen(
        [sys.executable, "-m", "spark_omnigraph", "embed", "--graph", graph.uri, *limits],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **server.environ()},
    )


def vectors(graph: Graph) -> dict[str, list[float] | None]:
    records = (json.loads(line)["data"] for line in Graph.open(graph.uri, mode="r").export())
    return {record["text"]: record["vec"] for record in records}


def kill_and_repeat(folder: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    texts = [f"text {n}" for n in range(40 * kills)]
    graph = Graph.init(folder / "g", 'node Note { text: String @key  vec: Vector(4)? @embed("text") }')
    lines = [json.dumps({"type": "Note", "data": {"text": text}}) for text in texts]
    graph.load(lines, options=LoadOptions(build_indexes=False))
    reached, until = Event(), [0]

    def watch(_: str) -> bool:
        if len(server.log) >= until[0]:
            reached.set()
        return False

    with EmbeddingServer(refuses=watch) as server:
        for number in range(kills):
            reached.clear()
            until[0] = len(server.log) + dice.randint(1, 9)
            job = start(graph, server)
            assert reached.wait(PATIENCE), job.stderr and job.stderr.read()
            job.kill()
            job.communicate()
            assert job.returncode in (-signal.SIGKILL, 0), f"round {number}"
            assert set(vectors(graph).values()) == {None}, "nothing is half"
        job = start(graph, server)
        out, err = job.communicate(timeout=PATIENCE)
        assert job.returncode == 0, err
    expected = MockEmbedder().embed(texts, dimension=4, role=Role.DOCUMENT).vectors
    found = vectors(graph)
    assert np.allclose(np.array([found[text] for text in texts], np.float32), expected, atol=1e-6)
    asked = Counter(server.asked)
    assert set(asked) == set(texts)
    assert asked.total() - len(texts) <= kills * AGAIN, "no more is asked again than what was not kept"
    counts = json.loads(out)["result"]["properties"]["Note.vec"]
    assert (counts["embedded"], counts["cached"] + counts["requested"]) == (len(texts), len(texts))
    assert counts["cached"] > 0


@pytest.mark.timeout(600)
def test_a_killed_job_goes_on_where_it_stood(tmp_path: Path) -> None:
    kill_and_repeat(tmp_path, 3, seed=3)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_job_that_is_killed_twenty_times(tmp_path: Path) -> None:
    kill_and_repeat(tmp_path, 20, seed=2)
