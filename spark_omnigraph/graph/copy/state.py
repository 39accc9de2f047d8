"""One state as a graph of its own: of each table the files that the state shows, whichever lines they lie on, with its
indexes and the ids and versions of its rows; a new manifest and a new history begin with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spark_omnigraph.errors import StorageError
from spark_omnigraph.graph.copy.target import begin_history
from spark_omnigraph.manifest.rows import ManifestRow, table_row, version_row
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path, manifest_file
from spark_omnigraph.storage.objects.transfer import Transferred, put_checked, transfer
from spark_omnigraph.storage.rebase import alone
from spark_omnigraph.storage.versions import version_of

_CONTENT = ("data", "_deletions", "_indices")


@dataclass(frozen=True, slots=True)
class _StateTable:
    """What a table of a state consists of: its version file, and the path of each other file by its path in the
    dataset, with their sizes.
    """

    version: bytes
    files: dict[str, tuple[str, int]]


def copy_tables(
    source: GraphStore, place: GraphStore, state: Snapshot, sign: ManifestRow, hold: Callable[[], None]
) -> Iterator[Transferred]:
    """Brings what is not there yet, each version file last, and makes a manifest that shows it."""
    rows = [sign]
    for _, entry in sorted(state.entries.items()):
        table, own = _read(source, entry), f"{entry.location}/{manifest_file(entry.version)}"
        there = {each.path: each.size for each in place.objects.walk(entry.location)}
        wanted = {f"{entry.location}/{name}": path for name, (path, _) in table.files.items()}
        place.objects.delete_all(sorted(there.keys() - wanted.keys() - {own}))
        for to, path in sorted(wanted.items()):
            hold()
            yield transfer(source.objects, place.objects, path, there.get(to), to)
        hold()
        yield put_checked(place.objects, own, table.version, own in there)
        update = place.table_update(entry.table_key, entry.location, None, entry.version, entry.row_count)
        rows += [table_row(entry.table_key, entry.location), version_row(update)]
    begin_history(place, rows, hold)


def files_of_state(source: GraphStore, state: Snapshot) -> dict[str, int]:
    """Path and size of every file that a copy of a state consists of, but for those that begin its history."""
    found: dict[str, int] = {}
    for entry in state.entries.values():
        table = _read(source, entry)
        found |= {f"{entry.location}/{name}": size for name, (_, size) in table.files.items()}
        found[f"{entry.location}/{manifest_file(entry.version)}"] = len(table.version)
    return found


def _read(source: GraphStore, entry: TableEntry) -> _StateTable:
    """StorageError when anything of it is missing. Blobs lie beside the data file that names them."""
    folder = branch_path(entry.location, entry.branch)
    objects = source.objects.walk(entry.location)
    versions = (o.path for o in objects if o.path.rpartition("/")[0] == f"{folder}/_versions")
    path = next((path for path in versions if version_of(path.rpartition("/")[2]) == entry.version), None)
    content = source.objects.get(path, limit=None) if path is not None else None
    if content is None:
        raise StorageError(f"storage: version {entry.version} of {folder} went while it was copied")
    version, names = alone(content, entry.location)
    files: dict[str, tuple[str, int]] = {}
    for each in sorted(objects, key=lambda o: not o.path.startswith(f"{folder}/")):  # its own line first
        name = _name(each.path)
        if name in names or _owner(name) in names:
            files.setdefault(name, (each.path, each.size))
    lost = sorted(name for name in names - files.keys() if not name.startswith("_indices/"))  # those are built again
    if lost:
        raise StorageError(f"storage: version {entry.version} of {folder} names {lost[0]}, which is not there")
    return _StateTable(version, files)


def _name(path: str) -> str:
    """What a file is called in its dataset, whichever line holds it; a branch may be called like a folder of one."""
    parts = path.split("/")
    at = max((i for i, part in enumerate(parts[:-1]) if part in _CONTENT), default=len(parts) - 1)
    return "/".join(parts[at:])


def _owner(name: str) -> str:
    """The index that a file is of, or the data file beside which a blob lies."""
    first = "/".join(name.split("/")[:2])
    return first if name.startswith("_indices/") else f"{first}.lance"
