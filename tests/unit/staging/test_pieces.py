"""Pieces of an input, and the second pass that finds the same rows by their ordinals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.staging.pieces import Checkers, locate_rows, range_pieces, table_key_of, tables_mentioned
from tests.unit.staging.tables import FILE, KNOWS, PERSON, catalog, context, person, range_of, target

LINES = [
    person("a"),
    "not json",
    person("b", 200),  # out of its range: a bad row has no ordinal
    '{"edge": "KNOWS", "from": "a", "to": "c"}',
    person("c", 3),
    '{"type": "Person", "data": {"age": "x"}}',
    '{"type": "Nope", "data": {}}',
    person("d", 4),
]


def test_a_type_is_found_as_records_name_it() -> None:
    known = catalog()
    assert table_key_of(known, "Person", is_edge=False) == PERSON
    assert table_key_of(known, "person", is_edge=False) is None
    assert table_key_of(known, "kNOWS", is_edge=True) == KNOWS
    assert table_key_of(known, "Person", is_edge=True) is None


def test_tables_are_named_without_a_look_at_the_values() -> None:
    lines = [*LINES, '\ufeff{"type": "File", "data": 1}', '{"type": 3, "edge": null}', "[" * 5000]
    assert tables_mentioned(catalog(), {}, range_of(*lines)) == {PERSON, KNOWS, FILE}


def test_a_row_that_breaks_a_rule_leaves_the_rows_around_it(tmp_path: Path) -> None:
    told = context(target(tmp_path))
    (piece,) = range_pieces(told, range_of(*LINES))
    assert (piece.lines, piece.raw(1), dict(piece.decoded.read)) == (8, "not json", {PERSON: 5, KNOWS: 1, "": 2})
    checkers = Checkers(told)
    (table,) = [t for t in piece.decoded.tables if t.table_key == PERSON]
    good, rejected = checkers.split(table, piece.raw)
    assert good.table["id"].to_pylist() == ["a", "c", "d"]
    assert good.lines.tolist() == [0, 4, 7]
    assert [(r.line, r.rule, r.field, r.id, r.raw) for r in rejected] == [(2, Rule.RANGE, "age", "b", LINES[2])]
    assert rejected[0].offset == len(LINES[0]) + len(LINES[1]) + 2


def test_a_row_that_decoding_refused_hears_of_its_other_mistakes(tmp_path: Path) -> None:
    told = context(target(tmp_path))
    (piece,) = range_pieces(told, range_of('{"type": "Person", "data": {"name": 1, "age": 200}}'))
    (row,) = Checkers(told).complete(piece.decoded.rejected)
    assert [(m.field, m.rule) for m in row.mistakes] == [("name", Rule.WRONG_TYPE), ("age", Rule.RANGE)]
    assert row.values is None
    (only,) = Checkers(context(target(tmp_path / "again"), validate=False)).complete(piece.decoded.rejected)
    assert [m.rule for m in only.mistakes] == [Rule.WRONG_TYPE]


@pytest.mark.parametrize(
    ("wanted", "lines"), [([0, 1, 2], [0, 4, 7]), ([2, 1], [4, 7]), ([], []), ([3, 99], [])], ids=str
)
def test_a_second_pass_finds_rows_by_their_ordinals(tmp_path: Path, wanted: list[int], lines: list[int]) -> None:
    found = locate_rows(context(target(tmp_path)), range_of(*LINES), {PERSON: np.array(wanted, np.int64)})[PERSON]
    assert found.lines.tolist() == lines
    assert [text for run in range(len(found.packed)) for text in found.texts(run)] == [LINES[n] for n in lines]
    starts = [sum(len(line.encode()) + 1 for line in LINES[:n]) for n in lines]
    assert found.offsets.tolist() == starts
