"""Who removes staged files, and when: nothing is committed here, and the store is a list of removals."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.plan import Identity, PreparedCommit, Published, TableWrite, WriterKind
from spark_omnigraph.errors import ConflictError, OmnigraphError, RecoveryRequiredError
from spark_omnigraph.manifest.snapshot import TableEntry
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.staged import StagedFile
from spark_omnigraph.storage.uri import locate
from spark_omnigraph.write import staged_files
from spark_omnigraph.write.staged_files import StagedFiles

ONE, TWO = (StagedFile("{}", f"/g/node/A/data/{name}.lance", 1) for name in ("one", "two"))
WRITE = TableWrite(TableEntry(TableKey("node:A"), "node/A", 1, None, 0), None, TableChange((ONE,)))
PREPARED = PreparedCommit(Identity("op", "commit", None, WriterKind.LOAD), None, "hash", (WRITE,))


class FakeStore:
    """A graph at `/g` whose objects are removed by name."""

    def __init__(self) -> None:
        self.location = locate("/g")
        self.removed: list[str] = []

    @property
    def objects(self) -> FakeStore:
        return self

    def delete(self, path: str) -> None:
        self.removed.append(path)

    def purge(self, folder: str) -> None:
        """Of blobs, which these files have not."""


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


def owner(store: FakeStore, several_attempts: bool = False) -> StagedFiles:
    return StagedFiles(cast("GraphStore", store), ("stage",), several_attempts)


def committing(monkeypatch: pytest.MonkeyPatch, end: Published | OmnigraphError) -> list[PreparedCommit]:
    """The protocol, which ends so; what it was given."""
    given: list[PreparedCommit] = []

    def commit(_: GraphStore, prepared: PreparedCommit) -> Published:
        given.append(prepared)
        if isinstance(end, OmnigraphError):
            raise end
        return end

    monkeypatch.setattr(staged_files, "commit", commit)
    return given


def test_what_no_commit_was_tried_with_goes_at_the_end(store: FakeStore) -> None:
    with owner(store) as files:
        files.add((ONE, TWO))
        files.add((TWO,))
        assert store.removed == []
    assert sorted(store.removed) == ["node/A/data/one.lance", "node/A/data/two.lance"]


def test_a_refusal_removes_and_an_interrupt_leaves(store: FakeStore) -> None:
    def ended(file: StagedFile, error: BaseException) -> None:
        with owner(store) as files:
            files.add((file,))
            raise error

    with pytest.raises(ConflictError):
        ended(ONE, ConflictError("somebody else won"))
    assert store.removed == ["node/A/data/one.lance"]
    with pytest.raises(KeyboardInterrupt):
        ended(TWO, KeyboardInterrupt())
    assert store.removed == ["node/A/data/one.lance"]


def test_files_of_a_commit_are_the_protocols(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    done = Published("commit", None, 2, {})
    given = committing(monkeypatch, done)
    with owner(store) as files:
        files.add((ONE, TWO))
        assert files.commit(PREPARED) == done
    assert store.removed == ["node/A/data/two.lance"], "of what the write did not use"
    assert given == [replace(PREPARED, stages=("stage",), keeps_files=False)]


@pytest.mark.parametrize("failure", [ConflictError("lost"), RecoveryRequiredError("unknown")])
@pytest.mark.parametrize("several_attempts", [False, True])
@pytest.mark.parametrize("nothing_landed", [False, True])
def test_files_come_back_only_for_another_attempt_and_when_nothing_can_name_them(
    store: FakeStore,
    monkeypatch: pytest.MonkeyPatch,
    failure: OmnigraphError,
    several_attempts: bool,
    nothing_landed: bool,
) -> None:
    monkeypatch.setattr(failure, "nothing_landed", nothing_landed)
    given = committing(monkeypatch, failure)
    with owner(store, several_attempts) as files:
        files.add((ONE,))
        with pytest.raises(type(failure)):
            files.commit(PREPARED)
        assert store.removed == [], "the next attempt reads them"
    assert bool(store.removed) is (several_attempts and nothing_landed)
    assert given[0].keeps_files is several_attempts
