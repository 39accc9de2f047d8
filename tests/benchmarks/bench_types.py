"""A schema with 84 types and 700 rows against one with 4 types and the same rows: cost follows rows, not types.

Run it as `python tests/benchmarks/bench_types.py [--quick]`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.spark.executor import SparkExecutor
from spark_omnigraph.spark.session import local_session
from spark_omnigraph.write.executor import Executor, LocalExecutor
from tests.scale.test_many_types import ROWS, records, schema
from tests.support.measure import Contender, race, table, timed


def contender(label: str, root: Path, types: int, executor: Executor, indexes: bool) -> Contender:
    """A load into a fresh graph with `types` types; `init` is not part of the time."""
    lines, text = records(types // 2, types // 2), schema(types // 2, types // 2)

    def once() -> float:
        shutil.rmtree(root, ignore_errors=True)
        graph = Graph.init(str(root), text)
        return timed(lambda: graph.load(lines, options=LoadOptions(executor=executor, build_indexes=indexes)))

    return Contender(label, once)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one measured round, no Spark")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-types-") as name:
        root, local = Path(name) / "graph", LocalExecutor(1)
        contenders = [
            contender("4 types, local", root, 4, local, indexes=False),
            contender("84 types, local", root, 84, local, indexes=False),
            contender("84 types, local, with indexes", root, 84, local, indexes=True),
        ]
        spark = None
        if not options.quick:
            spark = local_session("bench_types", 2, {"spark.local.dir": str(Path(name) / "spark")})
            contenders.append(contender("84 types, Spark", root, 84, SparkExecutor(spark), indexes=False))
        race(contenders, 1 if options.quick else 5)
        if spark is not None:
            spark.stop()
        print(f"\n{ROWS} records\n")
        print(table(contenders, ROWS, "4 types, local"))


if __name__ == "__main__":
    main()
