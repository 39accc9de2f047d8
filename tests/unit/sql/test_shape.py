"""Statements that would end the process or take all memory while they are planned, and clauses that are passed over."""

from __future__ import annotations

from random import Random

import pytest
from datafusion import SessionContext

from spark_omnigraph.errors import BadRequestError, QueryTypeError
from spark_omnigraph.sql.shape import LONGEST_CHAIN, MOST_COPIES, WIDEST_CUBE, refuse_shape

N = LONGEST_CHAIN
CHAINS = {
    "words": "SELECT a " + "XOR b " * N,
    "postfix": "SELECT a " + "AT TIME ZONE 'UTC' " * N,
    "in": "SELECT true " + "IN (true) " * N,
    "subscripts": "SELECT [1]" + "[1]" * N,
    "signs before texts": "SELECT 1" + "-'1'" * N,
    "comments between": "SELECT 1" + "/**/-/**/1" * N,
    "tables": "SELECT 1 FROM " + ", ".join(f"T t{i}" for i in range(N)),
    "joins": "SELECT 1 FROM T" + " NATURAL JOIN T" * N,
    "dollars": "SELECT $$'$$ " + "|| 1 " * N + "|| $$'$$",
    "tagged dollars": "SELECT $a$'$a$ " + "|| 1 " * N + "|| $a$'$a$",
    "escapes": r"SELECT E'\'' " + "|| 1 " * N + r"|| E'\''",
    "comments in comments": "SELECT /* /* */ ' */ 1 " + "+ 1 " * N + "/* ' */",
    "backticks": "SELECT 1 AS `'` , 1" + " + 1" * N + " AS `'`",
    "brackets of quotes": "SELECT q'[']' " + "|| 1 " * N + "|| q'[']'",
}


@pytest.mark.parametrize("text", CHAINS.values(), ids=CHAINS)
def test_a_long_chain_is_refused_whatever_its_operators_are(text: str) -> None:
    with pytest.raises(BadRequestError, match="more than 4,000 words in a row"):
        refuse_shape(text)


def test_lists_calls_and_branches_are_no_chains() -> None:
    many = ", ".join(f"t.c{i} AS d{i}" for i in range(2 * N))
    numbers = ", ".join(map(str, range(2 * N)))
    branches = " ".join(f"WHEN '{i}' THEN {i}" for i in range(2 * N))
    refuse_shape(f"SELECT {many}, CASE a {branches} END, coalesce({numbers}) FROM T t WHERE a IN ({numbers})")
    refuse_shape(f"SELECT * FROM (VALUES {', '.join(f'({i})' for i in range(N // 2 - 9))}) v")
    refuse_shape(f"SELECT '{'a b, ' * N}', \"{'a b' * N}\" -- {'a b ' * N}\n FROM T /* {'a b ' * N} */")


def doubled(body: str, steps: int, columns: str = "") -> str:
    queries = [
        "c0 AS (SELECT 1 AS x)",
        *(f"c{i}{columns} AS ({body.format(f'c{i - 1}')})" for i in range(1, steps + 1)),
    ]
    return f"WITH {', '.join(queries)} SELECT count(*) FROM c{steps}"


@pytest.mark.parametrize(
    "body",
    [
        "SELECT * FROM {0} UNION ALL SELECT * FROM {0}",
        "SELECT (SELECT x FROM {0}) + (SELECT x FROM {0}) AS x",
        'SELECT * FROM "{0}" a NATURAL JOIN `{0}` b',
        "WITH y AS (SELECT * FROM {0} UNION SELECT * FROM {0}) SELECT * FROM y",
    ],
)
def test_queries_of_with_that_multiply_are_refused(body: str) -> None:
    refuse_shape(doubled(body, 8))
    with pytest.raises(BadRequestError, match="use each other more than 2,000 times"):
        refuse_shape(doubled(body, 30))


def test_queries_of_with_that_name_their_columns_multiply_as_well() -> None:
    with pytest.raises(BadRequestError, match="use each other more than 2,000 times"):
        refuse_shape(doubled("SELECT * FROM {0} UNION ALL SELECT * FROM {0}", 30, " (x)"))


def test_queries_of_with_that_are_used_one_by_one_are_not() -> None:
    refuse_shape(doubled("SELECT * FROM {0}", 200))
    assert MOST_COPIES > 1_000


