"""The difference of two schemas: steps, their order, refusals, and where columns come from."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.migration.document import document
from spark_omnigraph.catalog.migration.effects import StepWork, is_rule, shows_updates, work_of
from spark_omnigraph.catalog.migration.planner import SchemaPlan, plan_schema
from spark_omnigraph.catalog.migration.properties import ColumnSource
from spark_omnigraph.catalog.migration.steps import Fill, FixedValue, FromColumn
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.lang.pg import compile_schema, compile_stored_schema

KITE = "node Kite { tag: String @key  span: F64?  hue: String? }\nnode Reel { code: String @key }\n"
NONE: Mapping[str, Fill] = MappingProxyType({})
USES = "edge Uses: Kite -> Reel { since: I32? }"


def plan(accepted: str, desired: str, values: Mapping[str, Fill] = NONE, hard: bool = False) -> SchemaPlan:
    """Values are named by the property, of node Kite."""
    of_kite = {(TableKey.node("Kite"), name): fill for name, fill in values.items()}
    return plan_schema(compile_schema(accepted), compile_stored_schema(desired), of_kite, allow_data_loss=hard)


def kite(body: str) -> list[str]:
    """Steps from `tag, n: I32?, e: enum(lo, mid)?, s: String?, must: String` to another body of the type, short."""
    accepted = "node Kite { tag: String @key  n: I32?  e: enum(lo, mid)?  s: String?  must: String }"
    return shown(plan(accepted, f"node Kite {{ tag: String @key {body} }}"))


def shown(found: SchemaPlan) -> list[str]:
    return [short(document(step)) for step in found.steps]


def short(step: dict[str, object]) -> str:
    skipped = ("type_kind", "type_name", "annotations", "entity", "way_out")
    shown = {name: _shown(value) for name, value in step.items() if name not in skipped}
    return " ".join(shown.values()).replace(" is not supported in schema migration v1", " (v1)")


def _shown(value: object) -> str:
    if not isinstance(value, dict) or "scalar" not in value:
        return str(value)
    return f"{value['scalar']}{'[]' if value['list'] else ''}{'?' if value['nullable'] else ''}"


SAME = "n: I32?  e: enum(lo, mid)?  s: String?  must: String"


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        (SAME, []),
        ("s: String?  must: String  e: enum(mid, lo)?  n: I32? // in another order\n", []),
        (f"{SAME}  q: [F32]?", ["add_property q F32[]?"]),
        ("n: I32?  e: enum(lo, mid)?  s: String?", ["drop_property must soft"]),
        ("m: I32? @rename_from(\"n\")  e: enum(lo, mid)?  s: String?  must: String", ["rename_property n m"]),
        ("n: I32?  e: enum(lo, mid, hi)?  s: String?  must: String", ["extend_enum e ['hi']"]),
        ("n: I32?  e: enum(lo)?  s: String?  must: String", ["narrow_enum e ['mid']"]),
        ("n: I32?  e: enum(lo, hi)?  s: String?  must: String", ["extend_enum e ['hi']", "narrow_enum e ['mid']"]),
        ("n: I32?  e: String?  s: String?  must: String", ["remove_enum e"]),
        ("n: I32?  e: enum(lo, mid)?  s: enum(x, y)?  must: String", ["add_enum s ['x', 'y']"]),
        ("n: I32?  e: enum(lo, mid)?  s: String  must: String?", ["relax_property must", "require_property s"]),
        ("n: I32?  e: enum(lo)  s: String?  must: String", ["narrow_enum e ['mid']", "require_property e"]),
        (
            "m: I64 @rename_from(\"n\")  e: enum(lo, mid)?  s: String?  must: String",
            [
                "rename_property n m",
                "widen_property m I32? I64",
                "require_property m",
            ],
        ),
        (f"{SAME} @index(n)", ["add_constraint {'Index': ['n']}"]),
        (f"{SAME} @unique(s, n)", ["add_constraint {'Unique': ['n', 's']}"]),
        (
            f"{SAME} @range(n, 0..9) @check(s, \"^a\")",
            [
                "add_constraint {'Check': {'property': 's', 'pattern': '^a'}}",
                "add_constraint {'Range': {'property': 'n', 'min': {'Integer': 0}, 'max': {'Integer': 9}}}",
            ],
        ),
        (
            f"{SAME}  q: I32",
            ["unsupported_change adding required property 'Kite.q' requires a backfill and (v1) OG-MF-103"],
        ),
        (
            "n: I32?  e: enum(lo, mid)?  s: I32?  must: String",
            [
                "unsupported_change changing property type for 'Kite.s' from String? to I32? (v1) OG-MF-106"
            ],
        ),
        (
            "n: I32?  e: enum(lo, mid)?  s: String? @colour(\"x\")  must: String",
            [
                "unsupported_change changing annotations beyond @description/@instruction on property 'Kite.s' (v1)"
            ],
        ),
        ("n: I32?  e: enum(lo, mid)?  s: String? @description(\"x\")  must: String", ["update_property_metadata s"]),
    ],
)  # laid out as a table  # fmt: skip
def test_steps_of_one_type(body: str, steps: list[str]) -> None:
    assert kite(body) == steps


REST = "e: enum(lo, mid)?  must: String"
EXISTS = "property 'Kite.n' cannot be renamed from 's': 'n' exists; rename it away in an apply of its own"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f'n: I32? @rename_from("s")  s: String?  {REST}', EXISTS),
        (f'n: I32? @rename_from("s")  {REST}', EXISTS),
        (f'{SAME} x: String? @rename_from("s")', "property 'Kite.x' is renamed from 's', but 's' is still declared"),
        (
            f'x: String? @rename_from("s")  y: String? @rename_from("s")  {REST}',
            "property 'Kite.y' is renamed from 's', and so is 'x'; one of them can keep its values",
        ),
        (
            f'{SAME} x: String? @rename_from("gone")',
            "property 'Kite.x' declares @rename_from(\"gone\") but no accepted property with that name exists",
        ),
        (f"{SAME} _RowId: I64?", "property name '_RowId' is reserved for a column that Lance makes up (Kite._RowId)"),
    ],
)
def test_names_that_nobody_can_follow_are_refused(body: str, reason: str) -> None:
    accepted = compile_schema(f"node Kite {{ tag: String @key {SAME} }}")
    plan = plan_schema(accepted, compile_stored_schema(f"node Kite {{ tag: String @key {body} }}"))
    assert reason in [step.reason for step in plan.unsupported]
    assert not plan.supported


def test_a_swap_is_refused_once_for_each_name() -> None:
    found = plan(
        "node Kite { tag: String @key  a: String?  b: String? }",
        'node Kite { tag: String @key  a: String? @rename_from("b")  b: String? @rename_from("a") }',
    )
    assert [step.entity for step in found.unsupported] == ["node:Kite.a", "node:Kite.b"]


def test_a_marker_that_has_done_its_work_is_passed_over() -> None:
    """Also when its old name is taken by a new property."""
    accepted = 'node Kite { tag: String @key  b: String? @rename_from("a") }'
    added = 'node Kite { tag: String @key  a: I32?  b: String? @rename_from("a") }'
    assert plan(accepted, accepted).steps == ()
    assert plan(accepted, "node Kite { tag: String @key  b: String? }").steps == ()
    assert [step.kind for step in plan(accepted, added).steps] == ["add_property"]
    assert plan(added, added).steps == ()


def test_types_are_matched_like_properties() -> None:
    renamed = plan(KITE + USES, KITE.replace("Kite", 'Glider @rename_from("Kite")') + USES.replace("Kite", "Glider"))
    assert renamed.to_dict() == {
        "supported": True,
        "step_count": 1,
        "steps": [{"kind": "rename_type", "type_kind": "node", "from": "Kite", "to": "Glider"}],
    }
    both = plan(KITE, KITE + 'node Glider @rename_from("Kite") { tag: String @key }')
    assert [step.message for step in both.unsupported] == [
        "node 'Glider' is renamed from 'Kite', but 'Kite' is still declared"
    ]
    twice = plan(
        KITE, 'node A @rename_from("Kite") { tag: String @key } node B @rename_from("Kite") { tag: String @key }'
    )
    assert [step.entity for step in twice.unsupported] == ["node:B"]


def test_order_is_interfaces_nodes_edges_and_drops_last_in_each() -> None:
    desired = (
        "interface Named { title: String? }\nnode Spool { code: String @key }\n"
        "node Zip { tag: String @key }\nedge Has: Spool -> Zip"
    )
    assert shown(plan(KITE + USES, desired)) == [
        "add_type Named", "add_type Spool", "add_type Zip", "drop_type Kite soft", "drop_type Reel soft",
        "add_type Has", "drop_type Uses soft",
    ]  # laid out as a table  # fmt: skip
    hard = shown(plan(KITE + USES, "node Kite { tag: String @key }", hard=True))
    assert [line.split()[-1] for line in hard] == ["hard"] * 4


def test_edges_keep_their_ends_and_may_change_their_bounds() -> None:
    turned = plan(KITE + USES, KITE + "edge Uses: Reel -> Kite { since: I32? }")
    assert [step.reason for step in turned.unsupported] == [
        "changing edge endpoints on 'Uses' is not supported in schema migration v1"
    ]
    bounds = plan(KITE + USES, KITE + "edge Uses: Kite -> Reel @card(1..2) { since: I32? }")
    assert bounds.to_dict()["steps"] == [
        {"kind": "change_cardinality", "type_kind": "edge", "type_name": "Uses", "from": "0..*", "to": "1..2"}
    ]
    assert is_rule(bounds.steps[0])
    assert not is_rule(plan(KITE + USES.replace("Reel", "Reel @card(1..2)"), KITE + USES).steps[0])


def test_interfaces_are_listed_and_their_properties_come_with_the_nodes() -> None:
    accepted = "interface Named { title: String? }\nnode Kite implements Named { tag: String @key }"
    assert shown(plan(accepted, accepted.replace("title:", "name: I32?  title:"))) == [
        "add_property name I32?",
        "add_property name I32?",
    ]
    gone = plan(accepted, "node Kite { tag: String @key  title: String? }")
    assert [step.reason for step in gone.unsupported] == [
        "removing interface 'Named' is not supported in schema migration v1",
        "changing implemented interfaces on node 'Kite' is not supported in schema migration v1",
    ]


def test_constraints_follow_renamed_properties_and_go_with_dropped_ones() -> None:
    accepted = "node Kite { tag: String @key  a: I32? @index  b: String? @unique @range(a, 0..9) }"
    renamed = 'node Kite { tag: String @key  z: I32? @index @rename_from("a")  b: String? @unique @range(z, 0..9) }'
    assert [step.kind for step in plan(accepted, renamed).steps] == ["rename_property"]
    assert shown(plan(accepted, "node Kite { tag: String @key  b: String? @unique }")) == [
        "drop_property a soft",
        "remove_constraint {'Index': ['a']}",
        "remove_constraint {'Range': {'property': 'a', 'min': {'Integer': 0}, 'max': {'Integer': 9}}}",
    ]


def test_an_embedding_follows_its_source() -> None:
    accepted = 'node Doc { slug: String @key  body: String?  v: Vector(4)? @embed("body") }'
    renamed = 'node Doc { slug: String @key  text: String? @rename_from("body")  v: Vector(4)? @embed("text") }'
    assert [step.kind for step in plan(accepted, renamed).steps] == ["rename_property"]
    assert not plan(accepted, accepted.replace('@embed("body")', "")).supported


def test_a_key_of_several_keeps_the_order_of_its_names() -> None:
    """Ids are made of the values in that order, and a rename writes no id."""
    accepted = "node Kite { a: String  b: I32  @key(a, b) }"
    assert plan(accepted, 'node Kite { aa: String @rename_from("a")  b: I32  @key(aa, b) }').supported
    found = plan(accepted, 'node Kite { z: String @rename_from("a")  b: I32  @key(z, b) }')
    assert [each.reason for each in found.unsupported] == [
        "another order of names in the key of 'Kite' (z, b) is not supported in schema migration v1"
    ]


def test_keys_stay_keys_and_whole_numbers() -> None:
    accepted = "node Kite { n: I32 @key  m: I32 }"
    assert plan(accepted, "node Kite { n: I64 @key  m: F64 }").supported
    assert [s.code for s in plan(accepted, "node Kite { n: F64 @key  m: I32 }").unsupported] == ["OG-MF-106"]
    assert [s.reason for s in plan(accepted, "node Kite { n: I32  m: I32 @key }").unsupported] == [
        "removing constraints from 'Kite' (key:n) is not supported in schema migration v1",
        "adding constraint 'key:m' to 'Kite' is not supported in schema migration v1",
    ]


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        ("I32", "I64", True), ("I32", "F64", True), ("U32", "I64", True), ("U32", "U64", True), ("F32", "F64", True),
        ("I64", "I32", False), ("I32", "F32", False), ("I32", "U32", False), ("I64", "F64", False),
        ("F64", "F32", False), ("[I32]", "[I64]", False), ("I32", "[I32]", False), ("Vector(2)", "Vector(3)", False),
        ("Date", "DateTime", False),
    ],
)  # laid out as a table  # fmt: skip
def test_only_types_that_hold_every_value_are_wider(old: str, new: str, wider: bool) -> None:
    steps = plan(f"node Kite {{ x: {old} }}", f"node Kite {{ x: {new} }}").steps
    assert [step.kind for step in steps] == ["widen_property" if wider else "unsupported_change"]


def test_values_for_stored_rows() -> None:
    found = plan(
        KITE, KITE.replace("hue: String?", "hue: String  size: I64"), {"hue": FromColumn("tag"), "size": FixedValue(3)}
    )
    assert shown(found) == [
        "require_property hue tag",
        "add_property size I64 3",
    ]
    assert [work_of(step) for step in found.steps] == [StepWork.VALUES, StepWork.VALUES]
    assert all(shows_updates(step) and is_rule(step) for step in found.steps)
    by_name = {source.prop.name: source for source in found.tables[0].columns}
    text = PropType(Scalar.STRING, nullable=True)
    assert by_name["hue"] == ColumnSource(by_name["hue"].prop, "hue", text, FromColumn("tag"))
    assert by_name["size"] == ColumnSource(by_name["size"].prop, None, None, FixedValue(3))
    assert [name for name, source in by_name.items() if source.is_untouched] == ["span", "tag"]


@pytest.mark.parametrize(
    ("desired", "values", "message"),
    [
        (KITE, {"span": FixedValue(1.0)}, "no stored row takes the value of 'Kite.span'"),
        (KITE, {"spam": FixedValue(1.0)}, "no stored row takes the value of 'Kite.spam'"),
        (KITE.replace("span", "n: I32?  span"), {"n": FromColumn("hue")}, "String? does not fit into I32?"),
        (KITE.replace("span", "n: I32?  span"), {"n": FromColumn("hu")}, "did you mean 'hue'?"),
        (KITE.replace("span", "b: Blob?  span"), {"b": FixedValue(None)}, "Blob 'Kite.b'"),
    ],
)
def test_values_that_no_property_takes_are_refused(desired: str, values: dict[str, Fill], message: str) -> None:
    with pytest.raises(BadRequestError, match=re.escape(message)):
        plan(KITE, desired, values)


def test_plans_are_values() -> None:
    first, again = (plan(KITE + USES, KITE.replace("Kite", 'Glider @rename_from("Kite")')) for _ in range(2))
    assert first.steps == again.steps
    assert pickle.loads(pickle.dumps(first)) == first
    same = plan(KITE + USES, KITE + USES)
    assert (same.steps, same.tables) == ((), ())
