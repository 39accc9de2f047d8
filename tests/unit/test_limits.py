"""What an answer may take, and threads that their caller leaves."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from spark_omnigraph.errors import BadRequestError, LimitError
from spark_omnigraph.limits import Leaving, Limits, Watch, beyond, is_left_behind, name_option, split_limits


def test_limits_are_told_from_other_choices() -> None:
    limits, rest = split_limits({"branch": "b", "time_limit": timedelta(minutes=1), "max_rows": 3, "version": None})
    assert limits == Limits(60.0, 3)
    assert rest == {"branch": "b", "version": None}
    assert split_limits({}) == (Limits(), {})
    limits.check_rows(3)
    with pytest.raises(LimitError, match="more than 3 rows: limit it, or allow more by max_rows"):
        limits.check_rows(4)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "5s", timedelta(0)], ids=str)
def test_no_length_of_time(wrong: object) -> None:
    with pytest.raises(BadRequestError, match="time_limit is a timedelta, or a number of seconds above 0"):
        Limits.of(time_limit=wrong)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "5"], ids=str)
def test_no_number_of_rows(wrong: object) -> None:
    with pytest.raises(BadRequestError, match="max_rows is a whole number"):
        Limits.of(max_rows=wrong)


def test_items_and_errors_come_through() -> None:
    def make() -> Iterator[int]:
        yield from range(10)
        raise KeyError("at the end")

    items = Leaving[int](None).items(make)
    assert [next(items) for _ in range(10)] == list(range(10))
    with pytest.raises(KeyError, match="at the end"):
        next(items)
    assert Leaving[int](5.0).value(lambda: 7) == 7


def test_work_that_takes_too_long_is_left_and_ends_at_its_next_look() -> None:
    work, go = Leaving[int](0.01), threading.Event()
    ended = threading.Event()

    def slow() -> int:
        go.wait(60)
        try:
            work.check()
        finally:
            ended.set()
        raise AssertionError("nobody waits")

    with pytest.raises(
        LimitError, match=r"within its time limit of 0\.01 s: ask for less, or allow more by time_limit"
    ):
        work.value(slow)
    assert is_left_behind(0)
    go.set()
    assert ended.wait(60)
    assert not is_left_behind(60)


def test_a_reader_that_stops_ends_the_thread() -> None:
    made: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            made.append(len(made))
            yield made[-1]

    reader = Leaving[int](None).items(endless)
    assert [next(reader), next(reader)] == [0, 1]
    reader.close()  # type: ignore[attr-defined]  # it is a generator
    assert not is_left_behind(60)
    assert len(made) <= 6


def test_a_thread_that_is_left_before_it_began_ends_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[object] = []
    goes, ended, begin = threading.Event(), threading.Event(), Leaving._run

    def run(self: Leaving[int], make: Callable[[], Iterator[int]]) -> None:
        try:
            assert goes.wait(60)
            begin(self, make)
            said.append("returned")
        finally:
            ended.set()

    def make() -> Iterator[int]:
        said.append("made")
        yield 1

    monkeypatch.setattr(threading, "excepthook", said.append)
    monkeypatch.setattr(Leaving, "_run", run)
    with pytest.raises(LimitError):
        next(Leaving[int](0.01, is_breakable=True).items(make))
    goes.set()
    assert ended.wait(60)
    assert not is_left_behind(60)
    assert said == ["returned"]


def test_time_of_an_operator_is_without_what_is_below_it() -> None:
    watch, outer, inner = Watch(), object(), object()
    assert watch.measured(outer, lambda: watch.measured(inner, lambda: "abc", len) * 2, len) == "abcabc"
    assert (watch.found[id(outer)].rows, watch.found[id(inner)].rows) == (6, 3)
    assert watch.seconds == watch.found[id(outer)].seconds + watch.found[id(inner)].seconds
    assert watch.note(outer).startswith("  [6 rows, ")
    assert watch.note(object()) == "  [with the line above]"


@pytest.mark.parametrize("name", ["time_limit", "max_rows", "memory", "spill"])
def test_a_command_names_its_options(name: str) -> None:
    refused = beyond(LimitError, "it needs more than it may: ask for less", name, 7)
    assert refused.message == f"query: it needs more than it may: ask for less, or allow more by {name}"
    told = pickle.loads(pickle.dumps(refused))  # from another process
    assert (type(told), told.bound, told.needed) == (LimitError, name, 7)
    name_option(told)
    assert (
        told.message == f"query: it needs more than it may: ask for less, or allow more by --{name.replace('_', '-')}"
    )
    name_option(plain := LimitError("allow more"))
    assert plain.message == "query: allow more"
