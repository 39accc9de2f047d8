"""A three-way merge in plain Python: sets of rows, the rules, and merge bases by brute force. Nothing of the product's
way is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def ancestors(parents: Mapping[K, Iterable[K]], commit: K) -> set[K]:
    """A commit and all behind it; behind one that `parents` does not know is nothing."""
    found = newest = {commit}
    while newest:
        newest = {parent for each in newest for parent in parents.get(each, ())} - found
        found = found | newest
    return found


def merge_bases(parents: Mapping[K, Iterable[K]], one: K, other: K) -> list[K]:
    """What lies behind both and behind no other such commit, of the commits that `parents` knows."""
    behind = {commit: ancestors(parents, commit) for commit in (one, other)}
    shared = [commit for commit in behind[one] & behind[other] if commit in parents]
    lines = {commit: ancestors(parents, commit) for commit in shared}
    return [c for c in shared if not any(c != each and c in lines[each] for each in shared)]


def merge_rows(
    source: Mapping[K, V], target: Mapping[K, V], bases: Sequence[Mapping[K, V]]
) -> tuple[dict[K, V], set[K]]:
    """The merged rows, and the keys on which the two sides disagree: those stay the target's."""
    merged, conflicts = dict(target), set()
    for key in source.keys() | target.keys() | {key for base in bases for key in base}:
        theirs, ours = source.get(key), target.get(key)
        if theirs == ours:
            continue
        source_changed = all(base.get(key) != theirs for base in bases)
        target_changed = all(base.get(key) != ours for base in bases)
        if source_changed == target_changed:
            conflicts.add(key)
        elif source_changed and theirs is None:
            del merged[key]
        elif source_changed and theirs is not None:
            merged[key] = theirs
    return merged, conflicts


def conflict_kind(source: object | None, target: object | None) -> str:
    """Of a row on which two sides disagree; whether it was there before is not told apart."""
    return "delete_vs_update" if None in (source, target) else "divergent"
