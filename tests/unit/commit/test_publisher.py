"""The compare-and-swap of manifest rows: what it meets on the manifest before it writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from lance import LanceDataset

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit import publisher
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.publisher import Publication, current_head, publish
from spark_omnigraph.errors import BadRequestError, ExpectedVersionMismatch
from spark_omnigraph.manifest.rows import ManifestRow, TableUpdate, sentinel_facts
from spark_omnigraph.storage.faults import CommitFailed, Outcome
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import MANIFEST, SCHEMA_VERSION_KEY
from spark_omnigraph.storage.manifest.stamp import read_format
from spark_omnigraph.storage.manifest.table import publish_rows
from tests.support.sleeping import when_we_sleep

from .builders import make_store

A = TableKey.node("A")


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    return make_store(tmp_path / "g")


def publication(operation: str = "op", expected: int = 1) -> Publication:
    return Publication((TableUpdate(A, expected + 1, None, 0, "p"),), {A: expected}, operation, "commit", "ada")


def stamp(store: GraphStore, version: str) -> None:
    store.open_dataset(MANIFEST).update_schema_metadata({SCHEMA_VERSION_KEY: version})


def test_a_manifest_of_a_newer_format_is_not_written(store: GraphStore) -> None:
    """Another release may have migrated the graph after the write was checked."""
    before = store.snapshot(None)
    stamp(store, "4")
    with pytest.raises(BadRequestError, match="internal schema version 4"):
        publish(WholeBranch(store, None), publication())
    stamp(store, "3")
    assert store.snapshot(None).entries == before.entries


def test_a_manifest_of_an_older_format_is_migrated_first(store: GraphStore) -> None:
    stamp(store, "2")
    published = publish(WholeBranch(store, None), publication())
    assert read_format(store.manifest(None)).stamp == 3
    assert (store.snapshot(None).pin(A), store.snapshot(None).version) == (2, published.manifest_version)


def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first publish takes effect only after it was looked for in vain."""
    waiting: list[tuple[LanceDataset, Sequence[ManifestRow]]] = []

    def slow(dataset: LanceDataset, rows: Sequence[ManifestRow]) -> int:
        if not waiting:
            waiting.append((dataset, rows))
            raise CommitFailed(Outcome.UNKNOWN, "no answer")
        return publish_rows(dataset, rows)

    def wait(seconds: float) -> None:
        publish_rows(*waiting[0])

    monkeypatch.setattr(publisher, "publish_rows", slow)
    when_we_sleep(monkeypatch, wait)


def test_a_publish_that_takes_effect_late_is_known_as_its_own(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = store.snapshot(None).version
    late(monkeypatch)
    published = publish(WholeBranch(store, None), publication())
    assert published.manifest_version == base + 1 == store.snapshot(None).version
    facts = sentinel_facts(store.snapshot_with_rows(None)[1])
    assert facts is not None
    assert (facts.operation, facts.commit, store.snapshot(None).pin(A)) == ("op", "commit", 2)


def test_a_publish_of_somebody_else_meanwhile_is_a_loss(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    others = GraphStore(store.location, store.objects)

    def refuse(dataset: LanceDataset, rows: Sequence[ManifestRow]) -> int:
        monkeypatch.setattr(publisher, "publish_rows", publish_rows)
        publish(WholeBranch(others, None), publication("other"))
        raise CommitFailed(Outcome.LOST, "too late")

    monkeypatch.setattr(publisher, "publish_rows", refuse)
    with pytest.raises(ExpectedVersionMismatch):
        publish(WholeBranch(store, None), publication())


def test_the_commit_of_a_state_is_none_that_was_made_since_it_was_read(tmp_path: Path) -> None:
    """The log is read after the rows: a merge that took a later commit for its own would never bring its rows."""
    graph = Graph.init(tmp_path / "g", "node Buoy { code: String @key }")
    line = '{{"type": "Buoy", "data": {{"code": "{}"}}}}'
    graph.load([line.format("a")], options=LoadOptions(build_indexes=False))
    graph.store.tidy(None, above=1)  # so that the newest version is no publish of ours
    (shown, *_), (snapshot, rows) = graph.commits(), graph.store.snapshot_with_rows(None)
    graph.load([line.format("b")], options=LoadOptions(build_indexes=False))
    assert current_head(graph.store, None, snapshot.version, rows) == shown.id
