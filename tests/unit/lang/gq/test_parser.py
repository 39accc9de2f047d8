"""Texts and their trees; what is refused, with the place and the words."""

from __future__ import annotations

import pytest

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.errors import BadRequestError, QueryParseError
from spark_omnigraph.lang.gq.plan import AggregateFunction, Comparator, TextForm
from spark_omnigraph.lang.gq.syntax import ast
from spark_omnigraph.lang.gq.syntax.parser import STEPS, TEXT_LIMIT, parse_queries, pick_query
from tests.unit.lang.gq.refusals import refusal


def one(text: str) -> ast.Query:
    (query,) = parse_queries(text).queries
    return query


def read(text: str) -> ast.Read:
    body = one(text).body
    assert isinstance(body, ast.Read)
    return body


def clauses(text: str) -> tuple[ast.Clause, ...]:
    return read(f"query q() {{ match {{ {text} }} return {{ $a }} }}").match


def clause(text: str) -> ast.Clause:
    (found,) = clauses(text)
    return found


def items(text: str) -> tuple[ast.Item, ...]:
    return read(f"query q() {{ match {{ $a: A }} return {{ {text} }} }}").returns


def item(text: str) -> ast.Expr:
    (found,) = items(text)
    assert found.alias is None
    return found.value


def statements(text: str) -> tuple[ast.Statement, ...]:
    body = one(f"query q() {{ {text} }}").body
    assert isinstance(body, tuple)
    return body


def value(part: ast.Expr) -> object:
    """A literal as a plain value, its type beside it when text alone does not tell."""
    if isinstance(part, ast.ListLiteral):
        return [value(one) for one in part.items]
    assert isinstance(part, ast.Literal)
    dated = part.type.scalar in (Scalar.DATE, Scalar.DATETIME)
    return (str(part.type.scalar), part.value) if dated else part.value


def test_an_empty_text_has_no_queries() -> None:
    assert parse_queries("").queries == ()
    assert parse_queries(" // nothing\n/* here */ ").queries == ()


def test_the_head_of_a_query() -> None:
    params = "$a: String, $b: [I32]?, $c: Vector(384)"
    query = one(f'query old_9({params}) @instruction("i") @description("d") {{ delete A where x = 1 }}')
    assert query.name.text == "old_9"
    assert [(p.name.text, p.type) for p in query.params] == [
        ("a", PropType(Scalar.STRING)),
        ("b", PropType(Scalar.I32, nullable=True, is_list=True)),
        ("c", PropType(Scalar.VECTOR, dimension=384)),
    ]
    assert (query.description, query.instruction, query.is_mutation) == ("d", "i", True)


@pytest.mark.parametrize("name", [s.value for s in Scalar if s is not Scalar.VECTOR])
def test_every_scalar_is_a_parameter_type(name: str) -> None:
    (first, second) = one(f"query q($a: {name}, $b: [{name}]) {{ match {{ $a: A }} return {{ $a }} }}").params
    assert first.type == PropType(Scalar(name))
    assert second.type == PropType(Scalar(name), is_list=True)


def test_all_parts_of_a_read() -> None:
    body = read("query q() { match { $a: A } return { $a.x as y } order { y desc, $a.z, $a.w asc } limit 0 }")
    assert [(k.descending, type(k.by)) for k in body.order] == [
        (True, ast.AliasReference),
        (False, ast.PropertyAccess),
        (False, ast.PropertyAccess),
    ]
    assert body.limit == 0
    assert read("query q() { match { $a: A } return { $a } }").limit is None


def test_keywords_need_no_space() -> None:
    body = read("queryq(){match{$a:A{x:1}not{$a knows$b}$a.x>1}return{$a.x asy$a.z}order{y desc}limit5}")
    assert [type(c).__name__ for c in body.match] == ["Binding", "Negation", "FilterClause"]
    assert [(i.alias.text if i.alias else None) for i in body.returns] == ["y", None]
    assert body.limit == 5


def test_white_space_and_comments_stand_anywhere() -> None:
    text = 'query /*a*/ q ( ) // b\n{ match { $a // c\n : A { x : /* d */ "}" , } } return { $a . x } limit 3 }'
    (binding,) = read(text).match
    assert isinstance(binding, ast.Binding)
    assert value(binding.matches[0].value) == "}"
    access = item("$a . x")
    assert isinstance(access, ast.PropertyAccess)
    assert (access.variable.text, access.property.text) == ("a", "x")


