"""Vectors of rows that are about to be staged: asked for where a row has the text that `@embed` names, and none itself.

Rows are decoded as if such a property could be null; whether it may stay so is looked at afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.bad_rows import Mistake, Rule
from spark_omnigraph.catalog.types import GIVEN, Catalog, NodeType, Property, embedding_source
from spark_omnigraph.embed.counts import Properties, PropertyCounts, took
from spark_omnigraph.embed.embedder import Embedder
from spark_omnigraph.embed.providers import sharing
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.staging.asking import Asking, without_blank
from spark_omnigraph.storage.vectors import VectorStore, first_of_each

Bools = npt.NDArray[np.bool_]


def accepting(catalog: Catalog) -> Catalog:
    """The schema as rows are read before their vectors are there."""
    return catalog.with_optional(lambda prop: embedding_source(prop) is not None)


@dataclass(frozen=True, slots=True)
class VectorFill:
    """Who gives vectors to the tasks of a load, and where answers are kept. Picklable. In a dry run, which stages rows
    that nobody will see, nobody is asked; who would be may be None there: then no answer is known to be kept.
    """

    embedder: Embedder | None
    store: VectorStore
    asks: bool = True

    def asking(self, dimension: int) -> Asking | None:
        """What a task asks."""
        return None if self.embedder is None else Asking(self.embedder, dimension, self.store)

    def shared(self, tasks: int | None, name: str | None = None) -> VectorFill:
        """For one of so many tasks that ask at the same time, None where nobody knows how many these are."""
        return self if self.embedder is None else replace(self, embedder=sharing(self.embedder, tasks, name))


@dataclass(frozen=True, slots=True, eq=False)
class FilledRows:
    """Rows as they are stored, what is wrong with those that lack a vector, by row, and what that took."""

    rows: pa.Table
    mistakes: Mapping[int, Mistake]
    properties: Properties


def fill(how: VectorFill, node: NodeType, rows: pa.Table, keep: Bools) -> FilledRows:
    """Gives the rows to keep the vectors that they lack. Raises what `Asking.ask` raises."""
    mistakes: dict[int, Mistake] = {}
    properties: dict[str, PropertyCounts] = {}
    patches = any(name.startswith(GIVEN) for name in rows.schema.names)
    for prop in node.properties:
        source = embedding_source(prop)
        if source is not None:
            # Of patches, those that bring a new text are asked for: the others keep what they have.
            asked = keep & np.asarray(rows.column(GIVEN + source)) if patches else keep
            column = _Column(how, prop, rows, asked)
            # A patch without one has none: whoever looks whether it may become a row looks for that.
            rows = _with(rows, prop.name, column.answers if patches else column.filled)
            if patches:
                taken = np.asarray(rows.column(GIVEN + prop.name)) & column.is_empty & keep & ~asked
                for row in np.flatnonzero(taken).tolist() if not prop.type.nullable else ():
                    mistakes.setdefault(row, Mistake(prop.name, Rule.REQUIRED, f"'{prop.name}' is required, not null"))
                brought = pc.and_(rows.column(prop.name).is_valid(), pa.array(asked))
                rows = _with(rows, GIVEN + prop.name, pc.or_(rows.column(GIVEN + prop.name), brought))
            for row, mistake in column.mistakes():
                mistakes.setdefault(row, mistake)
            properties[f"{node.name}.{prop.name}"] = column.counts
    return FilledRows(rows if patches else rows.cast(physical_schema(node)), mistakes, properties)


def _with(rows: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, column)


class _Column:
    """One property of some rows."""

    def __init__(self, how: VectorFill, prop: Property, rows: pa.Table, keep: Bools) -> None:
        self._prop = prop
        self._how = how
        self._dimension = prop.type.dimension or 0
        self.counts = PropertyCounts(rows=int(keep.sum()))
        """Whole once the answers are there."""
        self._vectors = rows.column(prop.name).combine_chunks()
        self.is_empty: Bools = np.asarray(pc.is_null(self._vectors))
        """Rows that bring no vector."""
        self._at = np.flatnonzero(self.is_empty & keep)
        self._texts = without_blank(rows.column(embedding_source(prop) or "").take(pa.array(self._at)).combine_chunks())
        self._keys = pa.nulls(len(self._at), pa.string())
        self._failures: Mapping[str, str] = {}

    @cached_property
    def filled(self) -> pa.Array:
        """The column with its answers. Where it may not be null, rows that are not stored get something."""
        new = self.answers
        return new if self._prop.type.nullable else self._with_zeros(new, np.asarray(new.is_null()))

    def _with_zeros(self, vectors: pa.Array, which: Bools) -> pa.Array:
        zero = pa.array([[0.0] * self._dimension], self._vectors.type)
        at = np.where(which, len(vectors), np.arange(len(vectors)))
        return pa.concat_arrays([vectors, zero]).take(pa.array(at))

    @cached_property
    def answers(self) -> pa.Array:
        """The column with its answers, null where there is none, or with something where nobody is asked for them."""
        if not len(self._at):
            return self._vectors
        asking, is_text = self._how.asking(self._dimension), np.asarray(self._texts.is_valid())
        self._keys = self._texts if asking is None else asking.keys(self._texts)
        wanted = self._unanswered(asking, np.flatnonzero(is_text))
        if asking is None or not self._how.asks:
            would = np.zeros(len(self._vectors), dtype=bool)
            would[self._at[is_text]] = True
            return self._with_zeros(self._vectors, would)
        texts, keys = (each.take(pa.array(wanted)) for each in (self._texts, self._keys))
        if len(keys):
            replies = asking.ask(keys, lambda a, b: texts.slice(a, b - a).to_pylist(), len(keys))
            self._failures = replies.failures
            self.counts += took(replies.texts, replies.usage)
        answers = asking.store.answers(self._dimension)
        new = answers.reader().take(answers.find(self._keys))
        embedded = len(new) - new.null_count
        self.counts = replace(self.counts, embedded=embedded, failed=int(is_text.sum()) - embedded)
        places = np.arange(len(self._vectors))
        places[self._at] = len(places) + np.arange(len(self._at))
        return pa.concat_arrays([self._vectors, new.cast(self._vectors.type)]).take(pa.array(places))

    def _unanswered(self, asking: Asking | None, there: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where each text stands first that no answer is kept of, among those that are `there`."""
        distinct = there[first_of_each(self._keys.drop_null())]
        keys = self._keys.take(pa.array(distinct))
        wanted = distinct if asking is None else distinct[asking.store.answers(self._dimension).find(keys) < 0]
        self.counts = replace(
            self.counts,
            missing=len(there),
            blank=len(self._at) - len(there),
            distinct=len(distinct),
            cached=len(distinct) - len(wanted),
            bytes=pc.sum(pc.binary_length(self._texts.take(pa.array(wanted)))).as_py() or 0,
        )
        return wanted

    def mistakes(self) -> Iterator[tuple[int, Mistake]]:
        """Rows without a vector that should have one."""
        name = self._prop.name
        blank = self._texts.is_null().to_pylist()
        for row, is_blank, key in zip(self._at.tolist(), blank, self._keys.to_pylist(), strict=True):
            if key is not None and key in self._failures:
                yield row, Mistake(name, Rule.EMBEDDING, f"no vector for '{name}': {self._failures[key]}")
            elif is_blank and not self._prop.type.nullable:
                source = embedding_source(self._prop)
                yield row, Mistake(name, Rule.REQUIRED, f"'{name}' is required, and '{source}' has no text for it")
