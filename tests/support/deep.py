"""Graphs as they are after years, fabricated: rows are appended by the thousand, and files of versions are written
under the numbers that so many commits would have given them. What older versions named has expired.
"""

from __future__ import annotations

from pathlib import Path

from spark_omnigraph import Graph
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.manifest.facts import CommitFacts, RowFacts, encode_facts
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.rows import ManifestRow, TableUpdate, facts_row, version_row
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.layout import COMMITS, MANIFEST, manifest_file
from spark_omnigraph.storage.manifest.commit_log import copy_commits
from spark_omnigraph.storage.manifest.table import to_arrow
from spark_omnigraph.storage.rebase import _FOOTER, _LENGTH, _fields, _number
from spark_omnigraph.storage.tables.commits import append_strict


def deepen(graph: Graph, key: str, depth: int) -> None:
    """Makes a graph on a disk, which has no forks, one of so many commits more that changed a table."""
    store, entry = graph.store, graph.snapshot().entry(key)
    head, first = graph.commits(limit=1)[0], graph.snapshot().version
    _raise(Path(store.root, entry.location), entry.version + depth)
    rows: list[ManifestRow] = []
    commits: list[Commit] = []
    parent = head.id
    for number in range(1, depth + 1):
        commit = Commit(new_ulid(), None, first + number, parent, None, head.created_micros + number)
        update = TableUpdate(TableKey(key), entry.version + number, None, entry.row_count, "", None)
        rows += [
            version_row(update),
            facts_row(commit.id, encode_facts(CommitFacts("load", "append", {TableKey(key): RowFacts(1)}))),
        ]
        commits.append(commit)
        parent = commit.id
    append_strict(store.manifest(None), to_arrow(rows))
    copy_commits(store.location, None, commits)
    _raise(Path(store.root, MANIFEST), first + depth)


def _raise(folder: Path, version: int) -> None:
    """The newest version of a dataset gets another number, and is the only one."""
    files = sorted((folder / "_versions").glob("*.manifest"))
    content = files[0].read_bytes()
    for file in (*files, folder / "_versions" / "latest_version_hint.json"):
        file.unlink(missing_ok=True)
    (folder / manifest_file(version)).write_bytes(_renumbered(content, version))


def _renumbered(content: bytes, version: int) -> bytes:
    """A version file with another number in it, which is field 3."""
    start, *_ = _FOOTER.unpack(content[-_FOOTER.size :])
    (length,) = _LENGTH.unpack_from(content, start)
    begin = start + _LENGTH.size
    fields = _fields(content[begin : begin + length])
    body = b"".join(_number(3 << 3) + _number(version) if number == 3 else raw for number, raw, _ in fields)
    return content[:start] + _LENGTH.pack(len(body)) + body + content[-_FOOTER.size :]


def widen(graph: Graph, branches: int) -> None:
    """Makes a graph on a disk one of so many branches more, as if each had been created now: what Lance keeps of one
    is written again under other names of the same length.
    """
    first = "b0000"
    graph.create_branch(first)
    for folder in (Path(graph.uri, MANIFEST), Path(graph.uri, COMMITS)):
        reference = folder / "_refs" / "branches" / f"{first}.json"
        files = [path for path in (folder / "tree" / first).rglob("*") if path.is_file()]
        for number in range(1, branches):
            name = f"b{number:04d}"
            for path in (reference, *files):
                to = Path(str(path).replace(first, name))
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(path.read_bytes().replace(first.encode(), name.encode()))