def test_a_cube_is_bounded() -> None:
    refuse_shape(f"SELECT 1 FROM T GROUP BY CUBE({', '.join('abcdefghijkl')})")
    with pytest.raises(BadRequestError, match="a CUBE of 13 expressions is too wide: at most 12"):
        refuse_shape(f"SELECT 1 FROM T GROUP BY cube ({', '.join(f'f(a, {i})' for i in range(WIDEST_CUBE + 1))})")


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("SELECT * FROM T TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT * FROM (SELECT * FROM T) t tablesample bernoulli (1)", "TABLESAMPLE"),
        ("SELECT * FROM T SAMPLE (10)", "SAMPLE"),
        ("SELECT * FROM T SAMPLE (0.5)", "SAMPLE"),
        ("SELECT * FROM (SELECT a, b FROM T GROUP BY a, b WITH CUBE) AS t", "WITH CUBE"),
        ("SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS t(a, b)", "WITH ORDINALITY"),
        ("SELECT E'it\\'s', $$it's$$, 1 AS `it's` /* /* ' */ it's */ FROM T FOR SHARE", "FOR SHARE"),
        ("SELECT * FROM T PREWHERE a = 1", "PREWHERE"),
        ("SELECT * FROM T START\n/* */ WITH a = 1 CONNECT BY PRIOR a = b", "START WITH"),
        ("SELECT * FROM T CONNECT BY PRIOR a = b", "CONNECT BY"),
        ("SELECT a FROM T GROUP BY a WITH ROLLUP", "WITH ROLLUP"),
        ("SELECT a FROM T GROUP BY a WITH TOTALS", "WITH TOTALS"),
        ("SELECT * FROM generate_series(1, 3) WITH ORDINALITY", "WITH ORDINALITY"),
        ("SELECT * FROM T PARTITION (p0)", "PARTITION"),
        ("SELECT * FROM T FOR UPDATE", "FOR UPDATE"),
        ("SELECT * FROM T FOR JSON AUTO", "FOR JSON"),
        ("SELECT * ILIKE '%a%' FROM T", r"\* ILIKE"),
    ],
)
def test_a_clause_that_would_be_passed_over_is_refused(text: str, clause: str) -> None:
    with pytest.raises(QueryTypeError, match=f"sql: {clause} is not supported"):
        refuse_shape(text)


@pytest.mark.parametrize(
    ("call", "clause"),
    [
        ("upper(t) OVER ()", "OVER"),
        ("lower(upper(t) over w)", "OVER"),
        ('"upper"(t) /* */ FILTER (WHERE n = 1)', "FILTER"),
        ("concat(sum(n), (1)) FILTER (WHERE n = 1)", "FILTER"),
        ("upper(t) IGNORE NULLS", "IGNORE NULLS"),
        ("coalesce(t, 'a') respect nulls", "RESPECT NULLS"),
        ("upper(t) WITHIN GROUP (ORDER BY n)", "WITHIN GROUP"),
        ("upper(DISTINCT t)", "DISTINCT"),
        ("round(sum(n), 1) + abs(n ORDER BY n)", "ORDER BY"),
    ],
)
def test_what_only_aggregates_have_is_refused_of_other_functions(call: str, clause: str) -> None:
    with pytest.raises(
        QueryTypeError, match=f"sql: {clause} is for aggregates and windows, and (upper|concat|coal|abs)"
    ):
        refuse_shape(f"SELECT {call} FROM T WINDOW w AS (ORDER BY n)")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(n) FILTER (WHERE n = 1) OVER (PARTITION BY upper(t) ORDER BY lower(t)), count(DISTINCT n) FROM T",
        "SELECT round(sum(n) OVER (), 1), lag(n) IGNORE NULLS OVER (ORDER BY n), array_agg(t ORDER BY n) FROM T",
        "SELECT approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM T",
        "SELECT upper((SELECT DISTINCT t FROM T ORDER BY n LIMIT 1)), first_value(n) RESPECT NULLS OVER w FROM T",
        "SELECT upper(t) filter, upper(t) AS over, abs(n) ignore FROM T ORDER BY upper(t)",
        "SELECT t FROM T WHERE n IN (1) ORDER BY abs(n)",
        "SELECT upper(array_agg(t ORDER BY n)[1]), coalesce(sum(DISTINCT n), 0) FROM T",
        "SELECT substring(t FROM 1 FOR share), overlay(t PLACING 'a' FROM 1 FOR update) FROM T",
    ],
)
def test_what_aggregates_have_is_not_refused_of_them(text: str) -> None:
    refuse_shape(text)


