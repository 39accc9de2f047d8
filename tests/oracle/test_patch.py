"""Updates of random rows by random patches, in every kind of input, against the oracle."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from spark_omnigraph import BadRowsError, Graph, LoadOptions, Nulls, OnDuplicate, OnMissing
from tests.oracle.patch import Patch, Rows, apply

SCHEMA = """
node Thing {
  key: String @key
  n: I32
  text: String @index
  ns: [I64]?
  day: Date?
  ok: Bool?
  vec: Vector(2)?
  tag: String?
}
"""
REQUIRED = ("n", "text")
KINDS = {
    "key": pa.string(),
    "n": pa.int32(),
    "text": pa.string(),
    "ns": pa.list_(pa.int64()),
    "day": pa.date32(),
    "ok": pa.bool_(),
    "vec": pa.list_(pa.float32()),
    "tag": pa.string(),
}
VALUES = {
    "n": st.integers(-(2**31), 2**31 - 1),
    "text": st.sampled_from(["", "wax", "null", 'a"b', "ä\n"]),
    "ns": st.none() | st.lists(st.none() | st.integers(0, 2**53), max_size=3),
    "day": st.none() | st.sampled_from(["1969-12-31", "2024-02-29", "9999-12-31"]),
    "ok": st.none() | st.booleans(),
    "vec": st.none() | st.sampled_from([[0.0, 1.0], [-2.5, 3.0]]),
    "tag": st.none() | st.sampled_from(["x", ""]),
}
KEYS = [f"k{number:03d}" for number in range(40)]
FEW = LoadOptions(build_indexes=False, max_bad_rows=1.0)


def stored() -> dict[str, dict[str, object]]:
    return {
        key: {"n": i, "text": f"t{i}", "ns": [i], "day": None, "ok": None, "vec": [float(i), 0.5], "tag": key}
        for i, key in enumerate(KEYS)
    }


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty rows in two files of a table, some rows of the first of which were deleted."""
    root = tmp_path_factory.mktemp("patches") / "g"
    graph = Graph.init(root, SCHEMA)
    rows = stored()
    for some in (["dead", *KEYS[:30]], KEYS[30:]):
        graph.load([_line(Patch(key, rows.get(key, rows[KEYS[0]]))) for key in some], options=FEW)
    graph.delete("node:Thing", ["dead"])
    graph.ensure_indices()
    return root


def _line(patch: Patch) -> str:
    return json.dumps({"type": "Thing", "data": {"key": patch.id, **patch.given}})


def found(graph: Graph) -> Rows:
    rows = {}
    for line in graph.export():
        data = json.loads(line)["data"]
        if data["day"] is not None:
            data["day"] = str(date.fromordinal(data["day"] + date(1970, 1, 1).toordinal()))
        rows[data["id"]] = {name: value for name, value in data.items() if name not in ("id", "key")}
    return rows


@st.composite
def patches(draw: st.DrawFn) -> list[Patch]:
    """Many patches, so that files of the table are written by column, or one or two, so that rows are."""
    size = draw(st.sampled_from([1, 2, 30]))
    names = st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=4)
    wide = st.sampled_from([*KEYS, "new1", "new2"])
    return [
        Patch(draw(wide), {name: draw(VALUES[name] | st.none()) for name in sorted(draw(names))}) for _ in range(size)
    ]


