"""Every type from every format, by its hardest values: what the same values give as JSON lines."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from spark_omnigraph import BadRequestError, BadRowsError, Graph

DAYS = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31), None]
MOMENTS = [dt.datetime.fromisoformat(f"{text}+00:00") for text in ("0001-01-01T00:00:00", "1969-12-31T23:59:59.999")]
MOMENTS += [dt.datetime.fromisoformat("9999-12-31T23:59:59.999+00:00")]
LONGS = [-(2**63), 2**63 - 1, 2**53 + 1, 0, None]
TYPES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "text": ("String", pa.string(), ["", "N/A", "a\nb", 'q"q', " x ", "☃", None]),
    "large text": ("String", pa.large_string(), ["", "x", None]),
    "words": ("String", pa.dictionary(pa.int8(), pa.string()), ["x", None, "x", ""]),
    "enum": ("enum(a, b)", pa.string(), ["a", "b", None]),
    "truth": ("Bool", pa.bool_(), [True, False, None]),
    "int": ("I32", pa.int32(), [-(2**31), 2**31 - 1, 0, None]),
    "long": ("I64", pa.int64(), LONGS),
    "unsigned": ("U32", pa.uint32(), [0, 2**32 - 1, None]),
    "unsigned long": ("U64", pa.uint64(), [0, 2**64 - 1, 2**63, None]),
    "wide decimal": ("U64", pa.decimal128(20, 0), [Decimal(2**64 - 1), Decimal(0), None]),
    "float": ("F32", pa.float32(), [0.5, -0.0, 3.4028234663852886e38, 1.401298464324817e-45, None]),
    "double": ("F64", pa.float64(), [0.1, -0.0, 1.7976931348623157e308, 5e-324, None]),
    "half": ("F32", pa.float16(), [0.5, None]),
    "decimal": ("F64", pa.decimal128(10, 3), [Decimal("0.125"), Decimal("-7.001"), None]),
    "day": ("Date", pa.date32(), DAYS),
    "moment": ("DateTime", pa.timestamp("us", "UTC"), [*MOMENTS, None]),
    "plain moment": ("DateTime", pa.timestamp("ms"), [moment.replace(tzinfo=None) for moment in MOMENTS]),
    "list": ("[I32]", pa.list_(pa.int32()), [[], [1, None, -(2**31)], None]),
    "large list": ("[I32]", pa.large_list(pa.int32()), [[], [1, None], None]),
    "texts": ("[String]", pa.list_(pa.string()), [[], ["", None, 'a"b,c'], None]),
    "days": ("[Date]", pa.list_(pa.date32()), [DAYS, [], None]),
    "vector": ("Vector(2)", pa.list_(pa.float32()), [[0.5, -1.0], None]),
    "fixed vector": ("Vector(2)", pa.list_(pa.float32(), 2), [[0.5, -1.0], None, [2.0, 3.0]]),
    "double vector": ("Vector(2)", pa.list_(pa.float64()), [[0.5, 1e-3], None]),
    "blob": ("Blob", pa.binary(), [b"", b"\xff\x00", None]),
}


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat()
    if isinstance(value, bytes):
        return "base64:" + base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return [plain(item) for item in value] if isinstance(value, list) else value


def field(value: Any) -> str:
    """A value as CSV has it."""
    spelt = plain(value)
    if spelt is None:
        return ""
    text = spelt if isinstance(spelt, str) else json.dumps(spelt, ensure_ascii=False)
    return '"' + text.replace('"', '""') + '"' if isinstance(spelt, (str, list)) else text


def parquet(table: pa.Table, path: Path) -> Any:
    pq.write_table(table, path / "t.parquet")
    return path / "t.parquet"


def arrow(table: pa.Table, path: Path) -> Any:
    with ipc.new_file(path / "t.arrow", table.schema) as out:
        out.write_table(table)
    return path / "t.arrow"


def comma(table: pa.Table, path: Path) -> Any:
    rows = zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    lines = [",".join(table.column_names), *(",".join(map(field, row)) for row in rows)]
    (path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path / "t.csv"


FORMATS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": parquet,
    "arrow": arrow,
    "csv": comma,
    "table": lambda table, _: table,
}


READS_NO_NULL = int(pa.__version__.partition(".")[0]) < 26
"""Whether pyarrow reads no null among lists of one size from Parquet."""


@pytest.fixture(scope="module")
def schema() -> str:
    named = ((name.replace(" ", "_"), of) for name, (of, _, _) in TYPES.items())
    return "\n".join(f"node {name.title()} {{ n: I32 @key  v: {of}? }}" for name, of in named)


@pytest.mark.parametrize("form", FORMATS)
def test_values_are_those_of_json_lines(schema: str, tmp_path: Path, form: str) -> None:
    lines, other = (Graph.init(tmp_path / name, schema) for name in ("lines", "other"))
    records = []
    tables: dict[str, Any] = {}
    for name, (_, kind, stored) in TYPES.items():
        is_unread = READS_NO_NULL and form == "parquet" and pa.types.is_fixed_size_list(kind)
        values = [value for value in stored if value is not None] if is_unread else stored
        of = name.replace(" ", "_").title()
        given = [None if v is None else plain(v) for v in values]
        records += [json.dumps({"type": of, "data": {"n": n, "v": v}}) for n, v in enumerate(given)]
        table = pa.table({"n": pa.array(range(len(values)), pa.int32()), "v": pa.array(values, kind)})
        (tmp_path / of).mkdir()
        tables[of] = FORMATS[form](table, tmp_path / of)
    lines.load(records)
    if form == "table":
        for of, table in tables.items():
            other.load_table(f"node:{of}", table)
    else:
        other.load(mapping={"inputs": [{"path": str(path), "node": of} for of, path in tables.items()]})
    assert list(other.export()) == list(lines.export())


@pytest.mark.parametrize(
    ("of", "kind", "bad", "rule"),
    [
        ("I32", pa.int64(), 2**31, "out_of_range"),
        ("U32", pa.int64(), -1, "out_of_range"),
        ("U64", pa.decimal128(20, 0), Decimal(2**64), "out_of_range"),
        ("I32", pa.decimal128(5, 1), Decimal("1.5"), "wrong_type"),
        ("F32", pa.float64(), 1e39, "out_of_range"),
        ("F32", pa.int64(), 2**24 + 1, "out_of_range"),
        ("[I32]", pa.list_(pa.int64()), [1, 2**31], "out_of_range"),
        ("Vector(2)", pa.list_(pa.float32()), [1.0], "vector_length"),
        ("Vector(2)", pa.list_(pa.float32()), [1.0, None], "wrong_type"),
        ("enum(a, b)", pa.string(), "c", "enum"),
    ],
)
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_values_that_do_not_fit_are_bad_at_their_row(
    tmp_path: Path, of: str, kind: pa.DataType, bad: Any, rule: str, form: str
) -> None:
    graph = Graph.init(tmp_path / "g", f"node T {{ n: I32 @key  v: {of}? }}")
    table = pa.table({"n": pa.array([0, 1], pa.int32()), "v": pa.array([None, bad], kind)})
    with pytest.raises(BadRowsError) as caught:
        graph.load(FORMATS[form](table, tmp_path), node="T")
    assert [(row.line, str(row.rule)) for row in caught.value.summary.sample] == [(3 if form == "csv" else 2, rule)]


@pytest.mark.parametrize("text", ["1.5", "1_000", "0x1F", " 1", "1 ", "", "1e400", "NaN", "١"])
def test_what_spells_no_integer_is_bad(tmp_path: Path, text: str) -> None:
    graph = Graph.init(tmp_path / "g", "node T { n: I32 @key  v: I64? }")
    (tmp_path / "t.csv").write_text(f'n,v\n1,"{text}"\n', encoding="utf-8")
    with pytest.raises(BadRowsError):
        graph.load(tmp_path / "t.csv", node="T")


@pytest.mark.parametrize(("text", "value"), [("+7", 7), ("007", 7), ("7.0", 7), ("1e3", 1000), ("-0", 0)])
def test_what_spells_an_integer(tmp_path: Path, text: str, value: int) -> None:
    graph = Graph.init(tmp_path / "g", "node T { n: I32 @key  v: I64? }")
    (tmp_path / "t.csv").write_text(f"n,v\n1,{text}\n", encoding="utf-8")
    graph.load(tmp_path / "t.csv", node="T")
    assert [json.loads(line)["data"]["v"] for line in graph.export()] == [value]


def test_ends_are_spelt_as_keys_are(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node T { n: I32 @key }\nnode D { d: Date @key }\nedge E: T -> D")
    for name, text in (("t", "n\n07\n"), ("d", "d\n2020-01-02\n"), ("e", "from,to\n7.0,2020-01-02\n007,20200102\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    kinds = {"t": {"node": "T"}, "d": {"node": "D"}, "e": {"edge": "E"}}
    graph.load(mapping={"inputs": [{"path": str(tmp_path / f"{name}.csv"), **kind} for name, kind in kinds.items()]})
    assert [(e["from"], e["to"]) for e in map(json.loads, graph.export(types=["E"]))] == [("7", "18263")] * 2


@pytest.mark.skipif(not READS_NO_NULL, reason="pyarrow reads such a file from 26 on")
def test_what_an_older_pyarrow_cannot_read_is_said(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node Doc { n: I32 @key  v: Vector(2)? }")
    vectors = pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"n": pa.array([1, 2], pa.int32()), "v": vectors}), tmp_path / "t.parquet")
    with pytest.raises(BadRequestError, match=r"pyarrow before 26 reads no null .* write them as lists of any size"):
        graph.load(str(tmp_path / "t.parquet"), mapping={"node": "Doc"})
