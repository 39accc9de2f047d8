"""Schemas proposed from data: what columns show, line by line; the proposal takes the data that it was made of."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from spark_omnigraph.cli.program import main
from spark_omnigraph.errors import BadRequestError, BadRowsError, InputError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.profile.profile import propose_schema
from spark_omnigraph.graph.profile.rows import type_name
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.storage.input.tables import BATCH_ROWS
from tests.support.delta_tables import unpack


def lines(path: Path) -> list[str]:
    """The proposal of one file without its heading; it compiles."""
    schema = propose_schema(path).schema
    compile_schema(schema)
    return schema.splitlines()[2:]


def parquet(folder: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), folder / "films.parquet", row_group_size=50_000)
    return folder / "films.parquet"


def test_columns_of_parquet_become_properties(tmp_path: Path) -> None:
    path = parquet(
        tmp_path,
        year=pa.array([1990, 1991, 1992] * 40, pa.int32()),
        code=[f"c{n}" for n in range(120)],
        rating=pa.array(["G", "PG", "PG-13"] * 40).dictionary_encode(),
        score=[0.5, -2.25, None] * 40,
        size=pa.array([1, 2, 3] * 40, pa.uint64()),
        seen=[True, False, None] * 40,
        day=[date(2020, 1, 1)] * 120,
        at=[datetime(2020, 1, 1, tzinfo=timezone.utc)] * 120,
        vec=pa.array([[1.0, 2.0]] * 120, pa.list_(pa.float32(), 2)),
        tags=[["a"], [], None] * 40,
        parts=[{"a": 1}] * 120,
        blank=pa.nulls(120),
        born=["1990-01-31", "1991-02-28", None] * 40,
    )
    assert lines(path) == [
        f"// 120 rows of {path}",
        "node Films {",
        "  year: I32  // never null",
        "  code: String @key  // never null, 120 distinct",
        "  rating: enum(G, PG, PG-13)  // never null, 3 distinct: G, PG, PG-13",
        "  score: F64?  // 40 of 120 null",
        "  size: U64  // never null",
        "  seen: Bool?  // 40 of 120 null",
        "  day: Date  // never null",
        "  at: DateTime  // never null",
        "  vec: Vector(2)  // never null",
        "  tags: [String]?  // 40 of 120 null",
        "  // parts: values of type struct<a: int64>, which no property takes",
        "  // blank: no value seen",
        "  born: Date?  // 40 of 120 null, 2 distinct: 1990-01-31, 1991-02-28",
        "  @range(year, 1990..1992)",
        "  @range(score, -2.25..0.5)",
        "  @range(size, 1..3)",
        "}",
    ]


def test_a_value_that_comes_again_in_another_batch_is_no_key(tmp_path: Path) -> None:
    path = parquet(tmp_path, a=[*range(BATCH_ROWS), 7], b=list(range(BATCH_ROWS + 1)))
    assert [line.split("  //")[0] for line in lines(path)][2:4] == ["  a: I64", "  b: I64 @key"]


def test_texts_of_csv_are_what_they_spell(tmp_path: Path) -> None:
    path = tmp_path / "raw people-2.csv"
    rows = ["id,Full Name,age,share,old,zip,when,mixed"]
    rows += [f"{n},N {n},{n},{n}.5,true,0{n},2020-01-31T10:00:00Z,{n if n else 'x'}" for n in range(12)]
    path.write_text("\n".join(rows) + "\n")
    assert lines(path) == [
        f"// 12 rows of {path}",
        "node RawPeople {",
        "  rawPeople_id: I64 @key  // never null, 12 distinct, column 'id', by a mapping",
        "  full_Name: String @unique  // never null, 12 distinct, column 'Full Name', by a mapping",
        "  age: I64 @unique  // never null, 12 distinct",
        "  share: F64  // never null, 12 distinct: 0.5, 1.5, 10.5, 11.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5",
        "  old: Bool  // never null, 1 distinct: true",
        "  zip: String @unique  // never null, 12 distinct",
        "  when: DateTime  // never null, 1 distinct: 2020-01-31T10:00:00Z",
        "  mixed: String @unique  // never null, 12 distinct, 11 of 12 spell I64, but not 'x'",
        "  @range(age, 0..11)",
        "  @range(share, 0.5..11.5)",
        "}",
    ]


def test_values_that_a_comment_lists_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "stations.csv"
    path.write_text('code,note\n" ST-07",null\nST-07,"a,b"\nST-07,""\n')
    assert lines(path)[2:-1] == [
        '  code: String  // never null, 2 distinct: " ST-07", ST-07',
        "  note: String @key  // never null, 3 distinct",
    ]
    path.write_text('note\nnull\n"a,b"\n""\na\na\n')
    assert lines(path)[2] == '  note: String  // never null, 4 distinct: "", a, "a,b", "null"'


def test_rows_that_no_load_takes_are_left_out_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, whole, graph = tmp_path / "rides.csv", tmp_path / "whole.csv", str(tmp_path / "g")
    path.write_bytes(b"code,km\na,1\nb\nc,2\nd,\xff\ne,3,4\nf,5\n")
    whole.write_text("code\na\nb\n")
    why = "the first is line 3: the row has 1 field, the header 2"
    told = f"3 rows of {path} are left out, as a load refuses them: {why}"
    found = propose_schema([path, whole])
    assert (found.rows, found.left_out) == ({"Rides": 3, "Whole": 2}, (told,))
    assert [line for line in found.schema.splitlines() if " of /" in line] == [
        f"// {told}",
        f"// 3 rows of {path}",
        f"// 2 rows of {whole}",
    ]
    assert main(["profile", str(path)]) == 0
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["warnings"] == [told]
    for more in ([], ["--accept"]):
        assert main(["init", "--graph", graph, "--from", str(path), *more]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["warnings"] == [told]
    with pytest.raises(BadRowsError) as refused:
        Graph.open(graph).load(path, node="Rides")
    assert refused.value.summary.total == 3


def test_one_row_that_is_left_out_has_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('code,km\n"a\nb",1\nc,2,3\n')
    assert propose_schema(tmp_path / "a.csv").left_out == (
        f"1 row of {tmp_path}/a.csv is left out, as a load refuses it: line 3: the row has 3 fields, the header 2",
    )


TIMES = {
    "2024-05-01": "Date",
    "2024-1-5": "Date",
    "2024-05-01 08:00:00": "DateTime",
    "2024-05-01t08:00:00.25": "DateTime",
    "2024-05-01T08:00:00+02:00": "DateTime",
    "2018-02-30": "String",
    "2024-05-01T25:00:00Z": "String",
    "2024-05-01T08:00Z": "String",
    "0000-05-01": "String",
    "05/01/2024": "String",
}


@pytest.mark.parametrize("text", TIMES)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_date_is_what_a_load_takes_as_one(tmp_path: Path, text: str, kind: str) -> None:
    path = tmp_path / f"days.{kind}"
    path.write_text(f"n,at\n1,{text}\n" if kind == "csv" else json.dumps({"n": 1, "at": text}))
    assert [line.split()[1] for line in lines(path) if line.startswith("  at:")] == [TIMES[text]]
    graph = Graph.init(
        tmp_path / "g", f"node Days {{ n: I64 at: {'DateTime' if TIMES[text] == 'String' else TIMES[text]} }}"
    )
    row = {"type": "Days", "data": {"n": 1, "at": text}}
    if TIMES[text] == "String":
        with pytest.raises(BadRowsError, match="invalid_date"):
            graph.load([json.dumps(row)])
    else:
        graph.load([json.dumps(row)])


def test_dates_and_times_together_are_times(tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    path.write_text("at\n2024-05-01\n2024-05-01 08:00:00\n2024-05-02\n2024-05-03\n2024-05-03\n")
    assert lines(path)[2].split("  //")[0] == "  at: DateTime"
    path.write_text("at\n2024-05-01\n2024-05-02\n2024-05-03\n2018-02-30\n")
    assert lines(path)[2].endswith("3 of 4 spell Date, but not '2018-02-30'")


def records(path: Path, *values: object) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def test_envelopes_name_types_and_ends(tmp_path: Path) -> None:
    people = [{"type": "Person", "data": {"name": f"p{n}", "age": n / 2 if n % 2 else n}} for n in range(20)]
    edges = [{"edge": "Knows", "from": "p1", "to": f"p{n}", "data": {"since": "2020-01-31"}} for n in range(20)]
    path = records(tmp_path / "in.jsonl", *people, *edges, {"edge": "Odd", "from": "p1", "to": "nobody", "data": {}})
    assert lines(path) == [
        f"// 20 rows of {path}",
        "node Person {",
        "  name: String @key  // never null, 20 distinct",
        "  age: F64  // never null",
        "  @range(age, 0.0..18.0)",
        "}",
        "",
        f"// 20 rows of {path}; from and to are keys of Person and Person",
        "edge Knows: Person -> Person {",
        "  since: Date  // never null, 1 distinct: 2020-01-31",
        "}",
        "",
        f"// 1 row of {path}: edges Odd, whose ends are not all keys of one node type",
    ]
    graph = Graph.init(tmp_path / "g", propose_schema(path).schema)
    taken = [line for line in path.read_text().splitlines() if "Odd" not in line]
    assert graph.load(taken).tables["edge:Knows"].inserted == 20


def test_values_of_several_types_are_a_comment(tmp_path: Path) -> None:
    path = records(tmp_path / "a.jsonl", {"a": 1, "b": "x"}, {"a": "one", "b": "y"})
    assert lines(path)[2:4] == [
        "  b: String @key  // never null, 2 distinct",
        "  // a: values of several types",
    ]


def test_columns_that_point_at_keys_become_edges(tmp_path: Path) -> None:
    (tmp_path / "films.csv").write_text(
        "film_id,title,director_id\n" + "".join(f"{n},T{n},{n % 3 or ''}\n" for n in range(9))
    )
    (tmp_path / "directors.csv").write_text("id,rank\n" + "".join(f"{n},{n}\n" for n in range(5)))
    (tmp_path / "cast.csv").write_text("film_id,director_id,role\n" + "".join(f"{n},{n % 5},r{n}\n" for n in range(9)))
    (tmp_path / "away.csv").write_text("away_id,film_id\na,1\nb,77\n")
    schema = propose_schema(tmp_path).schema
    catalog = compile_schema(schema)
    ends = {edge.name: (edge.from_type, edge.to_type, edge.cardinality.display()) for edge in catalog.edges.values()}
    assert ends == {"FilmsDirector": ("Films", "Directors", "0..1"), "Cast": ("Films", "Directors", "0..*")}
    assert "// all 6 values of Films.director_id are keys of Directors (id)" in schema
    assert {prop.name for prop in catalog.edges["Cast"].properties} == {"role"}
    assert {prop.name for prop in catalog.nodes["Directors"].properties} == {"directors_id", "rank"}
    assert {prop.name for prop in catalog.nodes["Away"].properties} == {"away_id", "film_id"}


def test_headers_of_an_import_tool_name_keys_and_ends(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("personId:ID,name,born:int\nk,Keanu,1964\nc,Carrie,1967\n")
    (tmp_path / "films.csv").write_text("movieId:ID,title,year:int\nm,Heat,1995\n")
    (tmp_path / "acted.csv").write_text(":START_ID,role,:END_ID\nk,Neo,m\nc,Trinity,m\n")
    schema = propose_schema(tmp_path).schema
    catalog = compile_schema(schema)
    assert {node.name: node.key for node in catalog.nodes.values()} == {
        "People": ("personId_ID",),
        "Films": ("movieId_ID",),
    }
    assert [(e.name, e.from_type, e.to_type) for e in catalog.edges.values()] == [("Acted", "People", "Films")]
    assert f"// 1 row of {tmp_path / 'films.csv'}\n" in schema


def test_a_type_that_most_texts_spell_is_told(tmp_path: Path) -> None:
    path = tmp_path / "goods.csv"
    path.write_text('sku,title,price,day,word\na,A,1.5,2024-01-31,1\nb,B,2,31.1.2024,x\nc,C,"2,50",2024-02-01,y\n')
    assert lines(path)[2:-1] == [
        "  sku: String @key  // never null, 3 distinct",
        "  title: String @unique  // never null, 3 distinct",
        "  price: String @unique  // never null, 3 distinct, 2 of 3 spell F64, but not '2,50'",
        "  day: String @unique  // never null, 3 distinct, 2 of 3 spell Date, but not '31.1.2024'",
        "  word: String @unique  // never null, 3 distinct",
    ]


def test_a_delta_table_within_a_folder_is_not_read_as_its_files(tmp_path: Path) -> None:
    """What was deleted still lies in its files."""
    write_deltalake(tmp_path / "lake/films", pa.table({"name": ["a", "b"]}))
    for path in (tmp_path / "lake", f"{tmp_path}/*/films"):
        with pytest.raises(
            BadRequestError, match=f"'{tmp_path}/lake/films' is a Delta table.* delta:{tmp_path}/lake/films"
        ):
            propose_schema(path)


def test_arrow_files_are_read(tmp_path: Path) -> None:
    table = pa.table({"name": ["a", "b"]})
    with ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table)
    assert "  name: String @key  // never null, 2 distinct" in lines(tmp_path / "x.arrow")


def test_delta_tables_are_read_at_their_newest_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "films")
    write_deltalake(place, pa.table({"name": ["a"], "at": pa.array([0], pa.timestamp("us", "UTC"))}))
    write_deltalake(place, pa.table({"name": ["b"], "at": pa.array([None], pa.timestamp("us", "UTC"))}), mode="append")
    expected = [
        f"// 2 rows of delta:{place}@v1",
        "node Films {",
        "  name: String @key  // never null, 2 distinct",
        "  at: DateTime?  // 1 of 2 null",
        "}",
    ]
    assert sorted(propose_schema(f"delta:{place}").schema.splitlines()[2:]) == sorted(expected)
    given = ["--graph", str(tmp_path / "g"), "--from", f"delta:{place}", "--accept"]
    assert main(["init", *given]) == 0
    graph = Graph.open(tmp_path / "g")
    graph.load(f"delta:{place}", node="Films")
    assert graph.count("node:Films") == 2
    capsys.readouterr()


def test_a_delta_table_with_deletion_vectors_is_read_without_the_deleted(tmp_path: Path) -> None:
    found = propose_schema(unpack(tmp_path) / "masked")
    assert found.rows == {"Masked": 3}
    assert "  name: String @key  // never null, 3 distinct" in found.schema.splitlines()
    with pytest.raises(BadRequestError, match="INT96"):
        propose_schema(tmp_path / "masked_far")


def test_hostile_names_and_values_stay_in_their_comment(tmp_path: Path) -> None:
    name = 'a"\n}\nnode Evil { x: I32 }\n//\u202e'
    path = parquet(tmp_path, **{name: ["b\n}\nnode Worse {}"] * 120, "id": list(range(120))})
    catalog = compile_schema(propose_schema(path).schema)
    assert list(catalog.nodes) == ["Films"]


def test_a_line_that_is_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n[1]\n')
    with pytest.raises(InputError, match=r"a\.jsonl:2 is no JSON object"):
        propose_schema(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/film_people-0001.parquet", "FilmPeople"), ("films/part-0.csv.gz", "Films"), ("7x.csv", "Rows7x")],
)
def test_types_are_called_after_their_files(path: str, name: str) -> None:
    assert type_name(path) == name


def test_the_verb_writes_a_proposal_and_makes_no_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = records(tmp_path / "films.jsonl", {"name": "a", "year": 1}, {"name": "b", "year": 1})
    schema = propose_schema(path).schema
    assert main(["profile", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out == schema
    assert json.loads(err.splitlines()[-1])["result"]["rows"] == {"Films": 2}
    assert main(["profile", str(path), "--output", str(tmp_path / "films.pg")]) == 0
    assert (tmp_path / "films.pg").read_text() == schema
    assert main(["profile"]) == 2
    assert "PATH is required" in capsys.readouterr().err
    graph = str(tmp_path / "g")
    assert main(["init", "--graph", graph, "--from", str(path)]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["dry_run"], summary["result"]["schema"]) == (True, schema)
    assert not Path(graph).exists()
    assert main(["init", "--graph", graph, "--from", str(path), "--accept"]) == 0
    assert Graph.open(graph).schema() == schema
    assert main(["init", "--graph", f"{graph}2", "--from", str(path), "--schema", str(tmp_path / "films.pg")]) == 2
