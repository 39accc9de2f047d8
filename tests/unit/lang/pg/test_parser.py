"""The grammar: what parses, what it means, and what is said about the rest."""

from __future__ import annotations

import pytest

from spark_omnigraph.catalog.ir import ir_text
from spark_omnigraph.catalog.types import (
    Annotation,
    Cardinality,
    Check,
    Constraint,
    Index,
    Key,
    PropType,
    Range,
    Scalar,
    Unique,
)
from spark_omnigraph.errors import CatalogError, SchemaParseError
from spark_omnigraph.lang.pg import compile_schema, compile_stored_schema
from spark_omnigraph.lang.pg.parser import TEXT_LIMIT
from tests.unit.lang.pg.refusals import refusal


def types(source: str) -> dict[str, PropType]:
    (node,) = compile_schema(source).nodes.values()
    return {prop.name: prop.type for prop in node.properties}


def notes(source: str) -> tuple[Annotation, ...]:
    """Annotations of the one property of the one node."""
    (node,) = compile_schema(source).nodes.values()
    return node.properties[0].annotations


def rules(source: str) -> tuple[Constraint, ...]:
    return compile_schema(source).nodes["Ox"].constraints


@pytest.mark.parametrize("source", ["", " \n\t\r", "// nothing", "/* nothing */", "// a\n/* b */ // c"])
def test_an_empty_schema(source: str) -> None:
    assert list(compile_schema(source).tables()) == []


def test_every_scalar() -> None:
    source = "\n".join(f"p{n}: {scalar}" for n, scalar in enumerate(Scalar) if scalar is not Scalar.VECTOR)
    assert list(types(f"node Ox {{ {source} }}").values()) == [
        PropType(scalar) for scalar in sorted(Scalar, key=lambda s: f"p{list(Scalar).index(s)}") if scalar != "Vector"
    ]


def test_lists_enums_and_vectors() -> None:
    source = "node Ox { a: [String]?  b: [ DateTime ]  c: enum(b-2, _x, 9z, A)?  d: Vector ( 003 ) ? }"
    assert types(source) == {
        "a": PropType(Scalar.STRING, nullable=True, is_list=True),
        "b": PropType(Scalar.DATETIME, is_list=True),
        "c": PropType(Scalar.STRING, nullable=True, enum_values=("9z", "A", "_x", "b-2")),
        "d": PropType(Scalar.VECTOR, nullable=True, dimension=3),
    }


def test_the_largest_vector() -> None:
    assert types("node Ox { v: Vector(65536) }")["v"].dimension == 65536
    stored = compile_stored_schema("node Ox { v: Vector(2147483647) }")
    assert stored.nodes["Ox"].properties[0].type.dimension == 2147483647


def test_keywords_have_no_word_boundary() -> None:
    catalog = compile_schema("nodePier{a:Stringb:Boolc:Date?d:DateTimee:I32}interfaceNamed{n:String}edgeOn:Pier->Pier")
    assert list(catalog.nodes) == ["Pier"]
    assert [p.type.display() for p in catalog.nodes["Pier"].properties] == [
        "String",
        "Bool",
        "Date?",
        "DateTime",
        "I32",
    ]
    assert list(catalog.interfaces) == ["Named"]
    assert list(catalog.edges) == ["On"]


def test_implements_needs_no_boundary_either() -> None:
    node = compile_schema("interface I { a: String } node Ox implementsI, I{}").nodes["Ox"]
    assert node.implements == ("I",)
    assert [p.name for p in node.properties] == ["a"]


def test_no_identifier_is_reserved() -> None:
    words = ["node", "edge", "interface", "implements", "enum", "key", "limit", "match", "src", "dst", "true", "_"]
    assert sorted(types("node Ox { " + " ".join(f"{w}: String" for w in words) + " }")) == sorted(words)


