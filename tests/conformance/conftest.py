"""One test per conformance case and executor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cases import Case, read_cases
from tests.support.differences import read_differences

FOLDER = Path(__file__).parent
ON_SPARK = frozenset({"schema", "load", "constraints", "errors", "history"})
"""Areas whose loading cases also run on Spark."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.getoption("--cases")
    given = read_cases(chosen or FOLDER / "cases")
    ours = [] if chosen else read_cases(FOLDER / "ours")
    params = []
    for case in [*given, *ours]:
        params.append(pytest.param(case, "local", id=f"{case.area}-{case.name}-local"))
        if case.area in ON_SPARK and case.loads:
            mark = pytest.mark.spark
            params.append(pytest.param(case, "spark", id=f"{case.area}-{case.name}-spark", marks=mark))
    metafunc.parametrize(("case", "executor_name"), params)


@pytest.fixture(scope="session")
def not_built() -> dict[str, dict[str, str]]:
    """What no release can do yet: operation or error kind to the words of the skip reason."""
    text: dict[str, dict[str, str]] = json.loads((FOLDER / "not_built.json").read_text(encoding="utf-8"))
    return text


@pytest.fixture(scope="session")
def all_cases(request: pytest.FixtureRequest) -> dict[str, Case]:
    chosen = request.config.getoption("--cases")
    return {case.name: case for case in read_cases(chosen or FOLDER / "cases")}


@pytest.fixture(scope="session")
def our_cases() -> dict[str, Case]:
    return {case.name: case for case in read_cases(FOLDER / "ours")}


differences = pytest.fixture(scope="session", name="differences")(read_differences)
