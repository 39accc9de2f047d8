"""Columns that the schema of a graph has and a stored table has not."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from spark_omnigraph.errors import DamagedError

WAY_OUT = (
    "another program changed the table, or put the schema files of another state there. Put the table's folder or the "
    "schema files back from a backup; or give up the values of a property that is in no key: schema apply with a "
    "schema without it makes both fit, and once more with it brings it back without values"
)


def refuse_lost(table_key: str, version: int, wanted: Iterable[str], stored: Collection[str]) -> None:
    """DamagedError for a table that lacks one of these columns at a version, with the way out."""
    lost = [name for name in wanted if name not in stored]
    if lost:
        named = ", ".join(f"'{name}'" for name in lost)
        raise DamagedError(
            f"storage: '{table_key}' has no column {named} at version {version}, and the schema of the graph has: "
            f"{WAY_OUT}"
        )
