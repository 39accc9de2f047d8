"""How often the tests of late processes are repeated, and the processes themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.actor import Actor


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "times each test of a late process runs (an option of `pytest tests/crash`)"
    parser.addoption("--late-rounds", type=int, default=1, help=text)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "late_round" in metafunc.fixturenames:
        rounds = int(metafunc.config.getoption("--late-rounds", default=1))
        metafunc.parametrize("late_round", range(rounds), ids=lambda number: f"round{number}")


@pytest.fixture(scope="session")
def _actors() -> Iterator[list[Actor]]:
    """Processes that outlive a test: their start costs more than all the rest."""
    actors: list[Actor] = []
    yield actors
    for actor in actors:
        with actor:
            pass


def _take(actors: list[Actor], number: int) -> Actor:
    while len(actors) <= number:
        actors.append(Actor())
    if not actors[number].is_ready:
        with actors[number]:
            pass
        actors[number] = Actor()
    return actors[number]


@pytest.fixture
def owner(_actors: list[Actor]) -> Actor:
    return _take(_actors, 0)


@pytest.fixture
def recoverer(_actors: list[Actor]) -> Actor:
    return _take(_actors, 1)
