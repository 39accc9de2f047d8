"""What follows from what work tells of itself."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

from spark_omnigraph.progress.meter import Meter, begin, in_phase, phase_of, tell
from spark_omnigraph.write.executor import LocalExecutor, WatchedExecutor


@in_phase("halve")
def half(number: int) -> int:
    return number // 2


class Told:
    """All that a listener with every method hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def __call__(self, phase: str, done: int, total: int) -> None:
        self.heard.append((phase, done, total))

    def begins(self, phase: str, total: int) -> None:
        self.heard.append(("begins", phase, total))

    def rows(self, count: int) -> None:
        self.heard.append(("rows", count))


@pytest.fixture
def now() -> list[float]:
    return [100.0]


@pytest.fixture
def meter(now: list[float]) -> Meter:
    return Meter(lambda: now[0])


def test_the_time_left_goes_by_the_parts_of_the_phase(meter: Meter, now: list[float]) -> None:
    now[0] = 200.0  # an earlier phase says nothing of this one
    meter.begins("stage", 12)
    assert meter.figures() == "0 of 12, 1 min 40 s so far"
    now[0] = 206.0
    meter.rows = 40_000
    meter.told("stage", 3, 12)
    assert meter.seconds_left == 18.0
    assert meter.figures() == "3 of 12, 40,000 rows, 18 s left"
    meter.told("stage", 12, 12)
    assert (meter.seconds_left, meter.share) == (0.0, 1.0)


def test_a_phase_that_comes_again_begins_anew(meter: Meter, now: list[float]) -> None:
    meter.told("stage", 2, 2)
    meter.rows = 5
    now[0] = 160.0
    meter.begins("stage", 2)
    assert meter.figures() == "0 of 2, 1 min 0 s so far"
    now[0] = 170.0
    meter.told("stage", 1, 2)
    assert meter.seconds_left == 10.0


@pytest.mark.parametrize(
    ("done", "total", "figures"),
    [(0, 0, "2 h 0 min so far"), (7, 0, "7, 2 h 0 min so far"), (3, 2, "3 of 2, 2 h 0 min so far")],
)
def test_what_nobody_knows_is_not_said(meter: Meter, now: list[float], done: int, total: int, figures: str) -> None:
    meter.told("query", done, total)
    now[0] += 7200
    assert meter.figures() == figures


def test_a_function_of_three_arguments_hears_parts_alone() -> None:
    heard: list[tuple[str, int, int]] = []
    begin(lambda *_: heard.append(("no", 0, 0)), "stage", 2)
    tell(lambda *told: heard.append(told), "stage", 1, 2, rows=7)
    tell(None, "stage", 2, 2, rows=9)
    assert heard == [("stage", 1, 2)]


def test_a_listener_with_methods_hears_phases_and_rows() -> None:
    told = Told()
    begin(told, "stage", 2)
    tell(told, "stage", 1, 2, rows=7)
    tell(told, "stage", 2, 2)
    assert told.heard == [("begins", "stage", 2), ("rows", 7), ("stage", 1, 2), ("stage", 2, 2)]


def test_an_executor_tells_of_items_by_the_name_of_their_work() -> None:
    told = Told()
    executor = WatchedExecutor(LocalExecutor(1), told)
    assert (list(executor.map(half, [2, 4])), executor.parallelism) == ([1, 2], 1)
    assert told.heard == [("begins", "halve", 2), ("halve", 1, 2), ("halve", 2, 2)]
    assert (phase_of(partial(half, 4)), phase_of(len)) == ("halve", "work")
    assert pickle.loads(pickle.dumps(half)) is half
