"""When requests get their turn, by a clock that stands still unless it is told."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from spark_omnigraph.embed.config import resolve_config, shared_limits
from spark_omnigraph.embed.pace import Pace, retry_after


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def turns(pace: Pace, count: int, tokens: float = 1) -> list[float]:
    return [round(pace.turn(tokens), 6) for _ in range(count)]


def test_without_limits_everybody_goes_at_once(clock: Clock) -> None:
    assert turns(Pace(None, None, clock), 3) == [0, 0, 0]


def test_requests_are_spread_over_the_minute(clock: Clock) -> None:
    pace = Pace(30, None, clock)
    assert turns(pace, 3) == [0, 2, 4]
    clock.now += 100
    assert turns(pace, 2) == [0, 2], "an idle minute is not saved up"


def test_long_texts_take_the_turns_of_several(clock: Clock) -> None:
    pace = Pace(60, 600, clock)
    assert turns(pace, 2, tokens=50) == [0, 5]
    assert turns(pace, 2, tokens=1) == [10, 11]


def test_half_the_speed_after_a_refusal_and_slowly_back(clock: Clock) -> None:
    pace = Pace(60, None, clock)
    pace.turn(1)
    pace.too_fast(clock.now, 0)
    clock.now += 10
    assert turns(pace, 2) == [0, 2]
    for _ in range(5):
        pace.went_well()
    clock.now += 10
    assert turns(pace, 2) == [0, 1.333333]
    for _ in range(100):
        pace.went_well()
    clock.now += 10
    assert turns(pace, 2) == [0, 1]


def test_refusals_of_what_was_sent_before_are_one(clock: Clock) -> None:
    pace = Pace(60, None, clock)
    pace.turn(1)
    sent = clock.now
    clock.now += 1
    for _ in range(8):
        pace.too_fast(sent, 0)
    clock.now += 10
    assert turns(pace, 2) == [0, 2]


def test_without_a_limit_half_of_what_was_reached(clock: Clock) -> None:
    pace = Pace(None, None, clock)
    for _ in range(20):
        pace.turn(1)
    clock.now += 10
    pace.too_fast(clock.now, 0)
    clock.now += 10
    assert turns(pace, 2) == [0, 1]
    for _ in range(10):
        pace.went_well()
    clock.now += 10
    assert turns(pace, 2) == [0, 0]


def test_everybody_waits_as_long_as_the_provider_says(clock: Clock) -> None:
    pace = Pace(None, None, clock)
    pace.turn(1)
    assert pace.held() == 0
    pace.too_fast(clock.now, 7)
    assert (pace.held(), pace.turn(1)) == (7, 7)
    clock.now += 5
    pace.too_fast(clock.now, 1)
    assert pace.held() == 2


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, None), ("3", 3), ("1.5", 1.5), ("-3", 0), ("soon", None), ("nan", None), ("", None)]
)
def test_retry_after(text: str | None, seconds: float | None) -> None:
    assert retry_after(text) == seconds


def test_retry_after_a_date() -> None:
    at = datetime.now(timezone.utc) + timedelta(seconds=100)
    found = retry_after(format_datetime(at, usegmt=True))
    assert found is not None
    assert 90 < found <= 100


def test_tasks_share_what_a_minute_allows() -> None:
    config = resolve_config({"OMNIGRAPH_EMBED_PROVIDER": "mock"})
    assert shared_limits(config, 4).requests_per_minute is None
    assert shared_limits(config, 4).parallel == 2
