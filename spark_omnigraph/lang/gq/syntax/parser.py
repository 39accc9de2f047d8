"""Query text → syntax tree, by recursive descent. Nothing here knows a schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from reprlib import repr as shortened

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.errors import QueryParseError
from spark_omnigraph.lang.gq.report import parse_error, request_error
from spark_omnigraph.lang.gq.syntax.ast import (
    Binding,
    Clause,
    Delete,
    Insert,
    Item,
    NearestCall,
    Negation,
    Ordering,
    Param,
    Query,
    QueryFile,
    Read,
    Statement,
    Traversal,
    Update,
    WhereClause,
)
from spark_omnigraph.lang.gq.syntax.clauses import comparator, parse_block, property_matches
from spark_omnigraph.lang.gq.syntax.expressions import assigned, expression, integer, string, variable
from spark_omnigraph.lang.scanner import IDENTIFIER, TYPE_NAME, Scanner
from spark_omnigraph.lang.source import Name, Region, SourceText
from spark_omnigraph.words import nearest

TEXT_LIMIT = 4 * 1024 * 1024
"""Characters of a query text."""

STEPS = 256
"""Bindings and traversals of a query; the plan is as deep."""

DIMENSION_MAX = 2**31 - 1

_SCALAR = re.compile("|".join(s.value for s in sorted(Scalar, key=lambda s: -len(s.value)) if s is not Scalar.VECTOR))


def parse_queries(text: str) -> QueryFile:
    """The queries of a text; QueryParseError for the first place where it is not in the language.

    >>> [query.name.text for query in parse_queries("query q() { match { $p: Person } return { $p } }").queries]
    ['q']
    """
    source = SourceText(text)
    _check_text(text)
    scanner = Scanner(source, parse_error, "query text")
    queries: list[Query] = []
    while not scanner.at_end():
        named = " (query NAME() { match { … } … })" if scanner.peek("match") else ""
        scanner.expect("query", f"at the start of a query{named}")
        queries.append(_query(scanner))
    return QueryFile(source, tuple(queries))


def pick_query(file: QueryFile, name: str | None) -> Query:
    """The query of that name, or the only one. BadRequestError when there is none, or the choice is open."""
    if name is None and len(file.queries) == 1:
        return file.queries[0]
    names = [query.name.text for query in file.queries]
    known = ", ".join(names) or "none"
    if name is None:
        if not file.queries:
            raise request_error("query file contains no query; one begins with: query NAME() {")
        raise request_error(
            "query file contains multiple queries; choose one by its name with --name, name= in Python, or the option "
            f"queryName in Spark (queries: {known})"
        )
    found = next((q for q in file.queries if q.name.text == name), None)
    if found is None:
        raise request_error(f"query '{name}' not found{nearest(name, names)} (queries: {known})")
    return found


def check_kinds(text: object, name: object) -> None:
    """BadRequestError when a query or its name is no text."""
    if not isinstance(text, str):
        raise request_error(f"a query is a text, not {shortened(text)}")
    if name is not None and not isinstance(name, str):
        raise request_error(f"the name of a query is a text, not {shortened(name)}")


def _check_text(text: str) -> None:
    if len(text) > TEXT_LIMIT:
        raise QueryParseError(f"parse error: a query text of {len(text)} characters is longer than {TEXT_LIMIT}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"parse error: character {error.start} of the query text is half a surrogate pair"
        raise QueryParseError(message) from error


def _query(scanner: Scanner) -> Query:
    name = scanner.match(IDENTIFIER)
    if name is None:
        raise scanner.unexpected("the name of the query")
    params = _params(scanner, name)
    notes = _annotations(scanner, name)
    scanner.expect("{", f"before the body of the query '{name.text}'")
    body = _read(scanner) if scanner.take("match") else _statements(scanner)
    scanner.expect("}", f"after the body of the query '{name.text}'")
    return Query(scanner.source, name, params, notes.get("description"), notes.get("instruction"), body)


def _params(scanner: Scanner, name: Name) -> tuple[Param, ...]:
    scanner.expect("(", f"after the name of the query '{name.text}'")
    params: list[Param] = []
    while not scanner.take(")"):
        if params:
            scanner.expect(",", "or ')' after a parameter")
        found = variable(scanner, "a $parameter or ')'")
        scanner.expect(":", f"between the parameter ${found.text} and its type")
        params.append(Param(found, _param_type(scanner)))
    return tuple(params)


def _param_type(scanner: Scanner) -> PropType:
    if scanner.take("Vector"):
        scanner.expect("(", "after 'Vector'")
        start = scanner.skip()
        dimension = integer(scanner, "the dimension of the vector")
        if not 1 <= dimension <= DIMENSION_MAX:
            raise scanner.error(Region(start, scanner.pos), f"a vector has 1 to {DIMENSION_MAX} elements")
        scanner.expect(")", "after the dimension of the vector")
        return PropType(Scalar.VECTOR, nullable=scanner.take("?"), dimension=dimension)
    is_list = scanner.take("[")
    scalar = scanner.match(_SCALAR)
    if scalar is None:
        raise scanner.unexpected("a type: String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Blob, Vector(n)")
    if is_list:
        scanner.expect("]", "after the type of the list's items")
    return PropType(Scalar(scalar.text), nullable=scanner.take("?"), is_list=is_list)


def _annotations(scanner: Scanner, query: Name) -> dict[str, str]:
    found: dict[str, str] = {}
    while scanner.take("@"):
        name = scanner.match(IDENTIFIER)
        if name is None or name.text not in ("description", "instruction"):
            if name is not None:
                scanner.pos = name.region.start
            raise scanner.unexpected("'description' or 'instruction', the annotations of a query")
        if name.text in found:
            message = f"query `{query.text}` cannot include duplicate @{name.text} annotations"
            raise scanner.error(name.region, message)
        scanner.expect("(", f"after '@{name.text}'")
        found[name.text] = string(scanner, f"inside @{name.text}()")
        scanner.expect(")", f"after the text of @{name.text}()")
    return found


def _read(scanner: Scanner) -> Read:
    match = parse_block(scanner, "match")
    steps = list(_steps(match))
    if len(steps) > STEPS:
        raise scanner.error(steps[STEPS].region, f"a query has more than {STEPS} bindings and traversals")
    scanner.expect("return", "after the match block")
    scanner.expect("{", "after 'return'")
    returns = [_item(scanner)]
    while not scanner.take("}"):
        returns.append(_item(scanner))
    order = _order(scanner) if scanner.take("order") else ()
    limit = integer(scanner, "the number of rows after 'limit'") if scanner.take("limit") else None
    return Read(match, tuple(returns), order, limit)


def _steps(clauses: Iterable[Clause]) -> Iterator[Name]:
    """The first variable of each binding and traversal, those of negations included: each is a step of the plan."""
    for clause in clauses:
        if isinstance(clause, Negation):
            yield from _steps(clause.clauses)
        elif isinstance(clause, Binding):
            yield clause.variable
        elif isinstance(clause, Traversal):
            yield clause.left


def _item(scanner: Scanner) -> Item:
    value = expression(scanner)
    alias = None
    if scanner.take("as"):
        alias = scanner.match(IDENTIFIER)
        if alias is None:
            raise scanner.unexpected("an alias after 'as'")
    scanner.take(",")
    return Item(value, alias)


def _order(scanner: Scanner) -> tuple[Ordering, ...]:
    scanner.expect("{", "after 'order'")
    keys = [_ordering(scanner)]
    while scanner.take(","):
        keys.append(_ordering(scanner))
    scanner.expect("}", "or ',' after a sort key")
    return tuple(keys)


def _ordering(scanner: Scanner) -> Ordering:
    by = expression(scanner)
    if isinstance(by, NearestCall):
        return Ordering(by, descending=False)
    return Ordering(by, descending=not scanner.take("asc") and scanner.take("desc"))


def _statements(scanner: Scanner) -> tuple[Statement, ...]:
    statements = [_statement(scanner, "'match', 'insert', 'update' or 'delete'")]
    while not scanner.peek("}"):
        statements.append(_statement(scanner, "'insert', 'update', 'delete' or '}'"))
    return tuple(statements)


def _statement(scanner: Scanner, wanted: str) -> Statement:
    if scanner.take("insert"):
        return Insert(_type_name(scanner, "insert"), property_matches(scanner, required=False))
    if scanner.take("update"):
        type_name = _type_name(scanner, "update")
        scanner.expect("set", "after the type of the update")
        return Update(type_name, property_matches(scanner, required=False), _where(scanner))
    if scanner.take("delete"):
        return Delete(_type_name(scanner, "delete"), _where(scanner))
    raise scanner.unexpected(wanted)


def _type_name(scanner: Scanner, keyword: str) -> Name:
    found = scanner.match(TYPE_NAME)
    if found is None:
        raise scanner.unexpected(f"a type after '{keyword}', which begins with an upper-case letter")
    return found


def _where(scanner: Scanner) -> WhereClause:
    scanner.expect("where", "and a predicate")
    name = scanner.match(IDENTIFIER)
    if name is None:
        raise scanner.unexpected("a property after 'where'")
    found = comparator(scanner, words=False)
    if found is None:
        raise scanner.unexpected("a comparison: =, !=, <, <=, > or >=")
    return WhereClause(name, found, assigned(scanner))
