"""`Graph.sql`: tables, states, parameters, results; and that a statement reads the graph and nothing else."""

from __future__ import annotations

import json
import os
from datetime import date, datetime, timezone
from decimal import Decimal
from importlib import metadata
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pyarrow as pa
import pytest

from spark_omnigraph import answer
from spark_omnigraph.catalog.types import EntityType
from spark_omnigraph.errors import (
    BadRequestError,
    LimitError,
    NotFoundError,
    OmnigraphError,
    ParameterError,
    QueryEngineError,
    QueryParseError,
    QueryTypeError,
    StorageError,
    UsageError,
)
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.limits import is_left_behind
from spark_omnigraph.sql.source import StateTables

SCHEMA = """
node Thing {
    name: String @key  age: I32? @index  big: U64?  half: F32?  day: Date?  at: DateTime?  times: [DateTime]?
    vec: Vector(2)?  camelCase: String?  order: I64?  pic: Blob?
}
node Twin { name: String @key }
edge Twin: Twin -> Twin { since: Date? }
edge Has: Twin -> Thing
"""
ROWS = [
    '{"type": "Thing", "data": {"name": "a", "age": 1, "big": 18446744073709551615, "half": 0.1, "day": "1969-12-31", '
    '"at": "2020-01-31T10:11:12.345Z", "times": ["4000-01-01T00:00:00Z"], "vec": [3, 4], "camelCase": "x", "order": 5, '
    '"pic": "base64:AAAA"}}',
    '{"type": "Thing", "data": {"name": "far", "age": 2, "at": "4000-01-01T00:00:00Z"}}',
    '{"type": "Thing", "data": {"name": "none"}}',
    '{"type": "Twin", "data": {"name": "t"}}',
    '{"edge": "Twin", "from": "t", "to": "t", "data": {"since": "2020-02-29"}}',
    '{"edge": "Has", "from": "t", "to": "a"}',
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = Graph.init(tmp_path_factory.mktemp("sql") / "g", SCHEMA)
    made.load(ROWS)
    return made


def listing(root: str) -> dict[str, int]:
    """Files of a graph and their sizes."""
    return {str(path): path.stat().st_size for path in Path(root).rglob("*") if path.is_file()}


def rows(graph: Graph, text: str, **choices: object) -> list[dict[str, object]]:
    return graph.sql(text, **choices).to_pylist()  # type: ignore[arg-type, return-value]  # each test's own


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, int, str]:
    graph = Graph.init(tmp_path_factory.mktemp("past") / "g", "node N { k: String @key  n: I32? }")
    first = graph.load(['{"type": "N", "data": {"k": "a", "n": 1}}'])
    graph.tag("release-1.0")
    graph.tag("draft")
    graph.create_branch("draft")
    graph.load(['{"type": "N", "data": {"k": "b", "n": 2}}'], branch="draft")
    graph.create_branch("x/y")
    graph.load(['{"type": "N", "data": {"k": "a", "n": 3}}'], "merge")
    return graph, first.manifest_version or 0, first.commit or ""


