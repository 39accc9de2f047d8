"""The engine of Spark against the oracle: what its operators mean, and a few questions through its tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph.spark.query.tables import run_tasks
from spark_omnigraph.spark.session import under
from tests.differential.frames import run_here, spark_forms
from tests.differential.run import compare
from tests.differential.test_differential import SEED
from tests.spark.sessions import UNUSUAL


def test_joins_of_spark_and_the_oracle_agree(spark: SparkSession, tmp_path: Path) -> None:
    compared, mismatches = compare(SEED + 2, 10, 1, tmp_path, spark_forms(spark, run_here))
    assert not mismatches, mismatches[0]
    assert compared == 10


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_joins_of_spark_and_the_oracle_agree_on_hundreds(spark: SparkSession, tmp_path: Path) -> None:
    compared, mismatches = compare(SEED + 3, 500, 5, tmp_path, spark_forms(spark, run_here))
    assert not mismatches, mismatches[0]
    assert compared == 500


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_tasks_of_spark_and_the_oracle_agree(spark: SparkSession, tmp_path: Path) -> None:
    compared, mismatches = compare(SEED + 4, 60, 2, tmp_path, spark_forms(spark, run_tasks))
    assert not mismatches, mismatches[0]
    assert compared == 60


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_settings_of_a_session_do_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    with under(spark, UNUSUAL):
        compared, mismatches = compare(SEED + 5, 40, 2, tmp_path, spark_forms(spark, run_tasks))
    assert not mismatches, mismatches[0]
    assert compared == 40
