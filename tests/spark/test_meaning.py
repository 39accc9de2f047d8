"""The engine of Spark against the oracle: what its operators mean, and a few questions through its tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph.spark.query.tables import Run, run_tasks
from spark_omnigraph.spark.session import under
from tests.differential.frames import run_here, spark_forms
from tests.differential.run import compare
from tests.differential.test_differential import SEED
from tests.spark.sessions import UNUSUAL


def _agree(
    spark: SparkSession, on: Callable[[SparkSession], Run], folder: Path, seed: int, cases: int, worlds: int
) -> None:
    compared, mismatches = compare(SEED + seed, cases, worlds, folder, spark_forms(spark, on))
    assert not mismatches, mismatches[0]
    assert compared == cases


def test_joins_of_spark_and_the_oracle_agree(spark: SparkSession, tmp_path: Path) -> None:
    _agree(spark, run_here, tmp_path, 2, 10, 1)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_joins_of_spark_and_the_oracle_agree_on_hundreds(spark: SparkSession, tmp_path: Path) -> None:
    _agree(spark, run_here, tmp_path, 3, 500, 5)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_tasks_of_spark_and_the_oracle_agree(spark: SparkSession, tmp_path: Path) -> None:
    _agree(spark, run_tasks, tmp_path, 4, 60, 2)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_settings_of_a_session_do_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    with under(spark, UNUSUAL):
        _agree(spark, run_tasks, tmp_path, 5, 40, 2)
