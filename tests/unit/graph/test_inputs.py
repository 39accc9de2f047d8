"""One graph, whatever it is loaded from: JSON lines, Parquet, CSV, Arrow, and tables in memory."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from spark_omnigraph import BadRequestError, BadRowsError, Graph, LoadOptions
from spark_omnigraph.graph.load import frame, load
from spark_omnigraph.write.executor import LocalExecutor

SCHEMA = """
node Film { title: String @key  year: I32?  score: F64?  seen: Date?  at: DateTime? }
node Person { name: String @key  born: I64? }
edge ActedIn: Person -> Film { role: String? }
"""
LAST = dt.datetime.fromisoformat("9999-12-31T23:59:59.999")
FIRST = dt.datetime.fromisoformat("0001-01-01T00:00:00")
FILMS: list[dict[str, Any]] = [
    {"title": "Heat", "year": 1995, "score": 8.3, "seen": dt.date(1969, 12, 31), "at": None},
    {"title": "", "year": None, "score": 0.1, "seen": None, "at": LAST},
    {"title": 'a "b", c\n☃', "year": -(2**31), "score": -1e300, "seen": dt.date(1, 1, 1), "at": FIRST},
]
PEOPLE: list[dict[str, Any]] = [{"name": "Al", "born": 1940}, {"name": "Bob", "born": None}]
ROLES: list[dict[str, Any]] = [
    {"id": "1", "from": "Al", "to": "Heat", "role": "Vincent"},
    {"id": "2", "from": "Bob", "to": "", "role": None},
]
COLUMNS = {
    "Film": pa.schema(
        [
            ("title", pa.string()),
            ("year", pa.int32()),
            ("score", pa.float64()),
            ("seen", pa.date32()),
            ("at", pa.timestamp("us")),
        ]
    ),
    "Person": pa.schema([("name", pa.string()), ("born", pa.int64())]),
    "ActedIn": pa.schema([(name, pa.string()) for name in ("id", "from", "to", "role")]),
}
ROWS = {"Film": FILMS, "Person": PEOPLE, "ActedIn": ROLES}


def table(name: str) -> pa.Table:
    return pa.Table.from_pylist(ROWS[name], COLUMNS[name])


def kind(name: str) -> dict[str, Any]:
    return {"edge": name} if name == "ActedIn" else {"node": name}


def csv_text(rows: list[dict[str, Any]]) -> str:
    """Fields in quotes where they are texts: an empty one is a text then, and none where it is not quoted."""
    out = io.StringIO()
    csv.writer(out).writerow(rows[0])
    for row in rows:
        fields = (
            ""
            if value is None
            else '"' + value.replace('"', '""') + '"'
            if isinstance(value, str)
            else value.isoformat()
            if isinstance(value, dt.date)
            else repr(value)
            for value in row.values()
        )
        out.write(",".join(fields) + "\r\n")
    return out.getvalue()


def write_parquet(path: Path, name: str) -> Path:
    pq.write_table(table(name), path / f"{name}.parquet", row_group_size=1)
    return path / f"{name}.parquet"


def write_arrow(path: Path, name: str) -> Path:
    with ipc.new_file(path / f"{name}.arrow", COLUMNS[name]) as out:
        for batch in table(name).to_batches(max_chunksize=1):
            out.write_batch(batch)
    return path / f"{name}.arrow"


def write_stream(path: Path, name: str) -> Path:
    with ipc.new_stream(path / f"{name}.arrows", COLUMNS[name]) as out:
        out.write_table(table(name))
    return path / f"{name}.arrows"


def write_csv(path: Path, name: str) -> Path:
    with open(path / f"{name}.csv", "w", newline="") as file:
        file.write(csv_text(ROWS[name]))
    return path / f"{name}.csv"


def write_packed(path: Path, name: str) -> Path:
    (path / f"{name}.csv.gz").write_bytes(gzip.compress(csv_text(ROWS[name]).encode()))
    return path / f"{name}.csv.gz"


FILES: dict[str, Callable[[Path, str], Path]] = {
    "parquet": write_parquet,
    "arrow": write_arrow,
    "stream": write_stream,
    "csv": write_csv,
    "packed csv": write_packed,
}


class Streamed:
    """What polars and others are: something that gives a stream of Arrow, in layouts of its own."""

    def __init__(self, rows: pa.Table) -> None:
        views = {pa.string(): pa.string_view(), pa.date32(): pa.date32()}
        self._rows = rows.cast(pa.schema([(f.name, views.get(f.type, f.type)) for f in rows.schema]))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


TABLES: dict[str, Callable[[str], Any]] = {
    "table": table,
    "reader": lambda name: table(name).to_reader(max_chunksize=1),
    "batches": lambda name: iter(table(name).to_batches(max_chunksize=1)),
    "stream": lambda name: Streamed(table(name)),
    "dictionaries": lambda name: list(ROWS[name]),
    "generator": lambda name: (row for row in ROWS[name]),
    "pandas": lambda name: (
        table(name).to_pandas(date_as_object=True, timestamp_as_object=True).set_axis([7] * len(ROWS[name]))
    ),
}


def record(name: str, row: dict[str, Any]) -> str:
    plain = {k: v.isoformat() if isinstance(v, dt.date) else v for k, v in row.items()}
    if name != "ActedIn":
        return json.dumps({"type": name, "data": plain})
    ends = {end: plain.pop(end) for end in ("from", "to")}
    return json.dumps({"edge": name, **ends, "data": plain})


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    graph = Graph.init(tmp_path_factory.mktemp("lines") / "g", SCHEMA)
    graph.load([record(name, row) for name, rows in ROWS.items() for row in rows])
    return sorted(graph.export())


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(tmp_path / "g", SCHEMA)


@pytest.mark.parametrize("write", FILES.values(), ids=FILES)
def test_files_give_the_graph_that_lines_give(
    graph: Graph, tmp_path: Path, expected: list[str], write: Callable[[Path, str], Path]
) -> None:
    inputs = [{"path": str(write(tmp_path, name)), **kind(name)} for name in ROWS]
    report = graph.load(mapping={"inputs": inputs})
    assert sorted(graph.export()) == expected
    assert {key: counts.inserted for key, counts in report.tables.items()} == {
        "edge:ActedIn": 2,
        "node:Film": 3,
        "node:Person": 2,
    }


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables_in_memory_give_the_graph_that_lines_give(
    graph: Graph, expected: list[str], make: Callable[[str], Any]
) -> None:
    for name in ROWS:
        graph.load_table(f"{'edge' if name == 'ActedIn' else 'node'}:{name}", make(name))
    assert sorted(graph.export()) == expected


def test_worker_processes_read_ranges_of_tables(graph: Graph, tmp_path: Path) -> None:
    pq.write_table(pa.table({"name": [f"n{i}" for i in range(100)]}), tmp_path / "p.parquet", row_group_size=10)
    graph.load(tmp_path / "p.parquet", node="Person", options=LoadOptions(executor=LocalExecutor(1)))
    assert graph.count("node:Person") == 100


def test_records_of_any_types_stand_in_a_table(graph: Graph, expected: list[str]) -> None:
    records = [json.loads(record(name, row)) for name, rows in ROWS.items() for row in rows]
    texts = {key: pa.array([r.get(key) for r in records], pa.string()) for key in ("type", "edge", "from", "to")}
    graph.load(pa.table({**texts, "data": [json.dumps(r["data"]) for r in records]}))
    assert sorted(graph.export()) == expected


class TestBadRows:
    def places(self, graph: Graph, source: object, **how: Any) -> list[tuple[int, str, str | None]]:
        with pytest.raises(BadRowsError) as caught:
            graph.load(source, **how)
        assert [key for key in ("node:Film", "node:Person") if graph.count(key)] == []
        return [(row.line, str(row.rule), row.id) for row in caught.value.summary.sample]

    def test_of_csv_count_the_header_and_every_record(self, graph: Graph, tmp_path: Path) -> None:
        text = 'title,year\nHeat,1995\n"two\nlines",x\n\nonly\nX,1,2\n,3\n"",9999999999\n'
        (tmp_path / "f.csv").write_text(text)
        found = self.places(graph, tmp_path / "f.csv", node="Film")
        assert found == [
            (3, "wrong_type", "two\nlines"),
            (5, "invalid_row", None),
            (6, "invalid_row", None),
            (7, "key_missing", None),
            (8, "out_of_range", ""),
        ]

    def test_of_csv_in_ranges_have_the_number_of_their_line(
        self, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("spark_omnigraph.storage.input.ranges.RANGE_MIN", 16)
        monkeypatch.setattr("spark_omnigraph.storage.input.ranges.RANGE_MAX", 64)
        lines = ["name,born", *(f"n{i},{'x' if i % 17 == 3 else i}" for i in range(60)), "lone"]
        (tmp_path / "p.csv").write_text("\n".join(lines) + "\n")
        found = self.places(graph, tmp_path / "p.csv", node="Person", csv_single_line=True)
        assert [line for line, _, _ in found] == [i + 2 for i in range(60) if i % 17 == 3] + [62]

    @pytest.mark.parametrize("write", [write_parquet, write_arrow])
    def test_of_other_files_count_rows(self, graph: Graph, tmp_path: Path, write: Callable[..., Path]) -> None:
        ROWS["Person"].append({"name": None, "born": 1})
        try:
            path = write(tmp_path, "Person")
        finally:
            ROWS["Person"].pop()
        assert self.places(graph, path, node="Person") == [(3, "key_missing", None)]

    def test_of_the_whole_graph_are_found_again_in_their_file(self, graph: Graph, tmp_path: Path) -> None:
        pq.write_table(pa.table({"name": ["a", "b", "a"]}), tmp_path / "p.parquet", row_group_size=1)
        assert self.places(graph, tmp_path / "p.parquet", node="Person") == [(3, "key_duplicate", "a")]

    def test_of_a_table_that_is_gone_are_found_in_what_was_staged(self, graph: Graph) -> None:
        rows = iter(pa.table({"name": ["a", "b", "a"]}).to_batches(max_chunksize=1))
        assert self.places(graph, rows, node="Person") == [(3, "key_duplicate", "a")]

    def test_may_be_left_out(self, graph: Graph, tmp_path: Path) -> None:
        (tmp_path / "p.csv").write_text("name,born\na,1\nb,x\nc\n")
        report = graph.load(tmp_path / "p.csv", node="Person", options=LoadOptions(max_bad_rows=2))
        counts = report.tables["node:Person"]
        assert (counts.read, counts.valid, counts.bad, counts.inserted) == (3, 1, 2, 1)

    def test_bytes_that_are_no_text(self, graph: Graph, tmp_path: Path) -> None:
        (tmp_path / "p.csv").write_bytes(b"name,born\nok,1\n\xff\xfe,2\n")
        assert self.places(graph, tmp_path / "p.csv", node="Person") == [(3, "invalid_text", None)]
        raw = pa.array([b"ok", b"\xff"], pa.binary()).view(pa.string())
        pq.write_table(pa.table({"name": raw}), tmp_path / "p.parquet")
        assert self.places(graph, tmp_path / "p.parquet", node="Person") == [(2, "invalid_text", None)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name,born\na,"1\nb,2\n', "ends within a quoted value"),
        ("", "has no header"),
        ("name,name\na,b\n", "'name' is there twice"),
        ("name,brn\na,1\n", "'Person' has no column 'brn'; did you mean 'born'?"),
        (
            "name;born\na;1\n",
            "has ';' and no ',': write it with commas, .*, or give the load a mapping with 'delimiter'",
        ),
        ("name\tborn\na\t1\n", "has '.t' and no ',': give the file the ending .tsv, or the load a mapping"),
        (",name\n0,a\n", "a column has no name, as an index has that pandas wrote"),
        ('name,born\n"' + "x" * (17 << 20) + '",1\n', "has a row of more than 8 MiB"),
        ("born\n1\n", "column 'name' is missing"),
    ],
)
def test_csv_that_cannot_be_read_is_refused_as_a_whole(graph: Graph, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(BadRequestError, match=message):
        graph.load(tmp_path / "p.csv", node="Person")
    assert graph.count("node:Person") == 0


def test_values_that_span_lines_are_no_single_lines(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text('name,born\n"a\nb",1\n')
    with pytest.raises(BadRequestError, match="spans lines: load it without --csv-single-line"):
        graph.load(tmp_path / "p.csv", node="Person", csv_single_line=True)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_is_not_what_it_says(graph: Graph, tmp_path: Path, ending: str) -> None:
    (tmp_path / f"p.{ending}").write_bytes(b"name,born\na,1\n" * 9)
    with pytest.raises(BadRequestError, match=f"no {ending.capitalize()} file that can be read"):
        graph.load(tmp_path / f"p.{ending}", node="Person")


def damaged_footer(path: Path) -> None:
    path.write_bytes(b"PAR1" + bytes(20) + b"PAR1")


def damaged_page(path: Path) -> None:
    pq.write_table(pa.table({"name": [f"n{i}" for i in range(1000)]}), path, compression="zstd")
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])


def cut_stream(path: Path) -> None:
    write_stream(path.parent, "Person").replace(path)
    path.write_bytes(path.read_bytes()[:-30])


@pytest.mark.parametrize(
    ("name", "spoil"), [("p.parquet", damaged_footer), ("p.parquet", damaged_page), ("p.arrows", cut_stream)]
)
def test_a_file_that_is_damaged(graph: Graph, tmp_path: Path, name: str, spoil: Callable[[Path], None]) -> None:
    spoil(tmp_path / name)
    with pytest.raises(BadRequestError, match=f"{name}' is no (Parquet|Arrow) file that can be read"):
        graph.load(tmp_path / name, node="Person")
    assert graph.count("node:Person") == 0


def test_a_column_in_names_of_folders_is_not_lost(graph: Graph, tmp_path: Path) -> None:
    for born in (1940, 1941):
        folder = tmp_path / "day=1" / f"born={born}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"name": [f"n{born}"]}), folder / "p.parquet")
    above = tmp_path / "day=1"
    for source in (above, f"{above}/*", f"{above}/born=*/*.parquet"):
        with pytest.raises(BadRequestError, match="'born' is in the names of folders alone"):
            graph.load(source, node="Person")
    each = [{"path": f"{above}/born={born}", "node": "Person", "constants": {"born": born}} for born in (1940, 1941)]
    graph.load(mapping={"inputs": each})
    assert [json.loads(line)["data"]["born"] for line in graph.export()] == [1940, 1941]
    graph.load(above, "merge", mapping={"node": "Person", "ignore": ["born"]})
    assert graph.count("node:Person") == 2


def test_a_column_without_a_name_may_be_left_out(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(",name\n0,a\n")
    graph.load(tmp_path / "p.csv", mapping={"node": "Person", "ignore": [""]})
    assert graph.count("node:Person") == 1


def test_texts_are_read_as_values_where_that_is_asked_for(graph: Graph, tmp_path: Path) -> None:
    rows = pa.table({"name": ["a"], "born": ["0012"]})
    with pytest.raises(BadRequestError, match="column 'born' is string"):
        graph.load_table("node:Person", rows)
    graph.load_table("node:Person", rows, options=LoadOptions(coerce=True))
    line = '{"type": "Person", "data": {"name": "b", "born": "-7"}}'
    with pytest.raises(BadRowsError, match='expects I64, got "-7"'):
        graph.load([line])
    graph.load([line], options=LoadOptions(coerce=True))
    assert [json.loads(each)["data"]["born"] for each in graph.export()] == [12, -7]


class TestMapping:
    TABLE = pa.table(
        {
            "person": ["Al", "Bob", "Al", "Cy"],
            "film": ["Heat", "Heat", "Ali", None],
            "part": ["v", None, "w", None],
            "etl": [1, 2, 3, 4],
        }
    )
    ROWS = (
        {"node": "Person", "columns": {"person": "name"}, "distinct": True},
        {"node": "Film", "columns": {"film": "title"}, "distinct": True, "when": "film", "constants": {"year": 2000}},
        {
            "edge": "ActedIn",
            "from": "person",
            "to": "film",
            "id": ["person", "film"],
            "columns": {"part": "role"},
            "when": "film",
        },
    )

    @pytest.mark.parametrize("form", ["parquet", "table"])
    def test_one_table_gives_nodes_and_edges(self, graph: Graph, tmp_path: Path, form: str) -> None:
        mapping: dict[str, Any] = {"rows": list(self.ROWS), "ignore": ["etl"]}
        source: object = self.TABLE
        if form == "parquet":
            source = tmp_path / "credits.parquet"
            pq.write_table(self.TABLE, source, row_group_size=1)
        report = graph.load(source, mapping=mapping)
        assert {key: (c.inserted, c.superseded) for key, c in report.tables.items()} == {
            "edge:ActedIn": (3, 0),
            "node:Film": (2, 1),
            "node:Person": (3, 1),
        }
        found = [json.loads(line) for line in graph.export(types=["ActedIn"])]
        assert [(e["from"], e["to"], e["data"]["id"], e["data"]["role"]) for e in found] == [
            ("Al", "Ali", '["Al","Ali"]', "w"),
            ("Al", "Heat", '["Al","Heat"]', "v"),
            ("Bob", "Heat", '["Bob","Heat"]', None),
        ]
        facts = graph.commits()[0].facts
        assert facts is not None
        assert facts.mapping_digest is not None
        assert facts.mapping_digest.startswith("sha256:")

    def test_rows_of_one_key_that_differ_are_no_equal_ones(self, graph: Graph) -> None:
        rows = pa.table({"name": ["a", "a", "a"], "born": [1, 1, 2]})
        with pytest.raises(BadRowsError, match="repeats an earlier record of the input, and differs from it") as caught:
            graph.load(rows, "merge", mapping={"node": "Person", "distinct": True})
        assert [row.line for row in caught.value.summary.sample] == [3]

    @pytest.mark.parametrize(
        ("mapping", "message"),
        [
            ({"node": "Person", "columns": {"nme": "name"}}, "the table has no column 'nme'; did you mean 'name'?"),
            ({"node": "Person", "columns": {"name": "nam"}}, "'Person' has no property 'nam'; did you mean 'name'?"),
            ({"node": "Person", "columns": {"extra": "name"}}, "column 'name' becomes no property"),
            ({"node": "Person"}, "'Person' has no column 'extra'"),
            ({"node": "Person", "ignore": ["extra"], "constants": {"born": "x"}}, "column 'born' is string"),
            ({"node": "Person", "from": "name"}, "'from' and 'to' are of an 'edge'"),
            ({"node": "Persn"}, "did you mean 'Person'"),
            ({"node": "Person", "constants": {"id": "x"}}, "a constant is of a property, and 'Person' has none"),
            ({"node": "Person", "id": ["name", "list"]}, "column 'list' is list<item: string>, of which no id can"),
            ({"node": "Person", "id": "bytes"}, "column 'bytes' is binary, of which no id can be made"),
            *(({"node": "Person", "delimiter": text}, "delimiter") for text in ('"', "\n", "§", ";;", "")),
            ("node: Person\ncolumns: {no: born}", "a text that looks like another value stands in quotes"),
            ({"node": "Person", "colums": {}}, "colums"),
            ("{node: [}", "is not YAML"),
            ({"inputs": [{"node": "Person"}, {"node": "Film"}]}, "each of several inputs needs a 'path'"),
        ],
    )
    def test_what_is_wrong_is_said_before_a_row_is_read(self, graph: Graph, mapping: Any, message: str) -> None:
        def rows() -> Iterator[pa.RecordBatch]:
            yield pytest.fail("a row was read")

        more = [("list", pa.list_(pa.string())), ("bytes", pa.binary())] if "id" in mapping else []
        schema = pa.schema([("name", pa.string()), ("extra", pa.string()), *more])
        with pytest.raises(Exception, match=message) as caught:
            graph.load(pa.RecordBatchReader.from_batches(schema, rows()), mapping=mapping)
        assert caught.type.__module__ == "spark_omnigraph.errors"

    def test_a_part_of_an_id_that_is_null_is_a_null_of_it(self, graph: Graph) -> None:
        graph.load([record("Person", {"name": name}) for name in ("Al", "Bob")])
        rows = pa.table({"a": ["Al", "Bob"], "f": ["Heat", "Heat"], "part": ["v", None]})
        graph.load([record("Film", {"title": "Heat"})])
        edges = {"edge": "ActedIn", "from": "a", "to": "f", "id": ["a", "part"], "columns": {"part": "role"}}
        for _ in range(2):
            graph.load(rows, "merge", mapping=edges)
        found = [json.loads(line)["data"]["id"] for line in graph.export(types=["ActedIn"])]
        assert found == ['["Al","v"]', '["Bob",null]']

    def test_a_column_may_feed_several_properties(self, graph: Graph) -> None:
        mapping = {"node": "Film", "columns": {"year": ["year", "score"]}}
        graph.load(pa.table({"title": ["Heat"], "year": [1995]}), mapping=mapping)
        data = json.loads(next(graph.export()))["data"]
        assert (data["year"], data["score"]) == (1995, 1995.0)

    def test_nulls_and_separators_of_csv(self, graph: Graph, tmp_path: Path) -> None:
        (tmp_path / "people.txt").write_text("who;born\na;N/A\nb;\n")
        (tmp_path / "m.yaml").write_text(
            f"inputs:\n  - path: {tmp_path}/people.txt\n    format: csv\n    node: Person\n    delimiter: ';'\n"
            "    nulls: ['', N/A]\n    columns: {who: name}\n"
        )
        graph.load(mapping=tmp_path / "m.yaml")
        assert [json.loads(line)["data"] for line in graph.export()] == [
            {"id": name, "born": None, "name": name} for name in "ab"
        ]


def test_a_reader_is_read_once_though_the_load_is_tried_again(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    real = load.check_and_finish
    passed: list[bool] = []

    def once_late(*args: Any) -> Any:
        if not passed:
            passed.append(True)
            Graph.open(graph.uri).load([record("Person", {"name": "first", "born": 1})])
        return real(*args)

    monkeypatch.setattr(frame, "check_and_finish", once_late)
    batches = iter(pa.table({"name": ["a", "b"]}).to_batches(max_chunksize=1))
    graph.load(batches, node="Person")
    assert [json.loads(line)["data"]["name"] for line in graph.export()] == ["a", "b", "first"]


@pytest.mark.parametrize(
    ("mode", "told", "left"),
    [("append", {}, ["a", "z"]), ("changes", {"op": "d"}, []), ("update", {}, ["a"]), ("merge", {}, ["a"])],
)
def test_a_schema_change_that_drops_data_meanwhile_is_a_lost_race(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, mode: str, told: dict[str, str], left: list[str]
) -> None:
    graph.load([record("Person", {"name": "a", "born": 1})])
    real = load.check_and_finish
    passed: list[bool] = []

    def once_late(*args: Any) -> Any:
        if not passed:
            passed.append(True)
            Graph.open(graph.uri).apply_schema(SCHEMA.replace("born: I64?", ""), allow_data_loss=True)
        return real(*args)

    monkeypatch.setattr(load, "check_and_finish", once_late)
    line = json.dumps(told | json.loads(record("Person", {"name": "z" if mode == "append" else "a"})))
    graph.load([line], mode)
    assert [json.loads(each)["data"] for each in graph.export()] == [{"id": name, "name": name} for name in left]


def test_whole_floats_of_pandas_are_integers(graph: Graph) -> None:
    graph.load_table("node:Person", pd.DataFrame({"name": ["a", "b"], "born": [1940, None]}))
    assert [json.loads(line)["data"]["born"] for line in graph.export()] == [1940, None]


def test_decimals_and_bytes_of_python(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "h", "node P { k: U64 @key  d: F64?  b: Blob? }")
    graph.load_table("node:P", [{"k": Decimal(2**64 - 1), "d": Decimal("0.1"), "b": b"\xff\x00"}])
    (line,) = graph.export()
    assert json.loads(line)["data"] == {"id": str(2**64 - 1), "b": "base64:/wA=", "d": 0.1, "k": 2**64 - 1}
