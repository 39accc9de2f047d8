"""What must hold of a graph that is made anew by force again and again while others write to it.

An acknowledged load stands in the graph at the end, or an init removed it that came after it. An init that was refused
removes nothing; one that was killed or failed may have removed everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from spark_omnigraph import Graph
from tests.races.history import WRITES, check_history
from tests.support.cases import Json

REFUSED = ("writer_busy", "conflict")


def check_remade(graph: Graph, answers: Iterable[Json]) -> dict[str, int]:
    """Proves it, and that the history since the last init is a sequence of loads; counts of what was looked at."""
    own = [answer for answer in answers if answer.get("graph") == "side" and answer["outcome"] != "begins"]
    inits = _inits(own)
    standing = {commit.id for commit in graph.commits()}
    tried = {answer["tag"]: answer["at"] for answer in own if answer["outcome"] == "tries"}
    done = [a for a in own if a["verb"] in WRITES and a["outcome"] == "returned" and a.get("commit")]
    replaced = {a["tag"] for a in done if a["commit"] not in standing}
    last_end = max((end for _, end, _ in inits), default=-inf)
    for load in done:
        if load["tag"] in replaced:
            assert tried[load["tag"]] <= last_end, f"{load['tag']} was acknowledged, and no init came after it"
            assert load["base"] not in standing, (
                f"{load['tag']} is gone, and {load['base']} that it was based on is not"
            )
    last_begin = max((begin for begin, _, made in inits if made), default=-inf)
    old = [a["tag"] for a in done if a["tag"] not in replaced and a["at"] < last_begin]
    assert old == [], f"acknowledged before the last init began, and still there: {old}"
    counts = check_history(graph, [a for a in own if a["verb"] in WRITES], replaced)
    made = sum(made for _, _, made in inits)
    return {**counts, "acknowledged": len(done), "replaced": len(replaced), "inits": made}


def _inits(answers: Iterable[Json]) -> list[tuple[float, float, bool]]:
    """When each init that may have removed anything began and ended, and whether it reported a new graph."""
    begun: dict[str, float] = {}
    ended: dict[str, Json] = {}
    for answer in answers:
        if answer["verb"] == "remake" and answer["outcome"] == "tries":
            begun[answer["tag"]] = answer["at"]
        elif answer["verb"] == "remake":
            ended[answer["tag"]] = answer
    found = []
    for tag, begin in begun.items():
        end = ended.get(tag)
        if end is None:
            found.append((begin, inf, False))
        elif end["outcome"] not in REFUSED:
            found.append((begin, end["at"], end["outcome"] == "returned"))
    return found
