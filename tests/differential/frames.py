"""The engine of Spark as a form of the differential test: its tables as tasks of this process, or of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph.cli.output.answer_files import answer_columns
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.query import query_task
from spark_omnigraph.lang.gq.plan import Plan
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.spark.query.result import plan_frame
from spark_omnigraph.spark.query.tables import GraphTables, Run
from spark_omnigraph.spark.query.tasks import Task
from spark_omnigraph.spark.types import arrow_target
from tests.differential.play import Way
from tests.differential.worlds import State, World


def rows_of(task: Task, parts: int) -> pa.Table:
    """The rows of all parts of a task, found here."""
    batches = [batch for number in range(parts) for batch in task.rows(number)]
    return pa.Table.from_batches(batches, arrow_target(task.frame))


def run_here(spark: SparkSession) -> Run:
    """Tasks whose rows are found here, and are local to Spark: all that is left are joins."""

    def run(task: Task, parts: int, size: int) -> DataFrame:
        found = rows_of(task, parts)
        return spark.createDataFrame(found if found.num_rows else [], task.frame)

    return run


def answer_of(frame: DataFrame, plan: Plan) -> pa.Table:
    """The rows of a frame, in the types and under the names that the embedded engine has for them."""
    found = frame.toArrow()
    assert frame.columns == [column.name for column in plan.columns]
    return pa.table(answer_columns(found, plan.columns), [column.name for column in plan.columns])


@dataclass(frozen=True)
class SparkForm:
    """Answers by DataFrames."""

    name: str
    spark: SparkSession
    graph: Graph
    snapshot: Snapshot
    run: Run

    def table(self, world: World, plan: Plan) -> pa.Table:
        task = query_task(self.graph.store, world.catalog, self.snapshot, plan)
        tables = GraphTables(self.spark, world.catalog, task.tables, task.rows, 2, self.run)
        return answer_of(plan_frame(plan, tables), plan)


def spark_forms(spark: SparkSession, on: Callable[[SparkSession], Run]) -> Callable[[World, State], Iterator[Way]]:
    """The engine of Spark over graphs with indexes, and without them, in turn."""
    turns = iter(range(1 << 30))

    def forms(world: World, state: State) -> Iterator[Way]:
        if next(turns) % 2:
            yield SparkForm("spark, indexed", spark, world.indexed, state.indexed, on(spark))
        else:
            yield SparkForm("spark, plain", spark, world.plain, state.plain, on(spark))

    return forms
