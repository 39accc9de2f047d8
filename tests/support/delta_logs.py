"""Delta tables whose log is edited by hand, to be what no writer here makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

_BY_READERS = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}


def edit(table: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes each action of the table's log."""
    for path in (table / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            change(action)
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def add_feature(table: Path, name: str, *, read: bool = False) -> None:
    """Makes a table say that it has a feature, which writers must know, and readers too."""

    def change(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [name]}
            if read or name in _BY_READERS:
                action["protocol"] |= {"minReaderVersion": 3, "readerFeatures": [name]}

    edit(table, change)


def make_int96(table: Path) -> None:
    """Stores the instants of a table as Spark does by default, without statistics."""

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            path = table / unquote(action["add"]["path"])
            pq.write_table(pq.read_table(path), path, use_deprecated_int96_timestamps=True)
            action["add"] |= {"size": path.stat().st_size, "stats": None}

    edit(table, change)
