"""Claims: one process at a time does a step that Lance does not make safe under a race.

A claim is an object in `__recovery/` that does not end in `.json`, created only if absent, and removed afterwards. One
whose owner died stays until its term is past; then exactly one process takes it over, by swapping its content. What is
done under a claim must still bear an owner that was stopped for longer than the term and goes on: recovery fences its
tables and looks at its sidecar again before it moves any content.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec

from spark_omnigraph.catalog.dates import second_text
from spark_omnigraph.commit.announced import Announced, announced, claim_path
from spark_omnigraph.commit.lease import SKEW, read_lease
from spark_omnigraph.commit.process import owner_text
from spark_omnigraph.errors import DamagedError, StorageError, WriterBusyError
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.stored import Instant, decode

TERM = 60.0
"""Seconds for which a claim is its owner's alone; the claimed steps take milliseconds."""
WAIT = 30.0
RECOVERING, REALIGNING = "recover~", "settle~"
"""Beginnings of the claims under which tables are fenced."""
_POLL = 0.05


@dataclass(slots=True)
class Claim:
    """A claim in this process's hand."""

    store: GraphStore
    path: str
    content: bytes

    def keep(self) -> None:
        """Makes sure that it is still ours, for half of its term at least; to be called right before what cannot be
        undone. WriterBusyError when we were stopped for so long that it counted as abandoned, and another took it.
        """
        objects = self.store.objects
        if objects.get(self.path) == self.content:
            if time.time() < _expiry(self.content) - TERM / 2:
                return
            longer = _content(uuid.uuid4().hex)
            if objects.swap(self.path, self.content, longer):
                self.content = longer
                return
        raise WriterBusyError(
            f"another process took {self.path}, because this one stood still for too long; what it was doing is given "
            "up here: look at what is there now, and run it again if need be"
        )


@contextmanager
def claimed(store: GraphStore, name: str, wait: float = WAIT) -> Iterator[Claim]:
    """Holds the claim `name` during the block. WriterBusyError when another process keeps it for `wait` seconds, or
    makes the graph anew.
    """
    path = claim_path(name)
    claim = Claim(store, path, _take(store, path, wait))
    try:
        refuse_remade(store)
        yield claim
    finally:
        _release(store, path, claim.content)


def refuse_remade(store: GraphStore) -> None:
    """WriterBusyError while somebody makes the graph anew; see `making.py`. For those who have announced themselves
    before they call this.
    """
    for name in announced(store).makings:
        lease = read_lease(store, name)
        if lease is not None and lease.is_live(time.time()):
            raise WriterBusyError(f"'{store.root}' is being made anew by an init; try again later")


def abandoned(store: GraphStore, found: Announced, beginnings: tuple[str, ...]) -> list[str]:
    """Names of claims that begin so and whose owners died with them."""
    claims = ((name, _read(store, claim_path(name))) for name in found.claims if name.startswith(beginnings))
    return [name for name, content in claims if content is not None and _is_abandoned(content)]


def claimed_since(store: GraphStore, claims: Iterable[str]) -> list[float]:
    """When those of these claims that are in force were taken, in seconds since the epoch by their owners' clocks."""
    found = (_read(store, claim_path(name)) for name in claims)
    return [_expiry(content) - TERM for content in found if content is not None and not _is_abandoned(content)]


def is_claimed(store: GraphStore, name: str) -> bool:
    """Whether somebody holds the claim, or died with it."""
    return _read(store, claim_path(name)) is not None


def recovery_claim(operation_id: str) -> str:
    """Name of the claim that whoever recovers a write holds."""
    return f"{RECOVERING}{operation_id}"


def fork_claim(location: str, branch: BranchName) -> str:
    """Name of the claim under which the Lance branch of a table is made or removed."""
    return f"fork~{location.replace('/', '~')}~{branch.replace('/', '~')}"


def is_held(store: GraphStore, name: str) -> bool:
    """Whether somebody who may be alive holds the claim."""
    content = _read(store, claim_path(name))
    return content is not None and not _is_abandoned(content)


def source_claim(branch: BranchName) -> str:
    """Name of the claim under which branches are made from a branch; whoever deletes it holds it, too."""
    return f"source~{branch.replace('/', '~')}"


STATES_CLAIM = "states"
"""Claim under which old versions are removed, and under which older states get a name: a tag or a branch."""


def branch_claim(branch: BranchName) -> str:
    """Name of the claim under which a graph branch is made or removed."""
    return f"branch~{branch.replace('/', '~')}"


def _take(store: GraphStore, path: str, wait: float) -> bytes:
    deadline = time.monotonic() + wait
    token = uuid.uuid4().hex
    while True:
        content = _content(token)
        with _all_or_nothing(store, path, content):
            if store.objects.create(path, content):
                return content
            found = _read(store, path)
            if found is not None:
                if token.encode() in found:  # ours: the answer to its creation was lost
                    return found
                if _is_abandoned(found) and store.objects.swap(path, found, content):
                    return content
        if time.monotonic() >= deadline:
            raise WriterBusyError(f"another process holds {path} for longer than {wait:g} s; {_until(found)}")
        time.sleep(_POLL)


def _content(token: str) -> bytes:
    return json.dumps({"token": token, "owner": owner_text(), "expires_at": time.time() + TERM}).encode()


@contextmanager
def _all_or_nothing(store: GraphStore, path: str, content: bytes) -> Iterator[None]:
    """When the store fails on the way to a claim, one that may be there all the same is removed."""
    try:
        yield
    except StorageError:
        with suppress(StorageError):
            if store.objects.get(path) == content:
                store.objects.delete(path)
        raise


class _ClaimBody(msgspec.Struct):
    expires_at: Instant


def _read(store: GraphStore, path: str) -> bytes | None:
    """Content of a claim, or None; DamagedError says what to do about something else in its place."""
    try:
        return store.objects.get(path)
    except DamagedError as error:
        raise DamagedError(f"{error.message}. Remove it: it is no claim of any writer") from error


def _is_abandoned(content: bytes) -> bool:
    return time.time() > _end(content)


def _end(content: bytes) -> float:
    """From when on the owner counts as dead, in seconds since the epoch; at once for what is no claim."""
    try:
        return _expiry(content) + SKEW
    except DamagedError:
        return 0.0


def _expiry(content: bytes) -> float:
    return decode(content, _ClaimBody, "a claim").expires_at


def _until(content: bytes | None) -> str:
    if content is None:
        return "try again"
    return f"it counts as dead from {second_text(_end(content))} on; try again later"


def _release(store: GraphStore, path: str, content: bytes) -> None:
    """Removes the claim while it is certainly ours; one whose term is past may be somebody else's by now."""
    with suppress(StorageError):  # what was done under it is done; the claim runs out by itself
        if time.time() < _expiry(content):
            store.objects.delete(path)
        else:
            store.objects.swap(path, content, json.dumps({"token": "released", "expires_at": 0}).encode())
