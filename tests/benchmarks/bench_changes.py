"""Changes of a quarter of the stored rows, one in ten of them a delete, against a merge of the same whole rows and a
deletion by id of the others: what changes do in one commit.

Run it as `python tests/benchmarks/bench_changes.py [--rows N] [--changed N] [--rounds N]`. The figures are seconds of
processor time in one process, so that other work on the machine does not count.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.write.executor import LocalExecutor
from tests.benchmarks.bench_update import SCHEMA, asked, fresh, rows
from tests.support.measure import Contender, phases, race, table

LOCAL = LoadOptions(executor=LocalExecutor(1), build_indexes=False)


class Bench:
    """A stored graph that is copied for every run, and the input: whole rows, ids, and changes, in two formats."""

    def __init__(self, folder: Path, stored: int, changed: int) -> None:
        self._folder, self._stored = folder, folder / "stored"
        graph = Graph.init(self._stored, SCHEMA)
        graph.load_table("node:Person", rows(np.arange(stored), 20), options=LOCAL)
        chosen = np.random.default_rng(1).permutation(stored)[:changed]
        self.deleted = changed // 10
        self.ids = [f"person-{serial:08d}" for serial in chosen[: self.deleted].tolist()]
        upserts, gone = rows(chosen[self.deleted :], 30), pa.table({"code": self.ids})
        told = pa.concat_tables(
            [part.append_column("op", pa.repeat(op, part.num_rows)) for part, op in ((upserts, "u"), (gone, "d"))],
            promote_options="default",
        )
        for name, part in (("merge", upserts), ("changes", told)):
            pq.write_table(part, folder / f"{name}.parquet")
            with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as out:
                for row in part.to_pylist():
                    beside = {"op": row.pop("op")} if "op" in row else {}
                    data = {member: value for member, value in row.items() if value is not None}
                    out.write(json.dumps({**beside, "type": "Person", "data": data}) + "\n")
        self.last: dict[str, float] = {}

    def run(self, mode: str, form: str) -> float:
        graph, start = fresh(self._stored), time.process_time()
        node = None if form == "jsonl" else "Person"
        report = graph.load(str(self._folder / f"{mode}.{form}"), mode, options=LOCAL, node=node)
        gone = report.tables["node:Person"].deleted
        if mode == "merge":
            gone = graph.delete("node:Person", self.ids).deleted["node:Person"]
        seconds = time.process_time() - start
        if gone != self.deleted:
            raise AssertionError(report.tables)
        self.last = dict(report.phases)
        return seconds


def main() -> None:
    stored, changed, rounds = asked(__doc__)
    with tempfile.TemporaryDirectory(prefix="bench-changes-") as name:
        bench = Bench(Path(name), stored, changed)
        print(f"\n{changed:,} changes of {stored:,} rows, {bench.deleted:,} of them deletes\n")
        for form in ("jsonl", "parquet"):
            ways = {"merge and delete": "merge", "changes": "changes"}
            contenders = [Contender(f"{way}, {form}", partial(bench.run, mode, form)) for way, mode in ways.items()]
            race(contenders, rounds)
            print(table(contenders, changed, contenders[0].name))
            print(f"phases of the last changes: {phases(bench.last)}\n")


if __name__ == "__main__":
    main()