class TestTables:
    def test_every_type_of_value(self, graph: Graph) -> None:
        found = graph.sql("SELECT * FROM Thing WHERE name = 'a'")
        assert found.column_names == [
            *("id", "age", "at", "big", "camelCase", "day", "half", "name", "order", "times", "vec"),
        ]
        assert found.to_pylist() == [
            {
                **{"id": "a", "name": "a", "age": 1, "big": 2**64 - 1, "half": pytest.approx(0.1), "camelCase": "x"},
                **{"day": "1969-12-31", "at": "2020-01-31T10:11:12.345Z", "times": ["4000-01-01T00:00:00.000Z"]},
                **{"order": 5, "vec": [3.0, 4.0]},
            }
        ]
        types = {field.name: field.type for field in found.to_arrow().schema}
        assert types["at"] == pa.timestamp("ms", "UTC")
        assert types["times"].value_type == pa.timestamp("ms", "UTC")
        assert types["day"] == pa.date32()

    def test_edges_have_their_ends(self, graph: Graph) -> None:
        assert rows(graph, "SELECT src, dst FROM Has") == [{"src": "t", "dst": "a"}]
        assert graph.sql("SELECT * FROM Has").column_names == ["id", "src", "dst"]

    def test_names_have_their_case(self, graph: Graph) -> None:
        assert rows(graph, "select camelCase, Thing.order from Thing where camelCase is not null") == [
            {"camelCase": "x", "order": 5}
        ]
        with pytest.raises(QueryTypeError, match="no table 'thing'; did you mean 'Thing'"):
            graph.sql("SELECT * FROM thing")
        with pytest.raises(QueryTypeError, match="No field named camelcase"):
            graph.sql("SELECT camelcase FROM Thing")

    def test_a_node_and_an_edge_type_of_one_name_are_told_apart(self, graph: Graph) -> None:
        assert rows(graph, 'SELECT name FROM "node:Twin"') == [{"name": "t"}]
        assert rows(graph, 'SELECT since FROM "edge:Twin"') == [{"since": "2020-02-29"}]
        assert rows(graph, 'SELECT count(*) AS n FROM "node:Thing"') == [{"n": 3}]
        with pytest.raises(QueryTypeError, match='write "node:Twin" or "edge:Twin"'):
            graph.sql("SELECT * FROM Twin")

    def test_information_schema_lists_types_of_branches_and_tags(self, graph: Graph) -> None:
        found = rows(
            graph, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"
        )
        assert [row["table_name"] for row in found] == ["Has", "Thing", "edge:Twin", "node:Twin"]
        text = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = $t ORDER BY 1"
        assert rows(graph, text, params={"t": "edge:Twin"}) == [
            {"column_name": "dst", "data_type": "Utf8"},
            {"column_name": "id", "data_type": "Utf8"},
            {"column_name": "since", "data_type": "Date32"},
            {"column_name": "src", "data_type": "Utf8"},
        ]
        assert len(rows(graph, "DESCRIBE Thing")) == 11
        assert {"graph"} == {row["table_catalog"] for row in rows(graph, "SHOW TABLES")}

    def test_conditions_columns_and_limits_go_down_into_the_scan(self, graph: Graph) -> None:
        plan = "".join(str(row["plan"]) for row in rows(graph, "EXPLAIN SELECT age FROM Thing WHERE age = 1 LIMIT 1"))
        assert "projection=[age]" in plan
        assert "full_filters=[?table?.age = Int32(1)]" in plan
        assert "fetch=1" in plan
        dated = "EXPLAIN SELECT id FROM Thing WHERE Thing.at > timestamp '2020-01-01T00:00:00Z'"
        assert "full_filters=[" in str(rows(graph, dated)[0]["plan"])

    def test_a_limit_over_a_condition(self, graph: Graph) -> None:
        assert len(rows(graph, "SELECT id FROM Thing WHERE age IN (1, 2) LIMIT 1")) == 1

    def test_explain_analyze_has_rows_and_time(self, graph: Graph) -> None:
        plan = str(rows(graph, "EXPLAIN ANALYZE SELECT age, count(*) FROM Thing GROUP BY age")[0]["plan"])
        assert "output_rows=3" in plan
        assert "elapsed_compute=" in plan


