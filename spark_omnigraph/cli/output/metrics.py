"""The row of figures that a run adds to `--metrics`: the same members, in the same order, for every verb."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.cli.output.summary import as_line
from spark_omnigraph.errors import IoError
from spark_omnigraph.redaction import redact
from spark_omnigraph.storage.objects.whole_file import whole_path
from spark_omnigraph.storage.uri import DELTA

if TYPE_CHECKING:
    import pyarrow as pa

_COUNTS = ("read", "inserted", "updated", "deleted")
_COPIED = (
    *("job", "version", "run_id", "graph", "branch", "status", "exit_code", "dry_run", "seconds"),
    *("base_commit", "commit", "manifest_version"),
)


def metrics_row(summary: Mapping[str, object], ended: datetime) -> dict[str, object]:
    """Figures of a run from its summary, one level deep; counts are sums over all tables, null where none are known."""
    seconds = summary["seconds"]
    assert isinstance(seconds, float)
    tables, bad_rows, error = summary["tables"], summary["bad_rows"], summary["error"]
    counts = [each for each in tables.values() if isinstance(each, Mapping)] if isinstance(tables, Mapping) else []
    return {
        "started_at": moment_text(ended - timedelta(seconds=seconds)),
        "ended_at": moment_text(ended),
        **{name: summary[name] for name in _COPIED},
        **{name: _sum(counts, name) for name in _COUNTS},
        "bad": bad_rows["total"] if isinstance(bad_rows, Mapping) else None,
        "error": error["kind"] if isinstance(error, Mapping) else None,
    }


def add_metrics(
    path: str, summary: Mapping[str, object], secrets: Sequence[str], storage_options: Mapping[str, str]
) -> None:
    """Adds the row of a run: a line to a file, a file to a folder whose name ends in `.parquet`, or a row to a Delta
    table (`delta:…`), once for each run.

    Either appears whole: a line is written by one call that appends, so runs at the same time do not mix theirs.
    IoError when it cannot be written.
    """
    row = metrics_row(summary, datetime.now(timezone.utc))
    if path.startswith(DELTA):
        _add_row(path, row, secrets, storage_options)
    elif path.endswith(".parquet"):
        _add_file(f"{path}/{summary['run_id']}.parquet", row, secrets, storage_options)
    else:
        _add_line(path, as_line(row, secrets) + "\n")


def _add_line(path: str, line: str) -> None:
    content = line.encode()
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            written = os.write(file, content)
        finally:
            os.close(file)
    except OSError as error:
        raise IoError(f"cannot write '{path}': {error.strerror or error}") from error
    if written < len(content):
        raise IoError(f"cannot write '{path}': only a part of the line was written")


def _add_row(path: str, row: Mapping[str, object], secrets: Sequence[str], options: Mapping[str, str]) -> None:
    from spark_omnigraph.storage.delta_append import append_once  # noqa: PLC0415 - slow to import, and few runs need it

    table = _table(row, secrets)
    append_once(path, table.schema, lambda: iter(table.to_batches()), f"omnigraph:metrics:{row['run_id']}", 1, options)


def _add_file(path: str, row: Mapping[str, object], secrets: Sequence[str], storage_options: Mapping[str, str]) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, and few runs need it

    with whole_path(path, storage_options) as part:
        pq.write_table(_table(row, secrets), part)


def _table(row: Mapping[str, object], secrets: Sequence[str]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and few runs need it

    kinds = {
        **dict.fromkeys(("exit_code", "manifest_version", *_COUNTS, "bad"), pa.int64()),
        "dry_run": pa.bool_(),
        "seconds": pa.float64(),
    }
    values = {name: redact(value, secrets) if isinstance(value, str) else value for name, value in row.items()}
    return pa.table({name: pa.array([value], kinds.get(name, pa.string())) for name, value in values.items()})


def _sum(tables: Sequence[Mapping[str, object]], name: str) -> int | None:
    found = [value for table in tables if isinstance(value := table.get(name), int)]
    return sum(found) if found else None
