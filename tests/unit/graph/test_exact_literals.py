"""Literals and parameters of queries and mutations mean what their digits say; text is text that can be stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph import BadRequestError, Graph, LoadOptions
from spark_omnigraph.errors import ConstraintError, InputError, ParameterError, QueryTypeError

SCHEMA = """
node T { k: String @key  v: I64?  u: U64?  f: F64?  vs: [I64]?  e: Vector(2)?  l: [String]? }
edge E: T -> T
"""
AT = 4503599627370498


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    g = Graph.init(tmp_path / "g", SCHEMA)
    rows = [{"k": f"k{i}", "v": AT + i, "u": 2**63 + i} for i in range(-2, 3)]
    g.load([json.dumps({"type": "T", "data": row}) for row in rows], options=LoadOptions(build_indexes=False))
    return g


def keys(graph: Graph, test: str) -> list[object]:
    text = f"query q() {{ match {{ $t: T\n {test} }} return {{ $t.k as k }} order {{ $t.v asc }} }}"
    return [row["k"] for row in graph.query(text).to_pylist()]


@pytest.mark.parametrize(
    ("operator", "found"),
    [
        ("=", []),
        ("!=", ["k-2", "k-1", "k0", "k1", "k2"]),
        ("<", ["k-2", "k-1"]),
        ("<=", ["k-2", "k-1"]),
        (">", ["k0", "k1", "k2"]),
        (">=", ["k0", "k1", "k2"]),
    ],
)
def test_a_fraction_that_no_float_has_is_compared_by_its_digits(graph: Graph, operator: str, found: list[str]) -> None:
    """4503599627370497.5 is the float 4503599627370498."""
    assert keys(graph, f"$t.v {operator} 4503599627370497.5") == found
    changed = graph.mutate(f"query m() {{ update T set {{ f: 1.0 }} where v {operator} 4503599627370497.5 }}")
    assert changed.affected_nodes == len(found)


def test_a_large_whole_literal_is_the_number_it_shows(graph: Graph) -> None:
    assert keys(graph, "$t.u = 9223372036854775809.0") == ["k1"]
    assert keys(graph, "$t.v = 4503599627370498.00") == ["k0"]
    graph.mutate('query m() { insert T { k: "m", v: 9007199254740993.0, vs: [9007199254740993.0, 2] } }')
    row = graph.entity("node:T", "m") or {}
    assert (row["v"], row["vs"]) == (9007199254740993, [9007199254740993, 2])


@pytest.mark.parametrize(
    ("assigned", "params", "error"),
    [
        ("v: 4503599627370497.5", {}, BadRequestError),
        ("vs: [1.0, 4503599627370497.5]", {}, BadRequestError),
        ("vs: [1.0, 9007199254740993]", {}, QueryTypeError),
        ("f: 9007199254740993", {}, BadRequestError),
        ("e: [16777217, 1]", {}, BadRequestError),
        ("f: $f", {"f": 9007199254740993}, ParameterError),
        ("e: $e", {"e": [1, 16777217]}, ParameterError),
        ("l: $l", {"l": ["ok", "\ud800"]}, ParameterError),
    ],
)
def test_what_cannot_be_stored_exactly_is_refused(
    graph: Graph, assigned: str, params: Mapping[str, object], error: type[InputError]
) -> None:
    declared = {"f": "$f: F64", "e": "$e: Vector(2)", "l": "$l: [String]"}
    text = f'query m({", ".join(declared[name] for name in params)}) {{ insert T {{ k: "m", {assigned} }} }}'
    with pytest.raises(error):
        graph.mutate(text, params=params)
    assert graph.entity("node:T", "m") is None


def test_half_a_surrogate_pair_names_the_parameter_and_the_place(graph: Graph) -> None:
    text = "query q($s: String) { match { $t: T { k: $s } } return { $t.k } }"
    with pytest.raises(ParameterError, match=r"param 's': half of a surrogate pair \(\\udc00\) at character 3"):
        graph.query(text, params={"s": "ab\udc00"})
    assert graph.entity("node:T", "\ud800") is None


def test_ids_have_a_bound_in_every_way_in(graph: Graph) -> None:
    longer = "x" * 8193
    with pytest.raises(ConstraintError, match=r"the key of T has 8193 bytes; ids and keys may have 8192 \(line 1"):
        graph.mutate("query m($k: String) { insert T { k: $k } }", params={"k": longer})
    lines = [
        {"type": "T", "data": {"k": longer}},
        {"edge": "E", "from": longer, "to": "k1"},
        {"edge": "E", "from": "k1", "to": "k1", "data": {"id": longer}},
        {"type": "T", "data": {"k": longer[1:]}},
    ]
    report = graph.load([json.dumps(line) for line in lines], options=LoadOptions(max_bad_rows=3))
    assert report.bad_rows.per_rule == {"key_too_long": 3}
    assert graph.count("node:T") == 6
    # A graph of other software may hold longer ones, so they can be asked for.
    assert graph.delete("node:T", [longer, longer[1:]]).deleted == {"node:T": 1}


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(["k1", "k1", "no"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array(["k1", "no"], pa.string_view())),
        pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array(["k1", "no"], pa.large_string())),
        pa.chunked_array([pa.array(["k1"]).dictionary_encode(), pa.array(["no", "k1"]).dictionary_encode()]),
        pa.chunked_array([pa.array(["no"], pa.large_string()), pa.array(["k1"], pa.large_string())]),
        pa.array(["k1", "no"], pa.string_view()),
    ],
    ids=str,
)
def test_ids_to_delete_come_in_any_layout_of_text(graph: Graph, ids: pa.Array) -> None:
    report = graph.delete("node:T", ids)
    assert (report.deleted, report.missing) == ({"node:T": 1}, {"node:T": 1})


def test_ids_to_delete_that_are_no_text_name_their_row(graph: Graph) -> None:
    bad = pa.array([b"k2", b"k\xff"]).view(pa.string())
    for ids in (
        pa.chunked_array([pa.array(["k1"]), bad]),
        pa.chunked_array([pa.array(["k1"]), bad]).dictionary_encode(),
    ):
        with pytest.raises(BadRequestError, match=r"an id of 'node:T' to delete, row 3, is no UTF-8 text: 'k\\xff'"):
            graph.delete("node:T", ids)
    assert graph.count("node:T") == 5
