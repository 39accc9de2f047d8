"""Rows of the graph that the demo makes of the real data."""

from __future__ import annotations

FILM_COUNTS = {
    "node:Genre": 21,
    "node:Language": 195,
    "node:Country": 136,
    "node:Person": 63_802,
    "node:Film": 17_472,
    "edge:Directed": 18_975,
    "edge:Wrote": 21_014,
    "edge:ActedIn": 194_197,
    "edge:HasGenre": 35_469,
    "edge:InLanguage": 19_476,
    "edge:ProducedIn": 23_289,
}
