"""Decoding alone, on one core: lines in memory → tables with ids → checks. States rates and ratios.

python -m tests.benchmarks.bench_decode --nodes 200000 --edges 400000
"""

from __future__ import annotations

import argparse
import gc
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.records.jsonl.decode import DecodedChunk, LineChunk, RecordDecoder
from spark_omnigraph.records.jsonl.lines import TextLines
from spark_omnigraph.records.mode import DecodeOptions
from spark_omnigraph.validate.batch import BatchChecker
from tests.benchmarks.graph_data import SCHEMA, generate

CHUNK = 8 << 20
ALL_BY_ROW = 1 << 60
"""As the smallest number of lines for decoding by columns: every line is read one by one."""


def chunks_of(data: bytes) -> list[LineChunk]:
    """Chunks as the loader cuts them."""
    chunks: list[LineChunk] = []
    start = line = 0
    while start < len(data):
        stop = data.rfind(b"\n", start, start + CHUNK) + 1 or len(data)
        lines = TextLines(data[start:stop].removesuffix(b"\n"))
        chunks.append(LineChunk(lines, start + lines.starts, line))
        line += len(lines)
        start = stop
    return chunks


def spoil(data: bytes, share: float, seed: int = 7) -> bytes:
    """The same lines, a share of them bad in one of four ways."""
    rng = random.Random(seed)
    ways: list[Callable[[bytes], bytes]] = [
        lambda line: line[: len(line) // 2],
        lambda line: line.replace(b'"data":{', b'"data":{"surplus":1,', 1),
        lambda line: line.replace(b'Z"', b'"').replace(b"T", b"T9", 1),
        lambda line: line.replace(b':"', b":1.5,", 1),
    ]
    lines = data.split(b"\n")
    return b"\n".join(rng.choice(ways)(line) if line and rng.random() < share else line for line in lines)


def measure(chunks: Sequence[LineChunk], work: Callable[[LineChunk], object], rounds: int) -> float:
    """Best processor time of a round over all chunks, in nanoseconds a line."""
    count = sum(len(chunk.lines) for chunk in chunks)
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        begin = time.thread_time()
        for chunk in chunks:
            work(chunk)
        best = min(best, time.thread_time() - begin)
    return best / count * 1e9


def checked(catalog: Catalog, decoder: RecordDecoder) -> Callable[[LineChunk], DecodedChunk]:
    """Decodes a chunk and checks its tables."""
    checkers = {entity.table_key: BatchChecker(entity) for entity in catalog.tables()}

    def work(chunk: LineChunk) -> DecodedChunk:
        decoded = decoder.decode(chunk)
        for table in decoded.tables:
            checkers[table.table_key].check(table.table)
        return decoded

    return work


def report(name: str, cost: float, base: float) -> None:
    print(f"{name:<38} {cost:8.0f} ns a line {1e3 / cost:6.2f} M lines/s  x {cost / base:5.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.jsonl"
        generate(path, options.nodes, options.edges)
        data = path.read_bytes()
    catalog = compile_schema(SCHEMA)
    decoder = RecordDecoder(catalog, DecodeOptions())
    clean = chunks_of(data)
    base = measure(clean, checked(catalog, decoder), options.rounds)
    report("decode, ids, checks: clean", base, base)
    report("decode and ids: clean", measure(clean, decoder.decode, options.rounds), base)
    listed = [LineChunk(list(chunk.lines), chunk.offsets, chunk.first_line) for chunk in clean]
    report("the same from lists of lines", measure(listed, checked(catalog, decoder), options.rounds), base)
    for share in (0.0001, 0.01, 0.1):
        spoiled = chunks_of(spoil(data, share))
        report(
            f"decode, ids, checks: {share:.2%} bad",
            measure(spoiled, checked(catalog, RecordDecoder(catalog, DecodeOptions())), options.rounds),
            base,
        )
    by_row = RecordDecoder(catalog, DecodeOptions(), columns_from=ALL_BY_ROW)
    report("row decoder alone: clean", measure(clean[::4], by_row.decode, 1), base)


if __name__ == "__main__":
    main()
