"""Rules T4, T5, T15, T22 and T23: traversals."""

from __future__ import annotations

from spark_omnigraph.catalog.types import EdgeType, NodeType
from spark_omnigraph.lang.gq.check.scope import BlockScope
from spark_omnigraph.lang.gq.check.typed import TypedWalk
from spark_omnigraph.lang.gq.plan import Direction
from spark_omnigraph.lang.gq.syntax.ast import ANONYMOUS, Traversal
from spark_omnigraph.lang.source import Name
from spark_omnigraph.words import nearest


def walk(scope: BlockScope, clause: Traversal) -> TypedWalk:
    """A checked traversal; it binds those of its variables that are not bound yet."""
    edge = scope.catalog.edge_by_word(clause.edge.text)
    if edge is None:
        words = [name[0].lower() + name[1:] for name in scope.catalog.edges]
        close = nearest(clause.edge.text, words)
        raise scope.error(clause.edge.region, f"T4: unknown edge type `{clause.edge.text}`{close}")
    if not {edge.from_type, edge.to_type} <= scope.catalog.nodes.keys():
        message = f"T4: nothing tells any more which types edge {edge.name} of this state leads between; export it"
        raise scope.error(clause.edge.region, message)
    low, high = _bounds(scope, clause)
    direction, left_type, right_type = _ends(scope, clause, edge)
    left = _bind(scope, clause.left, left_type, edge)
    right = _bind(scope, clause.right, right_type, edge)
    edge_variable = _edge_variable(scope, clause, edge)
    return TypedWalk(left, left_type.name, right, right_type.name, edge, direction, low, high, edge_variable)


def _bounds(scope: BlockScope, clause: Traversal) -> tuple[int, int]:
    bounds = clause.bounds
    if bounds is None:
        return 1, 1
    if clause.edge_variable is not None:
        message = f"T23: the edge variable `${clause.edge_variable.text}` stands for one edge; it cannot have bounds"
        raise scope.error(bounds.region, message)
    if bounds.min < 1:
        raise scope.error(bounds.region, "T15: traversal min hop bound must be >= 1")
    if bounds.max is None:
        message = "T15: unbounded traversal is disabled; use bounded traversal {min,max}"
        raise scope.error(bounds.region, message)
    if bounds.max < bounds.min:
        message = f"T15: invalid traversal bounds {{{bounds.min},{bounds.max}}}; max must be >= min"
        raise scope.error(bounds.region, message)
    return bounds.min, bounds.max


def _ends(scope: BlockScope, clause: Traversal, edge: EdgeType) -> tuple[Direction, NodeType, NodeType]:
    """Direction seen from the left, and the node types of both ends. What is bound decides, the left variable first."""
    source, target = scope.catalog.nodes[edge.from_type], scope.catalog.nodes[edge.to_type]
    if clause.undirected:
        if source != target:
            shown = f"{edge.name}: {edge.from_type} -> {edge.to_type}"
            message = f"T22: undirected traversal needs an edge between equal types, and edge `{shown}` is not"
            raise scope.error(clause.edge.region, message)
        return Direction.BOTH, source, target
    left, right = _node(scope, clause.left), _node(scope, clause.right)
    if left is not None:
        outwards = _is_source(scope, clause.left, left, edge)
    elif right is not None:
        # For an edge between equal types both roles fit; the right variable is then the target, as the arrow says.
        outwards = right == target or not _is_source(scope, clause.right, right, edge)
    else:
        outwards = True
    return (Direction.OUT, source, target) if outwards else (Direction.IN, target, source)


def _is_source(scope: BlockScope, variable: Name, node: NodeType, edge: EdgeType) -> bool:
    if node.name == edge.from_type:
        return True
    if node.name == edge.to_type:
        return False
    shown = f"{edge.name}: {edge.from_type} -> {edge.to_type}"
    message = f"T5: variable `${variable.text}` has type `{node.name}`, which is not an endpoint of edge `{shown}`"
    raise scope.error(variable.region, message)


def _node(scope: BlockScope, variable: Name) -> NodeType | None:
    found = scope.bound.get(variable.text)
    if isinstance(found, EdgeType):
        message = f"T23: `${variable.text}` stands for an edge and cannot be the end of a traversal"
        raise scope.error(variable.region, message)
    return found


def _bind(scope: BlockScope, variable: Name, expected: NodeType, edge: EdgeType) -> str:
    found = _node(scope, variable)
    if found is not None and found != expected:
        message = (
            f"T5: variable `${variable.text}` has type `{found.name}` but edge `{edge.name}` expects `{expected.name}`"
        )
        raise scope.error(variable.region, message)
    return scope.bind(variable, expected)


def _edge_variable(scope: BlockScope, clause: Traversal, edge: EdgeType) -> str | None:
    variable = clause.edge_variable
    if variable is None or variable.text == ANONYMOUS:
        return None
    if variable.text in scope.bound:
        raise scope.error(variable.region, f"T23: edge variable `${variable.text}` is already bound")
    return scope.bind(variable, edge)
