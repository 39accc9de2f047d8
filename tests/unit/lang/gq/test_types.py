"""The type rules: each with the place it is broken at and the words that are said."""

from __future__ import annotations

import pytest

from spark_omnigraph.errors import BadRequestError, QueryTypeError
from tests.unit.lang.gq.refusals import check, refusal

PARAMS = (
    "$s: String, $i: I32, $u: U64?, $f: F64, $d: Date, $t: DateTime, $x: Bool, $b: Blob, $l: [String], $w: Vector(3)"
)


def match(clauses: str) -> str:
    return f"query q({PARAMS}) {{ match {{ $a: Pot $c: Shelf {clauses} }} return {{ $a.label }} }}"


def returning(items: str) -> str:
    return f"query q({PARAMS}) {{ match {{ $a: Pot $a $m:mimics $o }} return {{ {items}"


def mutating(statement: str) -> str:
    return f"query q({PARAMS}) {{ {statement} }}"


BINDINGS = [
    ("$z: «Nobody»", "T1: unknown node type `Nobody`"),
    ("$z: «Mimics»", "T1: unknown node type `Mimics`"),
    ("$z: Pot { «nope»: 1 }", "T2: type `Pot` has no property `nope`"),
    ("$z: Pot { «id»: 1 }", "T2: type `Pot` has no property `id`"),
    ('$z: Pot { vol: «"x"» }', "T3: property `vol` has type I32? but got String"),
    ("$z: Pot { label: «1» }", "T3: property `label` has type String but got I64"),
    (
        '$z: Pot { fired: «"2024-01-01"» }',
        'T3: property `fired` has type Date? but got String; write it as date("2026-01-31")',
    ),
    ('$z: Pot { fired: «datetime("2024-01-01")» }', "T3: property `fired` has type Date? but got DateTime"),
    ('$z: Pot { grade: «"c"» }', "T3: property `grade` expects one of [a, b], got 'c'"),
    ("$z: Pot { vol: «[1]» }", "T3: property `vol` has type I32? but got [I64]"),
    (
        '$z: Pot { tags: «["x"]» }',
        "T3: list equality is not supported for property `tags`; use a scalar value to match list membership",
    ),
    ("$z: Pot { tags: «1» }", "T3: property `tags` has type [String]? but membership match got I64"),
    ("$z: Pot { «photo»: $b }", "T3: blob property `Pot.photo` cannot be used in match patterns"),
    ("$z: Pot { v: «[1, 2]» }", "T3: property `v` has type Vector(3)? but got vector literal with 2 elements"),
    (
        "$z: Pot { v: «[1, 2, 3]» }",
        "T7: vector comparisons in filters are not supported for property `v`; order by nearest() instead",
    ),
    ("$z: Pot { vol: «$s» }", "T7: cannot assign/compare String with I32? for property `vol`"),
    ("$z: Pot { vol: «now()» }", "T7: cannot assign/compare DateTime with I32? for property `vol`"),
    ("$z: Pot { tags: «$i» }", "T7: cannot compare I32 membership against [String]? for property `tags`"),
    (
        "$z: Pot { tags: «$l» }",
        "T7: list equality is not supported for property `tags`; use a scalar parameter for membership matching",
    ),
    ("$z: Pot { vol: «$nope» }", "T6: variable `$nope` is not bound and not a declared query parameter"),
    ("$z: Pot { vol: «$a» }", "T6: variable `$a` is not bound and not a declared query parameter"),
    ("«$a»: Shelf", "variable `$a` already bound to type `Pot`, cannot rebind to `Shelf`"),
    ("$z: Pot { tags: [1, «[2]»] }", "nested list literals are not supported"),
    ('$z: Pot { tags: [1, «"x"»] }', "list literal elements must share a compatible scalar type"),
]

