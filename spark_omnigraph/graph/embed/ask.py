"""Texts of stored rows, asked of the provider by tasks that read them themselves: neither texts nor vectors travel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.graph.embed.request import EmbedTarget
from spark_omnigraph.graph.embed.select import texts_of
from spark_omnigraph.progress.meter import in_phase
from spark_omnigraph.staging.asking import Asking, Replies
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.storage.tables.stored_rows import StoredRows


@dataclass(frozen=True, slots=True)
class AskContext:
    """Whom a task asks about rows of which table, and how many texts may fail before it gives up. Picklable."""

    asking: Asking
    target: EmbedTarget
    table: PinnedTable
    most_failures: int


@dataclass(frozen=True, slots=True, eq=False)
class AskPart:
    """Rows of which each has another text, and the keys of the answers."""

    rows: npt.NDArray[np.uint64]
    keys: pa.Array


@in_phase("ask")
def ask(context: AskContext, part: AskPart) -> Replies:
    """Asks, and keeps what is answered. Runs on an executor. Raises what `Asking.ask` raises."""
    rows = StoredRows.open(context.table, context.target.columns).take(pa.array(part.rows))
    texts = texts_of(context.target, rows)
    return context.asking.ask(
        part.keys, lambda first, last: texts.slice(first, last - first).to_pylist(), context.most_failures
    )
