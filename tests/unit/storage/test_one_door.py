"""Only one file makes Lance advance a dataset: read from the sources, so that a new caller fails here."""

from __future__ import annotations

import ast
from pathlib import Path

import spark_omnigraph

PACKAGE = Path(spark_omnigraph.__file__).parent
DOOR = PACKAGE / "storage" / "tables" / "commits.py"

COMMITTING = {
    "add_columns",
    "alter_columns",
    "checkout_latest_and_commit",
    "cleanup_old_versions",
    "commit_existing_index_segments",
    "compact_files",
    "create_branch",
    "create_index",
    "create_scalar_index",
    "drop_columns",
    "drop_index",
    "insert",
    "merge_insert",
    "optimize_indices",
    "restore",
    "truncate_table",
    "update_config",
    "update_schema_metadata",
    "write_dataset",
}
"""Names of Lance calls that commit; `commit` and `delete` are looked at by their receiver."""


def committing_calls(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        if name not in COMMITTING | {"commit", "delete"}:
            continue
        receiver = ast.unparse(node.func.value)
        if name in COMMITTING and receiver not in ("self", "set") and "objects" not in receiver:
            found.append(f"{path.name}:{node.lineno}: {receiver}.{name}")
        if name == "commit" and ("LanceDataset" in receiver or "Compaction" in receiver):
            found.append(f"{path.name}:{node.lineno}: {receiver}.{name}")
        if name == "delete" and ("branches" in receiver or "dataset" in receiver or "manifest" in receiver):
            found.append(f"{path.name}:{node.lineno}: {receiver}.{name}")
    return found


def imports_lance(path: Path) -> bool:
    tree = ast.parse(path.read_text())
    names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    return any(name.split(".")[0] == "lance" for name in names)


def test_the_door_itself_is_seen() -> None:
    assert len(committing_calls(DOOR)) >= 8


def test_no_other_file_commits_to_lance() -> None:
    offenders = [
        call
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != DOOR and imports_lance(path)
        for call in committing_calls(path)
    ]
    assert offenders == []


def test_every_commit_in_the_door_spells_out_its_retries() -> None:
    """But that of a compaction, which Lance gives no such limit: its caller compares the version."""
    for node in ast.walk(ast.parse(DOOR.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "commit":
            if ast.unparse(node.func) == "Compaction.commit":
                continue
            assert "max_retries" in {k.arg for k in node.keywords}, ast.unparse(node)