def test_comments_and_white_space_stand_anywhere_between_tokens() -> None:
    tight = 'node Ox@team(a){t:String?@description("x")@unique(t)@range(n,0..5)n:I32}edge On:Ox->Ox@card(0..1){}'
    tokens = [
        *("node", "Ox", "@", "team", "(", "a", ")", "{", "t", ":", "String", "?", "@", "description", "(", '"x"', ")"),
        *("@", "unique", "(", "t", ")", "@", "range", "(", "n", ",", "0", "..", "5", ")", "n", ":", "I32", "}"),
        *("edge", "On", ":", "Ox", "->", "Ox", "@card", "(", "0", "..", "1", ")", "{", "}"),
    ]
    assert "".join(tokens) == tight.replace("node ", "node").replace("edge ", "edge")
    for gap in (" ", "\n", "\t\r\n", "/**/", "/* a\n * b **/", '// x "\n', " /* a */ // b\n "):
        assert ir_text(compile_schema(gap.join(tokens))) == ir_text(compile_schema(tight))


def test_block_comments_do_not_nest() -> None:
    assert refusal("/* /* */ «*»/ node Ox { }") == "expected 'interface', 'node' or 'edge', found '*'"


def test_comment_marks_inside_a_string_are_text() -> None:
    assert notes('node Ox { t: String @note("a // b /* c") }') == (Annotation("note", "a // b /* c"),)


def test_strings() -> None:
    assert notes(r'node Ox { t: String @note("q\" b\\ n\n r\r t\t é") }') == (
        Annotation("note", 'q" b\\ n\n r\r t\t é'),
    )
    assert notes('node Ox { t: String @note("two\nlines") }') == (Annotation("note", "two\nlines"),)


def test_values_of_annotations_are_their_text() -> None:
    source = 'node Ox { t: String @a @b("x") @c(07) @d(1.50) @e(true) @f(word) @g("") @a }'
    assert notes(source) == (
        *(Annotation("a"), Annotation("a"), Annotation("b", "x"), Annotation("c", "07"), Annotation("d", "1.50")),
        *(Annotation("e", "true"), Annotation("f", "word"), Annotation("g", "")),
    )


def test_keyword_arguments() -> None:
    source = 'node Ox { t: String @a("x", model = "m/1", b=2, c=1.5, d=false) }'
    assert notes(source) == (Annotation("a", "x", (("b", "2"), ("c", "1.5"), ("d", "false"), ("model", "m/1"))),)


def test_space_may_follow_the_at_sign() -> None:
    assert notes("node Ox { t: String @ key }") == (Annotation("key"),)


def test_a_constraint_after_a_property_belongs_to_the_body() -> None:
    catalog = compile_schema("node Ox { t: String @unique(u) u: String }")
    assert catalog.nodes["Ox"].properties[0].annotations == ()
    assert catalog.nodes["Ox"].constraints == (Unique(("u",)),)


def test_body_constraints() -> None:
    source = """node Ox {
        @key(herd, num) herd: String num: I32 load: F64 slug: String
        @unique(slug) @unique(num, herd) @index(slug) @range(load, -1.5..) @check(slug, "^[a-z]+(-[a-z]+)*$")
    }"""
    assert rules(source) == (
        Check("slug", "^[a-z]+(-[a-z]+)*$"),
        Index(("slug",)),
        Key(("herd", "num")),
        Range("load", -1.5, None),
        Unique(("herd", "num")),
        Unique(("slug",)),
    )


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0..120", 0, 120),
        ("0 .. 120", 0, 120),
        ("1..", 1, None),
        ("-5..-1", -5, -1),
        ("007..", 7, None),
        ("-0..", 0, None),
        ("0.5..1.0", 0.5, 1.0),
        ("1.5..2", 1.5, 2),
        ("9223372036854775807..", 2**63 - 1, None),
        ("9223372036854775808..", 9.223372036854775808e18, None),
        ("-9223372036854775808..", -(2**63), None),
        (f"{'9' * 300}..", 1e300, None),
    ],
)
def test_bounds(text: str, low: float, high: float | None) -> None:
    (found,) = rules(f"node Ox {{ x: F64 @range(x, {text}) }}")
    assert found == Range("x", low, high)
    assert isinstance(found, Range)
    assert (type(found.min), type(found.max)) == (type(low), type(high))


