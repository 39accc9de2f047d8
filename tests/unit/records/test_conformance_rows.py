"""What the conformance cases of loading and constraints say about single rows.

Cases about several rows (uniqueness, endpoints, cardinality, modes) are answered elsewhere. Where the reference stores
null or wraps, a row is refused here; those cases stand in REFUSED_HERE with the rule that refuses them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import ConstraintError
from spark_omnigraph.records.jsonl.decode import DecodedChunk
from spark_omnigraph.validate.batch import BatchChecker
from tests.unit.records.builders import ALL_BY_ROW, catalog, decode, rows

FOLDER = Path(__file__).parents[2] / "conformance" / "cases"
REFUSED_HERE = {
    "wrong_json_types_become_null": Rule.WRONG_TYPE,
    "i32_overflow_wraps_ref": Rule.OUT_OF_RANGE,
    "u32_negative_becomes_null": Rule.OUT_OF_RANGE,
    "list_items_of_the_wrong_type_become_null": Rule.WRONG_TYPE,
    "vector_non_numeric_element_becomes_zero_ref": Rule.WRONG_TYPE,
    "unknown_fields_are_ignored": Rule.UNKNOWN_FIELD,
    "blank_lines_and_pretty_printed_records": Rule.INVALID_JSON,
}
ACCEPTED_HERE = {"comments_are_not_json"}
"""Comment lines are skipped."""
OF_SEVERAL_ROWS = ("@unique violation", "@card violation", "not found in")


def _cases() -> list[Any]:
    found = []
    for area in ("load", "constraints"):
        for case in json.loads((FOLDER / f"{area}.json").read_text(encoding="utf-8"))["cases"]:
            for at, step in enumerate(case["steps"]):
                if step["op"] == "load" and "branch" not in step:
                    found.append(pytest.param(case, step, id=f"{case['name']}-{at}"))
    return found


def _problems(types: Catalog, decoded: DecodedChunk) -> list[tuple[Rule, str]]:
    found = [(reject.rule, reject.message) for reject in decoded.rejected]
    for table in decoded.tables:
        entity = types.table(table.table_key)
        assert entity is not None
        found += [(v.rule, v.message) for v in BatchChecker(entity).check(table.table)]
    return found


@pytest.mark.parametrize("columns_from", [1, ALL_BY_ROW])
@pytest.mark.parametrize(("case", "step"), _cases())
def test_case(case: dict[str, Any], step: dict[str, Any], columns_from: int) -> None:
    types = catalog(case["schema"])
    decoded = decode(step["data"], of=types, columns_from=columns_from)
    error = step["expect"].get("error")
    texts = [text.split(": ", 1)[-1] if text.startswith("record ") else text for text in _texts(error)]
    if any("invalid regex" in text for text in texts):
        with pytest.raises(ConstraintError) as raised:
            _problems(types, decoded)
        assert all(text in raised.value.message for text in texts)
        return
    problems = _problems(types, decoded)
    if case["name"] in REFUSED_HERE:
        assert {rule for rule, _ in problems} == {REFUSED_HERE[case["name"]]}
    elif error is None or case["name"] in ACCEPTED_HERE or any(sign in t for t in texts for sign in OF_SEVERAL_ROWS):
        assert problems == []
        if error is None:
            _compare_counts(step["expect"], decoded)
    else:
        assert len(problems) == 1
        rule, message = problems[0]
        if rule is not Rule.INVALID_JSON:
            assert all(text in message for text in texts), message


def _texts(error: dict[str, Any] | None) -> list[str]:
    return [] if error is None else list(error.get("message_contains", []))


def _compare_counts(expected: dict[str, Any], decoded: DecodedChunk) -> None:
    wanted = {f"node:{name}": count for name, count in expected["nodes_loaded"].items()}
    wanted |= {f"edge:{name}": count for name, count in expected["edges_loaded"].items()}
    assert {table.table_key: table.table.num_rows for table in decoded.tables} == wanted


def _loaded(name: str) -> tuple[Catalog, list[str], list[dict[str, Any]]]:
    cases = json.loads((FOLDER / "load.json").read_text(encoding="utf-8"))["cases"]
    case = next(case for case in cases if case["name"] == name)
    query = next(step for step in case["steps"] if step["op"] == "query")
    return catalog(case["schema"]), case["steps"][0]["data"], query["expect"]["rows"]


DAY = 86_400_000


@pytest.mark.parametrize("columns_from", [1, ALL_BY_ROW])
@pytest.mark.parametrize(
    "name", ["int_for_float_is_widened", "u64_above_i64_max", "list_empty_and_null", "vector_and_null_vector"]
)
def test_stored_values(name: str, columns_from: int) -> None:
    types, lines, expected = _loaded(name)
    found = rows(decode(lines, of=types, columns_from=columns_from), "node:Reed")
    for row, wanted in zip(found, expected, strict=True):
        assert {f"r.{column}": row[column] for column in (key.removeprefix("r.") for key in wanted)} == wanted


@pytest.mark.parametrize("columns_from", [1, ALL_BY_ROW])
@pytest.mark.parametrize(
    ("name", "column", "stored"),
    [
        ("date_formats", "h", 19727),
        ("date_from_integer_days", "h", -1),
        ("date_from_datetime_text", "h", 19728),
        ("datetime_from_integer_ms", "i", 19727 * DAY + 36_672_001),
        ("datetime_naive_is_utc", "i", 19727 * DAY + 36_672_000),
        ("datetime_fraction_truncated_to_ms", "i", 19727 * DAY + 36_672_999),
    ],
)
def test_stored_dates(name: str, column: str, stored: int, columns_from: int) -> None:
    types, lines, _ = _loaded(name)
    [row] = rows(decode(lines, of=types, columns_from=columns_from), "node:Reed")
    assert row[column] == stored
