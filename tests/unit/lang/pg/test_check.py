"""The rules of the format: each with the place it is broken at and the words that are said.

Every rule holds for new schemas and for those of existing graphs.
"""

from __future__ import annotations

import pytest

from spark_omnigraph.catalog.types import Index, Key, Unique
from spark_omnigraph.lang.pg import compile_schema, compile_stored_schema
from tests.unit.lang.pg.refusals import refusal

OX = "node Ox {} "

NODE_LEVEL = [
    ("node Ox «@key» { t: String }", "@key is only supported on node properties or as body constraint (node Ox)"),
    ("node Ox «@unique» { t: String }", "@unique is only supported on node properties or as body constraint (node Ox)"),
    ("node Ox @note «@index» { }", "@index is only supported on node properties or as body constraint (node Ox)"),
    ('node Ox «@embed("t")» { }', "@embed is only supported on node properties or as body constraint (node Ox)"),
    ('node Ox «@description("  ")» { }', "@description on node Ox requires a non-empty value"),
    ("node Ox «@description» { }", "@description on node Ox requires a non-empty value"),
    ('node Ox «@instruction("")» { }', "@instruction on node Ox requires a non-empty value"),
    ('node Ox @description("a") «@description("b")» { }', "node Ox declares @description multiple times"),
    ('node Ox @instruction("a") @note «@instruction("a")» { }', "node Ox declares @instruction multiple times"),
]

EDGE_LEVEL = [
    (OX + "edge On: Ox -> Ox «@key»", "@key is not supported on edges (edge On)"),
    (OX + "edge On: Ox -> Ox «@unique»", "@unique is not supported on edges (edge On)"),
    (OX + "edge On: Ox -> Ox «@index» { }", "@index is not supported on edges (edge On)"),
    (OX + 'edge On: Ox -> Ox «@embed("t")»', "@embed is not supported on edges (edge On)"),
    (OX + "edge On: Ox -> Ox «@description»", "@description on edge On requires a non-empty value"),
    (OX + 'edge On: Ox -> Ox «@instruction("\\t")»', "@instruction on edge On requires a non-empty value"),
    (OX + "edge On: Ox -> Ox @instruction(a) «@instruction(b)»", "edge On declares @instruction multiple times"),
    (OX + "edge On: Ox -> Ox { x: String «@key» }", "@key is not supported on edge properties (edge On.x)"),
    (
        OX + 'edge On: Ox -> Ox { t: String x: Vector(3) «@embed("t")» }',
        "@embed is not supported on edge properties (edge On.x)",
    ),
    (OX + "edge On: Ox -> Ox { x: [String] «@unique» }", "@unique is not supported on list property On.x"),
]

PROPERTY_LEVEL = [
    *(
        (f"node Ox {{ p: {ptype} «@{name}» }}", f"@{name} is not supported on {shape} property Ox.p")
        for shape, ptype, names in (
            ("list", "[String]", ("key", "unique", "index", "embed")),
            ("vector", "Vector(3)", ("key", "unique")),
            ("blob", "Blob", ("key", "unique", "index", "embed")),
        )
        for name in names
    ),
    *(
        (f"node Ox {{ p: String @{name} @note «@{name}» }}", f"property Ox.p declares @{name} multiple times")
        for name in ("key", "unique", "index")
    ),
    (
        'node Ox { t: String p: Vector(3) @embed("t") «@embed("t")» }',
        "property Ox.p declares @embed multiple times",
    ),
    (
        'node Ox { t: String «@instruction("a")» }',
        "@instruction is only supported on node and edge types (property Ox.t)",
    ),
    (
        OX + 'edge On: Ox -> Ox { t: String «@instruction("a")» }',
        "@instruction is only supported on node and edge types (property On.t)",
    ),
    ("node Ox { t: String «@description» }", "@description on property Ox.t requires a non-empty value"),
    ('node Ox { t: String «@description(" ")» }', "@description on property Ox.t requires a non-empty value"),
    ("node Ox { t: String @description(a) «@description(a)» }", "property Ox.t declares @description multiple times"),
]

EMBED = [
    ('node Ox { t: String v: String «@embed("t")» }', "@embed is only supported on vector properties (Ox.v)"),
    ("node Ox { v: Vector(4)? «@embed» }", "@embed on Ox.v requires a source property name"),
    ('node Ox { v: Vector(4)? «@embed(" ")» }', "@embed on Ox.v requires a non-empty source property name"),
    ('node Ox { v: Vector(4)? «@embed("t")» }', "@embed on Ox.v references unknown source property t"),
    ("node Ox { v: Vector(4)? «@embed(t)» t: I32 }", "@embed source property Ox.t must be String"),
    ("node Ox { v: Vector(4)? «@embed(t)» t: [String] }", "@embed source property Ox.t must be String"),
    (
        'node Ox { t: String v: Vector(4)? @embed("t", «modle»="m") }',
        "@embed on Ox.v has unknown argument 'modle=' (only 'model' is supported)",
    ),
]

KEYS = [
    (
        "node Ox { t: String @key u: String «@key» }",
        "node type Ox has multiple @key constraints; only one is supported",
    ),
    (
        "node Ox { @key(u) t: String «@key» u: String }",
        "node type Ox has multiple @key constraints; only one is supported",
    ),
    ("node Ox { @key(«u») t: String }", "@key on Ox references unknown property 'u'"),
    ("node Ox { @key(t, «src») t: String }", "@key on Ox references unknown property 'src'"),
    ("node Ox { «t»: String? @key }", "@key property Ox.t cannot be nullable"),
    ("node Ox { @key(u, «t») t: String? u: String }", "@key property Ox.t cannot be nullable"),
    ("node Ox { @key(«p») p: [String] }", "@key is not supported on list property Ox.p"),
    ("node Ox { @key(«p») p: Vector(3) }", "@key is not supported on vector property Ox.p"),
    ("node Ox { @key(«p») p: Blob }", "@key is not supported on blob property Ox.p"),
    (OX + "edge On: Ox -> Ox { x: String\n «@key(x)» }", "@key constraint is not supported on edges (edge On)"),
]

