"""Answers a read query from its syntax tree and rows in dictionaries.

A row of the answer is a way to give each variable an entity so that every clause holds. All ways are tried; a clause is
asked as soon as all its variables have something.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spark_omnigraph.catalog.types import Catalog, PropType, Scalar
from spark_omnigraph.lang.gq.check.scope import instant
from spark_omnigraph.lang.gq.plan import Comparator, TextForm
from spark_omnigraph.lang.gq.syntax.ast import (
    Binding,
    Clause,
    Expr,
    FilterClause,
    ListLiteral,
    Literal,
    Negation,
    NowCall,
    PropertyAccess,
    TextCall,
    TextClause,
    Traversal,
    Variable,
)
from tests.oracle.values import Stored, holds, single
from tests.oracle.walks import Row, Rows, reached

NOW_NAME = "now()"
"""The parameter that holds the instant of the query."""


class AmbiguousError(Exception):
    """The rules do not say from which end a walk starts, and here it matters."""


@dataclass(frozen=True)
class Entity:
    """A node or an edge that a variable stands for."""

    kind: str
    id: str
    row: Row


Filled = dict[str, Entity]


@dataclass
class Walk:
    """A traversal with its direction as seen from the left."""

    clause: Traversal
    edge: str
    way: str
    left: str
    right: str
    chains: bool

    @property
    def bounds(self) -> tuple[int, int]:
        bounds = self.clause.bounds
        return (1, 1) if bounds is None else (bounds.min, bounds.max or bounds.min)


@dataclass
class Block:
    """The clauses of a match or a negation, and the types of the variables that it introduces."""

    bindings: list[Binding] = field(default_factory=list)
    walks: list[Walk] = field(default_factory=list)
    others: list[Clause] = field(default_factory=list)
    new: dict[str, str] = field(default_factory=dict)


@dataclass
class Evaluator:
    """Answers over one state of a graph."""

    catalog: Catalog
    rows: Rows
    params: Mapping[str, Stored]
    """Values of the parameters, as they would be stored."""
    anonymous: Iterator[int] = field(default_factory=itertools.count)
    known_reaches: dict[tuple[object, ...], set[str]] = field(default_factory=dict)

    def match(self, clauses: tuple[Clause, ...]) -> list[Filled]:
        """All ways to fill the variables of a match block."""
        return list(self._ways(clauses, {}, {}))

    def _ways(self, clauses: tuple[Clause, ...], outer: Filled, types: Mapping[str, str]) -> Iterator[Filled]:
        block = self._read(clauses, types)
        known = {**types, **block.new}
        starts = self._walked_from(block, set(types))
        return self._fill(block, starts, list(block.new), dict(outer), known)

    # --- reading a block

    def _read(self, clauses: tuple[Clause, ...], outer: Mapping[str, str]) -> Block:
        block, known = Block(), dict(outer)

        def meet(name: str, kind: str) -> str:
            if name == "_":
                name = f"?{next(self.anonymous)}"
            if name not in known:
                known[name] = block.new[name] = kind
            return name

        for clause in clauses:
            if isinstance(clause, Binding):
                meet(clause.variable.text, clause.type_name.text)
                block.bindings.append(clause)
            elif isinstance(clause, Traversal):
                edge = self.catalog.edge_by_word(clause.edge.text)
                assert edge is not None
                same = edge.from_type == edge.to_type
                left, right = known.get(clause.left.text), known.get(clause.right.text)
                forward = same or (left == edge.from_type if left else right is None or right == edge.to_type)
                ends = (edge.from_type, edge.to_type) if forward else (edge.to_type, edge.from_type)
                way = "both" if clause.undirected else "out" if forward else "in"
                names = meet(clause.left.text, ends[0]), meet(clause.right.text, ends[1])
                block.walks.append(Walk(clause, edge.name, way, *names, same))
            else:
                block.others.append(clause)
        return block

    def _walked_from(self, block: Block, bound: set[str]) -> list[bool]:
        """For each walk whether it starts at its left end: what is bound first is where it starts."""
        inside = bool(bound)
        starts: dict[int, bool] = {}

        def spread() -> None:
            moved = True
            while moved:
                moved = False
                for place, walk in enumerate(block.walks):
                    if place not in starts and (walk.left in bound or walk.right in bound):
                        starts[place] = walk.left in bound
                        bound.update((walk.left, walk.right))
                        moved = True

        spread()
        for binding in block.bindings:
            bound.add(binding.variable.text)
            spread()
        if inside:
            self._require_symmetric(block)
        if len(starts) < len(block.walks):
            raise AmbiguousError  # nothing binds an end of the rest
        return [starts[place] for place in range(len(block.walks))]

    def _require_symmetric(self, block: Block) -> None:
        for walk in block.walks:
            if walk.chains and walk.bounds[1] > 1:
                ids = self.rows.nodes[self.catalog.edges[walk.edge].from_type]
                there = {(a, b) for a in ids for b in self._reached(walk, a, True)}
                back = {(a, b) for b in ids for a in self._reached(walk, b, False)}
                if there != back:
                    raise AmbiguousError

    def _reached(self, walk: Walk, start: str, from_left: bool) -> set[str]:
        way = walk.way if from_left else {"out": "in", "in": "out", "both": "both"}[walk.way]
        key = (walk.edge, start, way, walk.bounds)
        if key not in self.known_reaches:
            self.known_reaches[key] = reached(self.rows, walk.edge, start, way, *walk.bounds, walk.chains)
        return self.known_reaches[key]

    # --- trying

    def _fill(
        self, block: Block, starts: list[bool], open_: list[str], filled: Filled, types: Mapping[str, str]
    ) -> Iterator[Filled]:
        if not all(self._binding(b, filled) for b in block.bindings if b.variable.text in filled):
            return
        for walk, from_left in zip(block.walks, starts, strict=True):
            if walk.left in filled and walk.right in filled and not self._connects(walk, from_left, filled):
                return
        if open_:
            name = open_[0]
            for node, row in self.rows.nodes[types[name]].items():
                yield from self._fill(block, starts, open_[1:], {**filled, name: Entity(types[name], node, row)}, types)
            return
        for way in self._edges(block, filled):
            inner_types = {**types, **{n: e.kind for n, e in way.items()}}
            if all(self._other(clause, way, inner_types) for clause in block.others):
                yield way

    def _edges(self, block: Block, filled: Filled) -> Iterator[Filled]:
        """Every choice of stored edges for the walks that name theirs."""
        named = [w for w in block.walks if w.clause.edge_variable is not None]
        choices = [self._edges_between(walk, filled) for walk in named]
        for chosen in itertools.product(*choices):
            way = dict(filled)
            for walk, entity in zip(named, chosen, strict=True):
                assert walk.clause.edge_variable is not None
                way[walk.clause.edge_variable.text] = entity
            yield way

    def _edges_between(self, walk: Walk, filled: Filled) -> list[Entity]:
        ends = filled[walk.left].id, filled[walk.right].id
        source, target = ends if walk.way == "out" else ends[::-1]
        return [
            Entity(walk.edge, key, row)
            for key, row in self.rows.edges[walk.edge].items()
            if row["src"] == source and row["dst"] == target
        ]

    def _connects(self, walk: Walk, from_left: bool, filled: Filled) -> bool:
        start, end = (walk.left, walk.right) if from_left else (walk.right, walk.left)
        return filled[end].id in self._reached(walk, filled[start].id, from_left)

    # --- clauses

    def _binding(self, binding: Binding, filled: Filled) -> bool:
        entity = filled[binding.variable.text]
        node = self.catalog.nodes[binding.type_name.text]
        for match in binding.matches:
            prop = node.property(match.name.text)
            assert prop is not None
            word = "contains" if prop.type.is_list else "="
            value = self.value(match.value, filled)
            if not holds(entity.row[prop.name], word, _meeting(value, prop.type)):
                return False
        return True

    def _other(self, clause: Clause, filled: Filled, types: Mapping[str, str]) -> bool:
        if isinstance(clause, FilterClause):
            word = "contains" if clause.comparator is Comparator.HAS_ITEM else str(clause.comparator)
            left, right = self.value(clause.left, filled), self.value(clause.right, filled)
            of_left, of_right = self._type(clause.left, filled), self._type(clause.right, filled)
            left = left if of_left or not of_right else _meeting(left, of_right)
            right = right if of_right or not of_left else _meeting(right, of_left)
            return holds(left, word, right)
        if isinstance(clause, TextClause):
            return self.finds(clause.call, filled)
        assert isinstance(clause, Negation)
        return next(self._ways(clause.clauses, filled, types), None) is None

    def finds(self, call: TextCall, filled: Filled) -> bool:
        """Any of the words is in the text, or with `fuzzy` one that differs by few letters."""
        text, query = self.value(call.field, filled), self.value(call.query, filled)
        if text is None:
            return False
        if call.form is not TextForm.FUZZY:
            return bool(tokens(text) & tokens(query))
        most = 2 if call.max_edits is None else self.value(call.max_edits, filled)
        return any(edits(a, b) <= most for a in tokens(text) for b in tokens(query))

    def value(self, part: Expr, filled: Filled) -> Stored:
        """What an expression is for a row."""
        if isinstance(part, PropertyAccess):
            return filled[part.variable.text].row[part.property.text]
        if isinstance(part, Variable):
            entity = filled.get(part.name.text)
            return entity.id if entity is not None else self.params[part.name.text]
        if isinstance(part, NowCall):
            return self.params[NOW_NAME]
        if isinstance(part, ListLiteral):
            return tuple(self.value(item, filled) for item in part.items)
        assert isinstance(part, Literal), part
        if part.type.scalar in (Scalar.DATE, Scalar.DATETIME):
            return instant(str(part.value), part.type.scalar)
        return part.value

    def _type(self, part: Expr, filled: Filled) -> PropType | None:
        """Type of a property; None for other expressions."""
        if not isinstance(part, PropertyAccess):
            return None
        return property_type(self.catalog, filled[part.variable.text].kind, part.property.text)


def tokens(text: str) -> set[str]:
    """Words as a search sees them: small letters without accents, in the singular. Exact for the words of the tests.

    >>> sorted(tokens("Elks moss Öl"))
    ['elk', 'moss', 'ol']
    """
    words = text.lower().replace("ö", "o").split()
    return {word[:-1] if word in ("elks", "ferns") else word for word in words}


def edits(a: str, b: str) -> int:
    """How many letters have to be put in, left out or changed.

    >>> edits("bog", "ol"), edits("wax", "wax")
    (2, 0)
    """
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (left != right))
    return row[-1]


def property_type(catalog: Catalog, kind: str, name: str) -> PropType:
    """Type of a property of a node or edge type."""
    owner = catalog.nodes.get(kind) or catalog.edges[kind]
    prop = owner.property(name)
    assert prop is not None
    return prop.type


def _meeting(value: Stored, of: PropType) -> Stored:
    """A constant that meets a property: an F32 property holds what is nearest to it."""
    return single(value) if of.scalar is Scalar.F32 else value