def test_bindings() -> None:
    found = clause('$a: Pot { label: "x", vol: $p, sold: now(), tags: ["x"], }')
    assert isinstance(found, ast.Binding)
    assert (found.variable.text, found.type_name.text) == ("a", "Pot")
    assert [m.name.text for m in found.matches] == ["label", "vol", "sold", "tags"]
    assert [type(m.value).__name__ for m in found.matches] == ["Literal", "Variable", "NowCall", "ListLiteral"]
    bare = clause("$a: Pot")
    assert isinstance(bare, ast.Binding)
    assert bare.matches == ()


@pytest.mark.parametrize(
    ("text", "bounds", "undirected", "edge_variable"),
    [
        ("$a knows $b", None, False, None),
        ("$a knows{1,3} $b", (1, 3), False, None),
        ("$a knows { 2 , } $b", (2, None), False, None),
        ("$a <knows> $b", None, True, None),
        ("$a < knows > { 1 , 2 } $b", (1, 2), True, None),
        ("$a $w:knows $b", None, False, "w"),
        ("$a $w:knows{1,2} $b", (1, 2), False, "w"),
    ],
)
def test_traversals(text: str, bounds: object, undirected: bool, edge_variable: str | None) -> None:
    found = clause(text)
    assert isinstance(found, ast.Traversal)
    assert (found.left.text, found.edge.text, found.right.text) == ("a", "knows", "b")
    assert (None if found.bounds is None else (found.bounds.min, found.bounds.max)) == bounds
    assert found.undirected is undirected
    assert (None if found.edge_variable is None else found.edge_variable.text) == edge_variable


@pytest.mark.parametrize(("word", "is_edge"), [("notA", True), ("notable", True), ("no", True), ("asx", True)])
def test_edge_words(word: str, is_edge: bool) -> None:
    assert isinstance(clause(f"$a {word} $b"), ast.Traversal) is is_edge


@pytest.mark.parametrize("word", ["not", "not_x"])
def test_an_edge_word_is_not_the_word_not(word: str) -> None:
    with pytest.raises(QueryParseError):
        clause(f"$a {word} $b")


def test_contains_between_variables_is_an_edge() -> None:
    found = clause("$a contains $b")
    assert isinstance(found, ast.Traversal)
    assert found.edge.text == "contains"
    assert isinstance(clause("$a.tags contains $b"), ast.FilterClause)
    assert isinstance(clause("$a starts_with $b"), ast.Traversal)


@pytest.mark.parametrize(
    ("text", "comparator"),
    [
        ("=", Comparator.EQUAL),
        ("!=", Comparator.NOT_EQUAL),
        ("<", Comparator.LESS),
        ("<=", Comparator.LESS_OR_EQUAL),
        (">", Comparator.GREATER),
        (">=", Comparator.GREATER_OR_EQUAL),
        ("contains", Comparator.HAS_ITEM),
        ("starts_with", Comparator.STARTS_WITH),
    ],
)
def test_comparisons(text: str, comparator: Comparator) -> None:
    # A word would belong to the name of the property.
    for space in (" ", "") if len(text) < 3 else (" ",):
        found = clause(f"$a.x{space}{text}{space}$b.y")
        assert isinstance(found, ast.FilterClause)
        assert found.comparator is comparator
        assert isinstance(found.left, ast.PropertyAccess)
        assert isinstance(found.right, ast.PropertyAccess)


def test_a_filter_may_begin_with_anything() -> None:
    found = clauses('1 < $a.x "x" = $a.y $p = 1 now() > $a.z $a < $b.q x = 1 search($a.t, "x") = true')
    assert [type(c).__name__ for c in found] == ["FilterClause"] * 7
    assert [type(c.left).__name__ for c in found if isinstance(c, ast.FilterClause)] == [
        *("Literal", "Literal", "Variable", "NowCall", "Variable", "AliasReference", "TextCall"),
    ]