TRAVERSALS = [
    ("$a «knows» $o", "T4: unknown edge type `knows`"),
    ("«$c» mimics $o", "T5: variable `$c` has type `Shelf`, which is not an endpoint of edge `Mimics: Pot -> Pot`"),
    ("$o mimics «$c»", "T5: variable `$c` has type `Shelf`, which is not an endpoint of edge `Mimics: Pot -> Pot`"),
    ("$a mimics «$c»", "T5: variable `$c` has type `Shelf` but edge `Mimics` expects `Pot`"),
    ("$a rests «$a»", "T5: variable `$a` has type `Pot` but edge `Rests` expects `Shelf`"),
    ("$a mimics«{0,2}» $o", "T15: traversal min hop bound must be >= 1"),
    ("$a mimics«{3,2}» $o", "T15: invalid traversal bounds {3,2}; max must be >= min"),
    ("$a mimics«{1,}» $o", "T15: unbounded traversal is disabled; use bounded traversal {min,max}"),
    (
        "$a <«rests»> $c",
        "T22: undirected traversal needs an edge between equal types, and edge `Rests: Pot -> Shelf` is not",
    ),
    ("$a $w2:mimics«{1,2}» $o", "T23: the edge variable `$w2` stands for one edge; it cannot have bounds"),
    ("$a «$c»:mimics $o", "T23: edge variable `$c` is already bound"),
    ("$a «$o»:mimics $o", "T23: edge variable `$o` is already bound"),
    ("$a $m:mimics $o «$m» mimics $o", "T23: `$m` stands for an edge and cannot be the end of a traversal"),
    ("$a $m:mimics $o «$m»: Pot", "variable `$m` already bound to type `Mimics`, cannot rebind to `Pot`"),
    (
        "$a $m:mimics $o «$m = 1»",
        "T7: filter comparisons require scalar operands, got edge `Mimics` and I64",
    ),
    ("$a $m:mimics $o $m.«nope» = 1", "T6: type `Mimics` has no property `nope`; did you mean 'note'?"),
    (
        '$a $m:mimics $o search(«$m.note», "x")',
        "T23: search() works on nodes, and `$m` stands for an edge",
    ),
]

FILTERS = [
    ("«$z».vol = 1", "T6: variable `$z` is not bound"),
    ("«$_».vol = 1", "T6: variable `$_` is not bound"),
    ("$a.«nope» = 1", "T6: type `Pot` has no property `nope`"),
    ("$a.«id» = 1", "T6: type `Pot` has no property `id`"),
    ("$a.vol = «$nope»", "T6: variable `$nope` is not bound"),
    ("«$o».vol = 1 $a mimics $o", "T6: variable `$o` is not bound"),
    ('«$a.vol = "x"»', "T7: cannot compare I32? with String"),
    ("«$a.vol < $s»", "T7: cannot compare I32? with String"),
    ("«$a.fired = $t»", "T7: cannot compare Date? with DateTime"),
    ("«$a.sold > $s»", 'T7: cannot compare DateTime? with String; write it as datetime("2026-01-31T12:00:00Z")'),
    ("«now() > $a.fired»", "T7: cannot compare DateTime with Date?"),
    ("«$a = $c»", "T7: filter comparisons require scalar operands, got node `Pot` and node `Shelf`"),
    ("«count($a) > 1»", "T7: filter comparisons require scalar operands, got count($a) and I64"),
    ("«$a.vol = word»", "T7: filter comparisons require scalar operands, got I32? and word"),
    ("«$a.tags = $l»", "T7: list comparisons in filters are not supported; use `contains` for list membership"),
    ("«$a.v = $w»", "T7: vector comparisons in filters are not supported"),
    ("«$a.photo = $b»", "T7: blob comparisons in filters are not supported"),
    (
        "«$a.vol contains 1»",
        "T7: contains requires a list property (membership) or a String property (substring) on the left, got I32?",
    ),
    ("«$a.tags contains $l»", "T7: contains requires a scalar right operand"),
    ("«$a.v contains 1»", "T7: vector membership filters are not supported"),
    ("«$a.tags contains 1»", "T7: cannot test membership of I64 in [String]?"),
    ("«$a.label contains 1»", "T7: cannot compare String with I64"),
    ("«$a.vol starts_with 1»", "T7: starts_with requires a String property on the left, got I32?"),
    (
        '«search($a.label, "x") = false»',
        "T7: search() can only be compared with `= true`; write it as a clause of its own",
    ),
    ('«not» { $z: Pot $z.label = "x" }', "T9: negation block must reference at least one outer-bound variable"),
    ("«not» { not { $a mimics $z } }", "T9: negation block must reference at least one outer-bound variable"),
    ("not { $a mimics $z } «$z».vol = 1", "T6: variable `$z` is not bound"),
]

