"""`python -m tests.differential [--seed N] [--cases N] [--worlds N]`: prints every mismatch, as small as it gets."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.differential.run import compare


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--cases", type=int, default=2000, help="queries, each run in five forms")
    parser.add_argument("--worlds", type=int, default=8, help="graphs over which the queries are spread")
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        count, found = compare(chosen.seed, chosen.cases, chosen.worlds, Path(folder))
    print(f"{count} queries compared, {len(found)} mismatches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
