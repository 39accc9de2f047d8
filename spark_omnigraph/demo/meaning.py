"""Questions by meaning: titles of films as vectors of a model on this machine, and the nearest ones to a text."""

from __future__ import annotations

from spark_omnigraph.embed.models.local import EXTRA, WORDLLAMA, is_installed
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.provider import embedding_config

TEXTS = ("ghosts in an old house", "falling in love in Paris", "a journey to the stars")
HEADERS = ("asked for", "title", "first", "distance")
_QUERY = """
query near($text: String) {
    match { $f: Film }
    return { $f.title, $f.year, nearest($f.title_vec, $text) as distance }
    order { nearest($f.title_vec, $text) }
    limit 3
}
"""


def ask_by_meaning(graph: Graph) -> tuple[int, list[tuple[str, str, int | None, float]]]:
    """Embeds the titles in one commit; how many, and the three films whose titles are nearest to each of the texts."""
    model = embedding_config("local", WORDLLAMA)
    report = graph.embed("Film", "title_vec", model, no_cache=True)
    rows = []
    for text in TEXTS:
        for place, row in enumerate(graph.query(_QUERY, params={"text": text}, embedder=model).to_arrow().to_pylist()):
            title, year, distance = row.values()
            rows.append(("" if place else text, title, year, round(distance, 3)))
    return sum(report.tables.values()), rows


def why_not() -> str | None:
    """What is missing, or None."""
    return None if is_installed() else f"the model is not installed: {EXTRA}"
