"""The loop in which a write is tried again: what is tried, who is waited for, and what comes out at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from spark_omnigraph.errors import ConflictError, ExpectedVersionMismatch, StorageError, VersionExpiredError
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.write import attempts
from spark_omnigraph.write.attempts import ATTEMPTS, in_attempts

STORE = cast("GraphStore", "the store")
BRANCH = BranchName("draft")
MOVED = ExpectedVersionMismatch("node:A", 1, 2)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was waited for, in order."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(attempts, "await_turn", lambda *given: calls.append(given))
    return calls


def ending_in(*ends: Exception | str) -> Callable[[], str]:
    """An attempt that ends so, one time after the other."""
    left = iter(ends)

    def attempt() -> str:
        end = next(left)
        if isinstance(end, Exception):
            raise end
        return end

    return attempt


def test_what_succeeds_at_once_waits_for_nobody(waited: list[tuple[Any, ...]]) -> None:
    assert in_attempts(STORE, BRANCH, ending_in("done"), lambda _: frozenset()) == "done"
    assert waited == []


def test_before_another_attempt_the_writers_of_what_moved_are_waited_for(waited: list[tuple[Any, ...]]) -> None:
    asked: list[str] = []

    def again(moved: str) -> frozenset[str]:
        asked.append(moved)
        return frozenset({"edge:E"})

    assert in_attempts(STORE, BRANCH, ending_in(MOVED, MOVED, "done"), again) == "done"
    assert asked == ["node:A", "node:A"]
    assert waited == [(STORE, BRANCH, frozenset({"node:A", "edge:E"}))] * 2


def test_a_version_that_was_removed_meanwhile_is_a_loss_once(waited: list[tuple[Any, ...]]) -> None:
    gone = VersionExpiredError("version 3 of node:A")
    assert in_attempts(STORE, BRANCH, ending_in(gone, MOVED, "done"), lambda _: frozenset({"node:A"})) == "done"
    assert waited == [(STORE, BRANCH, frozenset({"", "node:A"})), (STORE, BRANCH, frozenset({"node:A"}))]
    for ends, again in (([gone, gone], frozenset[str]()), ([gone], None)):
        with pytest.raises(VersionExpiredError):
            in_attempts(STORE, BRANCH, ending_in(*ends), lambda _, again=again: again)  # type: ignore[misc]  # bound early


def test_the_last_loss_is_the_callers(waited: list[tuple[Any, ...]]) -> None:
    losses = [ExpectedVersionMismatch("node:A", 1, number) for number in range(ATTEMPTS + 1)]
    with pytest.raises(ExpectedVersionMismatch) as caught:
        in_attempts(STORE, BRANCH, ending_in(*losses), lambda _: frozenset())
    assert caught.value is losses[ATTEMPTS - 1]
    assert len(waited) == ATTEMPTS - 1


def test_fewer_attempts_may_be_asked_for(waited: list[tuple[Any, ...]]) -> None:
    with pytest.raises(ExpectedVersionMismatch):
        in_attempts(STORE, BRANCH, ending_in(MOVED, "done"), lambda _: frozenset(), most=1)
    assert waited == []


def test_a_loss_that_changes_what_the_write_means_is_the_callers_at_once(waited: list[tuple[Any, ...]]) -> None:
    with pytest.raises(ExpectedVersionMismatch):
        in_attempts(STORE, BRANCH, ending_in(MOVED, "done"), lambda _: None)
    assert waited == []


@pytest.mark.parametrize("failure", [ConflictError("the schema changed"), StorageError("storage: disk full")])
def test_whatever_else_fails_is_raised_at_once(failure: Exception, waited: list[tuple[Any, ...]]) -> None:
    with pytest.raises(type(failure)) as caught:
        in_attempts(STORE, BRANCH, ending_in(failure, "done"), lambda _: frozenset())
    assert caught.value is failure
    assert waited == []


def test_where_any_conflict_is_a_loss_no_table_is_named(waited: list[tuple[Any, ...]]) -> None:
    attempt = ending_in(ConflictError("too late"), "done")
    assert in_attempts(STORE, BRANCH, attempt, lambda moved: {f"<{moved}>"}, lost=ConflictError) == "done"
    assert waited == [(STORE, BRANCH, frozenset({"<>", ""}))]