COLUMNS = [
    ("node Ox { @unique(t, «u») t: String }", "@unique on Ox references unknown property 'u'"),
    ("node Ox { @unique(«src», t) t: String }", "@unique on Ox references unknown property 'src'"),
    ("node Ox { @index(«u») t: String }", "@index on Ox references unknown property 'u'"),
    ("node Ox { @index(«dst») t: String }", "@index on Ox references unknown property 'dst'"),
    (OX + "edge On: Ox -> Ox { @unique(src, «u») }", "@unique on On references unknown property 'u'"),
    (OX + "edge On: Ox -> Ox { @index(dst, «u») }", "@index on On references unknown property 'u'"),
    ("node Ox { b: Blob @index(«b») }", "@index is not supported on blob property Ox.b"),
    (OX + "edge On: Ox -> Ox { b: Blob @index(«b») }", "@index is not supported on blob property On.b"),
]

VALUES = [
    ("node Ox { @range(«u», 0..5) }", "@range on Ox references unknown property 'u'"),
    ('node Ox { @check(«u», "x") }', "@check on Ox references unknown property 'u'"),
    ("node Ox { t: String? @range(«t», 0..5) }", "@range on Ox.t requires a numeric type, got String?"),
    ("node Ox { t: [Date] @range(«t», 0..5) }", "@range on Ox.t requires a numeric type, got [Date]"),
    ("node Ox { t: Vector(3) @range(«t», 0..5) }", "@range on Ox.t requires a numeric type, got Vector(3)"),
    ("node Ox { t: enum(b, a) @range(«t», 0..5) }", "@range on Ox.t requires a numeric type, got enum(a, b)"),
    ('node Ox { n: I32 @check(«n», "x") }', "@check on Ox.n requires String type, got I32"),
    ('node Ox { n: [U64]? @check(«n», "x") }', "@check on Ox.n requires String type, got [U64]?"),
    (OX + "edge On: Ox -> Ox { x: I32\n «@range(x, 0..5)» }", "@range constraint is not supported on edges (edge On)"),
    (
        OX + 'edge On: Ox -> Ox { x: String\n «@check(x, "a")» }',
        "@check constraint is not supported on edges (edge On)",
    ),
]

INTERFACES = [
    ("node Rug implements «Woven» { w: I32 }", "node Rug implements unknown interface 'Woven'"),
    (
        "interface Sized { extent: I32 }\nnode Rug implements Sized { «extent»: I64 }",
        "node Rug property 'extent' has type I64 but interface Sized declares it as I32",
    ),
    (
        "interface Sized { extent: I32? }\nnode Rug implements Sized { «extent»: I32 }",
        "node Rug property 'extent' has type I32 but interface Sized declares it as I32?",
    ),
    (
        "interface A { x: enum(b, a) } interface B { x: enum(b) } node Rug implements A, «B» { }",
        "node Rug property 'x' has type enum(a, b) but interface B declares it as enum(b)",
    ),
    ("interface A { «p»: String? @key } node Rug implements A { }", "@key property Rug.p cannot be nullable"),
    ("interface A { p: Blob «@index» } node Rug implements A { }", "@index is not supported on blob property Rug.p"),
    (
        'interface A { v: Vector(3) «@embed("t")» } node Rug implements A { }',
        "@embed on Rug.v references unknown source property t",
    ),
    (
        "interface A { a: String @key } interface B { b: String «@key» } node Rug implements A, B { }",
        "node type Rug has multiple @key constraints; only one is supported",
    ),
]


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        *NODE_LEVEL,
        *EDGE_LEVEL,
        *PROPERTY_LEVEL,
        *EMBED,
        *KEYS,
        *COLUMNS,
        *VALUES,
        *INTERFACES,
    ],
)
def test_rules(marked: str, message: str) -> None:
    assert refusal(marked) == message
    assert refusal(marked, compile_stored_schema) == message


@pytest.mark.parametrize(
    "source",
    [
        "node Ox { v: Vector(3) @index }",
        "node Ox { p: [String] @index(p) }",
        'node Ox { e: enum(a, b) @check(e, "a") }',
        'node Ox { t: enum(a, b) v: Vector(3)? @embed("t", model="maker/model-1") }',
        'interface I { v: Vector(3) @embed("t") } node Ox implements I { t: String }',
        'node Ox @team("a") @x { t: String @pii @mask(3) @flag(true) @x @x }',
        'node Ox { t: String @check(t, "[0-") }',
        "node Ox { f: F32 d: Date @key(f, d) }",
        "node Ox { n: I32 @range(n, 0..5) @range(n, 0..5) @range(n, 3..) }",
        "node Ox { t: String @unique @index @key @unique(t) }",
        OX + "edge On: Ox -> Ox { x: String @unique @index @unique(src, dst, x) @index(src) }",
    ],
)
def test_what_no_rule_forbids(source: str) -> None:
    assert compile_schema(source) == compile_stored_schema(source)


def test_annotations_of_a_property_are_constraints_of_its_type() -> None:
    node = compile_schema("node Ox { a: String @index @key b: String @unique @note }").nodes["Ox"]
    assert node.constraints == (Index(("a",)), Key(("a",)), Unique(("b",)))
    assert [a.name for p in node.properties for a in p.annotations] == ["index", "key", "note", "unique"]
    assert node.key == ("a",)
