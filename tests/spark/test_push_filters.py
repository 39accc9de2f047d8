"""Why filters are options: what Spark does with a Python source that accepts pushed filters.

When the second half of this file fails, Spark was mended and pushing can be thought about again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, InputPartition
from pyspark.sql.types import StructType

from spark_omnigraph.spark.read.reader import GraphReader

CONF = "spark.sql.python.filterPushdown.enabled"


class TenRowsReader(DataSourceReader):
    wanted: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        for filter_ in filters:
            if isinstance(filter_, EqualTo) and filter_.attribute == ("a",):
                self.wanted = filter_.value
            else:
                yield filter_

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter([(n,) for n in range(10) if self.wanted is None or n == self.wanted])


class TenRows(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ten_rows"

    def schema(self) -> str:
        return "a int"

    def reader(self, schema: StructType) -> DataSourceReader:
        return TenRowsReader()


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    spark.dataSource.register(TenRows)
    spark.conf.set(CONF, "true")
    yield spark
    spark.conf.unset(CONF)


def test_our_reader_accepts_no_filters() -> None:
    assert GraphReader.pushFilters is DataSourceReader.pushFilters


def test_spark_mixes_up_pushed_filters(pushing: SparkSession) -> None:
    frame = pushing.read.format("ten_rows").load()
    assert [r[0] for r in frame.filter("a = 3").collect()] == [3]
    assert frame.count() == 1, "the right answer is 10"
    both = frame.filter("a = 1").union(frame.filter("a = 2"))
    assert [r[0] for r in both.collect()] == [2, 2], "the right answer is [1, 2]"


def test_ours_is_right_where_pushing_is_on(pushing: SparkSession, graph: str) -> None:
    frame = pushing.read.format("omnigraph").option("node", "Thing").load(graph)
    assert frame.filter("i32 = 1").count() == 1
    assert frame.count() == 6
    assert frame.filter("i32 = 0").union(frame.filter("i32 = 1")).count() == 2
