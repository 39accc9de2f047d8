"""Where two histories parted: best common ancestors, checked against a search by hand on random histories."""

from __future__ import annotations

import random

import pytest

from spark_omnigraph.manifest.ancestry import ancestors, lost_bases, merge_bases, missing
from spark_omnigraph.manifest.lineage import Commit


def history(*lines: str) -> dict[str, Commit]:
    """`id < parent merged_parent`; versions follow the order of the lines."""
    commits = {}
    for number, line in enumerate(lines, 1):
        name, _, parents = line.partition("<")
        one, other, *_ = [*parents.split(), None, None]
        commits[name.strip()] = Commit(name.strip(), None, number, one, other, number)
    return commits


def bases(commits: dict[str, Commit], one: str, other: str) -> list[str]:
    return [commit.id for commit in merge_bases(commits, one, other)]


def test_a_plain_fork_parted_where_it_was_made() -> None:
    assert bases(history("a", "b < a", "c < b", "x < b"), "c", "x") == ["b"]


def test_after_a_merge_the_head_that_was_merged_is_the_base() -> None:
    commits = history("a", "x < a", "m < a x", "y < x")
    assert bases(commits, "y", "m") == ["x"]
    assert bases(commits, "x", "m") == ["x"]


def test_what_lies_behind_another_base_is_none() -> None:
    assert bases(history("a", "b < a", "c < b a", "d < b"), "c", "d") == ["b"]


def test_two_merges_across_leave_two_bases() -> None:
    commits = history("a", "s < a", "t < a", "s2 < s t", "t2 < t s")
    assert bases(commits, "s2", "t2") == ["t", "s"]


def test_histories_that_have_nothing_in_common_have_no_base() -> None:
    assert bases(history("a", "b"), "a", "b") == []


def test_commits_that_are_only_named_are_told_and_are_no_bases() -> None:
    commits = history("a", "s < a gone", "t < a gone")
    assert bases(commits, "s", "t") == ["a"]
    assert missing(commits, ["s", "t"]) == {"gone"}
    assert ancestors(commits, "s") == {"s", "a", "gone"}
    assert lost_bases(commits, "s", "t", merge_bases(commits, "s", "t")) == {"gone"}
    commits |= history("u < s t", "v < u")
    assert lost_bases(commits, "u", "v", merge_bases(commits, "u", "v")) == frozenset(), "it lies behind the base"


def test_a_base_that_cannot_be_read_gives_way_to_what_lies_behind_it() -> None:
    commits = history("a", "b < a", "c < b", "x < b")
    found = merge_bases(commits, "c", "x", {"b"})
    assert [commit.id for commit in found] == ["a"]
    assert lost_bases(commits, "c", "x", found) == {"b"}


@pytest.mark.parametrize("seed", range(30))
def test_bases_are_those_that_a_search_over_all_pairs_finds(seed: int) -> None:
    random.seed(seed)
    names = [f"c{i:02}" for i in range(14)]
    lines = ["c00"]
    for i, name in enumerate(names[1:], 1):
        lines.append(f"{name} < {' '.join(random.sample(names[:i], min(i, random.choice([1, 1, 2]))))}")
    commits = history(*lines)
    reach = {name: ancestors(commits, name) for name in names}
    for one in names:
        for other in names:
            shared = reach[one] & reach[other]
            best = {c for c in shared if not any(c != d and c in reach[d] for d in shared)}
            assert set(bases(commits, one, other)) == best, (seed, one, other)
