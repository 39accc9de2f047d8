"""How far values grow: each way to join a text or a list to itself, and statements that only look like it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from datafusion import SessionConfig, SessionContext

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.sql.growth import MOST_PIECES, Growth

TABLE = "CREATE TABLE T AS SELECT 'abc' AS t, 1 AS n, ['a', 'b'] AS l, [1] AS m"


@cache
def planner() -> SessionContext:
    context = SessionContext(SessionConfig({"datafusion.sql_parser.map_string_types_to_utf8view": "false"}))
    context.sql(TABLE).collect()
    return context


def pieces(text: str) -> list[int]:
    return [weight for _, weight in Growth().check(planner().sql(text).logical_plan())]


def steps(body: str, count: int = 30) -> str:
    queries = ["c0 AS (SELECT * FROM T)", *(f"c{i} AS ({body.format(f'c{i - 1}')})" for i in range(1, count + 1))]
    return f"WITH {', '.join(queries)} SELECT * FROM c{count}"


DOUBLING = {
    "operator": "SELECT t || t AS t FROM {0}",
    "named columns": "SELECT x AS t FROM (SELECT t || t FROM {0}) y (x)",
    "columns that change places": "SELECT b AS t FROM (SELECT t || t, t FROM {0}) x (b, a)",
    "two columns in turn": "SELECT t || u AS t, u || t AS u FROM (SELECT t, t AS u FROM {0}) x",
    "concat": "SELECT concat(t, t) AS t FROM {0}",
    "separators": "SELECT concat_ws(t, t, '') AS t FROM {0}",
    "replace": "SELECT replace(t, 'a', t) AS t FROM {0}",
    "a long text": f"SELECT replace(t, 'a', '{'a' * 99}') AS t FROM {{0}}",
    "groups": r"SELECT regexp_replace(t, '(.*)', '\1\1', 'g') AS t FROM {0}",
    "lists": "SELECT array_concat(l, l) AS l FROM {0}",
    "texts of lists": "SELECT array_append(l, array_to_string(l, ',')) AS l FROM {0}",
    "lists of texts": "SELECT array_to_string([t, t], '') AS t FROM {0}",
    "fields": "SELECT get_field(named_struct('a', t || t), 'a') AS t FROM {0}",
    "one case": "SELECT CASE WHEN n = 1 THEN t || t ELSE t END AS t, n FROM {0}",
    "casts": "SELECT CAST(t || t AS TEXT) AS t FROM {0}",
    "union": "SELECT 'a' AS t FROM T UNION ALL SELECT t || t AS u FROM {0}",
    "distinct": "SELECT DISTINCT t || t AS t FROM {0}",
    "groups by": "SELECT t || t AS t FROM {0} GROUP BY t || t",
    "rollup": "SELECT t || t AS t FROM {0} GROUP BY ROLLUP (t || t)",
    "aggregates": "SELECT max(t || t) AS t FROM {0}",
    "collected": "SELECT string_agg(t, '') || string_agg(t, '') AS t FROM {0}",
    "windows": "SELECT max(t || t) OVER () AS t FROM {0}",
    "rows before": "SELECT lag(t || t, 0) OVER (ORDER BY t) AS t FROM {0}",
    "lateral": "SELECT z AS t FROM {0}, LATERAL (SELECT {0}.t || {0}.t AS z) q",
    "wide types": "SELECT arrow_cast(t, 'Utf8View') || arrow_cast(t, 'LargeUtf8') AS t FROM {0}",
    "what is compared": "SELECT t || t AS t FROM {0} WHERE concat(t, t) = 'a' ORDER BY t || t",
}


@pytest.mark.parametrize("body", DOUBLING.values(), ids=DOUBLING)
def test_what_doubles_is_refused_however_it_is_made(body: str) -> None:
    assert pieces(steps(body, 1)), "one step is an ordinary statement"
    with pytest.raises(BadRequestError, match="values of more than 4,000 others"):
        pieces(steps(body))


@pytest.mark.parametrize(
    "body",
    [
        "SELECT t || 'x' AS t FROM {0}",
        "SELECT upper(trim(t)) AS t FROM {0}",
        "SELECT n + n * n AS n, t || t AS u, t FROM {0}",
        "SELECT coalesce(t, t) AS t, CASE WHEN t || t = 'a' THEN t ELSE t END AS u FROM {0}",
        "SELECT a.t FROM {0} a JOIN T b ON a.t || b.t = b.t || a.t",
        "SELECT replace(t, '&', '&amp;') AS t FROM {0}",
        "SELECT regexp_replace(t, '^a long pattern of many letters', 'b') AS t FROM {0}",
        "SELECT max(t) AS t FROM {0} GROUP BY t HAVING string_agg(t, ', ') <> 'a'",
    ],
)
def test_what_grows_by_as_much_each_time_is_not(body: str) -> None:
    assert max(pieces(steps(body))) <= 400 + 30


def test_pieces_are_counted_through() -> None:
    assert pieces("SELECT t, t || '-' || t, n + n, concat_ws(', ', t, t, t), coalesce(t, t || t) FROM T") == [
        1,
        3,
        1,
        6,
        2,
    ]
    assert pieces("WITH a AS (SELECT t || t AS u FROM T) SELECT u || u || 'x' FROM a") == [5]
    assert pieces(f"SELECT '{'a' * 640}' || t, '{'a' * 9000}' || t FROM T") == [22, 103]
    assert pieces("SELECT array_agg(t) OVER (ORDER BY n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM T") == [3]


def test_a_row_is_counted_whole() -> None:
    many = ", ".join(f"t || '{place}' AS t{place}" for place in range(MOST_PIECES // 2))
    pieces(f"SELECT {many} FROM T")
    with pytest.raises(BadRequestError, match="4,000 others"):
        pieces(f"SELECT {many}, t || t FROM T")


@pytest.mark.parametrize(
    "text",
    [
        "WITH RECURSIVE r AS (SELECT t AS a, n FROM T UNION ALL SELECT a || a, n + 1 FROM r) SELECT * FROM r",
        "WITH RECURSIVE r AS (SELECT 'a' AS a, 'b' AS b UNION ALL SELECT b, a || b FROM r) SELECT * FROM r",
    ],
)
def test_a_recursive_query_that_doubles_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError, match="4,000 others"):
        pieces(text)


def test_a_recursive_query_that_collects_a_path_is_not() -> None:
    again = "SELECT {1}, T.n FROM r JOIN T ON r.n = T.n"
    joined = f"WITH RECURSIVE r AS (SELECT {{0}} AS p, n FROM T UNION ALL {again}) SELECT * FROM r"
    pieces(joined.format("t", "r.p || ' -> ' || T.t"))
    pieces(joined.format("[t]", "array_append(r.p, T.t)"))


@pytest.mark.parametrize("frame", ["()", "(ORDER BY n)", "(ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)"])
def test_all_rows_of_a_window_in_each_row_are_refused(frame: str) -> None:
    for of in ("array_agg(t)", "string_agg(t, '')"):
        with pytest.raises(BadRequestError, match=r"_agg OVER would make a value of many rows for each row"):
            pieces(f"SELECT {of} OVER {frame} FROM T")


def test_a_long_list_is_not_looked_at_word_by_word() -> None:
    assert pieces(f"SELECT t FROM T WHERE n IN ({', '.join(map(str, range(20_000)))})") == [1]
    with pytest.raises(BadRequestError, match="4,000 others"):
        pieces(steps("SELECT t || t AS t FROM {0}", 11) + " WHERE t IN ('a', t || t || t)")


def filled(text: str, letters: str, count: int) -> str:
    for _ in range(count):
        text = f"replace({text}, '{letters}', x)"
    return f"SELECT {text} FROM (SELECT '{letters * (600 // len(letters))}' AS x FROM T) y"


@pytest.mark.parametrize("letters", ["a", "ab", "{name}", "a word of 25 letters here"])
def test_a_text_that_is_put_into_itself_again_and_again_is_refused(letters: str) -> None:
    """One row would be of 600 * (600 / letters) ** times bytes, in memory that nothing bounds."""
    pieces(filled("'a text'", letters, 1))
    times = next(n for n in range(1, 99) if 600 * (600 // len(letters)) ** n > 1 << 32)
    with pytest.raises(BadRequestError, match="4,000 others"):
        pieces(filled("x", letters, times))


def test_a_template_takes_several_columns() -> None:
    text = "replace('Dear {name}, of {street} in {city}: {amount} due on {date}, by {way}', '{name}', t || ' ' || t)"
    for name in ("street", "city", "amount", "date", "way"):
        text = f"replace({text}, '{{{name}}}', t)"
    pieces(f"SELECT {text} FROM T")


def test_many_columns_may_collect_texts() -> None:
    pieces(f"SELECT n, {', '.join(f'string_agg(t, {place!r})' for place in map(str, range(30)))} FROM T GROUP BY n")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = Graph.init(tmp_path / "g", "node N { k: String @key  n: I64? }")
    graph.load(['{"type": "N", "data": {"k": "ab", "n": 1}}'])
    return graph


HIDDEN = {
    "subquery": "SELECT (SELECT max(k) FROM {0}) || (SELECT max(k) FROM {0}) AS k",
    "of one use": "SELECT x || x AS k FROM (SELECT (SELECT max(k) FROM {0}) AS x) y",
    "of a text": "SELECT (SELECT k || k FROM {0} LIMIT 1) AS k",
    "distinct on": "SELECT DISTINCT ON (k) k || k AS k FROM {0}",
    "in": "SELECT k || k AS k FROM {0} WHERE 'x' NOT IN (SELECT k FROM {0})",
}


@pytest.mark.parametrize("body", HIDDEN.values(), ids=HIDDEN)
def test_what_a_subquery_hides_is_found(graph: Graph, body: str) -> None:
    count = 9 if body.count("{0}") == 2 else 30

    def asked(count: int) -> str:
        return steps(body, count).replace("FROM T", "FROM N")

    assert graph.sql(asked(2)).to_arrow().num_rows <= 1
    with pytest.raises(BadRequestError, match=r"4,000 others|2,000 times|16 deep"):
        graph.sql(asked(count + 3)).to_arrow()


def test_what_cannot_be_looked_into_is_bounded_too(graph: Graph) -> None:
    ordered = "SELECT {0} AS x FROM N ORDER BY (SELECT max(n) FROM N)"
    assert graph.sql(ordered.format("k || '-' || k")).to_pylist() == [{"x": "ab-ab"}]
    with pytest.raises(BadRequestError, match="put it into FROM"):
        graph.sql(ordered.format(" || ".join("k" * 10)))


def test_subqueries_of_statements_that_make_no_texts_are_not_looked_into(graph: Graph) -> None:
    nested = "SELECT n FROM {0} WHERE n = (SELECT max(n) FROM N)"
    assert graph.sql(steps(nested, 20).replace("FROM T", "FROM N")).to_pylist() == [{"n": 1}]


def test_a_batch_of_more_than_an_array_holds_is_an_error_in_one_line(graph: Graph) -> None:
    """Texts are of a type whose arrays say so: nothing asks for more and more memory."""
    types = "SELECT arrow_typeof(CAST(n AS TEXT)) AS a, arrow_typeof(k || '') AS b FROM N"
    assert graph.sql(types).to_pylist() == [{"a": "Utf8", "b": "Utf8"}]
