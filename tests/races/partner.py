"""The other process of the race tests: opens a graph and loads or reads it on request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import BadRowsError, ConflictError, ConstraintError, OmnigraphError
from spark_omnigraph.graph.handle import Graph
from tests.support.cases import Json
from tests.support.workers import serve

OPENED: list[Graph] = []


def open_graph(root: str, options: dict[str, str] | None = None) -> Json:
    """The graph that all further requests are about."""
    OPENED[:] = [Graph.open(root, storage_options=options)]
    return True


def load(
    mode: str,
    actor: str,
    lines: list[str] | None = None,
    source: str | None = None,
    branch: str | None = None,
    base: str | None = None,
) -> Json:
    """Loads lines or a file once. A lost race is an answer; an error that the contract does not allow is one too, by
    its kind.
    """
    try:
        report = OPENED[0].load(source or lines or [], mode=mode, actor=actor, branch=branch, base=base)
    except ConflictError as error:
        return {"outcome": "conflict", "kind": error.kind, "message": str(error)}
    except BadRowsError as error:
        return {"outcome": "refused", "rules": dict(error.summary.per_rule)}
    except OmnigraphError as error:
        return {"outcome": "error", "kind": error.kind, "message": str(error)}
    return {"outcome": "won", "commit": report.commit, "base": report.base_commit, "created": report.branch_created}


def mutate(text: str) -> Json:
    """Mutates once; what `load` answers, with the rows that were touched."""
    try:
        result = OPENED[0].mutate(text)
    except ConflictError as error:
        return {"outcome": "conflict", "kind": error.kind, "message": str(error)}
    except ConstraintError as error:
        return {"outcome": "refused", "message": str(error)}
    except OmnigraphError as error:
        return {"outcome": "error", "kind": error.kind, "message": str(error)}
    return {"outcome": "won", "commit": result.commit, "affected": [result.affected_nodes, result.affected_edges]}


def merge(source: str) -> Json:
    """Merges a branch into main once."""
    try:
        report = OPENED[0].merge_branch(source)
    except ConflictError as error:
        return {"outcome": "conflict", "kind": error.kind, "message": str(error)}
    return {"outcome": "won", "commit": report.commit}


def embed() -> Json:
    """Vectors for all rows that lack one; how many got one."""
    try:
        report = OPENED[0].embed(embedder=MockEmbedder("m"))
    except ConflictError as error:
        return {"outcome": "conflict", "kind": error.kind, "message": str(error)}
    return {"outcome": "won", "commit": report.commit, "rows": report.tables}


def optimize() -> Json:
    """Files of each table afterwards; None for tables that were left alone."""
    report = OPENED[0].optimize()
    return {key: None if table.left else table.files_after for key, table in report.tables.items()}


def look() -> Json:
    """Rows per tag and table in one snapshot."""
    return _tags(OPENED[0].export())


def look_often(times: int) -> Json:
    """Looks again and again while others write; returns every distinct picture in the order seen."""
    pictures: list[Json] = []
    for _ in range(times):
        picture = look()
        if not pictures or pictures[-1] != picture:
            pictures.append(picture)
    return pictures


def _tags(lines: Iterator[str]) -> Json:
    counts: dict[str, Counter[str]] = {}
    for line in lines:
        record = json.loads(line)
        table = record.get("type") or record["edge"]
        counts.setdefault(record["data"]["tag"], Counter())[table] += 1
    return {tag: dict(sorted(counter.items())) for tag, counter in sorted(counts.items())}


serve(
    {
        "open": open_graph,
        "load": load,
        "mutate": mutate,
        "merge": merge,
        "embed": embed,
        "optimize": optimize,
        "look": look,
        "look_often": look_often,
    }
)
