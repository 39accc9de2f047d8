"""A schema proposed from a Parquet file, on one core: rows a second of processor time.

python -m tests.benchmarks.bench_profile --rows 2000000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_omnigraph.graph.profile.profile import propose_schema


def films(rows: int, seed: int = 7) -> pa.Table:
    """Seven columns: two that are unique, an enumeration, numbers, and texts that are mostly null."""
    rng = np.random.default_rng(seed)
    return pa.table({
        "film_id": np.arange(rows),
        "title": [f"title {number}" for number in range(rows)],
        "year": rng.integers(1900, 2020, rows).astype(np.int32),
        "rating": rng.choice(["G", "PG", "R"], rows),
        "score": rng.random(rows) * 10,
        "director": rng.integers(0, 10_000, rows),
        "note": [None if number % 3 else "x" for number in range(rows)],
    })  # laid out as a table  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "films.parquet"
        pq.write_table(films(rows), path)
        before = time.process_time()
        found = propose_schema(path)
        seconds = time.process_time() - before
    assert found.rows == {"Films": rows}
    print(f"{rows:,} rows in {seconds:.2f} s of the processor: {rows / seconds:,.0f} a second")


if __name__ == "__main__":
    main()
