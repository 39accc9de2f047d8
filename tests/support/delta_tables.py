"""Small Delta tables that Spark has written, with what a reader without a JVM may get wrong.

`tests/support/delta_tables.zip` holds them, so that tests need neither Spark nor jars. To make them anew:
`python -m tests.support.delta_tables`, after `python -m tests.support.delta_jars`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

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
