"""Three ways to the same graph: the data source, the jobs, and `Graph`. Each writes records and reads a type."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from spark_omnigraph import Graph
from spark_omnigraph.cli import main
from spark_omnigraph.errors import BadRowsError, OmnigraphError
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.spark.api import read_nodes
from spark_omnigraph.spark.errors import typed_errors
from tests.support.cases import Json

Record = dict[str, object]

SCHEMA = """
node Person { name: String @key  age: I32? @range(age, 0..150)  born: Date?  tags: [String]? }
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
"""
OLDER = "query older($age: I32) { match { $p: Person $p.age >= $age } return { $p.name as name } }"
OLDER_SQL = "SELECT name FROM Person WHERE age >= $age"
LEAVE = "query leave($name: String) { delete Person where name = $name }"
COLUMNS = {
    "node:Person": "id string, age int, born date, name string, tags array<string>",
    "node:City": "id string, name string",
    "edge:Knows": "id string, src string, dst string, since date",
}


def person(name: str, **data: object) -> Record:
    return {"type": "Person", "data": {"name": name, **data}}


def knows(edge_id: str, source: str, target: str, **data: object) -> Record:
    return {"edge": "Knows", "from": source, "to": target, "data": {"id": edge_id, **data}}


@dataclass(frozen=True)
class Ended:
    """How a write ended: `kind` and `exit_code` of its error, and how many rows broke which rule."""

    kind: str | None = None
    exit_code: int = 0
    bad_rows: dict[str, int] = field(default_factory=dict)

    @classmethod
    def by(cls, error: OmnigraphError) -> Ended:
        rules = dict(error.summary.per_rule) if isinstance(error, BadRowsError) else {}
        return cls(error.kind, error.exit_code, rules)


class Way(Protocol):
    """One way to write and to read."""

    def write(
        self, uri: str, records: Sequence[Record], mode: str = "append", branch: str = "main", bad: int = 0
    ) -> Ended:
        """Writes records as one commit; `bad` rows may be left out."""

    def read(self, uri: str, table: str, branch: str = "main", version: int | None = None) -> DataFrame:
        """All rows of a table (`node:Person`) with the columns of `COLUMNS`."""

    def delete(self, uri: str, name: str) -> Ended:
        """Deletes a person by name."""

    def older(self, uri: str, age: int) -> set[str]:
        """Names of the persons of an age or above, found by the storage."""


@dataclass(frozen=True)
class DataSource:
    """`df.write.format("omnigraph")` and `spark.read.format("omnigraph")`."""

    spark: SparkSession
    folder: Path

    def write(
        self, uri: str, records: Sequence[Record], mode: str = "append", branch: str = "main", bad: int = 0
    ) -> Ended:
        rows = [[r.get("type"), r.get("edge"), r.get("from"), r.get("to"), json.dumps(r["data"])] for r in records]
        frame = self.spark.createDataFrame(rows, "type string, edge string, from string, to string, data string")
        options = {"loadMode": mode, "branch": branch, "maxBadRows": str(bad)}
        try:
            with typed_errors():
                frame.write.format("omnigraph").mode("append").options(**options).save(uri)
        except OmnigraphError as error:
            return Ended.by(error)
        return Ended()

    def read(self, uri: str, table: str, branch: str = "main", version: int | None = None) -> DataFrame:
        kind, _, name = table.partition(":")
        reader = self.spark.read.format("omnigraph").option(kind, name).option("branch", branch)
        return (reader if version is None else reader.option("versionAsOf", str(version))).load(uri)

    def delete(self, uri: str, name: str) -> Ended:
        frame = self.spark.createDataFrame([(name,)], "id string")
        frame.write.format("omnigraph").mode("append").options(node="Person", loadMode="delete").save(uri)
        return Ended()

    def older(self, uri: str, age: int) -> set[str]:
        found = read_nodes(self.spark, uri, "Person", columns=["name"], where=[("age", ">=", age)])
        return {row["name"] for row in found.collect()}


@dataclass(frozen=True)
class Jobs:
    """The program with Spark as its executor; what it says comes from its summary."""

    spark: SparkSession
    folder: Path

    def write(
        self, uri: str, records: Sequence[Record], mode: str = "append", branch: str = "main", bad: int = 0
    ) -> Ended:
        source = self.folder / "in.jsonl"
        source.write_text("".join(json.dumps(record) + "\n" for record in records))
        given = ["--input", str(source), "--mode", mode, "--executor", "spark", "--max-bad-rows", str(bad)]
        summary = self._run("ingest", uri, *given, "--branch", branch, "--no-index")
        error = summary["error"]
        if error is None:
            return Ended()
        return Ended(error["kind"], summary["exit_code"], (error.get("bad_rows") or {}).get("per_rule", {}))

    def read(self, uri: str, table: str, branch: str = "main", version: int | None = None) -> DataFrame:
        output = self.folder / "out.jsonl"
        at = [] if version is None else ["--version", str(version)]
        summary = self._run("export", uri, "--output", str(output), "--branch", branch, *at)
        assert summary["status"] == "done"
        return _frame(self.spark, table, output.read_text().splitlines())

    def delete(self, uri: str, name: str) -> Ended:
        summary = self._run("mutate", uri, "-e", LEAVE, "--params", json.dumps({"name": name}))
        return Ended(None, summary["exit_code"])

    def older(self, uri: str, age: int) -> set[str]:
        output = self.folder / "found.jsonl"
        given = ["-e", OLDER, "--params", json.dumps({"age": age}), "--format", "jsonl", "--output", str(output)]
        assert self._run("query", uri, *given)["exit_code"] == 0
        found = {str(json.loads(line)["name"]) for line in output.read_text().splitlines()}
        assert self._run("sql", uri, "-e", OLDER_SQL, *given[2:])["exit_code"] == 0
        assert {str(json.loads(line)["name"]) for line in output.read_text().splitlines()} == found
        return found

    def _run(self, verb: str, uri: str, *given: str) -> Json:
        path = self.folder / "summary.json"
        code = main([verb, "--graph", uri, "--summary", str(path), "--log-level", "error", *given])
        summary = json.loads(path.read_text())
        assert summary["exit_code"] == code
        return dict(summary)


@dataclass(frozen=True)
class Handle:
    """`Graph`, which has no part of Spark; rows become a frame only to be compared."""

    spark: SparkSession
    folder: Path

    def write(
        self, uri: str, records: Sequence[Record], mode: str = "append", branch: str = "main", bad: int = 0
    ) -> Ended:
        lines = [json.dumps(record) for record in records]
        try:
            Graph.open(uri).load(lines, mode=mode, branch=branch, options=LoadOptions(max_bad_rows=bad))
        except OmnigraphError as error:
            return Ended.by(error)
        return Ended()

    def read(self, uri: str, table: str, branch: str = "main", version: int | None = None) -> DataFrame:
        return _frame(self.spark, table, list(Graph.open(uri).export(branch=branch, version=version)))

    def delete(self, uri: str, name: str) -> Ended:
        Graph.open(uri).delete("node:Person", [name])
        return Ended()

    def older(self, uri: str, age: int) -> set[str]:
        graph = Graph.open(uri)
        found = {str(row["name"]) for row in graph.query(OLDER, params={"age": age}).to_pylist()}
        assert {str(row["name"]) for row in graph.sql(OLDER_SQL, {"age": age}).to_pylist()} == found
        return found


WAYS: dict[str, Callable[[SparkSession, Path], Way]] = {"data source": DataSource, "jobs": Jobs, "Graph": Handle}


def _frame(spark: SparkSession, table: str, lines: Sequence[str]) -> DataFrame:
    """Exported records of one table as a frame."""
    kind, _, name = table.partition(":")
    records = [r for r in map(json.loads, lines) if r.get("type" if kind == "node" else "edge") == name]
    names = [column.split()[0] for column in COLUMNS[table].split(", ")]
    rows = [[_value(n, {**r["data"], "src": r.get("from"), "dst": r.get("to")}.get(n)) for n in names] for r in records]
    return spark.createDataFrame(rows, COLUMNS[table])


def _value(name: str, value: object) -> object:
    if name in ("born", "since") and isinstance(value, int):
        return date(1970, 1, 1) + timedelta(days=value)
    return value
