"""Who is next to whom: edges of one type by the positions of their ends, compressed and kept in memory.

Nodes have numbers: their position in the node table. Ids of edges between equal types that no stored node has get the
numbers after these, because a walk may pass through them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.int_arrays import Numbers, distinct, is_range, ranges
from spark_omnigraph.lang.gq.plan import Direction
from spark_omnigraph.storage.tables.reader import TableReader
from spark_omnigraph.validate.key_index import KeyIndex


@dataclass(frozen=True, slots=True)
class Steps:
    """One step from each of some nodes: `counts` (`int64[nodes]`) says how many neighbours each has. These follow each
    other in `nodes` (`int64[sum of counts]`, node numbers), and in `edges` the positions of the edges between.
    """

    counts: Numbers
    nodes: Numbers
    edges: Numbers | None = None


class Neighbours(Protocol):
    """Where walks find their next nodes: compressed in memory, or by look-ups in the edge table."""

    def of(self, nodes: Numbers) -> Steps | None:
        """Neighbours of different nodes; None when they are too many for this way."""


@dataclass(frozen=True, slots=True)
class Compressed:
    """Neighbours of node `n` are `nodes[starts[n]:starts[n + 1]]` (node numbers), ascending; `edges` has the position
    of the edge to each. `starts` is `int64[nodes + 1]`: a matrix of neighbours in compressed sparse rows.
    """

    starts: Numbers
    nodes: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int32] | None

    def of(self, nodes: Numbers) -> Steps:
        places: slice | Numbers
        if is_range(nodes, len(nodes)):
            counts = np.diff(self.starts[: len(nodes) + 1])
            places = slice(0, int(self.starts[len(nodes)]))
        else:
            begins = self.starts[nodes]
            counts = self.starts[nodes + 1] - begins
            places = ranges(begins, counts)
        edges = None if self.edges is None else self.edges[places].astype(np.int64)
        return Steps(counts, self.nodes[places].astype(np.int64), edges)

    @property
    def bytes(self) -> int:
        return self.starts.nbytes + self.nodes.nbytes + (0 if self.edges is None else self.edges.nbytes)


@dataclass(frozen=True, slots=True)
class Ends:
    """The two node numbers of every edge (`int32[edges]`, by position of the edge), and how many numbers there are."""

    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    source_numbers: int
    target_numbers: int

    @property
    def bytes(self) -> int:
        return self.sources.nbytes + self.targets.nbytes

    def compressed(self, direction: Direction, with_edges: bool) -> Compressed:
        """The neighbours in one direction; with edges each stored edge counts, otherwise each neighbour once.

        A pair of nodes `(a, b)` is one number, `a * width + b`: sorting these sorts by both, and equal pairs stand
        together. The neighbours of `a` begin where `a * width` would be inserted.
        """
        a, b, size = self.sources, self.targets, self.source_numbers
        edges = np.arange(len(a), dtype=np.int32)
        if direction is Direction.IN:
            a, b, size = b, a, self.target_numbers
        elif direction is Direction.BOTH:
            back = np.flatnonzero(a != b)
            a, b = np.concatenate([a, b[back]]), np.concatenate([b, a[back]])
            edges = np.concatenate([edges, edges[back]])
        width = max(self.source_numbers, self.target_numbers, 1)
        keys = a.astype(np.int64) * width + b
        kept: npt.NDArray[np.int32] | None = None
        if with_edges:
            order = np.argsort(keys, kind="stable")
            keys, kept = keys[order], edges[order]
        else:
            keys = distinct(keys)
        starts = np.searchsorted(keys, np.arange(size + 1, dtype=np.int64) * width)
        return Compressed(starts.astype(np.int64), (keys % width).astype(np.int32), kept)


def read_ends(edges: TableReader, sources: TableReader, targets: TableReader) -> Ends:
    """The ends of all edges of a table."""
    table = edges.columns(["src", "dst"])
    src, dst = table.column("src"), table.column("dst")
    ids = KeyIndex(_texts(sources.columns(["id"]), "id"))
    a = _found(ids, src)
    if sources is not targets:
        b = _found(KeyIndex(_texts(targets.columns(["id"]), "id")), dst)
        # Nothing is walked to or from the ends that are not stored: these edges lie past all nodes.
        a[a < 0], b[b < 0] = sources.rows, targets.rows
        return Ends(a, b, sources.rows + 1, targets.rows + 1)
    b = _found(ids, dst)
    count = sources.rows
    absent_a, absent_b = np.flatnonzero(a < 0), np.flatnonzero(b < 0)
    if len(absent_a) or len(absent_b):
        chunks = [*src.take(pa.array(absent_a)).chunks, *dst.take(pa.array(absent_b)).chunks]
        absent = pa.concat_arrays(chunks).dictionary_encode()
        numbers = np.asarray(absent.indices) + count
        a[absent_a], b[absent_b] = numbers[: len(absent_a)], numbers[len(absent_a) :]
        count += len(absent.dictionary)
    return Ends(a, b, count, count)


def _found(index: KeyIndex, texts: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """Positions of texts, -1 for none: some at a time, since comparing takes ten times the memory of what is found."""
    parts = [index.find(chunk).astype(np.int32) for chunk in texts.chunks]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)


def _texts(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


@dataclass(frozen=True, slots=True)
class EdgeTables:
    """An edge table and the node tables of its ends; `source` and `target` are one object for equal types."""

    edges: TableReader
    sources: TableReader
    targets: TableReader

    @property
    def key(self) -> tuple[object, ...]:
        """Names the content of the three tables."""
        return self.edges.identity, self.sources.identity, self.targets.identity

    @property
    def chains(self) -> bool:
        """Whether both ends are of one type, so that a walk can go on from where it arrives."""
        return self.sources is self.targets

    def is_compressed(self, direction: Direction, with_edges: bool) -> bool:
        """Whether the neighbours in one direction are in memory."""
        return self.edges.memory.has(Compressed, (*self.key, direction, with_edges))

    def pays(self, costs: Costs) -> bool:
        """Whether walks by look-ups have cost as much by now as an index; counts one more where not."""
        size = self.edges.rows + self.sources.rows + (0 if self.chains else self.targets.rows)
        if size > costs.index_entries:
            return False
        walks_before = self.edges.memory.notes.add(self.key, 1) - 1
        return walks_before * costs.walk_entries >= size

    def compressed(self, direction: Direction, with_edges: bool) -> Compressed:
        """The neighbours in one direction, from memory when they are there."""
        key = (*self.key, direction, with_edges)
        found = self.edges.memory.get(Compressed, key)
        if found is not None:
            return found
        ends = self.edges.memory.get(Ends, self.key)
        if ends is None:
            ends = read_ends(self.edges, self.sources, self.targets)
            self.edges.memory.put(Ends, self.key, ends, ends.bytes)
        made = ends.compressed(direction, with_edges)
        self.edges.memory.put(Compressed, key, made, made.bytes)
        return made
