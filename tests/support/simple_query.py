"""Answers the simplest read queries over `Graph.export()`, so that loaded values are compared without a query engine.

One binding with literal equalities, plain projections, nothing else:

    query q() { match { $r: Reed { tag: "x" } } return { $r.tag, $r } }
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

import numpy as np

from spark_omnigraph.catalog.types import Catalog, NodeType, PropType, Scalar
from spark_omnigraph.graph.handle import Graph
from tests.support.cases import Json

_QUERY = re.compile(
    r"""\s*query\s+(?P<name>\w+)\s*\(\s*\)\s*\{
        \s*match\s*\{\s*\$(?P<var>\w+)\s*:\s*(?P<type>\w+)\s*(?:\{(?P<where>[^{}$]*)\}\s*)?\}
        \s*return\s*\{(?P<items>[^{}()]*)\}
        \s*\}\s*""",
    re.VERBOSE,
)
_EQUALITY = re.compile(r'\s*(\w+)\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false)\s*')
_COMPARED = (Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class SimpleQuery:
    type_name: str
    equalities: tuple[tuple[str, Json], ...]
    columns: tuple[str, ...]
    """Output names in order: `v.p`, or `v` for the id."""


def parse_simple(source: str, name: str) -> SimpleQuery | None:
    """The query when it is of the simple form and is the only one of its text, else None."""
    match = _QUERY.fullmatch(source)
    if match is None or match["name"] != name:
        return None
    columns = []
    for item in match["items"].split(","):
        reference = re.fullmatch(rf"\$({match['var']}(?:\.\w+)?)", item.strip())
        if reference is None:
            return None
        columns.append(reference[1])
    equalities = _equalities(match["where"] or "")
    return None if equalities is None else SimpleQuery(match["type"], equalities, tuple(columns))


def _equalities(text: str) -> tuple[tuple[str, Json], ...] | None:
    found: list[tuple[str, Json]] = []
    for part in text.split(",") if text.strip() else ():
        match = _EQUALITY.fullmatch(part)
        if match is None:
            return None
        found.append((match[1], json.loads(match[2])))
    return tuple(found)


def is_answerable(query: SimpleQuery, catalog: Catalog) -> bool:
    """Whether equality and printing need no more than JSON does: no lists, vectors, floats or dates to compare with,
    no blobs to print.
    """
    node = catalog.nodes.get(query.type_name)
    if node is None:
        return False
    compared = [node.property(name) for name, _ in query.equalities]
    printed_too = [node.property(column.partition(".")[2]) for column in query.columns if "." in column]
    return all(p is not None and not p.type.is_list and p.type.scalar in _COMPARED for p in compared) and all(
        p is not None and p.type.scalar is not Scalar.BLOB for p in printed_too
    )


def answer(query: SimpleQuery, graph: Graph, catalog: Catalog) -> list[dict[str, Json]]:
    """Rows of a simple query, values as a query would print them."""
    node = catalog.nodes[query.type_name]
    rows = []
    for line in graph.export(tables=[node.table_key]):
        data = json.loads(line)["data"]
        if all(data.get(name) == value for name, value in query.equalities):
            rows.append({column: _cell(node, data, column) for column in query.columns})
    return rows


def _cell(node: NodeType, data: dict[str, Json], column: str) -> Json:
    _, dot, name = column.partition(".")
    if not dot:
        return data["id"]
    declared = node.property(name)
    return data[name] if declared is None else printed(data[name], declared.type)


def printed(value: Json, kind: PropType) -> Json:
    """An exported value as query results print it: dates as text, datetimes with three digits and a zone."""
    if value is None:
        return None
    if kind.is_list:
        return [printed(item, PropType(kind.scalar)) for item in value]
    if kind.scalar is Scalar.DATE:
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    if kind.scalar is Scalar.DATETIME:
        instant = datetime.fromisoformat(value).replace(tzinfo=timezone.utc)
        millis = (instant - _EPOCH) // timedelta(milliseconds=1)
        return f"{instant:%Y-%m-%dT%H:%M:%S}.{millis % 1000:03d}Z"
    if kind.scalar is Scalar.F32:
        return float(np.float32(value))
    return value