SEARCHES = [
    ('search(«$a.vol», "x")', "T19: search field must be String, got I32?"),
    ('search(«$a.tags», "x")', "T19: search field must be String, got [String]?"),
    ("search($a.label, «1»)", "T19: search query must be String, got I64"),
    ('fuzzy($a.label, "x", «1.5»)', "T19: fuzzy max_edits must be an integer scalar, got F64"),
    ('match_text(«$a.v», "x")', "T20: match_text field must be String, got Vector(3)?"),
    ("match_text($a.label, «$i»)", "T20: match_text query must be String, got I32"),
]

RESULTS = [
    ("«$z» } }", "variable `$z` is not bound"),
    ("«label» } }", "`label` is neither a variable nor a literal; did you mean `$label`?"),
    ("«$m» } }", "T23: `$m` stands for an edge; return one of its properties: `$m.property`"),
    ("count(«$m») } }", "T23: `$m` stands for an edge; return one of its properties: `$m.property`"),
    (
        "«$a.photo» } }",
        "T24: blob property `Pot.photo` cannot be projected, ordered or aggregated; read it with the entity",
    ),
    (
        "$a } order { «$m.print» } }",
        "T24: blob property `Mimics.print` cannot be projected, ordered or aggregated; read it with the entity",
    ),
    (
        "count(«$a.photo») } }",
        "T24: blob property `Pot.photo` cannot be projected, ordered or aggregated; read it with the entity",
    ),
    ("«$b» } }", "T24: blob parameter `$b` cannot be projected, ordered or aggregated"),
    ("sum(«$a.label») } }", "T8: sum requires numeric type, got String"),
    ("avg(«$a») } }", "T8: avg requires numeric type, got node `Pot`"),
    ("min(«$a.fired») } }", "T8: min requires numeric or string type, got Date?"),
    ("max(«$a.tags») } }", "T8: max requires numeric or string type, got [String]?"),
    ("count(«$i») } }", "T8: count needs a property or a variable, as in `count($a)`"),
    ("count(«sum($a.vol)») } }", "T8: count needs a property or a variable, as in `count($a)`"),
    ("count($a) «1» } }", "T9: non-aggregate expressions in an aggregate query must be property accesses or variables"),
    (
        "count($a) «word» } }",
        "T9: non-aggregate expressions in an aggregate query must be property accesses or variables",
    ),
    ("$a } order { nearest(«$z».v, $w) } limit 1 }", "T15: variable `$z` is not bound"),
    ("$a } order { nearest($a.«nope», $w) } limit 1 }", "T15: type `Pot` has no property `nope`"),
    (
        "$a } order { nearest(«$a.vol», $w) } limit 1 }",
        "T15: nearest requires a Vector property, got Pot.vol: I32?",
    ),
    (
        "$a } order { nearest($a.v, «[1, 2]») } limit 1 }",
        "T15: nearest vector dimension mismatch: property is Vector(3), query literal has 2 elements",
    ),
    ("$a } order { nearest($a.v, «$i») } limit 1 }", "T15: nearest query must be Vector(n) or String, got I32"),
    ("$a } order { «nearest($a.v, $w)» } }", "T17: nearest ordering requires a limit clause"),
    ("nearest($a.v, $w) as s } order { «s» } }", "T17: nearest ordering requires a limit clause"),
    (
        "$a.label as l } order { nearest($a.v, $w), «l» } limit 1 }",
        "T18: alias-based ordering is not supported together with nearest in phase 1",
    ),
    ("$a } order { bm25($a.label, «$i») } }", "T20: bm25 query must be String, got I32"),
    (
        "$a } order { «rrf(bm25($a.label, $s), nearest($a.v, $w))» } }",
        "T21: rrf ordering requires a limit clause",
    ),
    (
        "rrf(bm25($a.label, $s), nearest($a.v, $w)) as r } order { «r» } }",
        "T21: rrf ordering requires a limit clause",
    ),
    (
        "$a } order { rrf(bm25($a.label, $s), nearest($a.v, $w), «0») } limit 1 }",
        "T21: rrf k must be greater than 0",
    ),
    (
        "$a } order { rrf(bm25($a.label, $s), nearest($a.v, $w), «1.5») } limit 1 }",
        "T21: rrf k must be an integer scalar, got F64",
    ),
]