@pytest.mark.timeout(600)
@settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
@given(records=patches(), missing=st.sampled_from(["error", "insert"]), nulls=st.sampled_from(["set", "keep"]))
def test_records(
    template: Path, tmp_path_factory: pytest.TempPathFactory, records: list[Patch], missing: str, nulls: str
) -> None:
    graph = copied(template, tmp_path_factory)
    expected = apply(stored(), records, REQUIRED, missing=missing, nulls=nulls)
    options = LoadOptions(build_indexes=False, max_bad_rows=1.0, missing=OnMissing(missing), nulls=Nulls(nulls))
    report = graph.load([_line(record) for record in records], "update", options=options)
    assert {row.line - 1: str(row.rule) for row in report.bad_rows.sample} == dict(list(expected.bad.items())[:20])
    assert report.bad_rows.total == len(expected.bad)
    assert found(graph) == expected.rows
    told = report.tables["node:Thing"]
    good = [record for place, record in enumerate(records) if place not in expected.bad]
    writes = {r.id for r in good if any(v is not None or nulls == "set" for v in r.given.values())}
    assert (told.inserted, told.updated) == (len(writes - {*KEYS}), len(writes & {*KEYS}))
    for key in writes & {*KEYS}:  # an index has no entry of a value that was
        text = stored()[key]["text"]
        query = f'query q() {{ match {{ $t: Thing {{ text: "{text}" }} }} return {{ $t.key as key }} }}'
        keys = [row["key"] for row in graph.query(query).to_pylist()]
        assert keys == sorted(k for k, row in expected.rows.items() if row["text"] == text)


def copied(template: Path, factory: pytest.TempPathFactory) -> Graph:
    root = factory.mktemp("copy") / "g"
    shutil.copytree(template, root)
    return Graph.open(root)


TABLE = [
    Patch("k003", {"n": 3, "ns": [1, None], "day": "2024-02-29", "tag": None}),
    Patch("k031", {"n": 4, "ns": None, "day": "1969-12-31", "tag": "ä"}),
    Patch("k004", {"n": 5, "ns": [], "day": None, "tag": "x"}),
    Patch("nowhere", {"n": 6, "ns": None, "day": None, "tag": None}),
    Patch("k003", {"n": 7, "ns": None, "day": "9999-12-31", "tag": None}),
]


def table(records: Sequence[Patch]) -> pa.Table:
    names = ["key", *records[0].given]
    rows = [{"key": record.id, **record.given} for record in records]
    columns = [pa.array([row[name] for row in rows], pa.string() if name == "day" else KINDS[name]) for name in names]
    return pa.table(dict(zip(names, columns, strict=True))).set_column(
        names.index("day"), "day", pa.array([r["day"] for r in rows], pa.string()).cast(pa.date32())
    )


@pytest.mark.parametrize("nulls", ["set", "keep"])
@pytest.mark.parametrize("form", ["parquet", "csv", "arrow", "table", "frame"])
def test_tables(template: Path, tmp_path_factory: pytest.TempPathFactory, form: str, nulls: str) -> None:
    graph = copied(template, tmp_path_factory)
    records = [r for r in TABLE if form != "frame" or r != TABLE[-1]]
    expected = apply(stored(), records, REQUIRED, nulls=nulls)
    options = LoadOptions(build_indexes=False, max_bad_rows=1, nulls=Nulls(nulls))
    path = tmp_path_factory.mktemp("input") / f"things.{form}"
    rows = table(records)
    if form in ("table", "frame"):
        report = graph.load_table("node:Thing", rows, mode="update", options=options)
    else:
        if form == "parquet":
            parquet.write_table(rows, path, row_group_size=2)
        elif form == "csv":
            lists = pa.array([None if v is None else json.dumps(v) for v in rows.column("ns").to_pylist()])
            csv.write_csv(rows.set_column(2, "ns", lists), path)
        else:
            with pa.ipc.new_file(path, rows.schema) as out:
                out.write_table(rows)
        report = graph.load(str(path), "update", node="Thing", options=options)
    assert [(row.id, str(row.rule)) for row in report.bad_rows.sample] == [("nowhere", "not_stored")]
    assert found(graph) == expected.rows


def test_a_second_patch_of_a_row_may_be_refused(template: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    graph = copied(template, tmp_path_factory)
    with pytest.raises(BadRowsError) as caught:
        graph.load(
            [_line(Patch("k001", {"n": 1})), _line(Patch("k001", {"tag": "x"}))],
            "update",
            options=LoadOptions(on_duplicate=OnDuplicate.ERROR),
        )
    (row,) = caught.value.summary.sample
    assert (row.line, str(row.rule), row.id) == (2, "key_duplicate", "k001")
    assert row.message.endswith("repeats an earlier record of the input (<input>:1)")
    assert found(graph) == stored()
