"""Reads a graph folder with pylance alone, by the words of the storage format: an independent second reader."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import lance

from spark_omnigraph.storage.layout import PUBLISHED
from tests.support.cases import Json


@dataclass(frozen=True, slots=True)
class Pin:
    """One table of a snapshot: where its state is and which version."""

    table_key: str
    location: str
    version: int
    branch: str | None
    row_count: int

    def folder(self, root: Path) -> Path:
        """The dataset folder that holds the version."""
        base = root / self.location
        return base if self.branch is None else base.joinpath("tree", *self.branch.split("/"))

    def open(self, root: Path) -> lance.LanceDataset:
        return lance.dataset(str(self.folder(root)), version=self.version)

    def head(self, root: Path) -> lance.LanceDataset:
        return lance.dataset(str(self.folder(root)))


def internal(root: Path, name: str, branch: str | None = None, version: int | None = None) -> lance.LanceDataset:
    """`__manifest` or a commit-graph dataset, on a branch, at a version."""
    folder = root / name if branch is None else (root / name).joinpath("tree", *branch.split("/"))
    return lance.dataset(str(folder), version=version)


def manifest_rows(root: Path, branch: str | None = None, version: int | None = None) -> list[dict[str, Json]]:
    rows: list[dict[str, Json]] = internal(root, "__manifest", branch, version).to_table().to_pylist()
    return rows


def pins(root: Path, branch: str | None = None, version: int | None = None) -> dict[str, Pin]:
    """Table key → pin, as a reader of the format rebuilds a snapshot."""
    rows = manifest_rows(root, branch, version)
    locations = {row["table_key"]: row["location"] for row in rows if row["object_type"] == "table"}
    newest: dict[str, dict[str, Json]] = {}
    dead: dict[str, int] = {}
    for row in rows:
        key, number = row["table_key"], row["table_version"]
        if row["object_type"] == "table_version" and number > newest.get(key, {"table_version": 0})["table_version"]:
            newest[key] = row
        if row["object_type"] == "table_tombstone":
            dead[key] = max(dead.get(key, 0), number)
    return {
        key: Pin(key, locations[key], row["table_version"], row["table_branch"], row["row_count"])
        for key, row in sorted(newest.items())
        if dead.get(key, -1) < row["table_version"]
    }


def commit_rows(root: Path, branch: str | None = None) -> list[dict[str, Json]]:
    """Commits in the order of their head rule: manifest version, time, id."""
    rows = internal(root, "_graph_commits.lance", branch).to_table().to_pylist()
    return sorted(rows, key=lambda row: (row["manifest_version"], row["created_at"], row["graph_commit_id"]))


def schema_files(root: Path) -> tuple[str, Json, Json]:
    """Schema source, schema IR, schema state."""
    source = (root / "_schema.pg").read_text(encoding="utf-8")
    ir = json.loads((root / "_schema.ir.json").read_text(encoding="utf-8"))
    return source, ir, json.loads((root / "__schema_state.json").read_text(encoding="utf-8"))


def recovery_files(root: Path) -> list[str]:
    """Objects that interrupted or running writes leave behind; notes of publishes are none."""
    folder = root / "__recovery"
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(PUBLISHED))
    return sorted(str(path.relative_to(folder)) for path in files)
