"""From evidence to the text of a schema, with the evidence beside each line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from spark_omnigraph.graph.profile.evidence import ColumnEvidence, TableEvidence
from spark_omnigraph.redaction import distinct, excerpt
from spark_omnigraph.words import counted

ROWS_FOR_ENUM = 100
"""Rows below which a column of few texts is no enumeration yet."""
_ENUM = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NAME = re.compile(r"[^A-Za-z0-9_]+")
_KEY_NAMES = ("id", "key", "code", "sku", "uuid")
_NAMES = ("name", "slug", "title")
_ENDS = (":start_id", ":end_id", "start_id", "end_id", "from", "to", "src", "dst")


@dataclass(frozen=True, slots=True)
class Pointer:
    """A column all of whose values are keys of a node type."""

    column: str
    target: str
    key: str
    values: int


def key_of(table: TableEvidence) -> str | None:
    """The column that names each row: unique, never null, no end of an edge, and of those the one that is called most
    like a key.
    """
    if table.is_edge:
        return None
    found = [c.name for c in table.columns.values() if c.values == table.rows and c.is_unique() and not is_end(c.name)]
    called = {name: place for place, name in enumerate(_key_names(table))}
    places = [*table.columns]
    return min(found, key=lambda name: (called.get(name.lower(), len(called)), places.index(name)), default=None)


def is_end(column: str) -> bool:
    """Whether a column is called as one that says which row an edge begins or ends at."""
    return column.lower() in _ENDS


def _key_names(table: TableEvidence) -> tuple[str, ...]:
    """What a key is called, the likeliest first: before names and titles a first column that ends in `id`."""
    first = next(iter(table.columns), "").lower()
    return *_own_names(table), *([first] if first.endswith("id") else []), *_NAMES


def _own_names(table: TableEvidence) -> tuple[str, ...]:
    own = table.name.lower()
    return f"{own}_id", f"{own}id", f"{own.removesuffix('s')}_id", *_KEY_NAMES


def propose(tables: Sequence[TableEvidence], pointers: Mapping[str, Sequence[Pointer]]) -> str:
    """The schema; `pointers` by the name of the table that they stand in."""
    nodes = [table for table in tables if not _is_edge(table, pointers.get(table.name, ()))]
    edges = [table for table in tables if table not in nodes]
    parts = ["// Proposed from data. What a comment says was seen; look at each line before you make a graph of it.\n"]
    parts += [_node(table, pointers.get(table.name, ())) for table in nodes]
    parts += [_pointer_edge(table, each) for table in nodes for each in pointers.get(table.name, ())]
    parts += [_edge(table, pointers.get(table.name, ())) for table in edges]
    return "\n".join(parts)


def _is_edge(table: TableEvidence, pointers: Sequence[Pointer]) -> bool:
    """Whether rows tie two nodes: records of edges, or rows that point at two, with no column that is called a key."""
    key = key_of(table)
    names = _key_names(table) if key not in {each.column for each in pointers} else (*_own_names(table), *_NAMES)
    return table.is_edge or (len(pointers) >= 2 and (key is None or key.lower() not in names))


def _node(table: TableEvidence, pointers: Sequence[Pointer]) -> str:
    key = key_of(table)
    pointing = {each.column for each in pointers}
    columns = [column for column in table.columns.values() if column.name not in pointing]
    body = [_line(table, column, "@key" if column.name == key else "@unique") for column in columns]
    body += [f"  // {excerpt(each.column)}: see edge {_edge_name(table, each)}" for each in pointers]
    told = _rows(table) + ("" if key else "; no column names each row once")
    body += _ranges(columns, {key} if key else set())
    return f"{_left_out(table)}// {told}\nnode {table.name} {{\n{_lines(body)}}}\n"


def _pointer_edge(table: TableEvidence, each: Pointer) -> str:
    told = f"all {each.values:,} values of {table.name}.{excerpt(each.column)} are keys of {each.target} ({each.key})"
    return f"// {told}\nedge {_edge_name(table, each)}: {table.name} -> {each.target} @card(0..1)\n"


def _edge(table: TableEvidence, pointers: Sequence[Pointer]) -> str:
    ends = {each.column: each for each in pointers}
    first, second = (ends.get("from"), ends.get("to")) if table.is_edge else pointers[:2]
    told = f"{_left_out(table)}// {_rows(table)}"
    if first is None or second is None:
        return f"{told}: edges {table.name}, whose ends are not all keys of one node type\n"
    columns = [c for c in table.columns.values() if c.name not in (first.column, second.column)]
    body = _lines([*(_line(table, column) for column in columns), *_ranges(columns, set())])
    head = f"edge {table.name}: {first.target} -> {second.target}"
    told += f"; {excerpt(first.column)} and {excerpt(second.column)} are keys of {first.target} and {second.target}"
    return f"{told}\n{head} {{\n{body}}}\n" if body else f"{told}\n{head}\n"


def left_out(table: TableEvidence) -> list[str]:
    """Of each file with rows that no load takes, how many and which is the first."""
    return [
        f"{counted(rows, 'row')} of {excerpt(source)} {'is' if rows == 1 else 'are'} left out, as a load refuses "
        f"{'it' if rows == 1 else 'them'}: {'' if rows == 1 else 'the first is '}{first}"
        for source, (rows, first) in table.left_out.items()
    ]


def _left_out(table: TableEvidence) -> str:
    return _lines([f"// {line}" for line in left_out(table)])


def _rows(table: TableEvidence) -> str:
    return f"{counted(table.rows, 'row')} of {excerpt(table.source)}"


def _edge_name(table: TableEvidence, each: Pointer) -> str:
    words = [word for word in re.split(r"[^A-Za-z0-9]+", re.sub(r"(?i)_?id$", "", each.column) or each.column) if word]
    return table.name + "".join(word[:1].upper() + word[1:] for word in words)


def _line(table: TableEvidence, column: ColumnEvidence, if_unique: str = "") -> str:
    """A property, or a comment where no property can take the column; with the mark for values that occur once."""
    named = _property(table, column.name)
    said = [_seen(table, column)]
    if named != column.name:
        said.append(f"column {excerpt(column.name)!r}, by a mapping")
    if column.type_name is None:
        return f"  // {named}: {column.mixed or 'no value seen'}"
    optional = "?" if column.values < table.rows else ""
    unique = if_unique and column.values == table.rows and column.is_unique()
    mark = f" {if_unique}" if unique else ""
    return f"  {named}: {_enum(column) or column.type_name}{optional}{mark}  // {', '.join(said)}"


def _seen(table: TableEvidence, column: ColumnEvidence) -> str:
    nulls = table.rows - column.values
    parts = [f"{nulls:,} of {table.rows:,} null" if nulls else "never null"]
    if column.too_many:
        parts.append("not known whether unique: too many values")
    elif column.values == table.rows and column.is_unique():
        parts.append(f"{column.values:,} distinct")
    elif column.few:
        texts = sorted(column.few)
        parts.append(f"{len(texts)} distinct: {excerpt(', '.join(distinct(text, ',') for text in texts))}")
    if column.most is not None:
        scalar, count, other = column.most
        parts.append(f"{count:,} of {column.values:,} spell {scalar}, but not {excerpt(other)!r}")
    return ", ".join(parts)


def _enum(column: ColumnEvidence) -> str | None:
    few = column.few
    likely = (
        few
        and len(few) > 1
        and column.values >= max(ROWS_FOR_ENUM, 10 * len(few))
        and not column.possible
        and not column.is_list
    )
    if few and likely and all(_ENUM.fullmatch(each) for each in few):
        return f"enum({', '.join(sorted(few))})"
    return None


def _ranges(columns: Iterable[ColumnEvidence], keys: set[str]) -> list[str]:
    """Of numbers that are no keys, what was seen: wider bounds are for whoever knows more."""
    found = []
    for column in columns:
        scalar = column.proposed
        if column.name in keys or scalar is None or not scalar.is_numeric or column.type_name != str(scalar):
            continue
        texts = [_number(bound, scalar.is_integer) for bound in (column.low, column.high)]
        if None not in texts:
            found.append(f"  @range({_plain(column.name)}, {texts[0]}..{texts[1]})")
    return found


def _number(bound: float | None, whole: bool) -> str | None:
    if bound is None or not math.isfinite(bound):
        return None
    return str(int(bound)) if whole else f"{Decimal(repr(float(bound))):f}"


def _property(table: TableEvidence, column: str) -> str:
    """A name that a property may have: `id` is every row's own."""
    plain = _plain(column)
    return f"{table.name[:1].lower()}{table.name[1:]}_id" if plain.lower() == "id" else plain


def _plain(column: str) -> str:
    name = _NAME.sub("_", column).strip("_") or "column"
    name = name[:1].lower() + name[1:]
    return name if name[0].isalpha() else f"_{name}"


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
