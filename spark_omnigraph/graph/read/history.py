"""Commits, and the snapshots that they and times name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypedDict

from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.branch.tags import find_tag
from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.catalog.numbers import count_of
from spark_omnigraph.errors import BadRequestError, NotFoundError
from spark_omnigraph.graph.read.arguments import time_micros
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import decode_facts
from spark_omnigraph.manifest.lineage import Commit, in_order
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.progress.meter import Progress
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.table import read_facts
from spark_omnigraph.words import is_text, nearest

_COMMIT = re.compile("[0-9A-HJKMNP-TV-Z]{26}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(T|$)")
_VERSION_BITS = 63
"""Of a manifest version: more bits stand for none."""


_FEW = 100
"""Commits whose facts are looked for by their ids; of more, all facts are read."""


class Where(TypedDict, total=False):
    """Which state a read shows; see `ReadTarget`."""

    branch: str | None
    version: int | None
    snapshot: str | None
    as_of: datetime | str | None
    tag: str | None


class Bounded(Where, total=False):
    """A state, and what an answer may take: seconds, and rows, of which more are refused."""

    time_limit: timedelta | float | None
    max_rows: int | None


class Watched(Bounded, total=False):
    """As above, and who is told how far the work is: of a phase, parts done, and parts in all."""

    progress: Progress | None


State = Where | str | int | datetime
"""One state of a graph; see `target_of` for what a single value names."""


_WHERE = tuple(Where.__annotations__)
STATE_FORMS: Mapping[str, str] = {
    "version": "a number, as `commits` shows it",
    "snapshot": "the id of a commit",
    "as_of": "a datetime or a text in ISO 8601",
    "tag": "the name of a tag",
}
_STATE_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "version": int,
    "snapshot": str,
    "as_of": (datetime, str),
    "tag": str,
}
_NEWEST = (None,) * len(STATE_FORMS)


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """What to read: the newest state of a branch, or one of a manifest version, a commit id, a time, or a tag.

    `as_of` is an aware or UTC datetime, or ISO 8601 text; it names the newest commit not after it.
    """

    branch: str | None = None
    version: int | None = None
    snapshot: str | None = None
    as_of: datetime | str | None = None
    tag: str | None = None
    mark: str = field(default="", repr=False)
    """Of a version that was seen: when it has another content now, the graph was made anew, and it is gone."""

    def __post_init__(self) -> None:
        past = self.version, self.snapshot, self.as_of, self.tag
        if past == _NEWEST:
            return
        given = {name: value for name, value in zip(STATE_FORMS, past, strict=True) if value is not None}
        for name, value in given.items():
            huge = isinstance(value, int) and value.bit_length() > _VERSION_BITS
            if not isinstance(value, _STATE_KINDS[name]) or isinstance(value, bool) or huge:
                raise BadRequestError(f"{name} is {STATE_FORMS[name]}, not {as_shown(value)}")
        if len(given) > 1:
            raise BadRequestError(f"give one of {', '.join(STATE_FORMS)}, not {' and '.join(given)}")


def check_where(names: Iterable[str]) -> None:
    """BadRequestError for a name that names no state, which would be passed over."""
    for name in names:
        if name not in _WHERE:
            hint = nearest(name, _WHERE)
            raise BadRequestError(f"'{name}' names no state; there are {', '.join(_WHERE)}{hint}")


def target_of(state: str | int | datetime) -> ReadTarget:
    """The state that one value names: a number is a manifest version, a commit's id that commit, a date or time what
    was shown then, any other text a branch.
    """
    if isinstance(state, datetime):
        return ReadTarget(as_of=state)
    if isinstance(state, int) and not isinstance(state, bool):
        return ReadTarget(version=state)
    if not isinstance(state, str):
        raise BadRequestError(
            f"a state is a version, a commit id, a time, a branch or a tag, not a {type(state).__name__}"
        )
    version = count_of(state)
    if version is not None:
        return ReadTarget(version=version)
    if _COMMIT.fullmatch(state):
        return ReadTarget(snapshot=state)
    return ReadTarget(as_of=state) if _TIME.match(state) else ReadTarget(branch=state)


def resolve(store: GraphStore, target: ReadTarget) -> Snapshot:
    """The snapshot that a target names. NotFoundError when there is none."""
    branch = parse_branch(target.branch)
    if target.tag is not None:
        tag = find_tag(store, target.tag)
        return store.snapshot(tag.branch, tag.manifest_version)
    if target.snapshot is not None:
        commit, _ = _find_commit(store, target.snapshot, branch)
        return store.snapshot(commit.branch, commit.manifest_version)
    if target.as_of is not None:
        commit = _commit_at(store, branch, target.as_of)
        return store.snapshot(commit.branch, commit.manifest_version)
    found = store.snapshot(branch, target.version)
    if target.mark and found.mark != target.mark:
        raise NotFoundError(
            f"version {found.version} of branch '{display(branch)}' of '{store.root}' is gone: the graph or the branch "
            "was made anew after this handle was pinned to it; open the graph again"
        )
    return found


def list_commits(store: GraphStore, branch: str | None = None) -> list[Commit]:
    """Commits that a branch sees, oldest first and without facts: as what follows their line needs them."""
    name = parse_branch(branch)
    store.manifest(name)
    return in_order(store.commits(name))


def commit_history(
    store: GraphStore, branch: str | None = None, limit: int | None = None, actor: str | None = None
) -> list[Commit]:
    """Commits that a branch sees with their facts, newest first: the one order in which they are shown. At most `limit`
    of them, or of those of one actor.

    Facts stand in the manifest of the branch, which takes over those of the branch that it comes from.
    """
    name = parse_branch(branch)
    manifest = store.manifest(name)
    commits = [c for c in reversed(in_order(store.commits(name))) if actor in (None, c.actor)]
    shown = commits if limit is None else commits[: max(limit, 0)]
    facts = read_facts(manifest, [c.id for c in shown] if len(shown) <= _FEW else None)
    return [replace(commit, facts=decode_facts(facts.get(commit.id))) for commit in shown]


def get_commit(store: GraphStore, commit_id: str, branch: Branch = None) -> Commit:
    """A commit by id with its facts, looked for on this branch first, then on every other."""
    found, line = _find_commit(store, commit_id, branch)
    return replace(found, facts=decode_facts(read_facts(store.manifest(line), [found.id]).get(found.id)))


def _find_commit(store: GraphStore, commit_id: str, branch: Branch) -> tuple[Commit, Branch]:
    """A commit without facts, and the branch on which it was found."""
    if not is_text(commit_id):
        raise BadRequestError(f"the id of a commit is a text, not {as_shown(commit_id)}")
    store.manifest(branch)
    others = [b for b in store.graph_branches() if b != branch]
    for name in (branch, *others):
        found = store.commit(name, commit_id)
        if found is not None:
            return found, name
    newest = in_order(store.commits(branch))[-1:]
    example = f"; the newest of '{display(branch)}' is {newest[0].id}" if newest else ""
    raise NotFoundError(f"commit '{commit_id}' not found on any branch of '{store.root}'{example}")


def _commit_at(store: GraphStore, branch: Branch, as_of: datetime | str) -> Commit:
    store.manifest(branch)
    micros = time_micros(as_of)
    commits = in_order(store.commits(branch))
    earlier = [c for c in commits if c.created_micros <= micros]
    if not earlier:
        first = f"; the first is of {moment_text(commits[0].created_at)}" if commits else ""
        raise NotFoundError(f"branch '{display(branch)}' of '{store.root}' has no commit at or before {as_of}{first}")
    return earlier[-1]
