"""Rules for new schemas alone: refused here, still readable in a graph that exists."""

from __future__ import annotations

import pytest

from spark_omnigraph.catalog.ir import catalog_from_ir, ir_text
from spark_omnigraph.catalog.types import Range
from spark_omnigraph.lang.pg import compile_schema, compile_stored_schema
from tests.unit.lang.pg.refusals import refusal

OX = "node Ox {} "
LANCE = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")

RESERVED = [
    ("node Ox { «id»: String }", "property name 'id' is reserved: every node and edge has that column (Ox.id)"),
    ("interface I { «id»: String }", "property name 'id' is reserved: every node and edge has that column (I.id)"),
    (
        OX + "edge On: Ox -> Ox { «id»: String }",
        "property name 'id' is reserved: every node and edge has that column (On.id)",
    ),
    (
        OX + "edge On: Ox -> Ox { «src»: String }",
        "property name 'src' is reserved: every edge has that column (edge On.src)",
    ),
    (
        OX + "edge On: Ox -> Ox { «dst»: String }",
        "property name 'dst' is reserved: every edge has that column (edge On.dst)",
    ),
    (
        "node Ox { «iD»: String }",
        "property name 'iD' is reserved in any case: every node and edge has that column (Ox.iD)",
    ),
    (
        OX + "edge On: Ox -> Ox { «srC»: String }",
        "property name 'srC' is reserved in any case: every edge has that column (edge On.srC)",
    ),
    (
        OX + "edge On: Ox -> Ox { «dSt»: String }",
        "property name 'dSt' is reserved in any case: every edge has that column (edge On.dSt)",
    ),
    ("node Ox { «_rowID»: I32 }", "property name '_rowID' is reserved for a column that Lance makes up (Ox._rowID)"),
    (
        "node Ox { «v»: Vector(99999999)? }",
        "Vector dimension of Ox.v is above 65536: each row of it would take 400.0 MB",
    ),
    (
        "node Ox {} node «OX» {}",
        "node types 'Ox' and 'OX' differ in case alone, which Spark and SQL do not tell apart; give one another name",
    ),
    (
        "node Ox { name: String «naMe»: String }",
        "properties of Ox 'name' and 'naMe' differ in case alone, which Spark and SQL do not tell apart; give one"
        " another name",
    ),
    (
        "interface I { «aa»: I32? } node Ox implements I { aA: I32? }",
        "properties of Ox 'aA' and 'aa' differ in case alone, which Spark and SQL do not tell apart; give one"
        " another name",
    ),
    *(
        (
            f"node Ox {{ a: I32 «{name}»: I32 }}",
            f"property name '{name}' is reserved for a column that Lance makes up (Ox.{name})",
        )
        for name in LANCE
    ),
]

NEAR_MISSES = [
    (
        OX + "edge On: Ox -> Ox «@card(1)»",
        "@card on edge On has no effect in this form; "
        "write @card(min..max) or @card(min..) right after the target type of an edge",
    ),
    (OX + "edge On: Ox -> Ox «@card»", None),
    (OX + "edge On: Ox -> Ox @card(0..1) «@card(2)»", None),
    ("node Ox «@card(1)» { }", None),
    ("node Ox { t: String «@card» }", None),
    ("node Ox { n: I32 «@range» }", "@range on property Ox.n has no effect in this form; "),
    ("node Ox { t: String «@check» }", "@check on property Ox.t has no effect in this form; "),
    (
        "node Ox { t: String «@keys» }",
        "unknown annotation @keys on property Ox.t, did you mean @key? "
        "write @key after a property, or @key(property, …) in the body of a node",
    ),
    ("node Ox { t: String «@keys(t)» }", "unknown annotation @keys on property Ox.t, did you mean @key? "),
    ("node Ox { t: String «@uniqe» }", "unknown annotation @uniqe on property Ox.t, did you mean @unique? "),
    ("node Ox { t: String @note «@indx» }", "unknown annotation @indx on property Ox.t, did you mean @index? "),
    ('node Ox «@descripton("x")» { }', "unknown annotation @descripton on node Ox, did you mean @description? "),
    (OX + 'edge On: Ox -> Ox «@rename("x")»', "unknown annotation @rename on edge On, did you mean @rename_from? "),
    (OX + "edge On: Ox -> Ox { t: String «@indx» }", "unknown annotation @indx on property On.t, "),
    ("interface I { t: String «@kye» }", "unknown annotation @kye on property I.t, did you mean @key? "),
]

INTERFACES = [
    ("interface I { t: [String] «@key» }", "@key is not supported on list property I.t"),
    ("interface I { t: String «@description» }", "@description on property I.t requires a non-empty value"),
    ('interface I { t: String «@embed("x")» }', "@embed is only supported on vector properties (I.t)"),
]

