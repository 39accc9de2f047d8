"""What is kept stays within its bounds, the least recently used going first, whatever its kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from spark_omnigraph.memory import BUDGET, LruCache, Memory, process_memory


def test_what_was_used_longest_ago_goes_first() -> None:
    kept: LruCache[str, str] = LruCache(10)
    for name in "abc":
        kept.put(name, name.upper(), 3)
    assert kept.get("a") == "A"
    assert (kept.weight, len(kept)) == (9, 3)
    kept.put("d", "D", 2)
    assert [name in kept for name in "abcd"] == [True, False, True, True]
    assert kept.weight == 8


def test_asking_whether_something_is_here_does_not_keep_it() -> None:
    kept: LruCache[str, int] = LruCache(2)
    kept.put("a", 1)
    kept.put("b", 1)
    assert "a" in kept
    kept.put("c", 1)
    assert "a" not in kept


def test_what_is_too_heavy_is_not_kept_and_drives_nothing_out() -> None:
    kept: LruCache[str, int] = LruCache(5)
    kept.put("a", 1, 5)
    kept.put("b", 2, 6)
    assert ("a" in kept, "b" in kept, kept.weight) == (True, False, 5)


def test_a_key_that_is_put_again_is_weighed_once() -> None:
    kept: LruCache[str, int] = LruCache(5)
    kept.put("a", 1, 4)
    kept.put("a", 2, 2)
    assert (kept.get("a"), kept.weight) == (2, 2)
    kept.forget("a")
    kept.forget("a")
    assert (kept.get("a"), kept.weight) == (None, 0)


def test_figures_are_added_up_for_a_bounded_number_of_keys() -> None:
    counted: LruCache[str, float] = LruCache(2)
    assert [counted.add(key, 1) for key in "aabca"] == [1, 2, 1, 1, 1]


def test_threads_that_add_lose_nothing() -> None:
    counted: LruCache[str, float] = LruCache(2)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: counted.add("a", 1), range(2_000)))
    assert counted.get("a") == 2_000


def test_one_budget_holds_for_all_kinds_together() -> None:
    memory = Memory(10)
    memory.put(str, "key", "columns", 6)
    memory.put(bytes, "key", b"edges", 4)
    assert (memory.get(str, "key"), memory.get(bytes, "key"), memory.bytes) == ("columns", b"edges", 10)
    memory.put(int, "other", 7, 5)
    assert (memory.has(str, "key"), memory.has(bytes, "key"), memory.bytes) == (False, True, 9)
    memory.forget(int, "other")
    assert memory.bytes == 4


def test_graphs_of_a_process_share_one_memory_by_default() -> None:
    assert process_memory() is process_memory()
    assert process_memory().budget == BUDGET == 2 << 30