def test_edges() -> None:
    source = """
        edge Aa: Ox -> Ox @card(0..1)
        edge Bb: Ox -> Yak @card ( 1 .. ) @note { w: F64? @unique(src, dst) @index(w) }
        edge Cc: Yak->Ox @card(2..4294967295) {}
        edge Dd: Ox -> Ox @note
        node Ox {} node Yak {}"""
    edges = compile_schema(source).edges
    assert [e.cardinality for e in edges.values()] == [
        Cardinality(0, 1),
        Cardinality(1, None),
        Cardinality(2, 4294967295),
        Cardinality(0, None),
    ]
    assert (edges["Bb"].from_type, edges["Bb"].to_type) == ("Ox", "Yak")
    assert edges["Bb"].annotations == edges["Dd"].annotations == (Annotation("note"),)
    assert edges["Bb"].constraints == (Index(("w",)), Unique(("dst", "src")))


def test_a_node_and_an_edge_may_share_a_name() -> None:
    catalog = compile_schema("node Bond {} edge Bond: Bond -> Bond")
    assert [t.table_key for t in catalog.tables()] == ["node:Bond", "edge:Bond"]


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("«table» Ox { }", "expected 'interface', 'node' or 'edge', found 'table'"),
        ("«nodes» Ox { }", "expected 'interface', 'node' or 'edge', found 'nodes'"),
        ("node Ox { } «}»", "expected 'interface', 'node' or 'edge', found '}'"),
        ("«\ufeff»node Ox { }", "expected 'interface', 'node' or 'edge', found U+FEFF"),
        ("node «ox» { }", "expected the name of the node, which begins with an upper-case letter, found 'ox'"),
        ("interface «_I» { }", None),
        ("edge Pull«->» Ox", "expected ':' after the name of an edge, found '->'"),
        ("edge Pull: «ox» -> Ox", None),
        ("edge Pull: Ox «-»- Ox", "expected '->' between the node types of an edge, found '-'"),
        ("edge Pull: Ox -> «[»Ox]", None),
        ("node Ox«»", "expected '{' before the properties, found the end of the schema"),
        ("node Ox {«»  \n ", "expected a property, a constraint or '}', found the end of the schema"),
        ("interface I { t: String«»", "expected a property or '}', found the end of the schema"),
        (
            "node Ox implements «{» }",
            "expected the name of an interface, which begins with an upper-case letter, found '{'",
        ),
        ("interface I {} node Ox implements I, «{» }", None),
        (
            'interface Z { t: String }\nnode Ox implements Z «@»description("x") { }',
            "expected '{': annotations come before 'implements', found '@'",
        ),
        (
            "node Ox { t: String«,» u: I32 }",
            "expected a property or '}': properties are not separated by commas, found ','",
        ),
        ("node Ox { t «String» }", "expected ':' after the property name 't', found 'String'"),
        ("node Ox { t: «Int» }", None),
        ("node Ox { t: «string» }", None),
        ("node Ox { t: «Stringy» }", "unknown type 'Stringy'"),
        ("node Ox { t: «DateTimeOfDay»: String }", "unknown type 'DateTimeOfDay'"),
        ("node Ox { t: «Bool8» }", "unknown type 'Bool8'"),
        ("node Ox { t: «StringList» }", "unknown type 'StringList'"),
        ("node Ox { t: [«Strings»] }", "unknown type 'Strings'"),
        ("node Ox { t: [«enum»(x, y)] }", None),
        ("node Ox { t: [«Vector»(3)] }", None),
        ("node Ox { t: [String«}»", "expected ']' after the type of the list's items, found '}'"),
        ("node Ox { t: enum «{»a} }", "expected '(' after enum, found '{'"),
        ("node Ox { t: enum(«)» }", None),
        ('node Ox { t: enum(«"»a") }', None),
        ("node Ox { t: enum(a «b») }", "expected ')' or ',' after an enum value, found 'b'"),
        ("node Ox { v: Vector«}»", None),
        ("node Ox { v: Vector(«n») }", "expected the dimension of the vector, found 'n'"),
        ("node Ox { v: Vector(3«,»4) }", None),
        ("node Ox { t: String? «?» }", None),
        ("node Ox { t: String «é»: String }", None),
        (
            "node Ox { t: String «\x0b» }",
            "expected a property, a constraint or '}', found U+000B",
        ),
        ("«/*» node Ox { }", "this comment is never closed"),
        ('node Ox { t: String @note(«"»x) }', "this string is never closed"),
        ('node Ox { t: String @note("a«\\q»") }', "unsupported escape sequence: \\q"),
        ('node Ox { t: String @check(t, "a«\\d»") }', "unsupported escape sequence: \\d"),
        ("node Ox { t: String @note(«)» }", None),
        ("node Ox { t: String @note(«-»1) }", None),
        ("node Ox { t: String @note(k«=»1) }", "expected ')' after the value of @note, found '='"),
        ("node Ox { t: String @note(k, «1») }", None),
        ("node Ox { t: String @note(k, v«)» }", None),
        ("node Ox { t: String @note(k, v=«w») }", "expected a string, a number, true or false for 'v', found 'w'"),
        ("node Ox { t: String @note(«trueish») }", None),
        ("node Ox { t: String @«9» }", None),
        ("node Ox { t: String @«Team» }", None),
        ("node Ox { «@»team(x) }", None),
        ("interface I { t: String «@»unique(t) }", None),
        ("node Ox { t: String @key(«)» }", None),
        ("node Ox { t: String @key(t «t»: String }", "expected ')' or ',' after an argument of @key, found 't'"),
        ("node Ox { t: I32 @range(t, «-»..5) }", None),
        ("node Ox { t: I32 @range(t, ..«)» }", "expected a number after '..', found ')'"),
        ("node Ox { t: I32 @range(t, 0..«.»5) }", None),
        ("node Ox { t: F64 @range(t, 0..1«e5») }", None),
        ("node Ox { true_id: String @key(«true_id») }", None),
    ],
)
def test_syntax_errors(marked: str, message: str | None) -> None:
    said = refusal(marked)
    if message is not None:
        assert said == message


