"""Whether a table that was opened is of the graph whose snapshot names it: another graph, or a branch, may have been
made anew in the same place meanwhile, and its tables have versions of the same numbers.

Whoever makes one anew removes the old one first. So what stands after a table was opened stood when it was opened.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import lance
from lance import LanceDataset

from spark_omnigraph.errors import ConflictError, StorageError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.rows import ManifestRow, sentinel_facts
from spark_omnigraph.manifest.snapshot import GraphMark
from spark_omnigraph.predicates.sql import is_text_of
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.layout import COMMITS, MANIFEST, branch_path
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import Location


def origin_of(
    manifest: LanceDataset, rows: list[ManifestRow], location: Location, branch: Branch, newest: str | None
) -> GraphMark | None:
    """What tells an opened manifest from another: the first file that its branch has of its own, or the first at all,
    which both stay the same until it is compacted, and a commit: the `newest` where rows of the manifest are the log.
    None for one without rows, which names no table.
    """
    files = [file for fragment in manifest.get_fragments() for file in fragment.data_files()]
    if not files:
        return None
    first = next((file for file in files if file.base_id is None), files[0])
    folder = branch_path(MANIFEST, branch)
    if first.base_id is not None:
        folder = MANIFEST + str(manifest.base_paths()[first.base_id].path).rpartition(MANIFEST)[2]
    path, publish = f"{folder.rstrip('/')}/data/{first.path}", sentinel_facts(rows)
    commit = publish.commit if publish is not None else newest
    if commit is None:
        with suppress(StorageError):
            commit = _first_logged(location.root, branch, path, tuple(sorted(location.options.items())))
    return GraphMark(location.root, branch, path, commit)


@lru_cache(maxsize=64)
def _first_logged(root: str, branch: Branch, file: str, options: tuple[tuple[str, str], ...]) -> str | None:
    """A commit of the graph that a file of the manifest is of, where no publish names one: of a new graph, and of one
    that another engine has written. It is of that graph if the file stands after the log was read.
    """
    with reading("look for a commit"):
        log = _log(root, COMMITS, branch, dict(options))
        found = log.scanner(columns=["graph_commit_id"], limit=1).to_table()
    is_same = _client(root, options).modified(file) is not None
    return str(found.column(0)[0]) if found.num_rows and is_same else None


def _log(root: str, name: str, branch: Branch, options: dict[str, str]) -> LanceDataset:
    with reading("open the commit log"):
        return lance.dataset(Location(root).join(branch_path(name, branch)), storage_options=options or None)


def require_origin(origin: GraphMark | None, options: dict[str, str]) -> None:
    """To be asked after a table was opened. ConflictError when the graph, or the branch, that a snapshot showed is not
    there any more.
    """
    if origin is None:
        return
    found = _client(origin.root, tuple(sorted(options.items()))).modified(origin.file)
    if found is None and not _is_logged(origin, options):
        raise ConflictError(
            f"the graph '{origin.root}', or the branch that is read, was made anew meanwhile: read it again"
        )


def _is_logged(origin: GraphMark, options: dict[str, str]) -> bool:
    """Whether the log has the commit, or the manifest where that is the log, as they have when the manifest was
    compacted and cleaned up since.
    """
    for name, column in ((COMMITS, "graph_commit_id"), (MANIFEST, "object_id")):
        with suppress(StorageError), reading("look for a commit"):
            log = _log(origin.root, name, origin.branch, options)
            if origin.commit and log.count_rows(filter=is_text_of(column, [origin.commit])):
                return True
    return False


@lru_cache(maxsize=8)
def _client(root: str, options: tuple[tuple[str, str], ...]) -> Objects:
    return Objects(Location(root, dict(options)))
