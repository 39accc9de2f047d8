"""One state as a graph of its own: each table is cloned by Lance, whichever fork it stands on, with its indexes and the
ids and versions of its rows; a new manifest and a new history begin with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spark_omnigraph.errors import StorageError
from spark_omnigraph.graph.copy.target import begin_history
from spark_omnigraph.manifest.rows import ManifestRow, table_row, version_row
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import manifest_file
from spark_omnigraph.storage.objects.transfer import Transferred, digest
from spark_omnigraph.storage.tables.commits import clone

_CONTENT = ("data", "_deletions", "_indices")


def clone_tables(
    source: GraphStore, place: GraphStore, state: Snapshot, sign: ManifestRow, hold: Callable[[], None]
) -> Iterator[Transferred]:
    """Clones what is not there yet, and compares the bytes of every file with those that it was made from."""
    rows = [sign]
    for key, entry in sorted(state.entries.items()):
        hold()
        is_new = place.objects.get(f"{entry.location}/{manifest_file(entry.version)}", limit=None) is None
        if is_new:
            place.objects.purge(entry.location, hold)
            try:
                clone(source.open_table(entry), place.location.join(entry.location), place.storage_options)
            except CommitFailed as failure:
                raise StorageError(f"storage: '{key}' could not be copied: {failure}; copy again") from failure
        yield from _compared(source, place, entry, is_new)
        update = place.table_update(entry.table_key, entry.location, None, entry.version, entry.row_count)
        rows += [table_row(entry.table_key, entry.location), version_row(update)]
    begin_history(place, rows, hold)


def describe_state(source: GraphStore, state: Snapshot) -> dict[str, int]:
    """Path and size of the files of rows and indexes that a state stands on, as far as folders tell."""
    found = {}
    for entry in state.entries.values():
        named = {file.path for fragment in source.open_table(entry).get_fragments() for file in fragment.data_files()}
        for each in source.objects.walk(entry.location):
            if each.path.rpartition("/")[2] in named:
                found[each.path] = each.size
    return found


def _compared(source: GraphStore, place: GraphStore, entry: TableEntry, is_new: bool) -> Iterator[Transferred]:
    """StorageError for other bytes, and for a blob that did not come along: blobs lie beside the data file that names
    them.
    """
    known: dict[str, list[str]] = {}
    for each in source.objects.walk(entry.location):
        known.setdefault(_name(each.path), []).append(each.path)
    there = {_name(each.path): each for each in place.objects.walk(entry.location)}
    lost = {name for name in known if name not in there and _owner(name) in there}
    for name, each in sorted(there.items()):
        if name.partition("/")[0] in _CONTENT:
            wanted = digest(place.objects, each.path)
            if not any(digest(source.objects, path) == wanted for path in known.get(name, ())):
                lost.add(name)
            yield Transferred(each.path, each.size, is_new)
    if lost:
        raise StorageError(
            f"storage: {place.location.join(entry.location)} has not what was copied ({min(lost)}); empty the place "
            "and copy again"
        )


def _name(path: str) -> str:
    """What a file is called in its dataset, whichever line holds it."""
    parts = path.split("/")
    at = next((i for i, part in enumerate(parts) if part in _CONTENT), len(parts) - 1)
    return "/".join(parts[at:])


def _owner(name: str) -> str:
    """The data file beside which a blob lies."""
    return "/".join(name.split("/")[:2]) + ".lance"