RENAMES = [
    ("node Ox «@rename_from» { }", "@rename_from on node Ox requires exactly one non-empty value, the old name"),
    ('node Ox { t: String «@rename_from(" ")» }', "@rename_from on property Ox.t requires exactly one non-empty value"),
    ('node Ox { t: String «@rename_from("a", b="c")» }', "@rename_from on property Ox.t requires exactly one "),
    (OX + "edge On: Ox -> Ox @rename_from(a) «@rename_from(b)»", "edge On declares @rename_from multiple times"),
]

CONSTRAINTS = [
    ("node Ox { b: Blob @unique(«b») }", "@unique is not supported on blob property Ox.b"),
    ("node Ox { t: String b: [String] @unique(t, «b») }", "@unique is not supported on list property Ox.b"),
    ("node Ox { b: Vector(3) @unique(«b») }", "@unique is not supported on vector property Ox.b"),
    (OX + "edge On: Ox -> Ox { b: Blob @unique(src, «b») }", "@unique is not supported on blob property On.b"),
    ("node Ox { a: String b: String @key(a, b, «a») }", "@key on Ox names property 'a' twice"),
    ("node Ox { a: String @unique(a, «a») }", "@unique on Ox names property 'a' twice"),
    (OX + "edge On: Ox -> Ox { @index(src, «src») }", "@index on On names property 'src' twice"),
    ("node Ox { n: [I32] @range(«n», 0..5) }", "@range is not supported on list property Ox.n"),
    ('node Ox { t: [String] @check(«t», "x") }', "@check is not supported on list property Ox.t"),
    ("node Ox { n: I32 @range(n, 0..5, «7») }", "@range on Ox.n takes two arguments; write @range(n, 0..5)"),
    ("node Ox { n: I32 @range(n, 0.., «1..2, n») }", "@range on Ox.n takes two arguments; write @range(n, 0..)"),
    ('node Ox { t: String @check(t, "x", «"y"») }', '@check on Ox.t takes two arguments; write @check(t, "regex")'),
    ("node Ox { n: I32 «@range(n, 5..3)» }", "@range on Ox.n has min (5) above max (3)"),
    ("node Ox { n: F64 «@range(n, 0.5..0.25)» }", "@range on Ox.n has min (0.5) above max (0.25)"),
    ('node Ox { t: String @note("x", a=1, «a»=2) }', "@note on property Ox.t has argument 'a=' twice"),
]

OPEN_BELOW = [
    (
        "node Ox { n: I32 «@range(n, ..120)» }",
        "@range on Ox.n needs a lower bound: the schema format records '..120' as a minimum, "
        "and other engines would enforce that; write both, as in @range(n, 0..120)",
    ),
    *(
        (
            f"node Ox {{ n: F64 «@range(n, ..{high})» }}",
            f"@range on Ox.n needs a lower bound: the schema format records '..{high}' as a minimum, "
            f"and other engines would enforce that; write both, as in @range(n, {example})",
        )
        for high, example in (("-1.5", "-2.5..-1.5"), ("0", "-1..0"), ("0.5", "0..0.5"))
    ),
]


@pytest.mark.parametrize(
    ("marked", "message"), [*RESERVED, *NEAR_MISSES, *INTERFACES, *RENAMES, *CONSTRAINTS, *OPEN_BELOW]
)
def test_new_schemas(marked: str, message: str | None) -> None:
    said = refusal(marked)
    if message is not None:
        assert said.startswith(message)
    stored = compile_stored_schema(marked.replace("«", "").replace("»", ""))
    assert ir_text(catalog_from_ir(ir_text(stored))) == ir_text(stored)


@pytest.mark.parametrize("form", ["@card(1)", "@card"])
def test_a_cardinality_that_is_none_shows_one_that_is(form: str) -> None:
    said = refusal(f"{OX}edge On: Ox -> Ox «{form}»")
    assert said.endswith("write @card(min..max) or @card(min..) right after the target type of an edge")


def test_what_the_names_of_edge_columns_may_be_on_a_node() -> None:
    assert [p.name for p in compile_schema("node Ox { src: String dst: String }").nodes["Ox"].properties] == [
        "dst",
        "src",
    ]


def test_a_range_of_one_value_is_fine() -> None:
    assert compile_schema("node Ox { n: I32 @range(n, 5..5) }").nodes["Ox"].constraints == (Range("n", 5, 5),)


def test_a_stored_range_without_a_lower_bound_means_what_was_written() -> None:
    """The hash is that of the recorded form, in which the bound is a minimum."""
    stored = compile_stored_schema("node Ox { n: I32 @range(n, ..120) }")
    assert stored.nodes["Ox"].constraints == (Range("n", None, 120),)
    assert stored.ir_hash == compile_schema("node Ox { n: I32 @range(n, 120..) }").ir_hash
