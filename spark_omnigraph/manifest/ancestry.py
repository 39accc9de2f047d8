"""Ancestors of commits: which one branch has and another has not, and where two of them parted.

A commit has one parent, and a merge a second one. The commits that are at hand may lack some that others name: a branch
that is gone took its own along. What is behind a missing commit is not known, and counts as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from spark_omnigraph.manifest.lineage import Commit


def ancestors(commits: Mapping[str, Commit], head: str) -> frozenset[str]:
    """Ids of a commit and of everything that it was made from, also of those of which no more than the id is known."""
    found: set[str] = set()
    waiting = [head]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            commit = commits.get(each)
            waiting += [] if commit is None else _parents(commit)
    return frozenset(found)


def missing(commits: Mapping[str, Commit], heads: Iterable[str]) -> frozenset[str]:
    """Ids that lie behind any of the heads and whose commits are not at hand."""
    return frozenset(each for head in heads for each in ancestors(commits, head) if each not in commits)


def merge_bases(
    commits: Mapping[str, Commit], one: str, other: str, without: Set[str] = frozenset()
) -> tuple[Commit, ...]:
    """The commits that lie behind both heads and behind no other such commit, newest first; none of those `without`.

    There are several after two branches were merged into each other, and none when they have nothing in common. Known
    elsewhere as best common ancestors (`git merge-base --all`).
    """
    both = ancestors(commits, one) & ancestors(commits, other)
    shared = {each for each in both if each in commits and each not in without}
    behind: set[str] = set()
    for each in shared:
        if each not in behind:
            behind |= ancestors(commits, each) - {each}
    return tuple(sorted((commits[each] for each in shared - behind), key=_newest_first))


def lost_bases(commits: Mapping[str, Commit], one: str, other: str, bases: Iterable[Commit]) -> frozenset[str]:
    """Ids that lie behind both heads and behind none of the bases that are left: where the two really parted."""
    both = ancestors(commits, one) & ancestors(commits, other)
    return both.difference(*(ancestors(commits, base.id) for base in bases))


def _parents(commit: Commit) -> list[str]:
    return [each for each in (commit.parent, commit.merged_parent) if each is not None]


def _newest_first(commit: Commit) -> tuple[int, str, str]:
    """Versions of different branches are not comparable; names decide between equals, so that the order is fixed."""
    return -commit.manifest_version, commit.branch or "", commit.id