class TestStates:
    def test_each_name_is_its_state(self, past: tuple[Graph, int, str]) -> None:
        graph, version, commit = past
        moment = graph.commit(commit).created_at.isoformat()
        expected = {
            "main": {("a", 3)},
            "draft": {("a", 1), ("b", 2)},
            "tag:draft": {("a", 1)},
            "release-1.0": {("a", 1)},
            "x/y": {("a", 1)},
            f"main@{version}": {("a", 1)},
            f"main@{commit}": {("a", 1)},
            f"main@{moment}": {("a", 1)},
        }
        for name, shown in expected.items():
            found = rows(graph, f'SELECT k, n FROM "{name}".N')
            assert {(row["k"], row["n"]) for row in found} == shown, name

    def test_states_meet_in_one_statement(self, past: tuple[Graph, int, str]) -> None:
        graph, version, _ = past
        text = f'SELECT new.n AS new, old.n AS old FROM N new JOIN "main@{version}".N old USING (k)'
        assert rows(graph, text) == [{"new": 3, "old": 1}]

    def test_names_without_a_schema_are_of_the_state_that_is_asked_for(self, past: tuple[Graph, int, str]) -> None:
        graph, version, commit = past
        for choice in ({"version": version}, {"snapshot": commit}, {"tag": "release-1.0"}, {"branch": "x/y"}):
            result = graph.sql("SELECT n FROM N", **choice)
            assert result.to_pylist() == [{"n": 1}], choice
        assert (
            graph.sql("SELECT 1", branch="draft").branch,
            graph.sql("SELECT 1", version=version).manifest_version,
        ) == (
            "draft",
            version,
        )

    def test_schemata_are_branches_and_tags(self, past: tuple[Graph, int, str]) -> None:
        found = rows(past[0], "SELECT schema_name FROM information_schema.schemata ORDER BY 1")
        assert [row["schema_name"] for row in found] == ["draft", "main", "release-1.0", "tag:draft", "x/y"]

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("drafd", "neither a branch nor a tag; did you mean 'draft'"),
            ("main@99", "manifest version 99 not found"),
            ("main@nothing", "after the @ stands a manifest version"),
            ("nope@1", "branch 'nope' not found"),
            ("main@01ARZ3NDEKTSV4RRFFQ69G5FAV", "commit '01ARZ3NDEKTSV4RRFFQ69G5FAV' not found"),
        ],
    )
    def test_no_such_state(self, past: tuple[Graph, int, str], name: str, says: str) -> None:
        with pytest.raises(NotFoundError, match=says):
            past[0].sql(f'SELECT * FROM "{name}".N')

    def test_a_pinned_handle_shows_its_own_state_alone(self, past: tuple[Graph, int, str]) -> None:
        graph, version, _ = past
        pinned = graph.at(version=version)
        assert rows(pinned, "SELECT n FROM N") == [{"n": 1}]
        assert {row["table_schema"] for row in rows(pinned, "SHOW TABLES")} == {f"main@{version}", "information_schema"}
        with pytest.raises(BadRequestError, match="pinned"):
            pinned.sql("SELECT * FROM draft.N")

    def test_columns_of_before_a_change_of_the_schema(self, tmp_path: Path) -> None:
        graph = Graph.init(tmp_path / "g", "node N { k: String @key  n: I32? }")
        graph.load(['{"type": "N", "data": {"k": "a", "n": 1}}'])
        before = graph.snapshot().version
        graph.apply_schema("node N { k: String @key  n: I64?  later: Date? }\nnode M { k: String @key }")
        assert rows(graph, "SELECT k, n, later FROM N") == [{"k": "a", "n": 1, "later": None}]
        assert rows(graph, "SELECT count(*) AS c FROM M") == [{"c": 0}]
        assert graph.sql(f'SELECT * FROM "main@{before}".N').column_names == ["id", "k", "n"]


class TestValues:
    def test_parameters_are_bound_and_never_pasted(self, graph: Graph) -> None:
        attack = "a' OR '1'='1"
        assert rows(graph, "SELECT id FROM Thing WHERE name = $n", params={"n": attack}) == []
        assert rows(graph, "SELECT $n AS n", params={"n": attack}) == [{"n": attack}]
        with pytest.raises(OmnigraphError):
            rows(graph, "SELECT * FROM $t", params={"t": "Thing"})

    @pytest.mark.parametrize(
        ("text", "value", "ids"),
        [
            ("Thing.at > $v", datetime(3000, 1, 1, tzinfo=timezone.utc), ["far"]),
            ("day = $v", date(1969, 12, 31), ["a"]),
            ("day = $v", "1969-12-31", ["a"]),
            ("array_has($v, name)", ["a", "none"], ["a", "none"]),
            ("age = $v", None, []),
            ("big = $v", pa.scalar(2**64 - 1, pa.uint64()), ["a"]),
            ("order > $v", 4, ["a"]),
            ("(age = 1) = $v", True, ["a"]),
        ],
        ids=str,
    )
    def test_values_of_every_kind(self, graph: Graph, text: str, value: object, ids: list[str]) -> None:
        text = text.replace("order", "Thing.order")
        found = rows(graph, f"SELECT id FROM Thing WHERE {text} ORDER BY id", params={"v": value})
        assert [row["id"] for row in found] == ids

    def test_a_parameter_without_a_value(self, graph: Graph) -> None:
        with pytest.raises(ParameterError, match=r"parameter \$age has no value"):
            rows(graph, "SELECT id FROM Thing WHERE age = $age")
        with pytest.raises(ParameterError, match=r"parameter \$b has no value"):
            rows(graph, "SELECT $a, $b", params={"a": 1})
        with pytest.raises(ParameterError, match=r"':age' is no parameter here: write \$age, and its value in params"):
            rows(graph, "SELECT id FROM Thing WHERE age = :age")
        with pytest.raises(ParameterError, match=r"'\?' is no parameter here: write \$name, and its value in params"):
            rows(graph, "SELECT id FROM Thing WHERE age = ?")

    def test_values_that_json_has_no_form_for(self, graph: Graph) -> None:
        text = """SELECT 1.50 :: decimal(5, 2) AS d, time '10:11:12' AS t, x'0001' AS b, named_struct('k', day) AS s,
            timestamp '2020-01-31T00:00:00.123456' AS naive, 'NaN' :: double AS nan FROM Thing WHERE name = 'a'"""
        assert rows(graph, text) == [
            {
                **{"d": "1.50", "t": "10:11:12", "b": "AAE=", "s": {"k": "1969-12-31"}, "nan": "NaN"},
                "naive": "2020-01-31T00:00:00.123456000",
            }
        ]
        assert graph.sql("SELECT 1.50 :: decimal(5, 2) AS d").to_arrow().to_pylist() == [{"d": Decimal("1.50")}]


