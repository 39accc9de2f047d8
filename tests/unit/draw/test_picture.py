"""Schemas as SVG and as Mermaid: everything is there once, in its place, and hostile names are text."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest

from spark_omnigraph.draw.layout import Placed, lay_out
from spark_omnigraph.draw.picture import DrawnEdge, DrawnNode, DrawnProperty, SchemaPicture, mermaid
from spark_omnigraph.draw.svg import svg

NAME = DrawnProperty("name", "String", "key")
FILMS = SchemaPicture(
    (
        DrawnNode("Film", (DrawnProperty("rating", "enum(G, R)?"), NAME, DrawnProperty("tags", "[String]?")), 17_472),
        DrawnNode("Person", (NAME, DrawnProperty("mail", "String?", "unique")), 63_802),
    ),
    (
        DrawnEdge("ActedIn", "Person", "Film", "0..*", (DrawnProperty("role", "String?"),), 194_197),
        DrawnEdge("Wrote", "Person", "Film", "1..1"),
    ),
)
HOSTILE = "<script>alert('1')</script>\"&\u202e\x1b"
SVG = "{http://www.w3.org/2000/svg}"


def texts(drawn: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def test_a_picture_has_types_keys_properties_cardinalities_and_counts() -> None:
    assert texts(svg(FILMS)) == [
        *("Film", "17,472", "name", "String key", "rating", "enum(G, R)?", "tags", "[String]?"),
        *("Person", "63,802", "name", "String key", "mail", "String? unique"),
        *("ActedIn", "0..* · 194,197", "role", "String?"),
        *("Wrote", "1..1"),
    ]


def test_each_edge_has_two_lines_and_one_head() -> None:
    drawn = ElementTree.fromstring(svg(FILMS))
    kinds = [element.get("class") for element in drawn.iter(f"{SVG}path")]
    assert (kinds.count("l"), kinds.count("a")) == (4, 2)


def test_hostile_names_are_text_in_a_picture() -> None:
    picture = SchemaPicture(
        (DrawnNode(HOSTILE, (DrawnProperty(HOSTILE, HOSTILE),)),), (DrawnEdge(HOSTILE, HOSTILE, HOSTILE, HOSTILE),)
    )
    drawn = svg(picture)
    names = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(drawn).iter()}
    assert names == {"svg", "style", "rect", "g", "text", "path"}
    assert texts(drawn)[0] == "<script>alert('1')</script>\"&\\u202e\\u001b"


def test_a_picture_is_bounded() -> None:
    many = tuple(DrawnProperty(f"p{number}", "I32") for number in range(500))
    nodes = tuple(DrawnNode(f"N{number}", many) for number in range(300))
    edges = tuple(DrawnEdge(f"E{number}", "N7", f"N{number}", "0..*", many) for number in range(300))
    drawn = svg(SchemaPicture(nodes, edges))
    assert len(drawn) < 300_000
    assert texts(drawn)[-1] == "260 node types and 260 edge types are not drawn"
    assert texts(drawn).count("and 489 more") == 40 + 40
    assert {"N7", "N0"} <= set(texts(drawn))


def test_no_types_are_said() -> None:
    assert texts(svg(SchemaPicture())) == ["The schema has no types."]


CHAIN = tuple(DrawnEdge(f"{a}{b}", a, b, "0..*") for a, b in ("AB", "BC", "CD", "DE", "EA", "AA", "AD", "CC", "EB"))
STAR = tuple(DrawnEdge(f"A{b}", "A", b, "0..*") for b in "BCDE")


@pytest.mark.parametrize("edges", [CHAIN, STAR, ()], ids=["circles", "star", "alone"])
def test_no_box_lies_on_another_and_lines_run_from_left_to_right(edges: tuple[DrawnEdge, ...]) -> None:
    picture = SchemaPicture(tuple(DrawnNode(name) for name in "ABCDE"), edges)
    sizes = {f"node:{name}": (110.0, 40.0) for name in "ABCDE"} | {f"edge:{edge.name}": (90.0, 25.0) for edge in edges}
    layout = lay_out(picture, sizes)
    boxes = [*layout.nodes.values(), *layout.edges.values()]

    def apart(one: Placed, other: Placed) -> bool:
        return (
            one.x + one.width <= other.x
            or other.x + other.width <= one.x
            or one.y + one.height <= other.y
            or other.y + other.height <= one.y
        )

    assert all(apart(one, other) for one, other in combinations(boxes, 2))
    assert len(layout.lines) == 2 * len(edges)
    for line in layout.lines:
        for before, behind in zip(line.places, line.places[1:]):
            assert before.x + before.width < behind.x
    inside = [
        b.x >= 0 and b.y >= 0 and b.x + b.width <= layout.width and b.y + b.height <= layout.height for b in boxes
    ]
    assert all(inside)


def test_mermaid_has_all_types_and_ends() -> None:
    assert mermaid(FILMS).splitlines() == [
        "erDiagram",
        '    Film["Film (17,472)"] {',
        '        enum rating "enum(G, R)?"',
        "        String name PK",
        '        String[] tags "list of String?"',
        "    }",
        '    Person["Person (63,802)"] {',
        "        String name PK",
        '        String mail UK "String?"',
        "    }",
        '    Person }o--o{ Film : "ActedIn 0..*; 194,197 edges; role String?"',
        '    Person }o--|| Film : "Wrote 1..1"',
    ]


@pytest.mark.parametrize(
    ("cardinality", "head"),
    [("0..*", "o{"), ("1..*", "|{"), ("2..5", "|{"), ("0..1", "o|"), ("1..1", "||"), ("0..12", "o{")],
)
def test_mermaid_says_how_many(cardinality: str, head: str) -> None:
    drawn = mermaid(SchemaPicture((DrawnNode("A"),), (DrawnEdge("E", "A", "A", cardinality),)))
    assert f'    A }}o--{head} A : "E {cardinality}"' in drawn.splitlines()


def test_mermaid_quotes_hostile_values() -> None:
    values = DrawnProperty("kind", 'enum(a"}\n    click A call x(), %%, <b>)')
    drawn = mermaid(SchemaPicture((DrawnNode("A", (values,)),)))
    assert drawn.splitlines()[2] == '        enum kind "enum(a_    click A call x(), _, _b_)"'
    assert len(drawn.splitlines()) == 4