def test_unknown_types_are_answered_with_the_known_ones() -> None:
    said = refusal("node Ox { t: «Int» }")
    assert all(scalar in said for scalar in Scalar)
    assert said.endswith("found 'Int'")


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("edge Pull: Ox -> Ox «@card(3..2)» node Ox {}", "cardinality min (3) exceeds max (2)"),
        (
            "edge Pull: Ox -> Ox @card(«4294967296»..) node Ox {}",
            "invalid cardinality min: 4294967296 is more than 4294967295",
        ),
        (f"edge Pull: Ox -> Ox @card(0..«{'9' * 5000}») node Ox {{}}", None),
        ("node Ox { v: Vector(«0») }", "Vector dimension must be greater than zero"),
        ("node Ox { v: Vector(«000») }", "Vector dimension must be greater than zero"),
        ("node Ox { v: Vector(«2147483648») }", "Vector dimension 2147483648 exceeds maximum supported 2147483647"),
        (
            f"node Ox {{ v: Vector(«{'7' * 9999}») }}",
            f"Vector dimension {'7' * 40}… exceeds maximum supported 2147483647",
        ),
        ("node Ox { b: [«Blob»] }", "list of Blob is not supported"),
        ("node Ox { b: enum(x, y, «x») }", "enum type cannot include duplicate values: 'x'"),
        (f"node Ox {{ x: F64 @range(x, «{'1' * 400}»..) }}", "this bound is too large for a 64-bit float"),
        (
            "node Ox { x: I32 «@range(x)» }",
            "@range requires property name and bounds: @range(prop, min..max)",
        ),
        ("node Ox { x: I32 @range(x, «5») }", "expected range bounds (min..max) in @range constraint"),
        ("node Ox { x: I32 @range(«0..5», x) }", "expected property name in constraint"),
        ("node Ox { x: String «@check(x)» }", '@check requires property name and pattern: @check(prop, "regex")'),
        ("node Ox { x: String @check(x, «y») }", "expected string argument in constraint: the pattern of @check"),
        ('node Ox { x: String @key(«"x"») }', "expected property name in constraint"),
        ("node Ox { x: String @unique(x, «1») }", "expected property name in constraint"),
        ("node Ox { x: String @index(«true») }", "expected property name in constraint"),
        (
            "node Ox @«key»(x) { x: String }",
            "@key is only supported on node properties or as body constraint (node Ox)",
        ),
        (
            "node Ox {} edge On: Ox -> Ox @«unique»(src, dst)",
            "@unique is not supported on edges (edge On), only in the body of one",
        ),
    ],
)
def test_values_that_cannot_be(marked: str, message: str | None) -> None:
    said = refusal(marked)
    if message is not None:
        assert said == message


