"""Rows added to a Delta table once, without a JVM, however often and by however many it is tried.

`deltalake` records the transaction of an application, and does not enforce it: an append of a version that is there
lands again. So the last version is looked at first, and the append commits on the state that was looked at, where a
racing commit of the same application is a conflict (tried with 1.6.6), and one of another is not.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_omnigraph.errors import BadRequestError, IoError
from spark_omnigraph.storage.targets import why_no_delta, why_unwritable
from spark_omnigraph.storage.uri import DELTA, locate, plain

if TYPE_CHECKING:
    from deltalake import DeltaTable

_ATTEMPTS = 20
_REFUSED = "failed validation check"


def append_once(
    uri: str,
    schema: pa.Schema,
    rows: Callable[[], Iterator[pa.RecordBatch]],
    application: str,
    version: int,
    options: Mapping[str, str],
) -> bool:
    """Adds rows to `delta:…`, which is made when it is not there; False when this version of the application, or a
    later one, was added before. `rows` may be asked for several times.

    IoError when it cannot be written, BadRequestError for a table whose columns do not suit.
    """
    place = plain(uri.removeprefix(DELTA))
    given = dict(locate(place, options).options) if place.startswith("s3://") else {}
    with writing(f"{DELTA}{place}") as package:
        marked = package.CommitProperties(app_transactions=[package.Transaction(application, version)])
        for attempt in range(_ATTEMPTS):
            try:
                table = _opened(package, place, schema, given)
                done = table.transaction_version(application)
                if done is not None and done >= version:
                    return False
                batches = pa.RecordBatchReader.from_batches(schema, rows())
                package.write_deltalake(table, batches, mode="append", schema_mode="merge", commit_properties=marked)
            except import_module("deltalake.exceptions").CommitFailedError:
                time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))
            else:
                return True
    raise IoError(f"storage: {DELTA}{place} took no rows in {_ATTEMPTS} attempts: others were first each time")


def _opened(package: Any, place: str, schema: pa.Schema, options: dict[str, str]) -> DeltaTable:
    if not package.DeltaTable.is_deltatable(place, storage_options=options or None):
        # What somebody makes at the same moment is taken as it is.
        package.DeltaTable.create(place, schema, mode="ignore", storage_options=options or None)
    table: DeltaTable = package.DeltaTable(place, storage_options=options or None)
    refuse_unwritable(f"{DELTA}{place}", table)
    return table


def refuse_unwritable(name: str, table: DeltaTable) -> None:
    """BadRequestError for a table with a feature that `deltalake` does not write, or that it writes wrongly."""
    why = why_unwritable(table)
    if why is not None:
        raise BadRequestError(f"'{name}' {why}")


@contextmanager
def writing(name: str) -> Iterator[Any]:
    """The package, with its errors as ours: BadRequestError for other columns, IoError for what cannot be written."""
    why = why_no_delta()
    if why is not None:
        raise BadRequestError(f"'{name}' {why}")
    errors = import_module("deltalake.exceptions")
    try:
        yield import_module("deltalake")
    except errors.SchemaMismatchError as error:
        raise BadRequestError(f"'{name}' has other columns: {_line(error)}") from error
    except (errors.DeltaError, OSError) as error:
        if _REFUSED in str(error):  # and goes on with the rows, which are not for a log
            raise BadRequestError(f"'{name}' has a constraint that rows do not keep, and took none") from error
        raise IoError(f"storage: cannot write '{name}': {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