MUTATIONS = [
    ("insert «Nobody» { a: 1 }", "T10: unknown node/edge type `Nobody`"),
    ("delete «Nobody» where a = 1", "T10: unknown node/edge type `Nobody`"),
    ('insert Pot { label: "x" «nope»: 1 }', "T11: type `Pot` has no property `nope`"),
    ('insert Pot { label: "x" «from»: "y" }', "T11: type `Pot` has no property `from`"),
    ("delete Pot where «nope» = 1", "T11: type `Pot` has no property `nope`"),
    ("delete Pot where «photo» = $s", "T11: blob property `photo` cannot be used in WHERE predicates"),
    ("insert «Pot» { vol: 1 }", "T12: insert for `Pot` must provide non-nullable property `label`"),
    (
        "insert «Shelf» { req: 1 e: [1, 2] }",
        "T12: insert for `Shelf` must provide non-nullable property `code`",
    ),
    (
        'insert «Mimics» { to: "x" must: 1 }',
        "T12: insert for `Mimics` must provide required endpoint `from`",
    ),
    ('insert «Rests» { from: "x" }', "T12: insert for `Rests` must provide required endpoint `to`"),
    (
        'insert «Mimics» { from: "x" to: "y" }',
        "T12: insert for `Mimics` must provide non-nullable property `must`",
    ),
    ('insert Pot { label: "x" «label»: "y" }', "T13: duplicate assignment for property `label`"),
    ("insert Pot { label: «$nope» }", "T14: mutation variable `$nope` must be a declared query parameter"),
    ("delete Pot where label = «$nope»", "T14: mutation variable `$nope` must be a declared query parameter"),
    (
        'update «Mimics» set { note: "x" } where must = 1',
        "T16: update mutation for edge type `Mimics` is not supported",
    ),
    ("insert Pot { label: «1» }", "T3: property `label` has type String but got I64"),
    ('insert Pot { label: "x" grade: «"c"» }', "T3: property `grade` expects one of [a, b], got 'c'"),
    ('insert Pot { label: "x" photo: «"y"» }', "T3: property `photo` has type Blob? but got String"),
    (
        'insert Pot { label: "x" v: «[1, 2]» }',
        "T3: property `v` has type Vector(3)? but got vector literal with 2 elements",
    ),
    ("insert Pot { label: «$i» }", "T7: cannot assign/compare I32 with String for property `label`"),
    ('insert Pot { label: "x" vol: «now()» }', "T7: cannot assign/compare DateTime with I32? for property `vol`"),
    ('delete Pot where vol = «"x"»', "T3: property `vol` has type I32? but got String"),
    ("delete Rests where from = «1»", "T3: property `from` has type String but got I64"),
    ("delete Rests where from = «$i»", "T7: cannot assign/compare I32 with String for property `from`"),
    ('delete Pot where grade = «"c"»', "T3: property `grade` expects one of [a, b], got 'c'"),
    (
        "delete Pot where tags = «$l»",
        "T7: list comparisons in filters are not supported; use `contains` for list membership",
    ),
    ("delete Pot where v = «$w»", "T7: vector comparisons in filters are not supported"),
]


