"""From plan to commit: what a checked write relies on, and where its rows must lie. No dataset is opened."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.contract import Contract
from spark_omnigraph.commit.plan import Published, WriterKind
from spark_omnigraph.errors import InternalError
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.manifest.branches import Branch, BranchName
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.staged import StagedFile
from spark_omnigraph.write import candidates
from spark_omnigraph.write.candidates import Base, candidate, fork_first, target_of

DRAFT = BranchName("draft")


class FakeStore:
    """Places of tables, as a graph on a disk has them."""

    def table_uri(self, location: str, branch: Branch) -> str:
        return f"/g/{location}" if branch is None else f"/g/{location}/tree/{branch}"


STORE = cast("GraphStore", FakeStore())


def entry(key: str, version: int, branch: Branch) -> TableEntry:
    return TableEntry(TableKey(key), key.replace(":", "/"), version, branch, 10 * version)


@pytest.fixture
def base() -> Base:
    """A branch that has `node:A` of its own and shows two tables of main."""
    found = (entry("node:A", 3, DRAFT), entry("node:B", 4, None), entry("edge:E", 5, None))
    entries: dict[str, TableEntry] = {each.table_key: each for each in found}
    catalog = compile_schema("node A { x: I32? }")
    return Base(Contract(catalog, "", catalog.ir_hash), Snapshot(DRAFT, 7, entries), "c", "made once")


def staged(place: str) -> TableChange:
    return TableChange((StagedFile("{}", f"{place}/data/1.lance", 2),))


def test_it_relies_on_what_it_changes_and_on_what_it_read(base: Base) -> None:
    changes = {"node:A": staged("/g/node/A/tree/draft")}
    made = candidate(STORE, base, WriterKind.LOAD, "ada", changes, {"node:A", "node:B"})
    assert (dict(made.reads), made.expectations()) == ({"node:B": 4}, {"node:A": 3, "node:B": 4})
    assert [(w.table_key, w.branch, w.landing) for w in made.writes] == [("node:A", DRAFT, 4)]
    assert (made.branch, made.branch_id, made.schema_hash) == (DRAFT, "made once", base.contract.schema_hash)
    assert (made.identity.actor, made.identity.writer_kind) == ("ada", WriterKind.LOAD)
    again = candidate(STORE, base, WriterKind.LOAD, "ada", changes, set()).identity
    assert len({made.identity.commit_id, made.identity.operation_id, again.commit_id, again.operation_id}) == 4


@pytest.mark.parametrize("place", ["/g/node/A", "/g/node/A/tree/draft/tree/x", "/g/node/A/tree/drafts"])
def test_rows_that_lie_on_another_line_are_never_committed(base: Base, place: str) -> None:
    with pytest.raises(InternalError, match="'node:A' were staged outside the folder that 'draft' writes"):
        candidate(STORE, base, WriterKind.LOAD, None, {"node:A": staged(place)}, set())


def test_a_table_is_staged_in_the_folder_of_its_line_at_its_pin(base: Base) -> None:
    found = target_of(STORE, base.snapshot, "node:B", DRAFT, ("name",))
    assert (found.uri, found.version, found.row_count, found.beside) == ("/g/node/B/tree/draft", 4, 40, ("name",))
    assert target_of(STORE, base.snapshot, "node:B", None).uri == "/g/node/B"


def test_only_what_the_branch_has_not_of_its_own_is_forked(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    forked: list[tuple[str, ...]] = []
    monkeypatch.setattr(candidates, "fork_tables", lambda _store, _snapshot, keys: forked.append(tuple(keys)))
    fork_first(STORE, base.snapshot, ["node:A"])
    assert forked == []
    fork_first(STORE, base.snapshot, ["node:A", "node:B"])
    assert forked == [("node:A", "node:B")]
    on_main = replace(base.snapshot, branch=None, entries={"node:B": base.snapshot.entry("node:B")})
    fork_first(STORE, on_main, ["node:B"])
    assert len(forked) == 1


def test_what_has_nothing_to_do_shows_the_state_that_it_was_planned_on(base: Base) -> None:
    assert base.unchanged == Published(None, None, 7, {})