class TestResults:
    def test_rows_come_as_they_are_found(self, graph: Graph) -> None:
        stream = graph.sql("SELECT value FROM generate_series(1, 100000000000)").batches()
        assert next(stream).column(0)[0].as_py() == 1
        stream.close()  # type: ignore[attr-defined]  # it is a generator
        assert not is_left_behind(60)

    def test_a_result_may_be_read_again(self, graph: Graph) -> None:
        result = graph.sql("SELECT id FROM Thing ORDER BY id")
        assert [row["id"] for row in result] == ["a", "far", "none"]
        assert result.row_count == 3
        assert pa.table(result).column("id").to_pylist() == ["a", "far", "none"]
        assert result.to_arrow() is result.to_arrow()
        assert result.to_pylist()[0] == {"id": "a"}
        assert result.to_pandas()["id"].tolist() == ["a", "far", "none"]

    @pytest.mark.parametrize(
        ("value", "package"),
        [
            ("to_date(2147483647)", "pandas"),
            ("arrow_cast(1, 'Timestamp(Second, Some(\"No/Zone\"))')", "pandas"),
            ("arrow_cast(1, 'Timestamp(Second, Some(\"No/Zone\"))')", "polars"),
            ("arrow_cast('1', 'Decimal256(76, 2)')", "polars"),
        ],
    )
    def test_a_value_that_a_package_has_no_form_for(self, graph: Graph, value: str, package: str) -> None:
        result = graph.sql(f"SELECT {value} AS v")
        with pytest.raises(BadRequestError, match=f"{package} has no form for a value .*: use to_arrow") as refused:
            getattr(result, f"to_{package}")()
        assert "\n" not in refused.value.message
        assert result.to_arrow().num_rows == 1

    def test_what_stops_the_process_is_no_value(self, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
        class Stopped(BaseException):
            """As a signal of whoever runs this is."""

        def stop(_: object) -> object:
            raise Stopped

        monkeypatch.setattr(answer, "import_module", lambda _: SimpleNamespace(from_arrow=stop))
        with pytest.raises(Stopped):
            graph.sql("SELECT 1 AS v").to_polars()

    @pytest.mark.parametrize(
        "value",
        [
            "arrow_cast(9223372036854775807, 'Duration(Second)')",
            "[arrow_cast(9223372036854775807, 'Duration(Second)')]",
            "map(['a'], [arrow_cast(9223372036854775807, 'Timestamp(Second, None)')])",
        ],
    )
    def test_a_value_that_has_no_text(self, graph: Graph, value: str) -> None:
        with pytest.raises(BadRequestError, match=r"there is no text for a value of the type .*: cast it"):
            graph.sql(f"SELECT {value} AS v").to_pylist()

    def test_no_rows_have_columns(self, graph: Graph) -> None:
        table = graph.sql("SELECT id, age FROM Thing WHERE false").to_arrow()
        assert (table.column_names, table.num_rows) == (["id", "age"], 0)


READS_ALONE = (
    "COPY Thing TO '{file}.csv'",
    "COPY (SELECT 1) TO '{file}.parquet' STORED AS PARQUET",
    "EXPLAIN COPY Thing TO '{file}.csv'",
    "EXPLAIN ANALYZE COPY Thing TO '{file}.csv'",
    "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{folder}'",
    "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION 's3://bucket/x.csv' OPTIONS ('aws.endpoint' 'http://127.0.0.1:1')",
    "CREATE TABLE x AS SELECT * FROM Thing",
    "CREATE OR REPLACE VIEW Thing AS SELECT 1",
    "CREATE SCHEMA x",
    "CREATE DATABASE x",
    "CREATE FUNCTION f() RETURNS INT RETURN 1",
    "CREATE INDEX i ON Thing (age)",
    "DROP TABLE Thing",
    "DROP VIEW Thing",
    "DROP SCHEMA main",
    "ALTER TABLE Thing ADD COLUMN x INT",
    "INSERT INTO Thing SELECT * FROM Thing",
    "INSERT OVERWRITE Has SELECT * FROM Has",
    "EXPLAIN ANALYZE INSERT INTO Has SELECT * FROM Has",
    "UPDATE Thing SET age = 1",
    "DELETE FROM Thing",
    "TRUNCATE TABLE Thing",
    "MERGE INTO Thing USING Has ON true WHEN MATCHED THEN DELETE",
    "WITH x AS (DELETE FROM Thing RETURNING *) SELECT * FROM x",
    "SELECT * INTO x FROM Thing",
    "SET datafusion.execution.batch_size = 1",
    "SET datafusion.runtime.temp_directory = '{folder}'",
    "RESET datafusion.execution.batch_size",
    "SET TIME ZONE 'UTC'",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "DEALLOCATE p",
    "BEGIN",
    "COMMIT",
    "USE main",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY Thing TO '{file}.csv'",
    "/* SELECT */ COPY Thing TO '{file}.csv'",
    "SELECT * FROM '{secret}'",
    'SELECT * FROM "{secret}"',
    "SELECT * FROM 'file://{secret}'",
    "SELECT * FROM 'https://example.com/x.csv'",
    "SELECT * FROM 's3://bucket/x.parquet'",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_parquet('{secret}')",
    "SELECT * FROM parquet_metadata('{secret}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT read_file('{secret}')",
    "SELECT pg_read_file('{secret}')",
    "SELECT getenv('HOME')",
    "LOAD '{secret}'",
    "INSTALL httpfs",
    "ATTACH '{secret}' AS x",
    "EXPORT DATABASE '{folder}'",
    "PRAGMA database_list",
    "CALL f()",
    "",
    "-- nothing",
)


class TestReadingAlone:
    @pytest.mark.parametrize("text", READS_ALONE)
    def test_whatever_is_no_query_is_refused_and_changes_nothing(self, graph: Graph, tmp_path: Path, text: str) -> None:
        secret = tmp_path / "secret.csv"
        secret.write_text("a\nhidden\n")
        before, environment = listing(graph.uri), dict(os.environ)
        given = text.format(file=tmp_path / "made", folder=tmp_path, secret=secret)
        with pytest.raises((BadRequestError, QueryTypeError, QueryParseError)) as refused:
            rows(graph, given)
        assert "\n" not in refused.value.message
        assert "hidden" not in refused.value.message
        assert listing(graph.uri) == before
        assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
        assert dict(os.environ) == environment

    def test_what_it_is_told_names_the_way_out(self, graph: Graph) -> None:
        with pytest.raises(
            BadRequestError, match=r"sql reads, and does nothing else: give one SELECT.*this is refused"
        ):
            graph.sql("DELETE FROM Thing")

    def test_the_engine_has_no_store_of_files_and_no_table_that_takes_rows(self, graph: Graph, tmp_path: Path) -> None:
        """Behind the first door, which refuses by the kind of statement, there is nothing to open."""
        context = graph.sql("SELECT * FROM Has")._states.context
        with pytest.raises(Exception, match="No suitable object store"):
            context.sql(f"COPY (SELECT 1) TO '{tmp_path}/made.csv'").collect()
        with pytest.raises(Exception, match=r"(?i)insert into not implemented|not supported"):
            context.sql("INSERT INTO Has SELECT * FROM Has").collect()
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "text",
        [
            "SELECT repeat('x', 2000000000)",
            "SELECT lpad('x', 2000000000)",
            "SELECT rpad('x', 2000000000)",
            "SELECT array_repeat(1, 2000000000)",
            "SELECT list_repeat(1, 2000000000)",
            "SELECT array_resize([1], 2000000000, 0)",
            "SELECT range(0, 2000000000)",
            "SELECT generate_series(0, 2000000000)",
        ],
    )
    def test_functions_that_fill_memory_are_absent(self, graph: Graph, text: str) -> None:
        name = text.removeprefix("SELECT ").partition("(")[0]
        for spelled in (text, text.replace(name, name.upper())):
            with pytest.raises(QueryTypeError, match=f"sql: the function {name} is absent, since it makes values of"):
                graph.sql(spelled)

    @pytest.mark.parametrize("name", ["range", "generate_series"])
    def test_numbers_are_rows_one_after_the_other(self, graph: Graph, name: str) -> None:
        assert rows(graph, f"SELECT value FROM {name}(1, 2000000000) LIMIT 2") == [{"value": 1}, {"value": 2}]
        with pytest.raises(QueryTypeError, match=rf"; FROM {name}\(1, 5\) gives the numbers as rows"):
            graph.sql(f"SELECT {name}(1, 5)")

    def test_deep_statements_are_refused(self, graph: Graph) -> None:
        for text in ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "SELECT * FROM (" * 500 + "SELECT 1" + ")" * 500):
            with pytest.raises(QueryParseError, match="nested too deeply"):
                graph.sql(text)

    def test_a_long_list_is_planned(self, graph: Graph) -> None:
        listed = ", ".join(map(str, range(-5_000, 5_000)))
        assert rows(graph, f"SELECT count(*) AS n FROM Thing WHERE age IN ({listed})") == [{"n": 2}]


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "kind", "says"),
        [
            ("selec 1", QueryParseError, "Expected: an SQL statement, found: selec (line 1, column 1)"),
            ("SELECT 1\nFROM Thing WHERE 'x", QueryParseError, "Unterminated string literal (line 2, column 18)"),
            ("SELECT nothing FROM Thing", QueryTypeError, "No field named nothing"),
            ("SELECT no_function(1)", QueryTypeError, "Invalid function 'no_function'"),
            ("SELECT id FROM Thing GROUP BY age", QueryTypeError, "must be in GROUP BY"),
            ("SELECT 1 / 0", QueryEngineError, "Divide by zero"),
            ("SELECT cast(id AS int) FROM Thing", QueryEngineError, "Cannot cast string"),
            ("SELECT id FROM Thing WHERE age = 'x'", QueryEngineError, "Cannot cast string 'x'"),
            ("SELECT (SELECT id FROM Thing)", QueryEngineError, "more than one row"),
            ("SELECT * FROM other.main.Thing", QueryTypeError, "no table or schema other.main.Thing"),
            ("SELECT 1 UNION SELECT 'a'", QueryEngineError, "Failed to parse string: 'a' as a scalar of type int64"),
            ("SELECT arrow_cast([1], 'FixedSizeList(-1, Int64)')", QueryEngineError, "unsupported format string"),
            ("SELECT map([], [])", QueryEngineError, "is a map without a type of its keys: cast them"),
            ("SELECT [named_struct('a', map([], []))]", QueryEngineError, "is a map without a type of its keys"),
            ("SELECT TOP 5 name FROM Thing", QueryTypeError, "sql: not supported: TOP"),
            ("SELECT * FROM Thing WHERE id RLIKE 'a'", QueryTypeError, "sql: Unsupported ast node in sqltorel: RLike"),
            (
                "SELECT (SELECT count(*) FROM Thing u WHERE u.age < t.age) FROM Thing t",
                QueryEngineError,
                "query: a subquery may look at t.age of the query around it by = alone, without LIMIT, and within "
                "EXISTS in WHERE alone: join it",
            ),
            (
                "SELECT * FROM Thing t CROSS JOIN LATERAL (SELECT t.age + 1 AS next)",
                QueryEngineError,
                "query: a subquery may look at age of the query around it by = alone",
            ),
            (
                "SELECT id IN (SELECT id FROM Thing) FROM Thing",
                QueryEngineError,
                "query: IN, ANY and EXISTS take a subquery in WHERE and HAVING alone",
            ),
            (
                "SELECT CASE WHEN EXISTS (SELECT 1 FROM Thing u WHERE u.id = t.id) THEN 1 END FROM Thing t",
                QueryEngineError,
                "by = alone, without LIMIT, and within EXISTS in WHERE alone: join it",
            ),
            (
                "SELECT 1 FROM Thing t JOIN Thing u ON t.id IN (SELECT id FROM Thing)",
                QueryEngineError,
                "query: IN, ANY and EXISTS take a subquery in WHERE and HAVING alone",
            ),
            (
                "SELECT id FROM Thing t ORDER BY (SELECT max(u.age) FROM Thing u WHERE u.id = t.id)",
                QueryEngineError,
                "and none in ORDER BY looks at the query around it: join it",
            ),
            ("SELECT q'[a]'", QueryTypeError, "sql: Unsupported Value QuoteDelimitedStringLiteral"),
        ],
    )
    def test_errors_are_typed_and_have_one_line(self, graph: Graph, text: str, kind: type, says: str) -> None:
        with pytest.raises(OmnigraphError) as refused:
            rows(graph, text)
        assert type(refused.value) is kind
        assert says in refused.value.message
        assert "\n" not in refused.value.message
        internal = (
            "DataFusion error",
            "FFI",
            "caused by",
            ".rs:",
            "Ident {",
            "not implemented",
            "outer_ref",
            "OuterRef",
        )
        assert not any(layer in refused.value.message for layer in internal)

    def test_a_parse_error_says_where(self, graph: Graph) -> None:
        with pytest.raises(QueryParseError) as refused:
            graph.sql("SELECT 'ä'\nFROM Thing WHERE )")
        span = refused.value.span
        assert span is not None
        assert (span.line, span.column, span.text) == (2, 18, "FROM Thing WHERE )")

    def test_a_table_that_is_damaged(self, tmp_path: Path) -> None:
        graph = Graph.init(tmp_path / "g", "node N { k: String @key }")
        graph.load(['{"type": "N", "data": {"k": "a"}}'])
        for file in (tmp_path / "g").glob("nodes/**/*.lance"):
            if file.is_file():
                file.unlink()
        with pytest.raises(StorageError) as failed:
            rows(Graph.open(tmp_path / "g", "r"), "SELECT k FROM N")
        assert "\n" not in failed.value.message

    def test_without_datafusion(self, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> str:
            raise metadata.PackageNotFoundError(name)

        monkeypatch.setattr(metadata, "version", missing)
        with pytest.raises(UsageError, match=r"not installed: pip install 'spark-omnigraph\[sql\]'"):
            graph.sql("SELECT 1")
        monkeypatch.setattr(metadata, "version", lambda _: "55.0.0")
        with pytest.raises(UsageError, match=r"needs datafusion 54, .* and 55.0.0 is here"):
            graph.sql("SELECT 1")


class TestLimits:
    def test_time(self, graph: Graph) -> None:
        with pytest.raises(LimitError, match=r"time limit of 0\.2 s"):
            rows(graph, "SELECT max(value) FROM generate_series(1, 1000000000000)", time_limit=0.2)
        with pytest.raises(LimitError, match="time limit"):
            rows(
                graph,
                "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
                time_limit=0.2,
            )

    def test_rows(self, graph: Graph) -> None:
        assert len(rows(graph, "SELECT id FROM Thing", max_rows=3)) == 3
        with pytest.raises(LimitError, match="more than 2 rows: limit it, or allow more by max_rows"):
            rows(graph, "SELECT id FROM Thing", max_rows=2)

    def test_memory_and_room_on_the_disk(self, graph: Graph) -> None:
        series = "generate_series(1, 3000000)"
        joined = f"SELECT count(*) FROM {series} a JOIN {series} b ON a.value = b.value"
        with pytest.raises(LimitError, match="allow more by memory"):
            rows(graph, joined, memory=16 << 20)
        ordered = f"SELECT value FROM {series} ORDER BY value % 1000, value"
        with pytest.raises(LimitError, match="than it may: ask for less, or allow more by spill"):
            rows(graph, ordered, memory=16 << 20, spill=16 << 20)
        assert next(graph.sql(ordered, memory=16 << 20).batches()).column(0)[0].as_py() == 1000
        assert not is_left_behind(60)

    def test_planning_that_is_left_hinders_nobody(self, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is in the middle of one table, and looks at no other one when it goes on."""
        held, looked = Event(), list[str]()
        type_of = StateTables.type

        def slow(state: StateTables, name: str) -> EntityType:
            looked.append(name)
            held.wait(60)
            return type_of(state, name)

        with monkeypatch.context() as patched:
            patched.setattr(StateTables, "type", slow)
            with pytest.raises(LimitError, match=r"time limit of 0\.2 s"):
                graph.sql("SELECT * FROM Thing a, Thing b, Has c", time_limit=0.2)
        assert len(rows(graph, "SELECT id FROM Thing")) == 3
        held.set()
        assert not is_left_behind(60)
        assert len(looked) == 1

    @pytest.mark.parametrize("wrong", [0, True, "1GiB", 2**70], ids=str)
    def test_no_number_of_bytes(self, graph: Graph, wrong: object) -> None:
        with pytest.raises(BadRequestError, match="memory is a number of bytes from 16,777,216 on"):
            graph.sql("SELECT 1", memory=wrong)  # type: ignore[arg-type]  # what a caller may give

    def test_a_misspelt_choice_is_refused(self, graph: Graph) -> None:
        with pytest.raises(BadRequestError, match="'brnach' names no state"):
            graph.sql("SELECT 1", brnach="main")  # type: ignore[call-arg]  # what a caller may give


class TestQueries:
    """The same limits of `.gq` queries, and what `analyze` shows."""

    EVERY = "query q() { match { $a: Thing $b: Thing $a.age < $b.age } return { $a.name, $b.name } }"

    def test_limits(self, graph: Graph) -> None:
        assert graph.query(self.EVERY, max_rows=1, time_limit=60).to_pylist() == [{"a.name": "a", "b.name": "far"}]
        with pytest.raises(LimitError, match="more than 0 rows"):
            graph.query(self.EVERY, max_rows=0)

    def test_a_query_that_takes_too_long_is_left_and_ends(self, tmp_path: Path) -> None:
        graph = Graph.init(tmp_path / "g", "node N { k: String @key  n: I64 }")
        graph.load_table("node:N", pa.table({"k": [str(i) for i in range(60_000)], "n": range(60_000)}))
        every = "query q() { match { $a: N $b: N $a.n > $b.n $b.n > $a.n } return { count($a) as c } }"
        with pytest.raises(LimitError, match=r"time limit of 0\.3 s"):
            graph.query(every, time_limit=0.3)
        assert not is_left_behind(60)

    @pytest.mark.parametrize("time_limit", [None, 60])
    def test_progress_is_told_of_each_operator_that_is_done(self, graph: Graph, time_limit: int | None) -> None:
        text = "query q() { match { $t: Twin $t has $x $x.age = 1 } return { $x.name } order { $x.name } limit 5 }"
        told: list[tuple[str, int, int]] = []

        def progress(phase: str, done: int, total: int) -> None:
            told.append((phase, done, total))

        answer = graph.query(text, progress=progress, time_limit=time_limit).to_pylist()
        assert answer == graph.query(text).to_pylist()
        # The limit sorts by itself, so of the five operators four have rows of their own.
        assert told == [("query", 1, 5), ("query", 2, 5), ("query", 3, 5), ("query", 4, 5), ("query", 5, 5)]
        with pytest.raises(BadRequestError, match="progress is a function, not 5"):
            graph.query(text, progress=5)  # type: ignore[arg-type]  # what a caller may give

    def test_analyze_shows_rows_and_time_of_each_operator(self, graph: Graph) -> None:
        text = "query q() { match { $t: Twin $t has $x $x.age = 1 } return { $x.name } order { $x.name } limit 5 }"
        lines = graph.explain(text, analyze=True).splitlines()
        assert lines[0] == "query q -> x.name: String"
        shown = [(line.split()[0], line.rpartition("[")[2].split(",")[0]) for line in lines[1:-1]]
        assert shown == [
            ("project", "1 row"),
            ("limit", "1 row"),
            ("sort", "with the line above]"),
            ("expand", "1 row"),
            ("scan", "1 row"),
        ]
        assert lines[-1].endswith(" ms")
        *plan, engine = graph.explain(text).splitlines()
        assert plan == [line.rpartition("  [")[0] or line for line in lines[:-1]]
        assert engine.startswith("engine auto: embedded")

    def test_analyze_reads_the_state_that_is_asked_for(self, graph: Graph) -> None:
        text = "query q() { match { $x: Thing } return { $x.name } }"
        assert "[0 rows" in graph.explain(text, analyze=True, version=1)
        assert "[3 rows" in graph.explain(text, analyze=True)


def test_json_of_an_export_is_untouched(graph: Graph) -> None:
    """Reading leaves no trace: the graph that the attacks saw is the one that was loaded."""
    assert len([json.loads(line) for line in graph.export()]) == len(ROWS)


def test_an_answer_shows_its_first_rows_and_its_repr_runs_nothing(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "shown", "node Film { title: String @key }")
    graph.load([json.dumps({"type": "Film", "data": {"title": f"<b>{n:03d}"}}) for n in range(30)])
    answer = graph.sql("SELECT title, CAST(title AS BIGINT) AS n FROM Film")
    assert repr(answer) == "<SqlResult: rows of title, n>"
    shown = graph.sql("SELECT title FROM Film ORDER BY title")._repr_html_()
    assert "&lt;b&gt;019" in shown
    assert "<b>0" not in shown
    assert "&lt;b&gt;021" not in shown
