"""What holds for every fuzzer: a seed that is told, and bounds on the time of one call and on memory."""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

SEED = int(os.environ.get("FUZZ_SEED", random.SystemRandom().randrange(2**32)))
"""Of all fuzzers of a run; `FUZZ_SEED=… pytest …` plays one again."""
SECONDS = 2.0
MEMORY = 512 << 20
"""Bytes that the process may grow by while a module of fuzzers runs."""
_slowest = [0.0]


@contextmanager
def soon() -> Iterator[None]:
    """One call: AssertionError when it takes more of the processor than `SECONDS`."""
    began = time.process_time()
    yield
    seconds = time.process_time() - began
    _slowest[0] = max(_slowest[0], seconds)
    assert seconds < SECONDS, f"{seconds:.2f} s"


def within_bounds(config: pytest.Config, name: str) -> Iterator[None]:
    """Body of a fixture of a module: tells the seed, the slowest call and the growth, and asserts the last."""
    before, _slowest[0] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0
    yield
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    config.get_terminal_writer().line(
        f"\n{name}: FUZZ_SEED={SEED}, slowest call {_slowest[0]:.2f} s, grown by {grown >> 20} MiB"
    )
    assert grown < MEMORY
