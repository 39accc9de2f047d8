"""The conformance suite: `pytest tests/conformance [--cases FOLDER]`."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.write.executor import Executor
from tests.support.cases import Case
from tests.support.differences import PAGE, Difference, page
from tests.support.scenario import MismatchError, NotBuiltError, Scenario


@pytest.fixture
def executor(executor_name: str, request: pytest.FixtureRequest) -> Executor | None:
    return SparkExecutor(request.getfixturevalue("spark")) if executor_name == "spark" else None


@pytest.fixture(scope="session")
def begun() -> set[object]:
    """Schemas and data that were loaded in this run, for cases whose steps cannot be played yet."""
    return set()


def test_case(
    case: Case,
    executor: Executor | None,
    tmp_path: Path,
    not_built: dict[str, dict[str, str]],
    differences: dict[str, Difference],
    begun: set[object],
) -> None:
    scenario = Scenario(case, tmp_path, executor, not_built, begun=begun)
    different = differences.get(case.name)
    try:
        scenario.play()
    except NotBuiltError as missing:
        pytest.skip(f"not built yet: {missing}")
    except MismatchError as mismatch:
        if different is None:
            raise
        pytest.skip(f"deliberately different ({different.we}): {mismatch}")
    if different is not None:
        pytest.fail(f"{case.name} stands in the list of deliberate differences, but holds")


def test_differences_name_cases_that_exist(
    request: pytest.FixtureRequest,
    differences: dict[str, Difference],
    all_cases: dict[str, Case],
    our_cases: dict[str, Case],
) -> None:
    if request.config.getoption("--cases") is None:
        assert differences.keys() <= all_cases.keys()
    for difference in differences.values():
        assert difference.ours, difference.name
        assert set(difference.ours) <= our_cases.keys(), difference.name


def test_our_own_cases_have_names_of_their_own(all_cases: dict[str, Case], our_cases: dict[str, Case]) -> None:
    assert not all_cases.keys() & our_cases.keys()


def test_the_page_of_deliberate_differences_is_current(differences: dict[str, Difference]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(differences), "run: python -m tests.conformance"