def test_text_clauses() -> None:
    found = clauses('search($a.t, "x") fuzzy($a.t, $q, 1) match_text($a.t, $q)')
    calls = [c.call for c in found if isinstance(c, ast.TextClause)]
    assert [call.form for call in calls] == [TextForm.SEARCH, TextForm.FUZZY, TextForm.MATCH_TEXT]
    assert [call.max_edits is None for call in calls] == [True, False, True]


def test_negations_nest() -> None:
    found = clause("not { $a knows $b not { $b: A not{$b.x = 1} } }")
    assert isinstance(found, ast.Negation)
    inner = found.clauses[1]
    assert isinstance(inner, ast.Negation)
    assert isinstance(inner.clauses[1], ast.Negation)


def test_words_of_the_language_are_names_too() -> None:
    body = read(
        """query match() {
          match { $return: A { limit: 1, not: 2, order: 3 } $not return $as }
          return { $return.match as as }
          order { as }
        }"""
    )
    binding, traversal = body.match
    assert isinstance(binding, ast.Binding)
    assert [m.name.text for m in binding.matches] == ["limit", "not", "order"]
    assert isinstance(traversal, ast.Traversal)
    assert body.returns[0].alias is not None
    assert body.returns[0].alias.text == "as"


def test_commas_between_items_are_optional() -> None:
    assert [type(i.value).__name__ for i in items("$a.x $a, 1 y, ")] == [
        *("PropertyAccess", "Variable", "Literal", "AliasReference"),
    ]


def test_a_number_ends_where_its_digits_end() -> None:
    assert [type(i.value).__name__ for i in items("1e5")] == ["Literal", "AliasReference"]
    assert [value(i.value) for i in items("1.5 2 3.25")] == [1.5, 2, 3.25]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("007", 7),
        ("2.50", 2.5),
        ("true", True),
        ("false", False),
        ('""', ""),
        ('"a\\"b\\\\c\\n\\r\\t"', 'a"b\\c\n\r\t'),
        ('"two\nlines // no comment"', "two\nlines // no comment"),
        ('"Zoë 𝄞"', "Zoë 𝄞"),
        ('date("2024-01-31")', ("Date", "2024-01-31")),
        ('datetime ( "2024-01-31" )', ("DateTime", "2024-01-31")),
        ("[]", []),
        ('[1, 2.5, "x", true, [date("x")]]', [1, 2.5, "x", True, [("Date", "x")]]),
    ],
)
def test_literals(text: str, expected: object) -> None:
    found = value(item(text))
    assert found == expected
    assert isinstance(found, type(expected))


def test_types_of_literals() -> None:
    found = [i.value for i in items('1 1.0 "x" true date("x") datetime("x")')]
    assert [part.type.scalar for part in found if isinstance(part, ast.Literal)] == [
        *(Scalar.I64, Scalar.F64, Scalar.STRING, Scalar.BOOL, Scalar.DATE, Scalar.DATETIME),
    ]


@pytest.mark.parametrize("function", list(AggregateFunction))
def test_aggregates(function: AggregateFunction) -> None:
    found = item(f"{function} ( $a.x )")
    assert isinstance(found, ast.AggregateCall)
    assert found.function is function
    assert isinstance(found.argument, ast.PropertyAccess)


def test_a_function_name_without_parenthesis_is_a_word() -> None:
    assert [type(i.value).__name__ for i in items("count sum now date search")] == ["AliasReference"] * 5


def test_rankings() -> None:
    found = item('rrf(nearest($a.v, [1.0]), bm25($a.t, "x"), 60)')
    assert isinstance(found, ast.RrfCall)
    assert isinstance(found.primary, ast.NearestCall)
    assert isinstance(found.secondary, ast.Bm25Call)
    assert found.k is not None
    assert value(found.k) == 60


def test_statements() -> None:
    insert, update, delete = statements(
        'insert A { x: 1 y: $p, z: now(), } update B set { x: [1] } where y >= "q" delete C where from != $p'
    )
    assert isinstance(insert, ast.Insert)
    assert [a.name.text for a in insert.assignments] == ["x", "y", "z"]
    assert isinstance(update, ast.Update)
    assert (update.type_name.text, update.where.property.text, update.where.comparator) == (
        "B",
        "y",
        Comparator.GREATER_OR_EQUAL,
    )
    assert isinstance(delete, ast.Delete)
    assert (delete.where.property.text, type(delete.where.value).__name__) == ("from", "Variable")


