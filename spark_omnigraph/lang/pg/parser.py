"""Schema text → syntax tree: recursive descent over declarations, without recursion anywhere."""

from __future__ import annotations

from spark_omnigraph.catalog.types import Cardinality
from spark_omnigraph.errors import InputError, SchemaParseError
from spark_omnigraph.lang.pg.ast import (
    ConstraintDecl,
    EdgeDecl,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    Schema,
)
from spark_omnigraph.lang.pg.attributes import constraint_name, parse_annotations, parse_constraint
from spark_omnigraph.lang.pg.near_miss import advice, resembles
from spark_omnigraph.lang.pg.prop_types import prop_type
from spark_omnigraph.lang.pg.report import parse_error
from spark_omnigraph.lang.scanner import IDENTIFIER, INTEGER, TYPE_NAME, WORD, Scanner
from spark_omnigraph.lang.source import Name, Region, SourceText

TEXT_LIMIT = 4 * 1024 * 1024
"""Characters of a schema text."""

_COUNT_LIMIT = 2**32 - 1


def parse(source: SourceText) -> Schema:
    """The syntax tree of a schema text; `SchemaParseError` for the first place where it is not one."""
    _check_text(source)
    scanner = Scanner(source, parse_error, "schema")
    interfaces: list[InterfaceDecl] = []
    nodes: list[NodeDecl] = []
    edges: list[EdgeDecl] = []
    while not scanner.at_end():
        if scanner.take("interface"):
            interfaces.append(_interface(scanner))
        elif scanner.take("node"):
            nodes.append(_node(scanner))
        elif scanner.take("edge"):
            edges.append(_edge(scanner))
        else:
            raise scanner.unexpected("'interface', 'node' or 'edge'")
    return Schema(tuple(interfaces), tuple(nodes), tuple(edges))


def _check_text(source: SourceText) -> None:
    if len(source.text) > TEXT_LIMIT:
        raise SchemaParseError(f"parse error: a schema of {len(source.text)} characters is longer than {TEXT_LIMIT}")
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        raise SchemaParseError(
            f"parse error: character {error.start} of the schema is half a surrogate pair"
        ) from error


def _interface(scanner: Scanner) -> InterfaceDecl:
    name = _type_name(scanner, "interface")
    properties, _ = _body(scanner, constraints=False)
    return InterfaceDecl(name, properties)


def _node(scanner: Scanner) -> NodeDecl:
    name = _type_name(scanner, "node")
    attached = parse_annotations(scanner)
    misplaced = constraint_name(scanner)
    if misplaced is not None:
        message = f"@{misplaced.text} is only supported on node properties or as body constraint (node {name.text})"
        raise scanner.error(misplaced.region, message)
    implements: list[Name] = []
    if scanner.take("implements"):
        implements.append(_type_reference(scanner, "an interface"))
        while scanner.take(","):
            implements.append(_type_reference(scanner, "an interface"))
    if implements and scanner.peek("@"):
        raise scanner.unexpected("'{': annotations come before 'implements'")
    properties, constraints = _body(scanner)
    return NodeDecl(name, attached, tuple(implements), properties, constraints)


def _edge(scanner: Scanner) -> EdgeDecl:
    name = _type_name(scanner, "edge")
    scanner.expect(":", "after the name of an edge")
    from_type = _type_reference(scanner, "the source node")
    scanner.expect("->", "between the node types of an edge")
    to_type = _type_reference(scanner, "the target node")
    cardinality = _cardinality(scanner)
    attached = parse_annotations(scanner)
    misplaced = constraint_name(scanner)
    if misplaced is not None:
        message = f"@{misplaced.text} is not supported on edges (edge {name.text}), only in the body of one"
        raise scanner.error(misplaced.region, message)
    properties, constraints = _body(scanner) if scanner.peek("{") else ((), ())
    return EdgeDecl(name, from_type, to_type, cardinality, attached, properties, constraints)


