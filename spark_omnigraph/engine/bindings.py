"""Rows between operators: for each variable, which row of its table; columns are read when somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spark_omnigraph.engine.int_arrays import is_range, numbered, upto
from spark_omnigraph.engine.order import Numbered, value_numbers
from spark_omnigraph.engine.table import Table
from spark_omnigraph.lang.gq.plan import IDENTITY, Ranking, TextMatch
from spark_omnigraph.storage.tables.reader import Positions
from spark_omnigraph.storage.tables.search import Scores

TAG = "#"
"""Begins the names of tags: which outer row a row of an anti-join belongs to."""


@dataclass(slots=True)
class Entities:
    """Different rows of one table, `positions` in any order; columns that were read are kept."""

    table: Table
    positions: Positions
    known: Sequence[str] | None = None
    """Ids of the rows, where they came with them."""
    read: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the rows."""
        if self.known is None:
            self.known = self.column(IDENTITY).to_pylist()
        return self.known

    def load(self, names: Iterable[str]) -> None:
        """Reads these columns together, those that are not there yet."""
        missing = {self._stored(name) for name in names} - self.read.keys()
        if self.known is not None and IDENTITY in missing:
            missing.remove(IDENTITY)
            self.read[IDENTITY] = pa.array(self.known, pa.string())
        if missing:
            wanted = sorted(missing)
            self.read.update(zip(wanted, self.table.columns(self.positions, wanted), strict=True))

    def column(self, name: str) -> pa.Array:
        """A column, one value for each of the rows."""
        stored = self._stored(name)
        if stored not in self.read:
            self.load([stored])
        return self.read[stored]

    def _stored(self, name: str) -> str:
        """The column that holds the values: those of a text that alone is the key are the ids."""
        return IDENTITY if name == self.table.text_key else name

    def numbers(self, name: str) -> Numbered:
        """Numbers for the values of a column, one for each of the rows."""
        known = self.table.numbers(self.positions, self._stored(name))
        return known if known is not None else value_numbers(self.column(name))

    def take(self, chosen: Positions) -> Entities:
        """Some of the rows, with the columns that were read."""
        if is_range(chosen, len(self.positions)):
            return self
        known = None if self.known is None else [self.known[place] for place in chosen.tolist()]
        at = pa.array(chosen) if self.read else None
        return Entities(self.table, self.positions[chosen], known, {n: c.take(at) for n, c in self.read.items()})


@dataclass(frozen=True, slots=True)
class BoundVariable:
    """A variable's values: `index` (`int64[rows]`) names one of the entities for each row."""

    entities: Entities
    index: Positions

    def column(self, name: str) -> pa.Array:
        """One value a row."""
        column = self.entities.column(name)
        return column if is_range(self.index, len(column)) else column.take(pa.array(self.index))

    def numbers(self, name: str) -> Numbered:
        """Numbers for the values of a column, one a row."""
        found = self.entities.numbers(name)
        return found if is_range(self.index, len(found.numbers)) else found.at(self.index)

    def narrowed(self) -> BoundVariable:
        """The same values; entities that no row names are forgotten, so that nobody reads their columns."""
        if len(self.index) >= len(self.entities.positions):
            return self
        used, index = numbered(self.index, len(self.entities.positions))
        return BoundVariable(self.entities.take(used), index)

    def at(self, chosen: Positions) -> Positions:
        """Which entities some of the rows name."""
        first_of_all = len(chosen) >= len(self.index) and is_range(self.index, len(self.index))
        return chosen if first_of_all else self.index[chosen]

    def positions(self) -> Positions:
        """Position in the table, one a row."""
        return self.entities.positions[self.index]


@dataclass(frozen=True, slots=True)
class Bindings:
    """`count` rows: a value for each variable, tags, and scores by what gave them, each an array of that length."""

    count: int
    variables: Mapping[str, BoundVariable]
    tags: Mapping[str, Positions] = field(default_factory=dict)
    scored: Mapping[Ranking | TextMatch, Scores] = field(default_factory=dict)

    def column(self, variable: str, name: str) -> pa.Array:
        """A column of a variable, one value a row."""
        return self.variables[variable].column(name)

    def load(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Reads columns of several variables, those of one variable together."""
        names: dict[str, set[str]] = {}
        for variable, name in wanted:
            names.setdefault(variable, set()).add(name)
        for variable, columns in names.items():
            self.variables[variable].entities.load(columns)

    def take(self, chosen: Positions) -> Bindings:
        """Rows by number; they may repeat."""
        variables = {v: BoundVariable(b.entities, b.at(chosen)) for v, b in self.variables.items()}
        tags = {name: tag[chosen] for name, tag in self.tags.items()}
        return Bindings(len(chosen), variables, tags, {by: found[chosen] for by, found in self.scored.items()})

    def keep(self, mask: np.ndarray) -> Bindings:
        """Rows for which the mask is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def narrowed(self) -> Bindings:
        """The same rows, of each variable only the entities that they name."""
        variables = {name: found.narrowed() for name, found in self.variables.items()}
        return Bindings(self.count, variables, self.tags, self.scored)

    def with_variable(self, variable: str, values: BoundVariable) -> Bindings:
        """The same rows with one more variable."""
        return Bindings(self.count, {**self.variables, variable: values}, self.tags, self.scored)

    def with_scores(self, by: Ranking, scores: Scores) -> Bindings:
        """The same rows with the scores that a ranking gave them."""
        return Bindings(self.count, self.variables, self.tags, {**self.scored, by: scores})

    def with_tag(self, name: str, tag: Positions) -> Bindings:
        """The same rows with one more tag."""
        return Bindings(self.count, self.variables, {**self.tags, name: tag}, self.scored)


def scanned(variable: str, table: Table, positions: Positions, ids: Sequence[str] | None = None) -> Bindings:
    """One variable, a row for each position; with the ids of the rows where they are known."""
    entities = Entities(table, positions, ids)
    return Bindings(len(positions), {variable: BoundVariable(entities, upto(len(positions)))})


def crossed(left: Bindings, right: Bindings) -> Bindings:
    """Every pair, left-major."""
    a = left.take(np.repeat(np.arange(left.count), right.count))
    b = right.take(np.tile(np.arange(right.count), left.count))
    return joined(a, b)


def stacked(parts: Sequence[Bindings]) -> Bindings:
    """Rows below each other; all parts have the same variables, with the same entities, and the same tags."""
    first = parts[0]
    if len(parts) == 1:
        return first
    variables = {
        v: BoundVariable(b.entities, np.concatenate([part.variables[v].index for part in parts]))
        for v, b in first.variables.items()
    }
    tags = {name: np.concatenate([part.tags[name] for part in parts]) for name in first.tags}
    return Bindings(sum(part.count for part in parts), variables, tags)


def joined(left: Bindings, right: Bindings) -> Bindings:
    """Rows side by side; a variable of both is the right one's."""
    return Bindings(left.count, {**left.variables, **right.variables}, {**left.tags, **right.tags})