@pytest.mark.parametrize(("marked", "said"), [*BINDINGS, *TRAVERSALS, *FILTERS, *SEARCHES])
def test_clauses(marked: str, said: str) -> None:
    assert refusal(match(marked), QueryTypeError) == said


@pytest.mark.parametrize(("marked", "said"), RESULTS)
def test_results(marked: str, said: str) -> None:
    assert refusal(returning(marked), QueryTypeError) == said


@pytest.mark.parametrize(("marked", "said"), MUTATIONS)
def test_statements(marked: str, said: str) -> None:
    assert refusal(mutating(marked), QueryTypeError) == said


def test_every_rule_is_broken_here() -> None:
    tables = [*BINDINGS, *TRAVERSALS, *FILTERS, *SEARCHES, *RESULTS, *MUTATIONS]
    assert {said.partition(":")[0] for _, said in tables} >= {f"T{n}" for n in range(1, 25)}


@pytest.mark.parametrize(
    "clause",
    [
        "$z: Pot { vol: 2.5, big: 1, heat: $i, label: $s, fired: $d, sold: now(), glazed: true }",
        "$z: Pot { tags: $s, grade: $s, grade: \"a\" }",
        "$a.vol >= 2.5 $a.big = $f 1 < $a.heat $a.label != $c.room",
        "$a.tags contains $s $a.tags contains $c.code $a.grade = \"zzz\"",
        "$a.label contains $s $a.label starts_with $c.code $a.grade contains \"a\"",
        "$i = 3 now() > $a.sold $t <= now() true = $a.glazed $x != true",
        "$a mimics $b2 $o mimics $a $a mIMICS $a $_ mimics $a $a rests $_ $b2 rests $c",
        "$a <mimics> $o $a <mimics>{1,2} $p $a $m:mimics $o $a $_:mimics $o $m.force > 1",
        "not { $a mimics $z $z.vol > $a.vol } not { $a.vol = 1 } not { $z rests $c not { $z mimics $a } }",
        "not { $a: Pot { vol: 1 } } not { $z mimics $a } $z: Shelf",
        "search($a.label, $s) fuzzy($a.label, $s) fuzzy($a.label, $s, $i) match_text($c.room, \"x\") = true",
    ],
)  # laid out as a table  # fmt: skip
def test_clauses_that_are_fine(clause: str) -> None:
    check(match(clause))


@pytest.mark.parametrize(
    "items",
    [
        "$a, $o.label, $m.force, $s, $w, $l, 1, \"x\", [], now(), date(\"2024-01-01\") } }",
        "count($a), count($a.tags), min($a), max($a.label), sum($a.big) as s, avg($m.force), $a, $a.vol, $s } }",
        "min($a.grade), count($o.v) } }",
        "bm25($a.label, $s) as s, nearest($a.v, $w), search($a.label, $s) } }",
        "rrf(bm25($a.label, $s), nearest($o.v, \"text\")) } }",
        "$a } order { nearest($a.v, $w), $a.label desc } limit 1 }",
        "$a.label as l } order { bm25($a.label, $s), l } }",
        "bm25($a.label, $s) as s } order { $a.label, s desc } }",
        "nearest($a.v, $w) as s } order { s } limit 3 }",
        "count($a) as n, $a.label } order { n desc, $a.label } limit 0 }",
    ],
)  # laid out as a table  # fmt: skip
def test_results_that_are_fine(items: str) -> None:
    check(returning(items))


