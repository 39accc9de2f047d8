"""Scans of the engine of Spark against those of the embedded one: what their tasks find, without Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_omnigraph.engine.select import select
from spark_omnigraph.engine.table import Table
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.query import QueryTask, bound_plan, prepare, query_task, source_of
from spark_omnigraph.lang.gq.lower import operators
from spark_omnigraph.lang.gq.plan import Comparison, Expand, Plan, Scan
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.spark.query.tables import GraphTables
from spark_omnigraph.spark.query.tasks import Task
from tests.differential.frames import rows_of
from tests.differential.questions import Maker
from tests.differential.test_differential import SEED
from tests.differential.worlds import NOW, World, make_world


def test_scans_find_what_the_embedded_engine_finds(tmp_path: Path) -> None:
    source = random.Random(f"{SEED}/scans")
    world = make_world(source, tmp_path)
    compared = 0
    for _ in range(120):
        state = source.choice(world.states)
        question = Maker(source, world.catalog, state.rows).question()
        plan = bound_plan(prepare(world.catalog, question.text), question.given, NOW)
        for graph, snapshot in ((world.plain, state.plain), (world.indexed, state.indexed)):
            compared += _compare_scans(world, graph, snapshot, plan)
    assert compared > 100


def _compare_scans(world: World, graph: Graph, snapshot: Snapshot, plan: Plan) -> int:
    source = source_of(graph.store, world.catalog, snapshot)
    task = query_task(graph.store, world.catalog, snapshot, plan)
    compared = 0
    for operator in operators(plan.root):
        if not isinstance(operator, Scan | Expand):
            continue
        variable = operator.variable if isinstance(operator, Scan) else operator.target
        kind = operator.node_type if isinstance(operator, Scan) else operator.target_type
        key = world.catalog.nodes[kind].table_key
        asked = tuple(p for p in operator.predicates if isinstance(p, Comparison))
        table = source.table(key)
        [wanted] = table.columns(select(Table(table.entity, table.reader), asked), ["id"])
        got = _scanned(world, task, variable, asked, kind)
        assert sorted(got) == sorted(wanted.to_pylist()), (asked, kind)
        compared += bool(asked)
    return compared


class _WithoutSession(GraphTables):
    def nothing(self, schema: StructType) -> DataFrame:
        return cast("DataFrame", None)


def _scanned(world: World, task: QueryTask, variable: str, asked: tuple[Comparison, ...], kind: str) -> list[str]:
    """Ids that the tasks of a scan find."""
    found: list[str] = []

    def run(scan: Task, parts: int, size: int) -> DataFrame:
        found.extend(rows_of(scan, parts).column(0).to_pylist())
        return cast("DataFrame", None)

    tables = _WithoutSession(cast("SparkSession", None), world.catalog, task.tables, task.rows, 2, run)
    tables.scan(variable, world.catalog.nodes[kind].table_key, asked)
    return found
