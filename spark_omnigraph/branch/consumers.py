"""Consumers: readers of the change feed that said by name where they stand, so that what they have not read stays.

A consumer is an object in `__recovery/`. Whoever begins to read under a name takes it over; a reader that had it before
is refused the next time that it moves. Registered first, looked at second: an expiry that did not see the consumer has
said how far it goes before it looked, which the consumer sees.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from spark_omnigraph.branch.tags import parse_tag
from spark_omnigraph.catalog.dates import moment
from spark_omnigraph.commit.announced import announced
from spark_omnigraph.errors import ConflictError, NotFoundError, VersionExpiredError
from spark_omnigraph.manifest.branches import Branch, display, stored_branch
from spark_omnigraph.manifest.kept import floors_of
from spark_omnigraph.manifest.lineage import Commit, head
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import CONSUMER, MANIFEST, told_path
from spark_omnigraph.stored import Count, decode
from spark_omnigraph.words import listed, nearest

_TAKES = 20
"""Times that a reader tries to take over a name while others do."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader: what it has read of a branch ends at a manifest version, which stays readable, as all later ones do."""

    name: str
    branch: Branch
    version: int
    updated_micros: int
    reader: str
    """Tells one reader from another that took over its name."""
    branch_id: str | None = None

    @property
    def updated_at(self) -> datetime:
        """When it last moved, in UTC."""
        return moment(self.updated_micros)

    def to_json(self) -> bytes:
        """The content of its object."""
        body = {
            "branch": display(self.branch),
            "branch_id": self.branch_id,
            "version": self.version,
            "updated_at": self.updated_micros,
            "reader": self.reader,
        }
        return json.dumps(body).encode()


class _ConsumerBody(msgspec.Struct):
    version: Count
    updated_at: Count
    reader: str
    branch: str = "main"
    branch_id: str | None = None


def list_consumers(store: GraphStore) -> list[Consumer]:
    """All consumers, by name."""
    names = (file.removeprefix(CONSUMER).removesuffix("~") for file in announced(store).consumers)
    found = ((name, store.objects.get(_path(name))) for name in sorted(names))
    return [_read(name, content) for name, content in found if content is not None]


def delete_consumer(store: GraphStore, name: str) -> Consumer:
    """Forgets where a reader stood: nothing waits for it any more. NotFoundError when there is none."""
    content = store.objects.get(_path(_checked(name)))
    if content is None:
        known = [each.name for each in list_consumers(store)]
        raise NotFoundError(
            f"consumer '{name}' not found in '{store.root}'{nearest(name, known)}{listed('consumers', known)}"
        )
    store.objects.delete(_path(name))
    return _read(name, content)


def take_consumer(store: GraphStore, name: str, branch: Branch, commits: Sequence[Commit], version: int) -> Consumer:
    """Registers a reader that has read up to a version, or moves the one of this name there. `commits` made the branch
    what it is.

    VersionExpiredError, with the oldest start, when what it has not read is gone; then nothing is registered.
    """
    store.require_writable()
    _refuse_expired(store, commits, version)
    path = _path(_checked(name))
    taken = Consumer(name, branch, version, time.time_ns() // 1000, uuid.uuid4().hex, store.branch_id(branch))
    for _ in range(_TAKES):
        found = store.objects.get(path)
        content = taken.to_json()
        if store.objects.create(path, content) if found is None else store.objects.swap(path, found, content):
            break
    else:
        raise ConflictError(f"others kept moving consumer '{name}'; try again")
    try:
        _refuse_expired(store, commits, version)
    except VersionExpiredError:
        store.objects.remove(path, taken.to_json())
        raise
    return taken


def move_consumer(store: GraphStore, consumer: Consumer, version: int) -> Consumer:
    """Says that a reader has read up to a version. ConflictError when another one took over its name, or it was
    deleted.
    """
    moved = Consumer(
        consumer.name, consumer.branch, version, time.time_ns() // 1000, consumer.reader, consumer.branch_id
    )
    if not store.objects.swap(_path(consumer.name), consumer.to_json(), moved.to_json()):
        raise ConflictError(
            f"consumer '{consumer.name}' was deleted, or another reader took over its name; two readers need two names"
        )
    return moved


def needed_from(commits: Sequence[Commit], version: int) -> dict[Branch, int]:
    """Branch → the oldest manifest version that a feed of what follows a version needs; `commits` made the branch what
    it is, oldest first.
    """
    before = head(commit for commit in commits if commit.manifest_version <= version)
    needed: dict[Branch, int] = {}
    for commit in commits:
        if before is None or commit.manifest_version >= before.manifest_version:
            needed[commit.branch] = min(commit.manifest_version, needed.get(commit.branch, commit.manifest_version))
    return needed


def _refuse_expired(store: GraphStore, commits: Sequence[Commit], version: int) -> None:
    floors: Mapping[Branch, int] = floors_of(store.manifest_rows(store.manifest(None))).get(MANIFEST, {})
    for branch, oldest in needed_from(commits, version).items():
        if oldest < floors.get(branch, 0):
            kept = (c.manifest_version for c in commits if c.manifest_version >= floors.get(c.branch, 0))
            raise VersionExpiredError(
                f"what follows version {version} of branch '{display(branch)}' is not stored any more: a clean-up let "
                f"it expire; the change feed can start at version {min(kept, default=version) + 1}"
            )


def _checked(name: str) -> str:
    return parse_tag(name, "consumer")


def _path(name: str) -> str:
    return told_path(CONSUMER, name)


def _read(name: str, content: bytes) -> Consumer:
    body = decode(content, _ConsumerBody, f"consumer '{name}'", "delete it")
    return Consumer(name, stored_branch(body.branch), body.version, body.updated_at, body.reader, body.branch_id)
