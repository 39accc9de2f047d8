"""One range or partition → staged files and a receipt."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.mode import LoadMode
from spark_omnigraph.staging import stage
from spark_omnigraph.staging.receipt import RangeReceipt
from spark_omnigraph.staging.stage import stage_frame, stage_range
from spark_omnigraph.storage.tables.staged import TableTarget
from tests.unit.staging.tables import KNOWS, PERSON, context, ids, people, person, range_of, target


@pytest.fixture
def stored(tmp_path: Path) -> TableTarget:
    return target(tmp_path, stored=people("a", "b"))


def files(of: TableTarget) -> int:
    return len(list(Path(of.uri).glob("data/*.lance")))


def stage_names(of: TableTarget, names: list[str | None], index: int) -> RangeReceipt:
    """A partition of a frame, one row a batch."""
    told, rows = context(of), pa.table({"name": names})
    return stage_frame(told, TableInput.of_type(PERSON), rows.to_batches(max_chunksize=1), index)


def test_a_receipt_counts_what_was_read_and_what_was_refused(tmp_path: Path) -> None:
    of, edges = target(tmp_path), target(tmp_path, KNOWS)
    lines = [person("a"), person("b", 151), "{", '{"edge": "Knows", "from": "a", "to": "c"}', person("c")]
    receipt = stage_range(context(of, edges), range_of(*lines, index=6))
    assert (receipt.index, receipt.lines, set(receipt.given_ids)) == (6, 5, {PERSON})
    assert (receipt.read, receipt.bad) == ({PERSON: 3, KNOWS: 1, "": 1}, {PERSON: 1, "": 1})
    assert receipt.per_rule == {"range": 1, "invalid_json": 1}
    assert [(row.line, row.raw) for row in receipt.unpack_rejected()] == [(1, lines[1]), (2, lines[2])]
    ((people_file,), (edge_file,)) = receipt.staged[PERSON], receipt.staged[KNOWS]
    assert ids(people_file) == ["a", "c"]
    assert (people_file.row_ordinals().tolist(), edge_file.file.rows) == ([0, 1], 1)


def test_an_append_refuses_what_is_stored_and_a_merge_replaces_it(stored: TableTarget) -> None:
    lines = [person("x"), person("b", 1), person("b", 2)]
    appended = stage_range(context(stored), range_of(*lines))
    (file,) = appended.staged[PERSON]
    assert (ids(file), file.hits, appended.per_rule) == (["x"], 0, {"key_conflict": 2})
    assert [(row.line, row.id, row.raw) for row in appended.unpack_rejected()] == [
        (1, "b", lines[1]),
        (2, "b", lines[2]),
    ]
    (merged,) = stage_range(context(stored, mode=LoadMode.MERGE), range_of(*lines)).staged[PERSON]
    assert (ids(merged), merged.hits) == (["b", "x", "b"], 1)
    assert merged.row_ordinals().tolist() == [2, 0, 1]
    assert merged.removed_addresses().tolist() == [1]
    (over,) = stage_range(context(stored, mode=LoadMode.OVERWRITE), range_of(*lines)).staged[PERSON]
    assert (over.hits, over.removed) == (0, None)


def test_a_second_run_stages_the_same_rows_without_some(stored: TableTarget) -> None:
    told = context(stored, mode=LoadMode.MERGE)
    lines = range_of(person("x"), person("y", 151), person("a"), person("z"))
    again = stage_range(told, lines, {PERSON: np.array([0])})
    (file,) = again.staged[PERSON]
    assert (ids(file), file.row_ordinals().tolist()) == (["a", "z"], [1, 2])
    assert stage_range(told, lines, {}).staged == {}
    assert stage_range(told, lines, {PERSON: np.arange(3)}).staged == {}


def test_many_rows_are_several_files_with_ordinals_that_go_on(
    stored: TableTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "FLUSH_ROWS", 2)
    before = files(stored)
    receipt = stage_names(stored, ["x", "y", "z"], 4)
    assert [ids(file) for file in receipt.staged[PERSON]] == [["x", "y"], ["z"]]
    assert [file.row_ordinals().tolist() for file in receipt.staged[PERSON]] == [[0, 1], [2]]
    assert (receipt.index, receipt.lines, files(stored) - before) == (4, 3, 2)


def test_bad_rows_of_a_frame_have_their_text_at_once_and_lines_count_its_rows(stored: TableTarget) -> None:
    receipt = stage_names(stored, ["a", None, "z"], 0)
    found = [(row.line, str(row.rule), json.loads(row.raw)["data"]) for row in receipt.unpack_rejected()]
    assert found == [(0, "key_conflict", {"id": "a", "name": "a"}), (1, "key_missing", {})]
    (file,) = receipt.staged[PERSON]
    assert (ids(file), file.row_ordinals().tolist(), file.row_lines().tolist()) == (["z"], [1], [2])
