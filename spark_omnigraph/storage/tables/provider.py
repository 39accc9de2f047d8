"""An opened table as DataFusion reads it: columns, filters and limits go down into Lance's scan."""

from __future__ import annotations

from lance import FFILanceTableProvider

from spark_omnigraph.storage.tables.reader import TableReader


def table_provider(reader: TableReader) -> object:
    """What a context of DataFusion takes for a table, of the major release that Lance is built with."""
    return FFILanceTableProvider(reader.dataset)
