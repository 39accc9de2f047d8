"""Tags: names of states that stay readable, whatever else expires.

A tag is a row of main's manifest, and one Lance tag for each dataset that the state shows, so that other programs spare
those versions too. The row is written last and hidden first: Lance tags without it are half a tag, which is residue.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from spark_omnigraph.commit.claim import STATES_CLAIM, claimed, source_claim
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.publisher import Publication, publish
from spark_omnigraph.commit.schema.lock import refuse_schema_change
from spark_omnigraph.errors import (
    BadRequestError,
    NotFoundError,
    OmnigraphError,
    RecoveryRequiredError,
    StorageError,
    TagExistsError,
    VersionExpiredError,
)
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.kept import Tag, floors_of, no_tag_row, tag_row, tags_of
from spark_omnigraph.manifest.lineage import head
from spark_omnigraph.manifest.rows import ManifestRow
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import MANIFEST, branch_path
from spark_omnigraph.storage.tables.commits import drop_tag, set_tag
from spark_omnigraph.storage.versions import LANCE_PREFIX, lance_tags, stored_since
from spark_omnigraph.words import listed, nearest

_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_NAME_LIMIT = 100
Place = tuple[str, Branch, int]
"""Dataset, Lance branch and version."""


def parse_tag(name: object, what: str = "tag") -> str:
    """A checked name of a tag, or of what else has such names. BadRequestError says what a name may look like."""
    if not isinstance(name, str):
        raise BadRequestError(f"a {what} is named by a text, not {as_shown(name)}")
    text = name.strip()
    if not _NAME.fullmatch(text) or text.endswith(".lock") or len(text) > _NAME_LIMIT:
        raise BadRequestError(
            f"{what} name {as_shown(text)} is not usable: use letters, digits, '-', '_' and single dots between them, "
            f"no ending '.lock', at most {_NAME_LIMIT} characters"
        )
    return text


def list_tags(store: GraphStore) -> dict[str, Tag]:
    """All tags by name, in name order."""
    return tags_of(store.manifest_rows(store.manifest(None)))


def find_tag(store: GraphStore, name: str) -> Tag:
    """A tag by name. NotFoundError names the nearest."""
    wanted, known = parse_tag(name), list_tags(store)
    if wanted not in known:
        raise NotFoundError(
            f"tag '{wanted}' not found in '{store.root}'{nearest(wanted, known)}{listed('tags', known)}"
        )
    return known[wanted]


def places_of(snapshot: Snapshot) -> list[Place]:
    """What a state stands on: its tables in the order of their keys, the manifest last."""
    tables = [(each.location, each.branch, each.version) for _, each in sorted(snapshot.entries.items())]
    return [*tables, (MANIFEST, snapshot.branch, snapshot.version)]


def create_tag(store: GraphStore, name: str, snapshot: Snapshot, dry_run: bool = False) -> Tag:
    """Names a state. TagExistsError when the name is taken; a dry run only looks."""
    wanted = parse_tag(name)
    with _states(store, snapshot.branch, dry_run):
        if wanted in list_tags(store):
            raise TagExistsError(f"tag '{wanted}' exists already; delete it first, or choose another name")
        refuse_schema_change(store)
        tag = Tag(wanted, snapshot.branch, snapshot.version, _commit_of(store, snapshot), time.time_ns() // 1000)
        if not dry_run:
            _create(store, tag, snapshot)
    return tag


def delete_tag(store: GraphStore, name: str, dry_run: bool = False) -> Tag:
    """Takes the name away; what it kept may expire from now on. NotFoundError when there is none."""
    with _states(store, None, dry_run):
        tag = find_tag(store, name)
        if dry_run:
            return tag
        refuse_schema_change(store)
        places = places_of(store.snapshot(tag.branch, tag.manifest_version))
        _publish(store, no_tag_row(tag.name))
        reach(CrashPoint.TAG_HIDDEN)
        for place in reversed(places):
            with suppress(CommitFailed, StorageError):  # the name is gone; what stays is half a tag
                _untag(store, place, tag.name)
            reach(CrashPoint.TAG_UNTAGGED_FIRST)
    return tag


@dataclass(frozen=True, slots=True)
class HalfTag:
    """A Lance tag of ours whose tag does not stand, or shows something else."""

    name: str
    place: Place

    @property
    def path(self) -> str:
        """The object that it is."""
        return f"{self.place[0]}/_refs/tags/{LANCE_PREFIX}{self.name}.json"


def half_tags(store: GraphStore, locations: Iterable[str]) -> list[HalfTag]:
    """Half tags of these datasets: a creation or a deletion died on the way."""
    found = [
        HalfTag(name.removeprefix(LANCE_PREFIX), (location, *target))
        for location in locations
        for name, target in lance_tags(store.open_dataset(location)).items()
        if name.startswith(LANCE_PREFIX)
    ]
    whole = {
        (tag.name, place)
        for tag in (list_tags(store).values() if found else ())
        for place in places_of(store.snapshot(tag.branch, tag.manifest_version))
    }
    return [half for half in found if (half.name, half.place) not in whole]


def drop_half_tags(store: GraphStore, locations: Iterable[str]) -> list[HalfTag]:
    """Removes them, looked for while nobody makes or deletes a tag."""
    with claimed(store, STATES_CLAIM):
        halves = half_tags(store, locations)
        for half in halves:
            with suppress(CommitFailed):
                _untag(store, half.place, half.name)
    return halves


@contextmanager
def _states(store: GraphStore, branch: Branch, dry_run: bool) -> Iterator[None]:
    """Keeps away whoever removes old versions, or the branch."""
    with ExitStack() as claims:
        if not dry_run:
            claims.enter_context(claimed(store, STATES_CLAIM))
            if branch is not None:
                claims.enter_context(claimed(store, source_claim(branch)))
        yield


def _create(store: GraphStore, tag: Tag, snapshot: Snapshot) -> None:
    store.require_branch(tag.branch)
    places = places_of(snapshot)
    try:
        for place in places:
            _tag(store, place, tag.name)
            reach(CrashPoint.TAG_FIRST)
        reach(CrashPoint.TAG_ALL)
        _refuse_expired(store, tag, places)
        _publish(store, tag_row(tag))
    except (CommitFailed, OmnigraphError) as failure:
        if not isinstance(failure, RecoveryRequiredError):
            for place in reversed(places):
                with suppress(CommitFailed, StorageError):
                    _untag(store, place, tag.name)
        if isinstance(failure, VersionExpiredError):
            raise
        what = f"storage: tag '{tag.name}' could not be made: {failure}"
        raise StorageError(what) from failure
    reach(CrashPoint.TAG_SHOWN)


def _refuse_expired(store: GraphStore, tag: Tag, places: Iterable[Place]) -> None:
    """VersionExpiredError when an expiry took some of it before the tags were there: it says how far it goes before it
    looks for tags, and Lance removes no tagged version.
    """
    floors = floors_of(store.manifest_rows(store.manifest(None))).get(MANIFEST, {})
    if tag.manifest_version >= floors.get(tag.branch, 0):
        return
    if any(v not in stored_since(store.objects, branch_path(location, line)) for location, line, v in places):
        raise VersionExpiredError(
            f"version {tag.manifest_version} of branch '{display(tag.branch)}' was let expire by a clean-up; choose a "
            "newer state"
        )


def _tag(store: GraphStore, place: Place, name: str) -> None:
    location, branch, version = place
    dataset = store.open_dataset(location)
    there = lance_tags(dataset).get(f"{LANCE_PREFIX}{name}")
    if there == (branch, version):
        return
    if there is not None:  # half of a tag of that name, whose creation died
        drop_tag(dataset, f"{LANCE_PREFIX}{name}")
    set_tag(dataset, f"{LANCE_PREFIX}{name}", branch, version)


def _untag(store: GraphStore, place: Place, name: str) -> None:
    dataset = store.open_dataset(place[0])
    if lance_tags(dataset).get(f"{LANCE_PREFIX}{name}") == place[1:]:
        drop_tag(dataset, f"{LANCE_PREFIX}{name}")


def _publish(store: GraphStore, row: ManifestRow) -> None:
    publish(WholeBranch(store, None), Publication((), {}, new_ulid(), None, None, rows=(row,)))


def _commit_of(store: GraphStore, snapshot: Snapshot) -> str | None:
    """The newest commit of a state."""
    commits = store.commits(snapshot.branch)
    found = head(commit for commit in commits if commit.manifest_version <= snapshot.version)
    if found is None:
        raise NotFoundError(f"branch '{display(snapshot.branch)}' has no commit at version {snapshot.version}")
    return found.id