def _type_name(scanner: Scanner, keyword: str) -> Name:
    name = scanner.match(TYPE_NAME)
    if name is not None:
        return name
    glued = scanner.glued()
    if glued is not None:
        raise scanner.error(glued.region, f"expected 'interface', 'node' or 'edge', found '{glued.text}'")
    raise scanner.unexpected(f"the name of the {keyword}, which begins with an upper-case letter")


def _type_reference(scanner: Scanner, what: str) -> Name:
    name = scanner.match(TYPE_NAME)
    if name is None:
        raise scanner.unexpected(f"the name of {what}, which begins with an upper-case letter")
    return name


def _cardinality(scanner: Scanner) -> Cardinality:
    """`@card(min..max)` if it comes next; without `..` it is left for the annotations."""
    start = scanner.skip()
    if scanner.take("@card") and scanner.take("("):
        low = scanner.match(INTEGER)
        if low is not None and scanner.take(".."):
            high = scanner.match(INTEGER)
            end = scanner.expect(")", "after the bounds of @card")
            return _checked_cardinality(scanner, low, high, Region(start, end.end))
    scanner.pos = start
    return Cardinality()


def _checked_cardinality(scanner: Scanner, low: Name, high: Name | None, region: Region) -> Cardinality:
    smallest = _count(scanner, low, "min")
    largest = None if high is None else _count(scanner, high, "max")
    if largest is not None and smallest > largest:
        raise scanner.error(region, f"cardinality min ({smallest}) exceeds max ({largest})")
    return Cardinality(smallest, largest)


def _count(scanner: Scanner, number: Name, end: str) -> int:
    digits = number.text.lstrip("0") or "0"
    if len(digits) > 10 or int(digits) > _COUNT_LIMIT:
        raise scanner.error(number.region, f"invalid cardinality {end}: {digits[:40]} is more than {_COUNT_LIMIT}")
    return int(digits)


def _body(scanner: Scanner, constraints: bool = True) -> tuple[tuple[PropertyDecl, ...], tuple[ConstraintDecl, ...]]:
    scanner.expect("{", "before the properties")
    properties: list[PropertyDecl] = []
    found: list[ConstraintDecl] = []
    while not scanner.take("}"):
        name = scanner.match(IDENTIFIER)
        if name is not None:
            properties.append(_property(scanner, name))
            continue
        rule = parse_constraint(scanner) if constraints else None
        if rule is None:
            raise _not_a_member(scanner, constraints)
        found.append(rule)
    return tuple(properties), tuple(found)


def _property(scanner: Scanner, name: Name) -> PropertyDecl:
    if not scanner.take(":"):
        scanner.pos = name.region.start
        glued = scanner.glued()
        if glued is not None:
            raise scanner.error(glued.region, f"unknown type '{glued.text}'")
        scanner.pos = name.region.end
        raise scanner.unexpected(f"':' after the property name '{name.text}'")
    return PropertyDecl(name, prop_type(scanner), parse_annotations(scanner))


def _not_a_member(scanner: Scanner, constraints: bool) -> InputError:
    glued = scanner.glued()
    if glued is not None:
        return scanner.error(glued.region, f"unknown type '{glued.text}'")
    if scanner.peek(","):
        return scanner.unexpected("a property or '}': properties are not separated by commas")
    if not scanner.peek("@"):
        return scanner.unexpected("a property, a constraint or '}'" if constraints else "a property or '}'")
    if not constraints:
        return scanner.unexpected("a property or '}': an interface has no constraints in its body")
    start = scanner.pos
    scanner.take("@")
    word = scanner.match(WORD)
    known = None if word is None else resembles(word.text)
    if word is not None and known is not None:
        return scanner.error(word.region, f"unknown constraint @{word.text}; did you mean @{known}? {advice(known)}")
    scanner.pos = start
    return scanner.unexpected("@key(…), @unique(…), @index(…), @range(…), @check(…), a property or '}'")