@pytest.mark.parametrize(
    "marked",
    [
        "edge Pull: Ox -> Ox @«card»(..1) node Ox {}",
        "edge Pull: Ox -> Ox @note @«card»(0..1) node Ox {}",
        "edge Pull: Ox -> Ox @ «card»(0..1) node Ox {}",
        "edge Pull: Ox -> Ox @«card»(0. .1) node Ox {}",
    ],
)
def test_cardinalities_that_are_none_say_the_right_form(marked: str) -> None:
    said = refusal(marked, compile_stored_schema)
    assert said == (
        "@card is not written like this; write @card(min..max) or @card(min..) right after the target type of an edge"
    )


def test_a_lone_number_is_an_annotation_to_the_grammar() -> None:
    edge = compile_stored_schema("edge Pull: Ox -> Ox @card(1) node Ox {}").edges["Pull"]
    assert edge.annotations == (Annotation("card", "1"),)
    assert edge.cardinality == Cardinality(0, None)


@pytest.mark.parametrize(
    ("marked", "known"),
    [
        ("node Ox { t: String @«Key» }", "key"),
        ("node Ox { t: String @«Unique»(t) }", "unique"),
        ("node Ox { @«uniqe»(t) t: String }", "unique"),
        ("node Ox { t: String @«uniqe»(t, u) u: I32 }", "unique"),
        ("node Ox { n: I32 @«rnage»(n, 0..5) }", "range"),
        ('node Ox { t: String @«chekc»(t, "x") }', "check"),
        ("edge Pull: Ox -> Ox @«cards»(0..1) node Ox {}", "card"),
        ("edge Pull: Ox -> Ox @«cardinality»(0..1) node Ox {}", "card"),
    ],
)
def test_misspelt_names_that_do_not_parse_say_the_right_one(marked: str, known: str) -> None:
    assert f"did you mean @{known}?" in refusal(marked)
    assert f"did you mean @{known}?" in refusal(marked, compile_stored_schema)


def test_a_text_that_is_too_long_is_refused() -> None:
    assert compile_schema(" " * TEXT_LIMIT).nodes == {}
    with pytest.raises(SchemaParseError, match=rf"^parse error: .* longer than {TEXT_LIMIT}$"):
        compile_schema(" " * (TEXT_LIMIT + 1))


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(SchemaParseError, match=r"^parse error: character 6 of the schema is half a surrogate pair$"):
        compile_schema("// ab \ud83d")


@pytest.mark.parametrize(
    "source",
    [
        "{" * 1_000_000,
        "[" * 1_000_000,
        "node A { " + "@a" * 200_000,
        "node A { t: " + "[" * 200_000,
        "/*" * 1_000_000,
        '"' * 1_000_000,
        'node A { t: String @note("' + "\\n" * 500_000,
        "node A @note(" + "(" * 500_000,
        "node A { t: enum(" + "a," * 200_000,
        "edge" * 500_000,
        "node A { t: String @key(" + "9" * 500_000,
        "node A { t: String @key(" + "a" * 500_000 + ") }",
        f"node {'A' * 500_000} {{}} node {'A' * 500_000} {{}}",
    ],
)
def test_huge_nonsense_is_an_error_like_any_other(source: str) -> None:
    with pytest.raises((SchemaParseError, CatalogError)) as caught:
        compile_schema(source)
    assert len(caught.value.message) < 2_000


def test_a_large_schema_compiles() -> None:
    nodes = "\n".join(f"node N{n} {{ code: String @key\n  w: F64?\n @range(w, 0..{n}) }}" for n in range(2_000))
    edges = "\n".join(f"edge E{n}: N{n} -> N{n // 2} @card(0..{n}) // comment" for n in range(2_000))
    catalog = compile_schema(f"{nodes}\n{edges}")
    assert (len(catalog.nodes), len(catalog.edges)) == (2_000, 2_000)
