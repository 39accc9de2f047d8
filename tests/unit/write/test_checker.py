"""What the checks of a write find in new rows alone: rows in memory, no graph and no file."""

from __future__ import annotations

import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.storage.tables.staged import TableTarget
from spark_omnigraph.write.checker import CheckResult, WriteChecker
from tests.support.fake_tables import FakeTable, empty_target

SCHEMA = """
node Person { name: String @key  mail: String? @unique }
node Room { name: String @key }
edge Owns: Person -> Room @card(1..2)
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return compile_schema(SCHEMA)


def check(
    catalog: Catalog, *tables: FakeTable, mode: LoadMode = LoadMode.MERGE, repeated: OnDuplicate = OnDuplicate.LAST
) -> CheckResult:
    targets: dict[str, TableTarget] = {e.table_key: empty_target(e.table_key) for e in catalog.tables()}
    return WriteChecker(catalog, mode, repeated, {t.table_key: t for t in tables}, targets, {}).run(frozenset())


def found(result: CheckResult) -> list[tuple[Rule, list[int], str]]:
    """Rule, rows and the text of the first one."""
    return [(each.rule, each.rows.tolist(), each.message(0)) for each in result.findings]


def test_of_a_repeated_id_a_merge_keeps_the_last_in_input_order(catalog: Catalog) -> None:
    """Rows lie in files in another order than they came in."""
    people = FakeTable("node:Person", {"id": ["a", "b", "a"], "mail": ["1", "2", "3"]}, rank=[2, 1, 0])
    result = check(catalog, people)
    assert (found(result), result.superseded, people.dropped.tolist()) == (
        [], {"node:Person": 1}, [False, False, True],
    )  # a row for each part of the answer  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "repeated"), [(LoadMode.APPEND, OnDuplicate.LAST), (LoadMode.MERGE, OnDuplicate.ERROR)]
)
def test_elsewhere_a_repeated_id_is_a_bad_row(catalog: Catalog, mode: LoadMode, repeated: OnDuplicate) -> None:
    people = FakeTable("node:Person", {"id": ["a", "b", "a"], "mail": [None, None, None]})
    text = "@unique violation on Person.name: value 'a' repeats an earlier record of the input"
    result = check(catalog, people, mode=mode, repeated=repeated)
    assert found(result) == [(Rule.KEY_DUPLICATE, [2], text)]
    holders = result.findings[0].holders
    assert holders is not None
    assert (holders.tolist(), people.dropped.tolist()) == ([0], [False, False, True])


def test_unique_values_are_held_by_the_first_and_nulls_hold_none(catalog: Catalog) -> None:
    people = FakeTable("node:Person", {"id": ["a", "b", "c", "d"], "mail": ["x", None, None, "x"]}, rank=[3, 2, 1, 0])
    text = "@unique violation on Person.mail: value 'x' is held by an earlier record of the input"
    assert found(check(catalog, people)) == [(Rule.UNIQUE, [0], text)]


def test_a_refused_record_gives_back_the_one_that_it_superseded(catalog: Catalog) -> None:
    """Of `b` the last record wants a value that `a` holds: the one before it stands, which wants none."""
    people = FakeTable("node:Person", {"id": ["a", "b", "b"], "mail": ["x", None, "x"]})
    result = check(catalog, people)
    assert [(rule, rows) for rule, rows, _ in found(result)] == [(Rule.UNIQUE, [2])]
    assert (result.superseded, people.dropped.tolist()) == ({}, [False, False, True])


def test_ends_are_looked_for_among_the_new_nodes_that_stay(catalog: Catalog) -> None:
    people = FakeTable("node:Person", {"id": ["a", "b"], "mail": ["x", "x"]})
    rooms = FakeTable("node:Room", {"id": ["hall"]})
    owns = FakeTable(
        "edge:Owns", {"id": ["1", "2", "3"], "src": ["a", "b", "a"], "dst": ["hall", "hall", "attic"]}, per_file=1
    )
    assert found(check(catalog, owns, rooms, people)) == [
        (Rule.UNIQUE, [1], "@unique violation on Person.mail: value 'x' is held by an earlier record of the input"),
        (Rule.ENDPOINT, [1], "src 'b' not found in Person"),
        (Rule.ENDPOINT, [2], "dst 'attic' not found in Room"),
    ]
    assert owns.dropped.tolist() == [False, True, True]


def test_of_too_many_edges_the_last_in_input_order_are_refused(catalog: Catalog) -> None:
    people = FakeTable("node:Person", {"id": ["a", "b"], "mail": [None, None]})
    rooms = FakeTable("node:Room", {"id": ["1", "2", "3"]})
    ends = {"id": ["p", "q", "r", "s"], "src": ["a", "a", "b", "a"], "dst": ["1", "2", "3", "3"]}
    owns = FakeTable("edge:Owns", ends, rank=[3, 1, 2, 0])
    text = "@card violation on edge Owns: source 'a' has 3 edges (max 2)"
    assert found(check(catalog, people, rooms, owns)) == [(Rule.CARDINALITY, [0], text)]
