"""Expressions and literals of a query: text → syntax tree."""

from __future__ import annotations

import re

from spark_omnigraph.catalog.numbers import Real
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.lang.gq.plan import AggregateFunction, TextForm
from spark_omnigraph.lang.gq.syntax.ast import (
    AggregateCall,
    AliasReference,
    Assigned,
    Bm25Call,
    Expr,
    ListLiteral,
    Literal,
    NearestCall,
    NowCall,
    PropertyAccess,
    RrfCall,
    TextCall,
    Variable,
)
from spark_omnigraph.lang.scanner import IDENTIFIER, INTEGER, STRING, Scanner
from spark_omnigraph.lang.source import Name, Region

DEPTH = 64
"""Levels of nested calls, lists and negations."""

INTEGER_MAX = 2**63 - 1
NULL = "null"
"""No word of the language; people try it."""

VARIABLE = re.compile(r"\$[a-z_][A-Za-z0-9_]*")
_FLOAT = re.compile(r"[0-9]+\.[0-9]+")
_BOOLEAN = re.compile(r"true|false")
_OPERATOR = re.compile(r"[-+*%]|/(?![/*])")
_CALL = re.compile("now|nearest|search|fuzzy|match_text|bm25|rrf|count|sum|avg|min|max")
_DATED = re.compile("datetime|date")
_TEXT_FORMS = {str(form): form for form in TextForm}
_AGGREGATES = {str(function): function for function in AggregateFunction}


def null_hint(property_: PropertyAccess) -> str:
    """How one asks for a value, after a message about `null`: a comparison with null never holds."""
    name = f"${property_.variable.text}.{property_.property.text}"
    return f" (`{name} = {name}` holds where there is a value, `not {{ {name} = {name} }}` where there is none)"


def variable(scanner: Scanner, what: str) -> Name:
    """A `$variable` that has to come next, without its `$`."""
    found = optional_variable(scanner)
    if found is None:
        raise scanner.unexpected(what)
    return found


def optional_variable(scanner: Scanner) -> Name | None:
    """A `$variable` if it comes next, without its `$`."""
    found = scanner.match(VARIABLE)
    return None if found is None else Name(found.text[1:], found.region)


def integer(scanner: Scanner, what: str) -> int:
    """An unsigned integer that has to come next."""
    found = scanner.match(INTEGER)
    if found is None:
        raise scanner.unexpected(what)
    return _integer(scanner, found)


def string(scanner: Scanner, where: str) -> str:
    """A string that has to come next, decoded."""
    found = scanner.match(STRING)
    if found is None:
        raise scanner.unexpected(f"a string {where}")
    return scanner.decode(found)


def expression(scanner: Scanner, depth: int = 0) -> Expr:
    """An expression that has to come next. There is no arithmetic, and an operator behind it is told so."""
    found = _operand(scanner, depth)
    operator = scanner.match(_OPERATOR)
    if operator is not None:
        raise scanner.error(operator.region, f"'{operator.text}': queries have no arithmetic; SQL over a graph has it")
    return found


def _operand(scanner: Scanner, depth: int) -> Expr:
    if depth > DEPTH:
        raise scanner.error(Region(scanner.pos, scanner.pos + 1), f"expressions nest deeper than {DEPTH} levels")
    call = _match(scanner, _CALL)
    if call is not None:
        return _call(scanner, call, depth)
    found = optional_variable(scanner)
    if found is not None:
        return _variable_or_property(scanner, found)
    value = literal(scanner, depth)
    if value is not None:
        return value
    word = scanner.match(IDENTIFIER)
    if word is None:
        raise scanner.unexpected("an expression")
    return AliasReference(word)


def assigned(scanner: Scanner) -> Assigned:
    """What may stand behind the colon of a property: a literal, a variable, or `now()`."""
    found = optional_variable(scanner)
    if found is not None:
        return Variable(found)
    call = _match(scanner, _CALL)
    if call is not None and call.text == "now":
        return NowCall(call.region.to(scanner.expect(")", "after 'now('")))
    if call is not None:
        scanner.pos = call.region.start
    value = None if call is not None else literal(scanner, 0)
    if value is None:
        null = " (null is passed as a parameter)" if scanner.peek(NULL) else ""
        raise scanner.unexpected(f"a literal, a $variable or now(){null}")
    return value


