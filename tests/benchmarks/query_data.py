"""The social graph that the query benchmark asks: people with a city, a vector and some words, and who knows whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SCHEMA = """
node Person {
  name: String @key
  age: I32 @index
  bio: String @index
  city: String
  score: F64
  v: Vector(16) @index
}
edge Knows: Person -> Person { since: I32 }
"""
NARROW = """
node Person {
  name: String @key
  age: I32
  city: String
  score: F64
}
edge Knows: Person -> Person { since: I32 }
"""
"""The schema of rows that are made in batches."""
BATCH = 1_000_000
PEOPLE, DEGREE, CITIES, WORDS, DIMENSION = 1_000_000, 4, 100, 5_000, 16


def people(count: int) -> pa.Table:
    """Nodes in the physical order of columns."""
    random = np.random.default_rng(1)
    names = _numbered("p", np.arange(count), 7)
    chosen = [pa.array(_numbered("w", random.integers(0, WORDS, count), 4)) for _ in range(6)]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.random(count * DIMENSION, dtype=np.float32)), DIMENSION)
    return _table(
        {
            "id": names,
            "age": pa.array(random.integers(0, 100, count), pa.int32()),
            "bio": pc.binary_join_element_wise(*chosen, " "),
            "city": _numbered("c", random.integers(0, CITIES, count), 2),
            "name": names,
            "score": pa.array(random.random(count)),
            "v": vectors,
        }
    )


def knows(count: int) -> pa.Table:
    """Four edges for each node on average, none twice and no loops."""
    random = np.random.default_rng(2)
    pairs = np.unique(random.integers(0, count, count * DEGREE) * count + random.integers(0, count, count * DEGREE))
    sources, targets = pairs // count, pairs % count
    kept = sources != targets
    sources, targets = sources[kept], targets[kept]
    order = random.permutation(len(sources))
    sources, targets = sources[order], targets[order]
    return _table(
        {
            "id": _numbered("e", np.arange(len(sources)), 8),
            "src": _numbered("p", sources, 7),
            "dst": _numbered("p", targets, 7),
            "since": pa.array(random.integers(1990, 2026, len(sources)), pa.int32()),
        }
    )


def narrow_people(count: int) -> pa.RecordBatchReader:
    """Nodes without words and vectors, of any number, some at a time."""
    random = np.random.default_rng(1)

    def some(start: int) -> pa.Table:
        numbers = np.arange(start, min(start + BATCH, count))
        names = _numbered("p", numbers, 7)
        return _table(
            {
                "id": names,
                "age": pa.array(random.integers(0, 100, len(numbers)), pa.int32()),
                "city": _numbered("c", random.integers(0, CITIES, len(numbers)), 2),
                "name": names,
                "score": pa.array(random.random(len(numbers))),
            }
        )

    return _streamed(some, range(0, count, BATCH))


def many_edges(count: int, degree: int, hub: int = 0) -> pa.RecordBatchReader:
    """About `degree` edges for each node, none twice and no loops, some at a time; the first node knows `hub` more."""
    random = np.random.default_rng(2)
    parts = -(-count * degree // BATCH)
    made = 0

    def some(part: int) -> pa.Table:
        nonlocal made
        starters = np.arange(part, count, parts)
        sources = random.choice(starters, len(starters) * degree)
        targets = random.integers(0, count, len(sources))
        if part == 0:
            sources, targets = np.append(sources, np.zeros(hub, int)), np.append(targets, np.arange(1, hub + 1))
        pairs = random.permutation(np.unique(sources * count + targets))
        sources, targets = pairs // count, pairs % count
        kept = sources != targets
        numbers = np.arange(made, made + int(kept.sum()))
        made += len(numbers)
        return _table(
            {
                "id": _numbered("e", numbers, 8),
                "src": _numbered("p", sources[kept], 7),
                "dst": _numbered("p", targets[kept], 7),
                "since": pa.array(random.integers(1990, 2026, len(numbers)), pa.int32()),
            }
        )

    return _streamed(some, range(parts))


def _streamed(some: Callable[[int], pa.Table], places: range) -> pa.RecordBatchReader:
    first = some(places[0])

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.to_batches()
        for place in places[1:]:
            yield from some(place).to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def write_parquet(folder: Path, nodes: pa.Table, edges: pa.Table) -> tuple[Path, Path]:
    """The same rows as files that other databases load."""
    paths = folder / "people.parquet", folder / "knows.parquet"
    pq.write_table(nodes.select(["name", "age", "bio", "city", "score", "v"]), paths[0])
    pq.write_table(edges.select(["src", "dst", "since"]), paths[1])
    return paths


def _numbered(letter: str, numbers: np.ndarray, digits: int) -> pa.Array:
    text = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), width=digits, padding="0")
    return pc.binary_join_element_wise(letter, text, "")


def _table(columns: dict[str, pa.Array]) -> pa.Table:
    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
