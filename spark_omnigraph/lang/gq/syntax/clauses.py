"""Clauses of a match block: text → syntax tree. In which order kinds of clauses are tried is part of the language."""

from __future__ import annotations

import re

from spark_omnigraph.lang.gq.plan import Comparator
from spark_omnigraph.lang.gq.syntax.ast import (
    Binding,
    Bounds,
    Clause,
    FilterClause,
    Negation,
    PropertyMatch,
    TextCall,
    TextClause,
    Traversal,
)
from spark_omnigraph.lang.gq.syntax.expressions import (
    DEPTH,
    assigned,
    expression,
    integer,
    optional_variable,
)
from spark_omnigraph.lang.scanner import IDENTIFIER, TYPE_NAME, Scanner
from spark_omnigraph.lang.source import Name, Region

_EDGE_WORD = re.compile(r"(?!not(?![A-Za-z0-9]))[a-z_][A-Za-z0-9_]*")
_COMPARISONS = (
    ("contains", Comparator.HAS_ITEM),
    ("starts_with", Comparator.STARTS_WITH),
    (">=", Comparator.GREATER_OR_EQUAL),
    ("<=", Comparator.LESS_OR_EQUAL),
    ("!=", Comparator.NOT_EQUAL),
    (">", Comparator.GREATER),
    ("<", Comparator.LESS),
    ("=", Comparator.EQUAL),
)
_WORDS = frozenset({Comparator.HAS_ITEM, Comparator.STARTS_WITH})


def parse_block(scanner: Scanner, what: str, depth: int = 0) -> tuple[Clause, ...]:
    """`{ clause … }`, at least one."""
    opened = scanner.expect("{", f"after '{what}'")
    if depth > DEPTH:
        raise scanner.error(opened, f"negations nest deeper than {DEPTH} levels")
    clauses = [_clause(scanner, depth)]
    while not scanner.take("}"):
        clauses.append(_clause(scanner, depth))
    return tuple(clauses)


def comparator(scanner: Scanner, words: bool) -> Comparator | None:
    """A comparison if it comes next; `words` allows `contains` and `starts_with`."""
    for text, found in _COMPARISONS:
        if (words or found not in _WORDS) and scanner.take(text):
            return found
    return None


def property_matches(scanner: Scanner, required: bool) -> tuple[PropertyMatch, ...]:
    """`{ name: value … }`: commas are optional in assignments (`required` False) and required in bindings."""
    scanner.expect("{", "before the properties")
    found = [_property_match(scanner)]
    while not scanner.peek("}"):
        comma = scanner.take(",")
        if scanner.peek("}"):
            break
        if required and not comma:
            raise scanner.unexpected("',' or '}' after a property")
        found.append(_property_match(scanner))
    scanner.expect("}", "after the properties")
    return tuple(found)


def _property_match(scanner: Scanner) -> PropertyMatch:
    name = scanner.match(IDENTIFIER)
    if name is None:
        raise scanner.unexpected("the name of a property")
    scanner.expect(":", f"after the property '{name.text}'")
    return PropertyMatch(name, assigned(scanner))


def _clause(scanner: Scanner, depth: int) -> Clause:
    start = scanner.skip()
    if scanner.take("not"):
        if scanner.peek("{"):
            clauses = parse_block(scanner, "not", depth + 1)
            return Negation(clauses, Region(start, scanner.pos))
        scanner.pos = start
    found = optional_variable(scanner)
    if found is not None:
        clause = _binding(scanner, found) or _traversal(scanner, found)
        if clause is not None:
            return clause
        scanner.pos = start
    return _filter(scanner)


def _binding(scanner: Scanner, bound: Name) -> Binding | None:
    if not scanner.take(":"):
        return None
    type_name = scanner.match(TYPE_NAME)
    if type_name is None:
        raise scanner.unexpected(f"the node type of ${bound.text}, which begins with an upper-case letter")
    return Binding(bound, type_name, property_matches(scanner, required=True) if scanner.peek("{") else ())


def _traversal(scanner: Scanner, left: Name) -> Traversal | None:
    edge_variable = optional_variable(scanner)
    if edge_variable is not None:
        scanner.expect(":", f"between the edge variable ${edge_variable.text} and the edge")
    bracketed = edge_variable is None and scanner.take("<")
    edge = scanner.match(_EDGE_WORD)
    if edge is None:
        if edge_variable is None:
            return None
        raise scanner.unexpected(f"the edge that ${edge_variable.text} stands for")
    if bracketed and not scanner.take(">"):
        return None
    bounds = _bounds(scanner)
    right = optional_variable(scanner)
    if right is not None:
        return Traversal(left, edge, right, bounds, bracketed, edge_variable)
    if edge_variable is None and bounds is None and not bracketed:
        return None
    raise scanner.unexpected(f"the $variable at the end of '{edge.text}'")


def _bounds(scanner: Scanner) -> Bounds | None:
    start = scanner.skip()
    if not scanner.take("{"):
        return None
    low = integer(scanner, "the smallest number of hops")
    scanner.expect(",", "between the smallest and the largest number of hops: {min,max}")
    high = None if scanner.peek("}") else integer(scanner, "the largest number of hops")
    scanner.expect("}", "after the numbers of hops")
    return Bounds(low, high, Region(start, scanner.pos))


def _filter(scanner: Scanner) -> FilterClause | TextClause:
    left = expression(scanner)
    found = comparator(scanner, words=True)
    if found is not None:
        return FilterClause(left, found, expression(scanner))
    if isinstance(left, TextCall):
        return TextClause(left)
    raise scanner.unexpected("a comparison: =, !=, <, <=, >, >=, contains or starts_with")
