"""What datasets must be able to show before anybody says which of their files are residue.

The manifest names the versions of tables, the commit log those of the manifest, and the newest publish its row in the
log. A dataset that lacks one of them lost files, or a copy left them out; what only that version names looks unnamed.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_omnigraph.commit.owners import await_logged
from spark_omnigraph.errors import StorageError
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.kept import floors_of
from spark_omnigraph.manifest.rows import PublishFacts, sentinel_facts
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMITS, MANIFEST, RECOVERIES
from spark_omnigraph.storage.residue import Pins
from spark_omnigraph.storage.versions import lance_tags


def table_pins(store: GraphStore, location: str, published: Pins, hidden: int = 0) -> Pins:
    """Versions of a table that must be there: those `published`, as far as they have not expired, and tagged ones. The
    newest of each line does not expire, but for that of a table that is `hidden` up to it.
    """
    floors = floors_of(store.manifest_rows(store.manifest(None))).get(location, {})
    pins = {
        line: {v for v in versions if v >= floors.get(line, 0) or (v == max(versions) and (line or v > hidden))}
        for line, versions in published.items()
    }
    for line, version in lance_tags(store.open_dataset(location)).values() if pins else ():
        if line in pins:
            pins[line].add(version)
    return pins


def internal_pins(store: GraphStore, location: str) -> Pins:
    """Versions that a dataset of the manifest or the commit log must show. StorageError when rows of it are missing."""
    branches = store.graph_branches()
    if location == MANIFEST:
        return table_pins(store, location, {branch: _logged(store, branch) for branch in branches})
    if location != RECOVERIES:
        _require_rows(store, location, branches)
    return {}


def _logged(store: GraphStore, branch: Branch) -> frozenset[int]:
    return frozenset(c.manifest_version for c in store.commits(branch) if c.branch == branch)


def _require_rows(store: GraphStore, location: str, branches: Iterable[Branch]) -> None:
    """The publish that stands at the end of a branch has its row, and that of its actor, when its writer is done."""
    for branch in branches:
        facts = sentinel_facts(store.manifest_rows(store.manifest(branch)))
        if facts is None or facts.commit is None or not _is_missing(store, location, branch, facts):
            continue
        await_logged(store, facts.commit)
        if _is_missing(store, location, branch, facts):
            way_out = f"run recover, or {_BACKUP}" if location == COMMITS else _BACKUP
            raise StorageError(f"{_lacks(location, facts.commit, branch)} {way_out}")


def _is_missing(store: GraphStore, location: str, branch: Branch, facts: PublishFacts) -> bool:
    known = next((commit for commit in store.commits(branch) if commit.id == facts.commit), None)
    if location == COMMITS or known is None:
        return location == COMMITS and known is None
    # The sentinel of maintenance names the commit before it, and another actor.
    return known.manifest_version == facts.base + 1 and known.actor != facts.actor


_BACKUP = "put the newest versions of it back from a backup; until then none of its files is judged"


def _lacks(location: str, commit: str, branch: Branch) -> str:
    return f"storage: {location} lacks the row of {commit}, the newest commit of branch '{display(branch)}':"
