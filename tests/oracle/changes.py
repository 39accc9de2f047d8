"""What changes make of nodes and edges, in plain Python, from the rules of docs/jobs.md: the answer of their test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RANKS = {"delete": 0, "d": 0, "insert": 1, "update_postimage": 2, "u": 2}
NODE, EDGE = "Person", "Knows"


@dataclass(frozen=True)
class Change:
    """One record: its table, the row, what it does to it and in which version. An edge has ends."""

    table: str
    id: str
    word: str
    version: int | None
    value: int = 0
    ends: tuple[str, str] | None = None

    @property
    def deletes(self) -> bool:
        return RANKS[self.word] == 0


@dataclass(frozen=True)
class State:
    """Values of people, and ends and values of edges, by id."""

    people: Mapping[str, int]
    edges: Mapping[str, tuple[tuple[str, str], int]]


@dataclass(frozen=True)
class Outcome:
    """The state afterwards, or the places of bad rows with their rule; and how many rows went, and went along."""

    state: State
    bad: Mapping[int, str]
    deleted: int = 0
    cascaded: int = 0


def apply(state: State, changes: Sequence[Change], on_duplicate: str) -> Outcome:
    """All of the changes, or none."""
    bad: dict[int, str] = {}
    ordered: dict[tuple[str, str], list[int]] = {}
    for key in {(change.table, change.id) for change in changes}:
        places = [place for place, change in enumerate(changes) if (change.table, change.id) == key]
        top = places
        if all(changes[place].version is not None for place in places):
            places.sort(key=lambda place: _rank(changes[place]))
            top = [place for place in places if _rank(changes[place]) == _rank(changes[places[-1]])]
        kinds = {changes[place].deletes for place in top}
        if kinds == {True, False}:
            bad |= dict.fromkeys(top, "key_duplicate")
        elif kinds == {False} and on_duplicate == "error":
            bad |= dict.fromkeys(top[1:], "key_duplicate")
        ordered[key] = places
    if bad:
        return Outcome(state, bad)
    return _end(state, changes, ordered)


def _rank(change: Change) -> tuple[int, int]:
    return change.version or 0, RANKS[change.word]


def _end(state: State, changes: Sequence[Change], ordered: Mapping[tuple[str, str], Sequence[int]]) -> Outcome:
    gone = {key for key, places in ordered.items() if changes[places[-1]].deletes}
    written = {key: places for key, places in ordered.items() if key not in gone}
    people = {name: value for name, value in state.people.items() if (NODE, name) not in gone}
    people |= {name: changes[places[-1]].value for (table, name), places in written.items() if table == NODE}
    stored = {name: edge for name, edge in state.edges.items() if (EDGE, name) not in gone}
    along = {name for name, (ends, _) in stored.items() if not {*ends} <= people.keys() and (EDGE, name) not in written}
    edges = {name: edge for name, edge in stored.items() if name not in along}
    bad = {}
    for (table, name), places in written.items():
        for place in reversed(places):  # one that is refused gives way to the one before it
            ends = changes[place].ends
            if table == NODE or ends is None:
                break
            edges[name] = (ends, changes[place].value)
            if {*ends} <= people.keys():
                break
            bad[place] = "endpoint"
    if bad:
        return Outcome(state, bad)
    named = sum(1 for table, name in gone if name in (state.people if table == NODE else state.edges))
    return Outcome(State(people, edges), {}, named + len(along), len(along))
