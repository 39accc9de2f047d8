"""Makes the JSONL graph that the benchmarks load: three node types, three edge types, about 120 bytes a line.

python -m tests.benchmarks.graph_data /tmp/graph.jsonl --nodes 1000000 --edges 2000000
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

SCHEMA = """
node Person {
    code: String @key
    age: I32
    score: F64?
    joined: DateTime
    active: Bool
    tier: enum(bronze, gold, silver)?
    @range(age, 0..150)
}

node Company {
    name: String @key
    staff: I64?
    rating: F32?
    listed: Bool?
    founded: DateTime?
    size: enum(large, medium, small)
    @check(name, "^company-[0-9]+$")
}

node Product {
    sku: String @key
    price: F64
    stock: I32?
    released: DateTime?
    fragile: Bool?
    grade: enum(a, b, c)?
    @range(price, 0.0..)
}

edge Knows: Person -> Person {
    since: Date?
    weight: F32?
}

edge WorksAt: Person -> Company {
    role: enum(engineer, manager, sales)
    hours: I32?
}

edge Bought: Person -> Product {
    quantity: I32
    paid: F64?
}
"""

NODE_SHARES = (("Person", 0.7), ("Company", 0.1), ("Product", 0.2))
EDGE_SHARES = (("Knows", 0.5), ("WorksAt", 0.2), ("Bought", 0.3))
PARALLEL = 0.01
"""Share of edges that repeat the ends of the edge before them."""

_BLOCK = 50_000
_MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
_DAYS = [
    f"{year}-{month:02d}-{day:02d}"
    for year in range(2005, 2025)
    for month, days in enumerate(_MONTHS, 1)
    for day in range(1, days + 1)
]
_TIMES = [f"{hour:02d}:{minute:02d}:{(7 * hour + minute) % 60:02d}" for hour in range(24) for minute in range(60)]


def generate(path: str | Path, nodes: int, edges: int, seed: int = 1) -> dict[str, int]:
    """Writes node lines, then edge lines; types are mixed, degrees skewed. Returns lines per table key."""
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    with open(path, "wb") as out:
        ends = _write_nodes(out, rng, nodes, counts)
        _write_edges(out, rng, edges, ends, counts)
    return dict(counts)


def _write_nodes(
    out: BinaryIO, rng: np.random.Generator, count: int, counts: Counter[str]
) -> dict[str, NDArray[np.int64]]:
    kinds = rng.choice(len(NODE_SHARES), size=count, p=[share for _, share in NODE_SHARES]).astype(np.int8)
    kinds[: len(NODE_SHARES)] = np.arange(min(count, len(NODE_SHARES)))
    # Serial numbers in random order: keys of a real graph do not arrive sorted.
    serials = rng.permutation(count).astype(np.int64)
    for start in range(0, count, _BLOCK):
        stop = min(count, start + _BLOCK)
        out.writelines(_node_lines(rng, kinds[start:stop].tolist(), serials[start:stop].tolist()))
    ends = {}
    for kind, (name, _) in enumerate(NODE_SHARES):
        ends[name] = serials[kinds == kind]
        counts[f"node:{name}"] = len(ends[name])
    return ends


def _node_lines(rng: np.random.Generator, kinds: list[int], serials: list[int]) -> Iterator[bytes]:
    size = len(kinds)
    whole = rng.integers(0, 100, size).tolist()
    real = np.round(rng.random(size) * 1000, 2).tolist()
    day = rng.integers(0, len(_DAYS), size).tolist()
    time = rng.integers(0, len(_TIMES), size).tolist()
    word = rng.integers(0, 3, size).tolist()
    for i, kind in enumerate(kinds):
        stamp = f"{_DAYS[day[i]]}T{_TIMES[time[i]]}Z"
        truth = "true" if whole[i] % 2 else "false"
        if kind == 0:
            data = (
                f'"code":"person-{serials[i]:07d}","age":{whole[i]},"score":{real[i]},"joined":"{stamp}",'
                f'"active":{truth},"tier":"{("bronze", "gold", "silver")[word[i]]}"'
            )
        elif kind == 1:
            data = (
                f'"name":"company-{serials[i]:07d}","staff":{whole[i] * 37},"rating":{real[i]},"listed":{truth},'
                f'"founded":"{stamp}","size":"{("large", "medium", "small")[word[i]]}"'
            )
        else:
            data = (
                f'"sku":"sku-{serials[i]:07d}","price":{real[i]},"stock":{whole[i]},"released":"{stamp}",'
                f'"fragile":{truth},"grade":"{"abc"[word[i]]}"'
            )
        yield f'{{"type":"{NODE_SHARES[kind][0]}","data":{{{data}}}}}\n'.encode()


def _write_edges(
    out: BinaryIO, rng: np.random.Generator, count: int, ends: dict[str, NDArray[np.int64]], counts: Counter[str]
) -> None:
    last: dict[int, tuple[int, int]] = {}
    for start in range(0, count, _BLOCK):
        size = min(_BLOCK, count - start)
        kinds = rng.choice(len(EDGE_SHARES), size=size, p=[share for _, share in EDGE_SHARES])
        for kind, (name, _) in enumerate(EDGE_SHARES):
            counts[f"edge:{name}"] += int((kinds == kind).sum())
        out.writelines(_edge_lines(rng, kinds.tolist(), ends, last))


def _edge_lines(
    rng: np.random.Generator, kinds: list[int], ends: dict[str, NDArray[np.int64]], last: dict[int, tuple[int, int]]
) -> Iterator[bytes]:
    size = len(kinds)
    sources = _skewed(rng, ends["Person"], size)
    targets = [_skewed(rng, ends[name], size) for name in ("Person", "Company", "Product")]
    whole = rng.integers(1, 60, size).tolist()
    real = np.round(rng.random(size) * 500, 2).tolist()
    day = rng.integers(0, len(_DAYS), size).tolist()
    again = (rng.random(size) < PARALLEL).tolist()
    for i, kind in enumerate(kinds):
        source, target = last[kind] if again[i] and kind in last else (sources[i], targets[kind][i])
        last[kind] = (source, target)
        if kind == 0:
            to, data = "person", f'"since":"{_DAYS[day[i]]}","weight":{real[i]}'
        elif kind == 1:
            to, data = "company", f'"role":"{("engineer", "manager", "sales")[whole[i] % 3]}","hours":{whole[i]}'
        else:
            to, data = "sku", f'"quantity":{whole[i]},"paid":{real[i]}'
        name = EDGE_SHARES[kind][0]
        yield f'{{"edge":"{name}","from":"person-{source:07d}","to":"{to}-{target:07d}","data":{{{data}}}}}\n'.encode()


def _skewed(rng: np.random.Generator, serials: NDArray[np.int64], size: int) -> list[int]:
    """Random ends with a long tail: cubing a uniform number gives a tenth of the nodes almost half the edges."""
    picks: list[int] = serials[(rng.random(size) ** 3 * len(serials)).astype(np.int64)].tolist()
    return picks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts = generate(options.path, options.nodes, options.edges, options.seed)
    size = options.path.stat().st_size
    print(f"{sum(counts.values())} lines, {size / 1e6:.0f} MB, {counts}")


if __name__ == "__main__":
    main()
