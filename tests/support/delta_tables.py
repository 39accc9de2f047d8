"""Small Delta tables that Spark has written, with what a reader without a JVM may get wrong.

`tests/support/delta_tables.zip` holds them, so that tests need neither Spark nor jars. To make them anew:
`python -m tests.support.delta_tables`, after `python -m tests.support.delta_jars`.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

ARCHIVE = Path(__file__).with_suffix(".zip")
_MAPPED = "'delta.columnMapping.mode'='name'"
_MASKED = "'delta.enableDeletionVectors'='true'"
TABLES = {
    "masked": (
        "name STRING, age INT",
        _MASKED,
        "('a', 1), ('b', 2), ('c', 3), ('d', 4)",
        "DELETE FROM {table} WHERE name = 'b'",
    ),
    "masked_far": (
        "name STRING, at TIMESTAMP",
        _MASKED,
        "('a', TIMESTAMP'9999-12-31 23:59:59.999'), ('b', NULL), ('c', TIMESTAMP'1970-01-01 00:00:00')",
        "DELETE FROM {table} WHERE name = 'c'",
    ),
    "masked_near": (
        "name STRING, at TIMESTAMP",
        _MASKED,
        "('a', TIMESTAMP'2020-02-29 12:00:00.123'), ('b', TIMESTAMP'1970-01-01 00:00:00'), "
        "('c', TIMESTAMP'1969-12-31 23:59:59.999')",
        "DELETE FROM {table} WHERE name = 'c'",
    ),
    "far": (
        "name STRING, at TIMESTAMP",
        "'delta.checkpointPolicy'='classic'",
        "('a', TIMESTAMP'9999-12-31 23:59:59.999'), ('b', TIMESTAMP'0001-01-01 00:00:00'), ('c', NULL)",
        None,
    ),
    "renamed": (
        "name STRING, years INT",
        _MAPPED,
        "('a', 1), ('b', 2)",
        "ALTER TABLE {table} RENAME COLUMN years TO age",
    ),
}
"""Name → columns, properties, rows, and what comes afterwards."""


FEED: dict[str, str | None] = {"delta.enableChangeDataFeed": "true"}
"""Properties of a table that others follow."""
SEED = int(os.environ.get("DELTA_SEED", "20261129"))
"""Of the histories that tests make up; the variable chooses others."""


def titles(*names: str, year: int = 1, part: str = "x") -> pa.Table:
    """Rows of a table of films."""
    years = pa.array([year] * len(names), pa.int32())
    return pa.table(
        {"title": pa.array(names, pa.string()), "year": years, "part": pa.array([part] * len(names), pa.string())}
    )


def table_rows(place: str) -> list[tuple[Any, ...]]:
    """What a table of films shows now, in order."""
    rows = pa.table(DeltaTable(place).to_pyarrow_table()).to_pylist()
    return sorted((row["title"], row["year"], row["part"]) for row in rows)


def random_history(place: str, luck: random.Random, steps: int) -> Iterator[str]:
    """Makes a table of films and changes it step by step, with a change data feed; the name of each step, when it
    is done. No two rows have one title. After `vacuum` older changes cannot be read, and none are put back.
    """
    fresh = (f"f{number}" for number in itertools.count())
    first = titles(*itertools.islice(fresh, 12))
    parts = ["part"] if luck.random() < 0.5 else None
    write_deltalake(place, first, partition_by=parts, configuration=FEED)
    kinds = [*_STEPS, "merge"]
    yield "create"
    for _ in range(steps):
        kind = luck.choice(kinds)
        if kind == "vacuum":
            kinds = [each for each in kinds if each not in ("restore", "vacuum")]
        there = [row[0] for row in table_rows(place)]
        some = luck.sample(there, min(len(there), luck.randint(1, 4)))
        new = titles(*itertools.islice(fresh, luck.randint(1, 4)), year=luck.randint(2, 99), part=luck.choice("xyz"))
        _STEPS[kind](DeltaTable(place), some, new, luck)
        yield kind


def _named(some: list[str]) -> str:
    return f"title in ({', '.join(map(repr, some))})" if some else "false"


def _rename(table: DeltaTable, some: list[str], new: pa.Table, _: random.Random) -> None:
    """The key of a row becomes another one."""
    table.update({"title": f"'{new.column('title')[0].as_py()}'"}, predicate=_named(some[:1]))


def _merge(table: DeltaTable, some: list[str], new: pa.Table, luck: random.Random) -> None:
    """Deletes, updates and inserts at once."""
    rows = pa.concat_tables([titles(*some, year=luck.randint(2, 99), part=luck.choice("xyz")), new])
    merger = table.merge(rows, "t.title = s.title", source_alias="s", target_alias="t")
    merger.when_matched_delete("t.year % 2 = 0").when_matched_update_all().when_not_matched_insert_all().execute()


def _overwrite(table: DeltaTable, some: list[str], new: pa.Table, luck: random.Random) -> None:
    write_deltalake(table, pa.concat_tables([titles(*some, year=luck.randint(2, 99)), new]), mode="overwrite")


def _again(table: DeltaTable, some: list[str], new: pa.Table, _: random.Random) -> None:
    """Rows are written anew, and then the former ones go: for a version the table has two of each."""
    year = 100 + table.version()
    if some:
        write_deltalake(table, titles(*some, year=year), mode="append")
        DeltaTable(table.table_uri).delete(f"{_named(some)} and year <> {year}")


_STEPS: dict[str, Callable[[DeltaTable, list[str], pa.Table, random.Random], object]] = {
    "append": lambda table, some, new, luck: write_deltalake(table, new, mode="append"),
    "update": lambda table, some, new, luck: table.update({"year": str(luck.randint(2, 99))}, predicate=_named(some)),
    "move": lambda table, some, new, luck: table.update({"part": f"'{luck.choice('xyz')}'"}, predicate=_named(some)),
    "rename": _rename,
    "again": _again,
    "delete": lambda table, some, new, luck: table.delete(_named(some)),
    "merge": _merge,
    "overwrite": _overwrite,
    "optimize": lambda table, some, new, luck: table.optimize.compact(),
    "restore": lambda table, some, new, luck: table.version() and table.restore(luck.randrange(table.version())),
    "vacuum": lambda table, *_: table.vacuum(0, dry_run=False, enforce_retention_duration=False),
}


def unpack(folder: Path) -> Path:
    """The tables, in a folder."""
    with ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


def main() -> None:
    from tests.support.delta_jars import delta_session  # noqa: PLC0415 - starts Spark

    spark = delta_session()
    with tempfile.TemporaryDirectory() as folder:
        for name, (columns, properties, rows, after) in TABLES.items():
            table = f"delta.`{folder}/{name}`"
            spark.sql(f"CREATE TABLE {table} ({columns}) USING delta TBLPROPERTIES ({properties})")
            spark.sql(f"INSERT INTO {table} VALUES {rows}")
            if after is not None:
                spark.sql(after.format(table=table))
        spark.stop()
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.suffix != ".crc")
        with ZipFile(ARCHIVE, "w", ZIP_DEFLATED) as archive:
            for path in files:
                archive.write(path, os.path.relpath(path, folder))
    shutil.rmtree("spark-warehouse", ignore_errors=True)


if __name__ == "__main__":
    main()
