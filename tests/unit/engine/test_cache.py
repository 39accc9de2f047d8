"""What is kept stays within its memory, the least used going first."""

from __future__ import annotations

from dataclasses import dataclass

from spark_omnigraph.engine.cache import Kept


@dataclass(frozen=True)
class Thing:
    bytes: int


def test_what_was_used_longest_ago_goes_first() -> None:
    kept: Kept[Thing] = Kept(10)
    for name in "abc":
        kept.put(name, Thing(3))
    assert kept.get("a") == Thing(3)
    assert kept.bytes == 9
    kept.put("d", Thing(2))
    assert [kept.has(name) for name in "abcd"] == [True, False, True, True]
    assert kept.bytes == 8


def test_asking_whether_something_is_here_does_not_keep_it() -> None:
    kept: Kept[Thing] = Kept(2)
    kept.put("a", Thing(1))
    kept.put("b", Thing(1))
    assert kept.has("a")
    kept.put("c", Thing(1))
    assert not kept.has("a")


def test_what_is_too_large_is_not_kept_and_drives_nothing_out() -> None:
    kept: Kept[Thing] = Kept(5)
    kept.put("a", Thing(5))
    kept.put("b", Thing(6))
    assert (kept.has("a"), kept.has("b"), kept.bytes) == (True, False, 5)


def test_a_key_that_is_put_again_is_counted_once() -> None:
    kept: Kept[Thing] = Kept(5)
    kept.put("a", Thing(4))
    kept.put("a", Thing(2))
    assert (kept.get("a"), kept.bytes) == (Thing(2), 2)
