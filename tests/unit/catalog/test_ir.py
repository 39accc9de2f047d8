"""The schema IR: its text, its hash, and the way back. The vector of the format stands here in full."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from spark_omnigraph.catalog.identity import Kind, prop_id, type_id
from spark_omnigraph.catalog.ir import assemble, catalog_from_ir, ir_hash, ir_text
from spark_omnigraph.catalog.types import (
    Annotation,
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    PropType,
    Range,
    Scalar,
    Unique,
)
from spark_omnigraph.errors import CatalogError, DamagedError

APPENDIX_HASH = "sha256:8e46adc503b0cbcdeb913b1109f08992bf2297ca125992020c20bfe4fe069343"

APPENDIX_TEXT = """\
{
  "ir_version": 1,
  "interfaces": [],
  "nodes": [
    {
      "name": "Person",
      "type_id": 3227219152,
      "annotations": [],
      "implements": [],
      "properties": [
        {
          "name": "age",
          "prop_id": 3446138241,
          "prop_type": {
            "scalar": "I32",
            "nullable": true,
            "list": false,
            "enum_values": null
          },
          "annotations": []
        },
        {
          "name": "name",
          "prop_id": 1466009789,
          "prop_type": {
            "scalar": "String",
            "nullable": false,
            "list": false,
            "enum_values": null
          },
          "annotations": [
            {
              "name": "key",
              "value": null
            }
          ]
        }
      ],
      "constraints": [
        {
          "Key": [
            "name"
          ]
        }
      ]
    }
  ],
  "edges": [
    {
      "name": "Knows",
      "type_id": 2041814322,
      "from_type": "Person",
      "to_type": "Person",
      "cardinality": {
        "min": 0,
        "max": null
      },
      "annotations": [],
      "properties": [
        {
          "name": "since",
          "prop_id": 2596498354,
          "prop_type": {
            "scalar": "Date",
            "nullable": true,
            "list": false,
            "enum_values": null
          },
          "annotations": []
        }
      ],
      "constraints": []
    }
  ]
}"""


def appendix() -> Catalog:
    name = Property("name", prop_id("node", "Person", "name"), PropType(Scalar.STRING), (Annotation("key"),))
    age = Property("age", prop_id("node", "Person", "age"), PropType(Scalar.I32, nullable=True))
    since = Property("since", prop_id("edge", "Knows", "since"), PropType(Scalar.DATE, nullable=True))
    person = NodeType("Person", type_id("node", "Person"), (name, age), (Key(("name",)),))
    knows = EdgeType("Knows", type_id("edge", "Knows"), "Person", "Person", Cardinality(), (since,))
    return assemble([], [person], [knows])


def everything() -> Catalog:
    """One of each thing that the IR can say."""
    types = [
        *(PropType(scalar) for scalar in Scalar if scalar is not Scalar.VECTOR),
        PropType(Scalar.VECTOR, nullable=True, dimension=2147483647),
        PropType(Scalar.DATETIME, is_list=True),
        PropType(Scalar.STRING, enum_values=("a", "b-1")),
    ]
    notes = (Annotation("embed", "a", (("model", "m/1"),)), Annotation("note", 'q"\\\n\t\x01é😀\u2028'))

    def properties(kind: Kind, owner: str) -> tuple[Property, ...]:
        named = {f"p{number:02}": ptype for number, ptype in enumerate(types)}
        return tuple(Property(n, prop_id(kind, owner, n), t, notes) for n, t in named.items())

    rules = (
        Key(("p01", "p00")),
        Unique(("p00",)),
        Index(("p02",)),
        Range("p02", -(2**63), 2**63 - 1),
        Range("p06", 0.5, None),
        Range("p06", 1e-9, 1e300),
        Range("p06", -0.0, 1),
        Check("p00", "^[a-z]+(-[a-z]+)*$"),
    )
    return assemble(
        [InterfaceType("I", type_id("interface", "I"), properties("interface", "I"))],
        [NodeType("N", type_id("node", "N"), properties("node", "N"), rules, notes, ("I",))],
        [
            EdgeType("E", type_id("edge", "E"), "N", "N", Cardinality(1, 2**32 - 1), (), (Unique(("dst", "src")),)),
            EdgeType("F", type_id("edge", "F"), "N", "N", Cardinality(2), properties("edge", "F"), (), notes),
        ],
    )


def test_text_of_the_published_vector() -> None:
    assert ir_text(appendix()) == APPENDIX_TEXT


def test_hash_of_the_published_vector() -> None:
    assert appendix().ir_hash == APPENDIX_HASH
    assert ir_hash(appendix()) == APPENDIX_HASH


def test_empty_catalog() -> None:
    assert ir_text(assemble([], [], [])) == (
        '{\n  "ir_version": 1,\n  "interfaces": [],\n  "nodes": [],\n  "edges": []\n}'
    )


def test_strings_are_escaped_no_more_than_json_demands() -> None:
    assert '"value": "q\\"\\\\\\n\\t\\u0001é😀\u2028"' in ir_text(everything())


def test_keyword_arguments_are_left_out_when_there_are_none() -> None:
    text = ir_text(everything())
    assert '"value": "a",\n' in text
    assert text.count('"kwargs"') == text.count('"name": "embed"')


def test_bounds_say_their_kind() -> None:
    ranges = [c["Range"] for c in json.loads(ir_text(everything()))["nodes"][0]["constraints"] if "Range" in c]
    assert {"property": "p06", "min": {"Float": 0.5}, "max": None} in ranges
    assert {"property": "p06", "min": {"Float": -0.0}, "max": {"Integer": 1}} in ranges
    assert '"Float": 1e+300' in ir_text(everything())


def test_vectors_are_objects() -> None:
    scalars = [p["prop_type"]["scalar"] for p in json.loads(ir_text(everything()))["nodes"][0]["properties"]]
    assert scalars[-3:] == [{"Vector": 2147483647}, "DateTime", "String"]


@pytest.mark.parametrize("make", [appendix, everything, lambda: assemble([], [], [])])
def test_read_back(make: Callable[[], Catalog]) -> None:
    catalog = make()
    again = catalog_from_ir(ir_text(catalog))
    assert again == catalog
    assert ir_text(again) == ir_text(catalog)


def test_white_space_means_nothing() -> None:
    assert catalog_from_ir(json.dumps(json.loads(APPENDIX_TEXT))) == appendix()


def test_catalogs_travel() -> None:
    assert pickle.loads(pickle.dumps(everything())) == everything()


def test_a_lone_maximum_is_recorded_as_a_minimum() -> None:
    ptype = PropType(Scalar.I32)
    load = Property("load", prop_id("node", "Ox", "load"), ptype)
    written = assemble([], [NodeType("Ox", type_id("node", "Ox"), (load,), (Range("load", None, 5),))], [])
    (stored,) = catalog_from_ir(ir_text(written)).nodes["Ox"].constraints
    assert stored == Range("load", 5, None)
    assert catalog_from_ir(ir_text(written)).ir_hash == written.ir_hash


@pytest.mark.parametrize("version", [0, 2, 6])
def test_other_versions_are_refused(version: int) -> None:
    with pytest.raises(CatalogError, match=rf"^catalog error: unsupported schema ir_version {version} \(expected 1\)$"):
        catalog_from_ir(f'{{"ir_version": {version}, "shape": "unknown"}}')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"ir_version": "1"}',
        '{"ir_version": 1}',
        "[" * 100_000,
        "\ud83d",
        '{"ir_version": 1, "interfaces": [{"name": "\\ud83d"}], "nodes": [], "edges": []}',
        '{"ir_version": 1, "interfaces": [], "nodes": [], "edges": [], "views": []}',
    ],
)
def test_text_that_is_no_ir(text: str) -> None:
    with pytest.raises(DamagedError, match=r"^_schema\.ir\.json is damaged"):
        catalog_from_ir(text)


def _broken(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(ir_text(everything()))
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["nodes"][0].pop("implements"),
        lambda d: d["nodes"][0].update(type_id=1),
        lambda d: d["nodes"][0]["properties"][0].update(prop_id=1),
        lambda d: d["nodes"][0]["properties"].reverse(),
        lambda d: d["nodes"][0]["constraints"].reverse(),
        lambda d: d["nodes"][0]["annotations"].reverse(),
        lambda d: d["edges"].reverse(),
        lambda d: d["nodes"][0]["annotations"][1].update(kwargs={}),
        lambda d: d["nodes"][0]["implements"].append("I"),
        lambda d: d["nodes"][0]["properties"][0]["prop_type"].update(scalar="Text"),
        lambda d: d["nodes"][0]["properties"][0]["prop_type"].update(scalar="Vector"),
        lambda d: d["nodes"][0]["properties"][0]["prop_type"].update(scalar={"Vector": 0}),
        lambda d: d["nodes"][0]["properties"][0]["prop_type"].update(nullable=None),
        lambda d: d["nodes"][0]["constraints"].append({}),
        lambda d: d["nodes"][0]["constraints"].append({"Key": ["p00"], "Unique": ["p00"]}),
        lambda d: d["nodes"][0]["constraints"].append({"Range": {"property": "p02", "min": {}, "max": None}}),
        lambda d: d["nodes"][0]["constraints"].append(
            {"Range": {"property": "p", "min": {"Integer": 2**63}, "max": None}}
        ),
        lambda d: d["nodes"][0]["constraints"].append(
            {"Range": {"property": "p", "min": {"Integer": 1, "Float": 1.0}, "max": None}}
        ),
        lambda d: d["edges"][0]["cardinality"].update(min=-1),
    ],
)
def test_documents_that_no_writer_produces(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(DamagedError, match=r"^_schema\.ir\.json is damaged"):
        catalog_from_ir(_broken(change))


def test_contradictions_are_found_here_too() -> None:
    with pytest.raises(CatalogError, match=r"^catalog error: edge E references unknown target type: M$"):
        catalog_from_ir(_broken(lambda d: d["edges"][0].update(to_type="M")))
    with pytest.raises(CatalogError, match=r"^catalog error: duplicate node type: N$"):
        catalog_from_ir(_broken(lambda d: d["nodes"].append(d["nodes"][0])))


def test_types_are_in_name_order() -> None:
    catalog = assemble([], [NodeType(n, type_id("node", n), ()) for n in ("b", "a", "B")], [])
    assert list(catalog.nodes) == ["B", "a", "b"]
