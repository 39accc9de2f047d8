"""Audit rows of recoveries: one a write, whoever else adds rows meanwhile and whatever answers get lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance import LanceDataset

from spark_omnigraph.errors import StorageError
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.manifest import commit_log
from spark_omnigraph.storage.manifest.commit_log import RecoveryAudit, audit_recovery, read_recoveries
from spark_omnigraph.storage.tables.commits import append_strict
from spark_omnigraph.storage.uri import Location, locate


@pytest.fixture(params=["the dataset is new", "it has rows"])
def location(tmp_path: Path, request: pytest.FixtureRequest) -> Location:
    place = locate(tmp_path)
    if request.param == "it has rows":
        audit_recovery(place, audit("before", 1))
        audit_recovery(place, audit("before that", 2))
    return place


def audit(operation: str, time: int = 9) -> RecoveryAudit:
    return RecoveryAudit("commit", "RolledBack", None, operation, "Load", "[]", time)


def new(location: Location) -> list[str]:
    return [row.operation_id for row in read_recoveries(location) if not row.operation_id.startswith("before")]


def meanwhile(monkeypatch: pytest.MonkeyPatch, location: Location, operation: str) -> None:
    """Somebody else adds a row between the look and the first append."""

    def late(dataset: LanceDataset, rows: pa.Table) -> int:
        monkeypatch.setattr(commit_log, "append_strict", append_strict)
        audit_recovery(location, audit(operation, 5))
        return append_strict(dataset, rows)

    monkeypatch.setattr(commit_log, "append_strict", late)


def test_a_write_is_audited_once(location: Location) -> None:
    audit_recovery(location, audit("a"))
    audit_recovery(location, audit("a"))
    assert new(location) == ["a"]


def test_two_recoveries_of_one_write_add_one_row(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, location, "a")
    audit_recovery(location, audit("a"))
    assert new(location) == ["a"]


def test_a_row_of_another_write_is_kept(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, location, "b")
    audit_recovery(location, audit("a"))
    assert new(location) == ["b", "a"]


def test_a_lost_answer_adds_no_second_row(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(dataset: LanceDataset, rows: pa.Table) -> int:
        append_strict(dataset, rows)
        raise CommitFailed(Outcome.UNKNOWN, "no answer")

    monkeypatch.setattr(commit_log, "append_strict", deaf)
    audit_recovery(location, audit("a"))
    assert new(location) == ["a"]


def test_a_store_that_keeps_refusing_is_an_error(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(dataset: LanceDataset, rows: pa.Table) -> int:
        raise CommitFailed(Outcome.UNKNOWN, "disk full")

    monkeypatch.setattr(commit_log, "append_strict", full)
    with pytest.raises(
        StorageError, match=r"recovery of a could not be recorded in .*_graph_commit_recoveries.lance \(disk full\)"
    ):
        audit_recovery(location, audit("a"))
    assert new(location) == []
