"""The type check of a read query: rules T1 to T9 and T15 to T24, clauses in the order in which they are written."""

from __future__ import annotations

from dataclasses import replace

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.lang.gq.check.comparisons import binding_predicates, filter_predicate
from spark_omnigraph.lang.gq.check.mutation import check_mutation
from spark_omnigraph.lang.gq.check.results import check_results
from spark_omnigraph.lang.gq.check.scope import BlockScope, declared_params
from spark_omnigraph.lang.gq.check.searches import text_match
from spark_omnigraph.lang.gq.check.typed import (
    TypedBinding,
    TypedClause,
    TypedFilter,
    TypedNegation,
    TypedRead,
)
from spark_omnigraph.lang.gq.check.walks import walk
from spark_omnigraph.lang.gq.report import type_error
from spark_omnigraph.lang.gq.syntax.ast import (
    Binding,
    Clause,
    Expr,
    FilterClause,
    Negation,
    PropertyAccess,
    Query,
    TextCall,
    TextClause,
    Traversal,
    Variable,
)
from spark_omnigraph.words import nearest


def check_read(catalog: Catalog, query: Query) -> TypedRead:
    """A read query with all names resolved; QueryTypeError for the first rule it breaks, and for a mutation."""
    body = query.body
    if isinstance(body, tuple):
        check_mutation(catalog, query)
        message = f"mutation query cannot be typechecked with read-query API: run '{query.name.text}' with mutate"
        raise type_error(query.source, query.name.region, message)
    params = declared_params(query)
    scope = BlockScope(query.source, catalog, params)
    clauses = tuple(_clause(scope, clause) for clause in body.match)
    results = check_results(scope, body)
    return TypedRead(
        name=query.name.text,
        params=params,
        clauses=clauses,
        items=results.items,
        rank=results.rank,
        order=results.order,
        result_order=results.result_order,
        limit=body.limit,
    )


def _clause(scope: BlockScope, clause: Clause) -> TypedClause:
    if isinstance(clause, Binding):
        return _binding(scope, clause)
    if isinstance(clause, Traversal):
        return walk(scope, clause)
    if isinstance(clause, TextClause):
        return TypedFilter(text_match(scope, clause.call))
    if isinstance(clause, FilterClause):
        return TypedFilter(filter_predicate(scope, clause))
    return _negation(scope, clause)


def _binding(scope: BlockScope, clause: Binding) -> TypedBinding:
    node = scope.catalog.nodes.get(clause.type_name.text)
    if node is None:
        close = nearest(clause.type_name.text, scope.catalog.nodes)
        raise scope.error(clause.type_name.region, f"T1: unknown node type `{clause.type_name.text}`{close}")
    variable = scope.bind(clause.variable, node)
    return TypedBinding(variable, node.name, binding_predicates(scope, clause, variable))


def _negation(scope: BlockScope, clause: Negation) -> TypedNegation:
    inner = scope.inner()
    clauses = tuple(_clause(inner, part) for part in clause.clauses)
    if not any(name in scope.bound for part in clause.clauses for name in _mentioned(part)):
        message = "T9: negation block must reference at least one outer-bound variable"
        raise scope.error(replace(clause.region, end=clause.region.start + 3), message)
    return TypedNegation(clauses)


def _mentioned(clause: Clause) -> list[str]:
    """Variables of a direct clause of a negation."""
    if isinstance(clause, Binding):
        return [clause.variable.text]
    if isinstance(clause, Traversal):
        return [clause.left.text, clause.right.text]
    if isinstance(clause, TextClause):
        return _variables(clause.call)
    if isinstance(clause, FilterClause):
        return [*_variables(clause.left), *_variables(clause.right)]
    return []


def _variables(part: Expr) -> list[str]:
    if isinstance(part, PropertyAccess):
        return [part.variable.text]
    if isinstance(part, Variable):
        return [part.name.text]
    return _variables(part.field) if isinstance(part, TextCall) else []