def test_a_lock_in_a_subquery_of_a_call_is_refused_all_the_same() -> None:
    with pytest.raises(QueryTypeError, match="FOR SHARE"):
        refuse_shape("SELECT substring((SELECT t FROM T FOR SHARE) FROM 1 FOR share)")


NO_CLAUSES = {
    "texts": "SELECT 'FOR UPDATE', \"PREWHERE\", sum(a) OVER (PARTITION BY b) -- TABLESAMPLE\n FROM T sample",
    "comments": "SELECT count(*), a ILIKE 'x', substr(a, 2) FROM T GROUP BY ROLLUP (a) /* WITH ROLLUP */",
    "text that ends in e": "SELECT * FROM T WHERE a = 'Vitamin E' OR b = 'wait for update'",
    "text with dollars": "SELECT * FROM T WHERE a <> '$5 or $' OR b = 'with totals'",
    "comment with a quote": "SELECT /* it's for update */ 1",
    "comment in a comment": "SELECT /* a /* b */ tablesample */ 1",
    "dollars": "SELECT $$it's for update$$, $x$with $$ rollup$x$",
    "escapes": r"SELECT E'it\'s for update', e'for''share'",
    "backticks": "SELECT a AS `for update` FROM T",
    "query of WITH": "WITH totals AS (SELECT 1 AS x), t AS (SELECT 2) SELECT * FROM totals",
    "its columns": "WITH cube (x) AS (SELECT 1), partition (y) AS (SELECT 2) SELECT * FROM cube, partition",
    "first in WITH": "WITH partition (x) AS (SELECT 1) WITH RECURSIVE ordinality (x) AS (SELECT 1) SELECT 2",
    "begins so": "WITH totals_by_year AS (SELECT 1 AS x), t AS (SELECT t.prewhere FROM t) SELECT prewhere_2 FROM t",
    "columns of a table": "SELECT * FROM (VALUES (1)) AS partition (x)",
    "columns": "SELECT sample, start, json, partition, share, top, browse FROM T",
}


@pytest.mark.parametrize("text", NO_CLAUSES.values(), ids=NO_CLAUSES)
def test_words_that_are_no_such_clauses(text: str) -> None:
    refuse_shape(text)


@pytest.mark.parametrize(
    "text",
    ["'Vitamin e'", "'$5 or $'", "'a `tick`'", "'/* /*'", "$$'$$", "$a$'$a$", r"E'\''", "`'`", "/* /* ' */ */ 1"],
)
def test_texts_of_any_kind_leave_lists_as_long_as_they_are(text: str) -> None:
    refuse_shape(f"SELECT {text} FROM T WHERE a IN ({', '.join(map(str, range(2 * N)))})")


def test_a_column_with_the_name_of_a_query_of_with_is_no_use_of_it() -> None:
    refuse_shape(doubled("SELECT 1 AS {0} FROM {0} WHERE {0} > 1 AND {0} < 9", 30))


@pytest.mark.parametrize("inner", ["WITH {0} AS (SELECT 1) SELECT 1", "SELECT 1 WINDOW {0} AS (ORDER BY 1)"])
def test_a_name_that_is_given_again_in_brackets_hides_no_copies(inner: str) -> None:
    with pytest.raises(BadRequestError, match="use each other more than 2,000 times"):
        refuse_shape(doubled(f"SELECT a.x FROM ({inner}) z, {{0}} a, {{0}} b", 30))


PIECES = [
    *("'", '"', "`", "$", "$$", "$a$", "e'", "E'", "q'", "u&'", "date'", "1e'", "a.e'", "@e'", "_e'", "$1e'", ".e'"),
    *("\\", "\\'", "''", '""', "'''", "/*", "*/", "--", "\n", "[", "]", "{", ",", " ", "a", "1", "#", "é", "$é$", "€"),
]


def test_texts_end_where_the_parser_says() -> None:
    """Whatever a parsed statement begins with, the clause behind it is seen; the pieces are the same each time."""
    chosen, accepted = Random(7), 0
    planner = SessionContext()
    planner.sql("CREATE TABLE t AS SELECT 1 AS a")
    for _ in range(8_000):
        piece = "".join(chosen.choices(PIECES, k=chosen.randint(1, 8)))
        text = f"SELECT 'x', {piece}\n FROM t"
        try:
            planner.sql(text)
        except Exception as error:  # noqa: BLE001 - of any class
            if "ParserError" in str(error) or "TokenizerError" in str(error):
                continue
        accepted += 1
        with pytest.raises(QueryTypeError):
            refuse_shape(f"{text} FOR UPDATE")
    assert accepted > 500
