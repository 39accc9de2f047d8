"""Hypothesis strategies for schema texts that are valid, in all the ways they can be written."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

SCALARS = ("String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "DateTime", "Date")
LISTABLE = tuple(scalar for scalar in SCALARS if scalar != "Blob")
NUMERIC = ("I32", "I64", "U32", "U64", "F32", "F64")

NODE_NAMES = ("Ox", "Yak", "Crate", "N", "A_1", "Node", "String")
EDGE_NAMES = ("Pulls", "Feeds", "E", "Ox", "On_2", "Edge")
INTERFACE_NAMES = ("Named", "I", "Ox")
NAMES = ("a", "b", "name", "node", "key", "enum", "_x", "camelCase", "a1", "true_", "interface")
UNKNOWN = ("team", "pii", "mask", "x", "audit_log")

gaps = st.sampled_from([" ", "\n", "\t", " /* c */ ", " // c\n", "\r\n  "])
string_values = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n\r\t/*@{}é😀'), max_size=12)
words = st.sampled_from(["a", "b9", "other_word", "x"])


def quoted(value: str) -> str:
    """A string literal of a value; line breaks may stand in it as they are."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'


strings = string_values.map(quoted)
texts = string_values.filter(lambda value: value.strip() != "").map(quoted)
numbers = st.integers(0, 10**6).map(str) | st.sampled_from(["007", "1.50", "0.0"])
literals = strings | numbers | st.sampled_from(["true", "false"])


@dataclass(frozen=True)
class Member:
    """A property as text, and what constraints have to know of it."""

    name: str
    scalar: str
    plain: bool
    nullable: bool
    text: str

    @property
    def storable(self) -> bool:
        """Fit for `@key` and `@unique`."""
        return self.plain and self.scalar != "Blob"


@st.composite
def annotation(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(UNKNOWN))
    if draw(st.booleans()):
        return f"@{name}"
    keys = draw(st.lists(st.sampled_from(["zone", "model", "k"]), unique=True, max_size=2))
    arguments = [draw(literals | words), *(f"{key}{draw(gaps)}={draw(literals)}" for key in keys)]
    return f"@{name}({', '.join(arguments)})"


@st.composite
def types(draw: st.DrawFn) -> tuple[str, str, bool]:
    """Text, scalar, and whether it is a plain value."""
    kind = draw(st.sampled_from(["scalar", "scalar", "list", "enum", "vector"]))
    if kind == "list":
        scalar = draw(st.sampled_from(LISTABLE))
        return f"[{draw(gaps)}{scalar}]", scalar, False
    if kind == "enum":
        values = draw(st.lists(st.sampled_from(["a", "b-2", "9", "_", "Z", "aa"]), min_size=1, unique=True))
        return f"enum({', '.join(values)})", "String", True
    if kind == "vector":
        return f"Vector({draw(st.integers(1, 2**16))})", "Vector", False
    scalar = draw(st.sampled_from(SCALARS))
    return scalar, scalar, True


@st.composite
def members(draw: st.DrawFn) -> list[Member]:
    found = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=5)):
        text, scalar, plain = draw(types())
        nullable = draw(st.booleans())
        notes = [draw(annotation()) for _ in range(draw(st.integers(0, 2)))]
        if draw(st.booleans()):
            notes.append(f"@description({draw(texts)})")
        if draw(st.booleans()) and plain and scalar != "Blob":
            notes.append(draw(st.sampled_from(["@unique", "@index", "@ index"])))
        whole = draw(gaps).join([f"{name}:{draw(gaps)}{text}{'?' if nullable else ''}", *notes])
        found.append(Member(name, scalar, plain, nullable, whole))
    return found


@st.composite
def bounds(draw: st.DrawFn) -> str:
    """`min..max` or `min..`, with a minimum that is not above the maximum."""
    numbers = st.integers(-(2**64), 2**64) | st.floats(-1e18, 1e18).filter(lambda value: "e" not in repr(value))
    low, high = sorted([draw(numbers), draw(numbers)])
    gap = draw(gaps)
    return f"{low}{gap}..{gap}{high}" if draw(st.booleans()) else f"{low}.."


@st.composite
def constraints(draw: st.DrawFn, found: list[Member], ends: list[str]) -> list[str]:
    """Constraints of a body; `ends` are the columns that an edge has besides its properties."""
    named = [m.name for m in found if m.storable and not m.name.startswith(("true", "false"))] + ends
    texts = []
    for rule in draw(st.lists(st.sampled_from(["unique", "index"]), max_size=3)):
        columns = draw(st.lists(st.sampled_from(named), unique=True, min_size=1, max_size=3)) if named else []
        if columns:
            texts.append(f"@{rule}({', '.join(columns)})")
    if ends:
        return texts
    required = [m.name for m in found if m.name in named and not m.nullable]
    if bool(required) and draw(st.booleans()):
        keys: list[str] = draw(st.lists(st.sampled_from(required), unique=True, min_size=1))
        texts.append(f"@key({', '.join(keys)})")
    for member in found:
        if member.name in named and member.scalar in NUMERIC and draw(st.booleans()):
            texts.append(f"@range({member.name}, {draw(bounds())})")
        if member.name in named and member.scalar == "String" and draw(st.booleans()):
            texts.append(f"@check({member.name}, {draw(strings)})")
    return texts


@st.composite
def body(draw: st.DrawFn, ends: list[str]) -> str:
    found = draw(members())
    parts = [m.text for m in found] + draw(constraints(found, ends))
    return "{" + draw(gaps).join(["", *draw(st.permutations(parts)), ""]) + "}"


@st.composite
def declarations(draw: st.DrawFn) -> list[str]:
    """The declarations of a schema, in any order."""
    parts = []
    for name in draw(st.lists(st.sampled_from(INTERFACE_NAMES), unique=True, max_size=2)):
        parts.append(f"interface {name} {{{draw(gaps).join(['', *(m.text for m in draw(members())), ''])}}}")
    nodes = draw(st.lists(st.sampled_from(NODE_NAMES), unique=True, min_size=1, max_size=3))
    for name in nodes:
        parts.append(f"node {name} {draw(annotation()) if draw(st.booleans()) else ''} {draw(body([]))}")
    if parts[0].startswith("interface"):
        parts.append(f"node Child implements {parts[0].split()[1]} {{}}")
    for name in draw(st.lists(st.sampled_from(EDGE_NAMES), unique=True, max_size=3)):
        ends = f"{draw(st.sampled_from(nodes))}{draw(gaps)}->{draw(gaps)}{draw(st.sampled_from(nodes))}"
        card = draw(st.sampled_from(["", "@card(0..1)", "@card(2..)", "@card( 1 .. 4294967295 )"]))
        tail = draw(st.one_of(st.just(""), body(["src", "dst"])))
        parts.append(f"edge {name}: {ends} {card} {draw(annotation()) if draw(st.booleans()) else ''} {tail}")
    return draw(st.permutations(parts))