@pytest.mark.parametrize(
    "statements",
    [
        'insert Pot { label: $s, vol: 3, heat: 3, fired: date("2024-01-01"), sold: now(), tags: ["x"], photo: $b }',
        "insert Pot { label: $s photo: $s v: $w grade: $s tags: [] } insert Pot { label: $s v: [1, 2.5, 3] }",
        'insert Shelf { code: "x" req: 1 }',
        "insert Mimics { from: $s to: $s must: $i } insert Rests { to: $s, from: $s, }",
        "update Pot set { vol: $i } where label = $s update Pot set { vol: 1.5 } where fired >= $d",
        'delete Mimics where from = $s delete Rests where to != "x" delete Pot where vol > 1.5',
        "delete Mimics where must < 3",
        "delete Pot where sold < now() delete Pot where glazed = true delete Pot where big = $f",
    ],
)
def test_statements_that_are_fine(statements: str) -> None:
    check(mutating(statements))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (returning("$a } order { nope } }"), "alias 'nope' not found for ordering (aliases: none)"),
        (returning("$a } order { $a } }"), "unsupported ordering expression: $a; order by"),
        (returning("$a } order { 1 } }"), "unsupported ordering expression: 1; order by"),
        (returning("$a } order { $a.tags } }"), "unsupported ordering expression: 'a.tags' is [String]?"),
        (returning("$a.tags as t } order { t } }"), "unsupported ordering expression: 't' is [String]?"),
        (returning("$a.v as v, count($a) } order { v } }"), "unsupported ordering expression: 'v' is Vector(3)?"),
        (returning("$a.v, count($a) } order { $a.v } }"), "unsupported ordering expression: 'a.v' is Vector(3)?"),
        (returning("$a } order { $a.vol, bm25($a.label, $s) } }"), "ranks the result only as the first sort key"),
        (returning("count($a) as n } order { $a.vol } }"), "column 'a.vol' not found for ordering"),
        (returning("count($a) as n } order { m } }"), "alias 'm' not found for ordering (aliases: n)"),
        (returning("count($a) as n } order { count($a) } }"), "unsupported ordering expression"),
        (match('$a.fired = date("2024-02-30")'), "invalid Date literal '2024-02-30'"),
        (match('$z: Pot { sold: datetime("today") }'), "invalid DateTime literal 'today'"),
        ("query q() { match { $a mimics $o } return { $a } }", "neither end of `$a Mimics $o` is bound"),
        ("query q() { match { 1 = 1 } return { 1 } }", "a match block needs a binding"),
        (mutating('insert Shelf { code: "x" req: 1 } delete Pot where vol = 1'), "mixes inserts/updates and deletes"),
        (mutating('update Pot set { label: "x" } where vol = 1'), "cannot update @key property 'label'"),
    ],
)
def test_what_no_run_could_answer(text: str, said: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        check(text)
    assert said in caught.value.message


def test_the_name_behind_now_is_reserved() -> None:
    text = "query q(«$__nanograph_now»: DateTime) { match { $a: Pot } return { $a } }"
    said = "parameter name `$__nanograph_now` is reserved for runtime timestamp injection"
    assert refusal(text, QueryTypeError) == said


def test_of_two_parameters_with_one_name_the_later_counts() -> None:
    check("query q($i: String, $i: I32) { match { $a: Pot { vol: $i } } return { $a } }")


def test_the_line_is_shown() -> None:
    with pytest.raises(QueryTypeError) as caught:
        check("query q() {\n  match {\n    $a: Pot\n    $a.nope = 1\n  }\n  return { $a }\n}")
    assert caught.value.message.split("\n") == [
        "type error: T6: type `Pot` has no property `nope`",
        " --> line 4, column 8",
        "  |",
        "4 |     $a.nope = 1",
        "  |        ^^^^",
    ]
