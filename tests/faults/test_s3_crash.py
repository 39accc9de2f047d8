"""The crash matrix on S3: a few points by default, `pytest tests/faults -m long` for all."""

from __future__ import annotations

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.commit.crash_points import Crashed, CrashPoint, stop_at
from tests.crash.evolving import check_after_schema_crash, evolve, make_evolving
from tests.crash.matrix import (
    DIED_AT,
    INDEX_ROWS,
    OPTIMIZE_ROWS,
    RECOVERY_POINTS,
    S3_KILLED_AT,
    S3_POINTS,
    S3_WRITERS,
    SCHEMA_ROWS,
    WRITE_ROWS,
    Row,
    begin_kept,
    begin_line,
    cases,
    change_kept,
    change_line,
    check_after_crash,
    check_after_index_crash,
    check_after_kept_crash,
    check_after_line_crash,
    check_after_optimize_crash,
    check_stopped_recovery,
    expire_leases,
    kept_cases,
    line_cases,
    seen_dead,
)
from tests.crash.victim import kill_at
from tests.crash.worlds import WRITERS, make_graph, make_untidy, run
from tests.support.object_store import S3Server

pytestmark = [pytest.mark.s3, pytest.mark.timeout(300)]


def stop(uri: str, s3: S3Server, name: str, row: Row) -> None:
    graph = make_graph(uri, s3.storage_options)
    with stop_at(row.point), pytest.raises(Crashed):
        run(graph, WRITERS[name])
    check_after_crash(uri, WRITERS[name], row, s3.storage_options)


@pytest.mark.parametrize("row", [r for r in WRITE_ROWS if r.point in S3_POINTS], ids=lambda row: row.point.value)
@pytest.mark.parametrize("name", S3_WRITERS)
def test_a_write_that_stops_at_some_points(s3: S3Server, uri: str, name: str, row: Row) -> None:
    stop(uri, s3, name, row)


@pytest.mark.long
@pytest.mark.parametrize(("name", "row"), cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_write_that_stops(s3: S3Server, uri: str, name: str, row: Row) -> None:
    stop(uri, s3, name, row)


def kill(uri: str, s3: S3Server, name: str, row: Row) -> None:
    make_graph(uri, s3.storage_options)
    kill_at(uri, name, row.point, s3.storage_options)
    check_after_crash(uri, WRITERS[name], row, s3.storage_options, seen_dead)


@pytest.mark.parametrize("row", [r for r in WRITE_ROWS if r.point in S3_KILLED_AT], ids=lambda row: row.point.value)
def test_a_process_that_is_killed_at_some_points(s3: S3Server, uri: str, row: Row) -> None:
    kill(uri, s3, "merge", row)


@pytest.mark.long
@pytest.mark.parametrize(("name", "row"), cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_process_that_is_killed(s3: S3Server, uri: str, name: str, row: Row) -> None:
    kill(uri, s3, name, row)


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True], ids=["exception", "SIGKILL"])
@pytest.mark.parametrize("row", INDEX_ROWS, ids=lambda row: row.point.value)
def test_a_build_of_indexes_that_stops(s3: S3Server, uri: str, row: Row, killed: bool) -> None:
    graph = make_graph(uri, s3.storage_options)
    if killed:
        kill_at(uri, "index", row.point, s3.storage_options)
    else:
        with stop_at(row.point), pytest.raises(Crashed):
            graph.ensure_indices()
    check_after_index_crash(uri, row, s3.storage_options, seen_dead if killed else expire_leases)


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True], ids=["exception", "SIGKILL"])
@pytest.mark.parametrize("row", SCHEMA_ROWS, ids=lambda row: row.point.value)
def test_a_schema_change_that_stops(s3: S3Server, uri: str, row: Row, killed: bool) -> None:
    graph = make_evolving(uri, s3.storage_options)
    if killed:
        kill_at(uri, "schema", row.point, s3.storage_options)
    else:
        with stop_at(row.point), pytest.raises(Crashed):
            evolve(graph)
    check_after_schema_crash(uri, row, s3.storage_options, seen_dead if killed else expire_leases)


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True], ids=["exception", "SIGKILL"])
@pytest.mark.parametrize("row", OPTIMIZE_ROWS, ids=lambda row: row.point.value)
def test_a_compaction_that_stops(s3: S3Server, uri: str, row: Row, killed: bool) -> None:
    graph = make_untidy(uri, s3.storage_options)
    if killed:
        kill_at(uri, "optimize", row.point, s3.storage_options)
    else:
        with stop_at(row.point), pytest.raises(Crashed):
            graph.optimize()
    check_after_optimize_crash(uri, row, s3.storage_options, seen_dead if killed else expire_leases)


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True], ids=["exception", "SIGKILL"])
@pytest.mark.parametrize(("name", "row"), line_cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_change_of_branches_that_stops(s3: S3Server, uri: str, name: str, row: Row, killed: bool) -> None:
    graph = make_graph(uri, s3.storage_options)
    begin_line(graph, name)
    if killed:
        kill_at(uri, name, row.point, s3.storage_options)
    else:
        with stop_at(row.point), pytest.raises(Crashed):
            change_line(graph, name)
    check_after_line_crash(uri, name, row, s3.storage_options)


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True], ids=["exception", "SIGKILL"])
@pytest.mark.parametrize(("name", "row"), kept_cases(), ids=lambda v: v if isinstance(v, str) else v.point.value)
def test_a_tag_or_an_expiry_that_stops(s3: S3Server, uri: str, name: str, row: Row, killed: bool) -> None:
    graph = make_graph(uri, s3.storage_options)
    begin_kept(graph, name)
    if killed:
        kill_at(uri, name, row.point, s3.storage_options)
    else:
        with stop_at(row.point), pytest.raises(Crashed):
            change_kept(graph, name)
    check_after_kept_crash(uri, name, row, s3.storage_options)


@pytest.mark.long
@pytest.mark.parametrize("point", RECOVERY_POINTS, ids=lambda p: p.value)
@pytest.mark.parametrize("died_at", DIED_AT, ids=lambda p: p.value)
def test_a_recovery_that_stops_is_recovered(s3: S3Server, uri: str, died_at: CrashPoint, point: CrashPoint) -> None:
    graph: Graph = make_graph(uri, s3.storage_options)
    check_stopped_recovery(graph, died_at, point)