REFUSED = [
    ("«x»", "expected 'query' at the start of a query, found 'x'"),
    ("«match» { $a: A }", "expected 'query' at the start of a query (query NAME() { match { … } … }), found 'match'"),
    ("query «1»", "expected the name of the query, found '1'"),
    ("query «Q»() { }", "expected the name of the query, found 'Q'"),
    ("query q«{»", "expected '(' after the name of the query 'q', found '{'"),
    ("query q($a«)» { }", "expected ':' between the parameter $a and its type, found ')'"),
    ("query q($a: «Text») { }", None),
    ("query q($a: [Vector«(»2)]) { }", None),
    ("query q($a: Vector(«0»)) { }", "a vector has 1 to 2147483647 elements"),
    ("query q($a: I32,«)» { }", "expected a $parameter or ')', found ')'"),
    ("query q() @«owner»(x) { }", "expected 'description' or 'instruction', the annotations of a query, found 'owner'"),
    (
        'query q() @description("a") @«description»("b") { }',
        "query `q` cannot include duplicate @description annotations",
    ),
    ("query q() {«»", "expected 'match', 'insert', 'update' or 'delete', found the end of the query text"),
    ("query q() { «}»", "expected 'match', 'insert', 'update' or 'delete', found '}'"),
    ("query q() { match { «}» }", "expected an expression, found '}'"),
    ("query q() { match { $a: A } «}»", "expected 'return' after the match block, found '}'"),
    ("query q() { match { $a: A } return { «}» }", "expected an expression, found '}'"),
    (
        "query q() { match { $a: A } return { $a } order { $a.x «$a» } }",
        "expected '}' or ',' after a sort key, found '$a'",
    ),
    ("query q() { match { $a: A } return { $a } limit «$n» }", "expected the number of rows after 'limit', found '$n'"),
    ("query q() { match { $a: A } return { $a } limit «-»1 }", "expected the number of rows after 'limit', found '-'"),
    (
        "query q() { match { $a: A } return { $a } «offset» 1 }",
        "expected '}' after the body of the query 'q', found 'offset'",
    ),
    (
        "query q() { match { $a: «a» }",
        "expected the node type of $a, which begins with an upper-case letter, found 'a'",
    ),
    ("query q() { match { $a: A { x: 1 «y»: 2 } }", "expected ',' or '}' after a property, found 'y'"),
    ("query q() { match { $a: A { «}» }", "expected the name of a property, found '}'"),
    ("query q() { match { $a: A { x: «y» } }", "expected a literal, a $variable or now(), found 'y'"),
    (
        "query q() { match { $a knows{1«}» $b }",
        "expected ',' between the smallest and the largest number of hops: {min,max}, found '}'",
    ),
    ("query q() { match { $a knows{1,2} «}»", "expected the $variable at the end of 'knows', found '}'"),
    ("query q() { match { $a $w«knows» $b }", None),
    ("query q() { match { $a $w:«Knows» $b }", "expected the edge that $w stands for, found 'Knows'"),
    ("query q() { match { $a.x =«=» 1 }", "expected an expression, found '='"),
    (
        "query q() { match { $a.x «~» 1 }",
        "expected a comparison: =, !=, <, <=, >, >=, contains or starts_with, found '~'",
    ),
    ("query q() { match { $a.x = «-»1 }", "expected an expression, found '-'"),
    ("query q() { match { $a.x = $b.«Y» }", "expected a property of $b, found 'Y'"),
    (
        "query q() { match { $a.x = «9223372036854775808» }",
        "invalid integer: 9223372036854775808 is larger than 9223372036854775807",
    ),
    ('query q() { match { $a.x = "a«\\q»" }', "unsupported escape sequence: \\q"),
    ('query q() { match { $a.x = «"»abc }', "this string is never closed"),
    ("query q() { match { «/*» $a: A }", "this comment is never closed"),
    ("query q() { match { $a.x = [1 «2»] }", "expected ',' or ']' after a list item, found '2'"),
    ("query q() { match { search($a.x«)» }", "expected ',' after the first argument of search(), found ')'"),
    (
        "query q() { match { $a: A } return { sum($a.x «*» $a.y) } }",
        "'*': queries have no arithmetic; SQL over a graph has it",
    ),
    (
        "query q() { match { $a: A } return { $a.x «-»1 as x } }",
        "'-': queries have no arithmetic; SQL over a graph has it",
    ),
    ("query q() { match { $a: A } return { count(«*») } }", "expected an expression, found '*'"),
    (
        "query q() { match { $a: A } return { nearest($a«,» 1) } }",
        "expected '.' and the vector property of nearest(), found ','",
    ),
    ("query q() { match { $a: A } return { rrf(«$a.x», 1) } }", "rrf() fuses rankings: nearest() or bm25()"),
    ("query q() { insert «a» { }", "expected a type after 'insert', which begins with an upper-case letter, found 'a'"),
    ("query q() { insert A { «}»", "expected the name of a property, found '}'"),
    ("query q() { update A set { x: 1 } «}»", "expected 'where' and a predicate, found '}'"),
    ("query q() { delete A where x «contains» 1 }", "expected a comparison: =, !=, <, <=, > or >=, found 'contains'"),
    ("query q() { delete A where x = «y» }", "expected a literal, a $variable or now(), found 'y'"),
    (
        "query q() { delete A where x = 1 «match» { $a: A } }",
        "expected 'insert', 'update', 'delete' or '}', found 'match'",
    ),
]


