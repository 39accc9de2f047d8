"""Who keeps versions of tables: the other side of `referenced.py`, in words for whoever wants them gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress

from spark_omnigraph.branch.consumers import needed_from
from spark_omnigraph.branch.tags import Place, list_tags, places_of
from spark_omnigraph.catalog.dates import second_text
from spark_omnigraph.commit.owners import find_owners
from spark_omnigraph.errors import VersionExpiredError
from spark_omnigraph.graph.changes.feed import first_parents
from spark_omnigraph.graph.maintain.referenced import BranchStates, branch_states, merge_starts, readers, shown_since
from spark_omnigraph.manifest.branches import Branch, display, stored_branch
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import branch_path
from spark_omnigraph.storage.versions import LANCE_PREFIX, lance_tags, origins

Lines = Mapping[Branch, BranchStates]


def showing(store: GraphStore, places: AbstractSet[Place]) -> frozenset[Branch]:
    """Branches any stored state of which shows one of these versions."""
    lines = branch_states(store).items()
    return frozenset(b for b, line in lines if _shows(store, line, next(iter(line.stored)), places))


def keepers(store: GraphStore, places: AbstractSet[Place]) -> list[str]:
    """Everybody who keeps any of these versions whatever a policy says, and what ends that."""
    lines = branch_states(store)
    found = [*_tags(store, places), *_consumers(store, lines, places), *_branches(store, lines, places)]
    for location in sorted({place[0] for place in places}):
        found += _others(store, location, places)
    since = find_owners(store).since
    if since is not None:
        begun = second_text(since)
        found.append(f"a write that began at {begun} and is under way or interrupted: let it end, or run recover")
    return found


def _tags(store: GraphStore, places: AbstractSet[Place]) -> Iterator[str]:
    for tag in list_tags(store).values():
        if not places.isdisjoint(places_of(store.snapshot(tag.branch, tag.manifest_version))):
            yield f"tag {tag.name}: delete it"


def _consumers(store: GraphStore, lines: Lines, places: AbstractSet[Place]) -> Iterator[str]:
    for each in readers(store, lines):
        unread = needed_from(first_parents(store, each.branch), each.version).items()
        if any(branch in lines and _shows(store, lines[branch], oldest, places) for branch, oldest in unread):
            yield f"consumer {each.name}: let it read on, or delete it"


def _branches(store: GraphStore, lines: Lines, places: AbstractSet[Place]) -> Iterator[str]:
    """Branches whose merges start from such a state, or whose tables begin at one of these versions."""
    found = set()
    for branch, start in merge_starts(lines):
        with suppress(VersionExpiredError):
            if not places.isdisjoint(places_of(store.snapshot(start.branch, start.manifest_version))):
                found.add(branch)
    for location in {place[0] for place in places}:
        begins = origins(store.open_dataset(location)).items()
        found |= {stored_branch(name) for name, (line, version) in begins if (location, line, version) in places}
    for name in sorted(display(branch) for branch in found & lines.keys() - {None}):
        yield f"branch {name}: it begins at, or merges start from, a state that holds it; merge and delete it"


def _others(store: GraphStore, location: str, places: AbstractSet[Place]) -> Iterator[str]:
    """Tags of other programs, and symbolic links."""
    for name, (line, version) in lance_tags(store.open_dataset(location)).items():
        if not name.startswith(LANCE_PREFIX) and (location, line, version) in places:
            yield f"tag {name} of another program on {location}: delete it there"
    for link in store.objects.links(branch_path(location, None)):
        yield f"{link}: a symbolic link, behind which nothing is removed; put what it leads to in its place"


def _shows(store: GraphStore, line: BranchStates, version: int, places: AbstractSet[Place]) -> bool:
    """Whether a state from a version on, as far as they are stored, shows one of these."""
    first = max(version, next(iter(line.stored)))
    return not places.isdisjoint(shown_since(store, line, min(first, line.snapshot.version)))