def literal(scanner: Scanner, depth: int) -> Literal | ListLiteral | None:
    """A literal if it comes next."""
    if scanner.peek("["):
        return _list(scanner, depth)
    dated = _match(scanner, _DATED)
    if dated is not None:
        text = string(scanner, f"inside {dated.text}()")
        scalar = Scalar.DATETIME if dated.text == "datetime" else Scalar.DATE
        return Literal(
            text, PropType(scalar), dated.region.to(scanner.expect(")", f"after the text of {dated.text}()"))
        )
    found = scanner.match(STRING)
    if found is not None:
        return Literal(scanner.decode(found), PropType(Scalar.STRING), found.region)
    found = scanner.match(_FLOAT)
    if found is not None:
        return Literal(Real(found.text), PropType(Scalar.F64), found.region)
    found = scanner.match(INTEGER)
    if found is not None:
        return Literal(_integer(scanner, found), PropType(Scalar.I64), found.region)
    found = scanner.match(_BOOLEAN)
    return None if found is None else Literal(found.text == "true", PropType(Scalar.BOOL), found.region)


def _match(scanner: Scanner, words: re.Pattern[str]) -> Name | None:
    """One of the words if it and an opening parenthesis come next."""
    start = scanner.skip()
    word = scanner.match(words)
    if word is not None and scanner.take("("):
        return word
    scanner.pos = start
    return None


def _integer(scanner: Scanner, found: Name) -> int:
    if len(found.text) > 19 or int(found.text) > INTEGER_MAX:
        raise scanner.error(found.region, f"invalid integer: {found.text} is larger than {INTEGER_MAX}")
    return int(found.text)


def _list(scanner: Scanner, depth: int) -> ListLiteral:
    start = scanner.expect("[", "")
    if depth > DEPTH:
        raise scanner.error(start, f"lists nest deeper than {DEPTH} levels")
    items: list[Literal | ListLiteral] = []
    while not scanner.peek("]"):
        if items:
            scanner.expect(",", "or ']' after a list item")
        item = literal(scanner, depth + 1)
        if item is None:
            raise scanner.unexpected("a literal inside the list")
        items.append(item)
    return ListLiteral(tuple(items), start.to(scanner.expect("]", "after the list")))


def _variable_or_property(scanner: Scanner, found: Name) -> Variable | PropertyAccess:
    if not scanner.take("."):
        return Variable(found)
    name = scanner.match(IDENTIFIER)
    if name is None:
        raise scanner.unexpected(f"a property of ${found.text}")
    return PropertyAccess(found, name)


def _call(scanner: Scanner, word: Name, depth: int) -> Expr:
    if word.text == "now":
        return NowCall(word.region.to(scanner.expect(")", "after 'now('")))
    if word.text == "nearest":
        return _nearest(scanner, word, depth)
    if word.text == "rrf":
        return _rrf(scanner, word, depth)
    first = expression(scanner, depth + 1)
    function = _AGGREGATES.get(word.text)
    if function is not None:
        return AggregateCall(function, first, _end(scanner, word))
    scanner.expect(",", f"after the first argument of {word.text}()")
    query = expression(scanner, depth + 1)
    if word.text == "bm25":
        return Bm25Call(first, query, _end(scanner, word))
    edits = expression(scanner, depth + 1) if word.text == "fuzzy" and scanner.take(",") else None
    return TextCall(_TEXT_FORMS[word.text], first, query, edits, _end(scanner, word))


def _nearest(scanner: Scanner, word: Name, depth: int) -> NearestCall:
    target = _variable_or_property(scanner, variable(scanner, "the vector property of nearest()"))
    if isinstance(target, Variable):
        raise scanner.unexpected("'.' and the vector property of nearest()")
    scanner.expect(",", "after the property of nearest()")
    return NearestCall(target, expression(scanner, depth + 1), _end(scanner, word))


def _rrf(scanner: Scanner, word: Name, depth: int) -> RrfCall:
    primary = _arm(scanner, depth)
    scanner.expect(",", "after the first ranking of rrf()")
    secondary = _arm(scanner, depth)
    k = expression(scanner, depth + 1) if scanner.take(",") else None
    return RrfCall(primary, secondary, k, _end(scanner, word))


def _arm(scanner: Scanner, depth: int) -> NearestCall | Bm25Call:
    start = scanner.skip()
    arm = expression(scanner, depth + 1)
    if not isinstance(arm, NearestCall | Bm25Call):
        raise scanner.error(Region(start, scanner.pos), "rrf() fuses rankings: nearest() or bm25()")
    return arm


def _end(scanner: Scanner, word: Name) -> Region:
    return word.region.to(scanner.expect(")", f"after the arguments of {word.text}()"))
