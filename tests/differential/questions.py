"""Random queries that fit a schema, in parts that can be left out one by one."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_omnigraph.catalog.types import Catalog, EdgeType, PropType, Scalar
from tests.differential.worlds import ALIKE, PLAIN, as_json, value_of
from tests.oracle.evaluate import property_type
from tests.oracle.values import Stored
from tests.oracle.walks import Rows

_LITERALS = frozenset({Scalar.STRING, Scalar.BOOL, Scalar.DATE, Scalar.DATETIME})
_BOUNDS = ("", "", "{1,1}", "{1,2}", "{2,2}", "{1,3}", "{2,3}", "{3,4}")


@dataclass(frozen=True)
class Param:
    """A declared parameter, its stored value and its JSON value."""

    name: str
    declared: str
    stored: Stored
    given: Stored


@dataclass(frozen=True)
class Question:
    """A query in parts."""

    clauses: tuple[str, ...]
    items: tuple[str, ...]
    order: tuple[str, ...] = ()
    limit: int | None = None
    params: tuple[Param, ...] = ()

    @property
    def text(self) -> str:
        declared = ", ".join(f"${p.name}: {p.declared}" for p in self.params)
        order = f" order {{ {', '.join(self.order)} }}" if self.order else ""
        limit = "" if self.limit is None else f" limit {self.limit}"
        body = f"match {{ {'  '.join(self.clauses)} }} return {{ {', '.join(self.items)} }}{order}{limit}"
        return f"query q({declared}) {{ {body} }}"

    @property
    def stored(self) -> dict[str, Stored]:
        return {p.name: p.stored for p in self.params}

    @property
    def given(self) -> dict[str, Stored]:
        return {p.name: p.given for p in self.params}

    def smaller(self) -> list[Question]:
        """The question without one of its parts, for each of them."""
        found = [replace(self, clauses=_without(self.clauses, n)) for n in range(len(self.clauses))]
        found += [replace(self, items=_without(self.items, n)) for n in range(len(self.items))]
        found += [replace(self, order=_without(self.order, n)) for n in range(len(self.order))]
        if self.limit is not None:
            found.append(replace(self, limit=None))
        found += [replace(self, params=_without_param(self.params, n)) for n in range(len(self.params))]
        return found


def _without(parts: tuple[str, ...], place: int) -> tuple[str, ...]:
    return parts[:place] + parts[place + 1 :]


def _without_param(parts: tuple[Param, ...], place: int) -> tuple[Param, ...]:
    return parts[:place] + parts[place + 1 :]


@dataclass
class Maker:
    """Makes one question."""

    source: random.Random
    catalog: Catalog
    rows: Rows
    kinds: dict[str, str] = field(default_factory=dict)
    """Types of the variables that are bound so far, edges too."""
    params: list[Param] = field(default_factory=list)
    made: int = 0

    def question(self) -> Question:
        """A random question."""
        clauses = self._pattern(dict(self.kinds), self.kinds)
        clauses += [self._filter(self.kinds) for _ in range(self.source.choice((0, 0, 0, 1, 1, 2)))]
        if self.source.random() < 0.3:
            clauses.append(self._negation(self.kinds, 0))
        if self.source.random() < 0.06:
            clauses.append(self._among_constants())
        clauses = [clause for clause in clauses if clause]
        pick = self.source.random()
        if pick < 0.25:
            made = self._summary()
        elif pick < 0.4:
            made = self._ranked()
        else:
            made = self._listed()
        return replace(made, clauses=tuple(clauses), params=tuple(self.params))

    # --- patterns

    def _new(self, letter: str = "") -> str:
        self.made += 1
        return f"{letter or self.source.choice('abxyz')}{self.made}"

    def _binding(self, variable: str, kind: str) -> str:
        inline = [self._inline(kind) for _ in range(self.source.choice((0, 0, 0, 0, 0, 1, 1, 2)))]
        shown = ", ".join(text for text in inline if text)
        return f"${variable}: {kind}" + (f" {{ {shown} }}" if shown else "")

    def _inline(self, kind: str) -> str:
        named = self._property(kind, lambda of: not of.is_vector)
        if named is None:
            return ""
        name, of = named
        one = PropType(of.scalar, enum_values=of.enum_values)
        return f"{name}: {self._constant(one, self._stored(kind, name), enum=True)}"

    def _pattern(self, outer: Mapping[str, str], kinds: dict[str, str]) -> list[str]:
        """Bindings and traversals; what they bind goes into `kinds`."""
        clauses: list[str] = []
        late: list[str] = []
        plain = True
        if not outer:
            clauses.append(self._start(kinds))
        for _ in range(self.source.choice((0, 1, 1, 2, 2, 3)) if not outer else 1):
            if not outer and self.source.random() < 0.1:
                clauses.append(self._start(kinds))
                continue
            text, target, forward = self._walk(outer or kinds, kinds)
            plain = plain and forward
            clauses.append(text)
            if target is not None and self.source.random() < 0.4:
                late.append(self._binding(target, kinds[target]))
        if plain and not outer and self.source.random() < 0.2:
            # Every traversal begins where its edge does, so nothing has to be bound before it.
            return [c for c in clauses if ": " not in c] + [c for c in clauses if ": " in c] + late
        return clauses + late

    def _start(self, kinds: dict[str, str]) -> str:
        name = self._new()
        kinds[name] = self.source.choice(sorted(self.catalog.nodes))
        return self._binding(name, kinds[name])

    def _walk(self, starts: Mapping[str, str], kinds: dict[str, str]) -> tuple[str, str | None, bool]:
        """A traversal from a bound variable, the variable at its other end if it is new, and whether it begins at the
        variable on its left as its edge does.
        """
        nodes = [name for name, kind in starts.items() if kind in self.catalog.nodes]
        start = self.source.choice(nodes)
        touching = self.catalog.edges_touching(starts[start])
        edge = self.source.choice(touching)
        outwards = edge.from_type == starts[start] and (edge.to_type != starts[start] or self.source.random() < 0.6)
        far = edge.to_type if outwards else edge.from_type
        old = [name for name, kind in kinds.items() if kind == far]
        target: str | None = None
        if old and self.source.random() < 0.2:
            other = self.source.choice(old)
        elif self.source.random() < 0.12:
            other = "_"
        else:
            other = target = self._new()
            kinds[target] = far
        same = edge.from_type == edge.to_type
        left, right = (start, other) if outwards else (other, start)
        forward = True
        if not same and other != "_" and self.source.random() < 0.3:
            left, right, forward = right, left, False
        return self._walk_text(edge, left, right, kinds), target, forward

    def _walk_text(self, edge: EdgeType, left: str, right: str, kinds: dict[str, str]) -> str:
        word = edge.name[0].lower() + edge.name[1:]
        pick = self.source.random()
        if pick < 0.2:
            named = self._new("w")
            kinds[named] = edge.name
            return f"${left} ${named}:{word} ${right}"
        chains = edge.from_type == edge.to_type
        bounds = self.source.choice(_BOUNDS) if chains or self.source.random() < 0.1 else ""
        if pick < 0.45 and chains:
            return f"${left} <{word}>{bounds} ${right}"
        return f"${left} {word}{bounds} ${right}"

    def _negation(self, kinds: Mapping[str, str], depth: int) -> str:
        inner = dict(kinds)
        walked = self.source.random() < 0.8
        clauses = self._pattern(kinds, inner) if walked else []
        if not walked or self.source.random() < 0.4:
            clauses.append(self._filter(inner if walked else kinds))
        if depth == 0 and walked and self.source.random() < 0.2:
            clauses.append(self._negation(inner, 1))
        clauses = [clause for clause in clauses if clause]
        return f"not {{ {'  '.join(clauses)} }}" if clauses else ""

    # --- filters

    def _property(self, kind: str, wanted: object = None) -> tuple[str, PropType] | None:
        owner = self.catalog.nodes.get(kind) or self.catalog.edges[kind]
        fits = [(p.name, p.type) for p in owner.properties if not callable(wanted) or wanted(p.type)]
        return self.source.choice(fits) if fits else None

    def _filter(self, kinds: Mapping[str, str]) -> str:
        variable = self.source.choice(list(kinds))
        named = self._property(kinds[variable], lambda of: not of.is_vector)
        if named is None:
            return ""
        name, of = named
        left = f"${variable}.{name}"
        if of.is_list:
            return f"{left} contains {self._constant(PropType(of.scalar), self._stored(kinds[variable], name))}"
        is_text = of.scalar is Scalar.STRING and not of.is_enum
        if is_text and kinds[variable] in self.catalog.nodes and self.source.random() < 0.35:
            if self.source.random() < 0.3:
                edits = self.source.choice(("", ", 0", ", 1", ", 2"))
                return f"fuzzy({left}, {json.dumps(self.source.choice(ALIKE))}{edits})"
            words = " ".join(self.source.choice(PLAIN) for _ in range(self.source.choice((1, 1, 2))))
            return f"{self.source.choice(('search', 'match_text'))}({left}, {json.dumps(words)})"
        if is_text and self.source.random() < 0.5:
            part = self.source.choice(("wax", "w", "", "moss ", "Ö", "%", "_"))
            return f"{left} {self.source.choice(('contains', 'starts_with'))} {json.dumps(part, ensure_ascii=False)}"
        word = self.source.choice(("=", "!=", "<", "<=", ">", ">="))
        known = self._stored(kinds[variable], name)
        right = self._other_side(kinds, of, known) if self.source.random() < 0.3 else self._constant(of, known)
        sides = (left, right) if self.source.random() < 0.8 else (right, left)
        return f"{sides[0]} {word} {sides[1]}"

    def _among_constants(self) -> str:
        """A filter that has no variable."""
        of = PropType(self.source.choice((Scalar.I64, Scalar.F64, Scalar.STRING, Scalar.DATE)))
        word = self.source.choice(("=", "!=", "<", "<=", ">", ">="))
        return f"{self._constant(of, None)} {word} {self._constant(of, None)}"

    def _other_side(self, kinds: Mapping[str, str], of: PropType, known: Stored) -> str:
        """A property to compare with, not always of the same numeric type."""

        def fits(other: PropType) -> bool:
            return not other.is_list and not other.is_vector and (
                other.scalar is of.scalar or (other.scalar.is_numeric and of.scalar.is_numeric)
            )  # laid out as a table  # fmt: skip

        variable = self.source.choice(list(kinds))
        named = self._property(kinds[variable], fits)
        return self._constant(of, known) if named is None else f"${variable}.{named[0]}"

    def _stored(self, kind: str, name: str) -> Stored:
        """A value that a row has, of a list an item; null when there is none."""
        rows = [*self.rows.nodes.get(kind, {}).values(), *self.rows.edges.get(kind, {}).values()]
        values = [row[name] for row in rows if row[name] is not None]
        value = self.source.choice(values) if values else None
        return value if not isinstance(value, tuple) else self.source.choice(value) if value else None

    def _constant(self, of: PropType, known: Stored, enum: bool = False) -> str:
        """A literal or a parameter that may be compared with a property of the type, often one that rows have."""
        number = of.scalar.is_numeric
        if of.scalar is Scalar.DATETIME and self.source.random() < 0.2:
            return "now()"
        if of.scalar is Scalar.F32 and known is not None and known >= 0 and self.source.random() < 0.5:
            return f"{abs(known):.6f}"  # the number that was given, not the one that is stored
        if known is not None and self.source.random() < 0.6:
            return json.dumps(known) if enum and of.is_enum else self._parameter(of, known)
        if number and self.source.random() < 0.3:
            of = PropType(self.source.choice((Scalar.I64, Scalar.F64, Scalar.I32, Scalar.U32, Scalar.F32)))
        value = value_of(self.source, of)
        if enum and of.is_enum:
            return json.dumps(value)
        if number and self.source.random() < 0.5:
            return self.source.choice(("0", "1", "2", "0.5", "2.0", "2.7", "0.1", "3000000000", "9007199254740993"))
        if of.scalar in _LITERALS and self.source.random() < 0.6:
            shown = json.dumps(as_json(value, of), ensure_ascii=False)
            wraps = {Scalar.DATE: "date", Scalar.DATETIME: "datetime"}
            return f"{wraps[of.scalar]}({shown})" if of.scalar in wraps else shown
        return self._parameter(of, None if self.source.random() < 0.05 else value)

    def _parameter(self, of: PropType, value: Stored) -> str:
        name = self._new("p")
        declared = str(of.scalar) if not of.is_vector else f"Vector({of.dimension})"
        self.params.append(Param(name, f"{declared}?", value, as_json(value, of)))
        return f"${name}"

    # --- order, groups, rankings

    def _readable(self, wanted: object = None) -> str | None:
        fits = []
        for name, kind in self.kinds.items():
            owner = self.catalog.nodes.get(kind) or self.catalog.edges[kind]
            fits += [f"${name}.{p.name}" for p in owner.properties if not callable(wanted) or wanted(p.type)]
        return self.source.choice(fits) if fits else None

    def _nodes(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in self.catalog.nodes]

    def _items(self, most: int, wanted: object = None) -> list[tuple[str, str | None]]:
        """Distinct returned expressions with their aliases, if they have one."""
        found: dict[str, str | None] = {}
        for _ in range(self.source.randrange(1, most + 1)):
            text = self._readable(wanted) if self.source.random() < 0.8 else f"${self.source.choice(self._nodes())}"
            if text is not None:
                found.setdefault(text, self._new("out") if self.source.random() < 0.4 else None)
        return list(found.items()) or [(f"${self._nodes()[0]}", None)]

    def _listed(self) -> Question:
        items = self._items(4)
        if self.source.random() < 0.1:
            items.append((self._parameter(PropType(Scalar.I64), 2**62 + 1), None))
        if self.source.random() < 0.1:
            items.append((self.source.choice(("1", "2.5", '"x"', "true", 'date("2024-01-05")')), None))
        order = []
        for _ in range(self.source.choice((0, 1, 1, 2))):
            text = self._readable(lambda of: not of.is_list and not of.is_vector)
            aliases = [a for t, a in items if a is not None and "." in t and self._is_scalar(t)]
            if aliases and self.source.random() < 0.4:
                text = self.source.choice(aliases)
            if text is not None:
                order.append(text + self.source.choice(("", " asc", " desc")))
        limit = self.source.choice((None, None, 0, 1, 3, 10))
        return Question((), _shown(items), tuple(order), limit)

    def _is_scalar(self, text: str) -> bool:
        variable, _, name = text[1:].partition(".")
        of = property_type(self.catalog, self.kinds[variable], name)
        return not of.is_list and not of.is_vector

    def _summary(self) -> Question:
        keys = self._items(2, lambda of: not of.is_list and not of.is_vector) if self.source.random() < 0.75 else []
        items = list(keys)
        for _ in range(self.source.choice((1, 1, 2, 3))):
            items.append((self._aggregate(), self._new("out")))
        self.source.shuffle(items)
        order = []
        if self.source.random() < 0.5:
            for text, alias in self.source.sample(items, 1):
                named = alias if alias is not None else text if "." in text else None
                if named is not None:
                    order.append(named + self.source.choice(("", " desc")))
        limit = self.source.choice((None, None, 1, 2))
        return Question((), _shown(items), tuple(order), limit)

    def _aggregate(self) -> str:
        number = self._readable(lambda of: of.scalar.is_numeric and not of.is_list)
        text = self._readable(lambda of: of.scalar is Scalar.STRING and not of.is_list)
        function = self.source.choice(("count", "count", "sum", "avg", "min", "max"))
        if function == "count":
            anything = self._readable(lambda of: not of.is_list and not of.is_vector)
            return f"count({anything})" if anything and self.source.random() < 0.5 else f"count(${self._nodes()[0]})"
        if function in ("min", "max") and text is not None and self.source.random() < 0.4:
            return f"{function}({text})"
        return f"{function}({number})" if number is not None else f"count(${self._nodes()[0]})"

    def _ranked(self) -> Question:
        vector = self._vector()
        text = self._readable(lambda of: of.scalar is Scalar.STRING and not of.is_list and not of.is_enum)
        owned = text is not None and self.kinds[text[1:].partition(".")[0]] in self.catalog.nodes
        if text is not None and owned and (vector is None or self.source.random() < 0.3):
            words = json.dumps(" ".join(self.source.choice(PLAIN) for _ in range(2)))
            return Question((), _shown(self._items(2)), (f"bm25({text}, {words})",))
        if vector is None:
            return self._listed()
        first = self._nearest(vector)
        items, limit = _shown(self._items(2)), self.source.choice((1, 2, 3, 10))
        if self.source.random() < 0.35:
            k = self.source.choice(("", ", 1", ", 7"))
            return Question((), items, (f"rrf({first}, {self._nearest(vector)}{k})",), limit)
        if self.source.random() < 0.4:
            items = (*items, f"{first} as out{self.made}0")
        return Question((), items, (first,), limit)

    def _vector(self) -> str | None:
        found = self._readable(lambda of: of.is_vector)
        return found if found is not None and self.kinds[found[1:].partition(".")[0]] in self.catalog.nodes else None

    def _nearest(self, vector: str) -> str:
        of = PropType(Scalar.VECTOR, dimension=2)
        value = value_of(self.source, of)
        query = self._parameter(of, value) if self.source.random() < 0.5 else json.dumps(list(value))
        return f"nearest({vector}, {query})"


def _shown(items: list[tuple[str, str | None]]) -> tuple[str, ...]:
    return tuple(text if alias is None else f"{text} as {alias}" for text, alias in items)
