"""Conformance cases whose queries Spark answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import read_query
from spark_omnigraph.graph.read.query import prepare
from tests.support import embedding_steps
from tests.support.cases import Case, Step, read_cases
from tests.support.differences import read_differences
from tests.support.frames import json_rows
from tests.support.scenario import MismatchError, NotBuiltError, Scenario, check_answer

CASES = Path(__file__).parents[1] / "conformance" / "cases"
SAMPLE = ("match_filter", "traversal", "negation", "aggregates", "order_limit", "search")
"""Areas of which a case each is played by default."""


def _cases() -> list[object]:
    asking = [case for case in read_cases(CASES) if any(step.op == "query" for step in case.steps)]
    first = {case.area: case.name for case in reversed(asking) if case.area in SAMPLE}
    return [_marked(case, first.get(case.area) == case.name) for case in asking]


def _marked(case: Case, default: bool) -> object:
    return pytest.param(case, id=f"{case.area}-{case.name}", marks=() if default else pytest.mark.long)


@dataclass
class SparkScenario(Scenario):
    """A scenario whose queries are frames of the second engine."""

    spark: SparkSession | None = None

    def _query(self, step: Step) -> None:
        columns = [name.lower() for name in step.expect.get("columns", ())]
        if len(set(columns)) < len(columns):
            return  # two columns of one name are none of a frame
        text, name, params = step.fields["source"], step.fields.get("query"), step.fields.get("params")
        spark = cast("SparkSession", self.spark)
        with embedding_steps.environment(step, mock="mock_embeddings" in self.case.requires):
            frame = read_query(spark, self._open.uri, text, name, params, engine="spark", **self._where(step))
            plan = prepare(self._open.catalog(), text, name).plan
            rows = json_rows(frame, plan.columns)
        if not step.fails:
            check_answer(step, frame.columns, rows)


@pytest.mark.parametrize("case", _cases())
def test_case(case: Case, spark: SparkSession, tmp_path: Path) -> None:
    not_built = json.loads((CASES.parent / "not_built.json").read_text(encoding="utf-8"))
    scenario = SparkScenario(case, tmp_path, None, not_built, spark=spark)
    try:
        scenario.play()
    except NotBuiltError as missing:
        pytest.skip(f"not built yet: {missing}")
    except MismatchError:
        if case.name not in read_differences():
            raise