@pytest.mark.parametrize(("marked", "said"), REFUSED)
def test_refusals(marked: str, said: str | None) -> None:
    if said is None:
        with pytest.raises(QueryParseError):
            parse_queries(marked.replace("«", "").replace("»", ""))
    else:
        assert refusal(marked, QueryParseError) == said


@pytest.mark.parametrize("depth", [64, 70, 10_000])
def test_nesting_is_bounded(depth: int) -> None:
    for text in (
        f"query q() {{ match {{ {'not {' * depth} $a: A {'}' * depth} }} return {{ $a }} }}",
        f"query q() {{ match {{ $a: A }} return {{ {'count(' * depth} $a {')' * depth} }} }}",
        f"query q() {{ match {{ $a: A }} return {{ {'[' * depth} 1 {']' * depth} }} }}",
    ):
        if depth == 64:
            parse_queries(text)
        else:
            with pytest.raises(QueryParseError, match="nest deeper than 64 levels"):
                parse_queries(text)


def test_the_text_is_bounded() -> None:
    with pytest.raises(QueryParseError, match="is longer than"):
        parse_queries(" " * (TEXT_LIMIT + 1))


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(QueryParseError, match="character 3 of the query text is half a surrogate pair"):
        parse_queries("// \ud800")


TWO = "query a() { match { $a: A } return { $a } } query b() { delete A where x = 1 }"


def test_picking_a_query() -> None:
    file = parse_queries(TWO)
    assert pick_query(file, "b").name.text == "b"
    assert pick_query(parse_queries(TWO[: TWO.index(" query b")]), None).name.text == "a"


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (TWO, "c", "query 'c' not found (queries: a, b)"),
        (
            TWO,
            None,
            "query file contains multiple queries; choose one by its name with --name, name= in Python, or the option "
            "queryName in Spark (queries: a, b)",
        ),
        (
            TWO.replace("b()", "by_age()"),
            "byage",
            "query 'byage' not found; did you mean 'by_age'? (queries: a, by_age)",
        ),
        ("", None, "query file contains no query; one begins with: query NAME() {"),
        ("", "a", "query 'a' not found (queries: none)"),
    ],
)
def test_picking_no_query(text: str, name: str | None, said: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        pick_query(parse_queries(text), name)
    assert caught.value.message == said


@pytest.mark.parametrize("text", ["$a{}: A", "not { $a e $b{} }"])
def test_a_query_has_a_bounded_number_of_steps(text: str) -> None:
    def query(steps: int) -> str:
        clauses = "\n".join(text.replace("{}", str(i)) for i in range(steps))
        return f"query q() {{ match {{ {clauses} }} return {{ $a0 }} }}"

    assert len(parse_queries(query(STEPS)).queries) == 1
    with pytest.raises(QueryParseError, match=f"more than {STEPS} bindings and traversals") as caught:
        parse_queries(query(2000))
    assert caught.value.span is not None
    assert caught.value.span.line == STEPS + 1
