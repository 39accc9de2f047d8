"""Ids of keyed nodes: the canonical text of the key, and the forms in which an edge may name it.

One key column gives its text, several give the compact JSON array of their texts in the order of the catalog.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.dates import parse_date, parse_datetime
from spark_omnigraph.catalog.numbers import float_value, integral
from spark_omnigraph.catalog.types import NodeType, Scalar
from spark_omnigraph.records.columns import one_array
from spark_omnigraph.records.json_numbers import float_text, whole_number

STORED_DATE = re.compile(r"-?\d+", re.ASCII)
"""A Date or DateTime key as it is stored; text of this form is never read as a date."""
_ESCAPED = r'["\\\x00-\x1f]'
_FLOATS = (Scalar.F32, Scalar.F64)


def key_ids(entity: NodeType, table: pa.Table) -> pa.Array:
    """Ids of the rows of a keyed node table; null where a key column is null or holds no finite number."""
    texts = [column_text(one_array(table.column(name)), scalar) for name, scalar in key_columns(entity)]
    return texts[0] if len(texts) == 1 else composite_ids(texts)


def key_columns(entity: NodeType) -> list[tuple[str, Scalar]]:
    """Key columns in canonical order with their types; none for a type without a key."""
    types = {p.name: p.type.scalar for p in entity.properties}
    return [(name, types[name]) for name in entity.key or ()]


def composite_ids(texts: Sequence[pa.Array], required: int | None = None) -> pa.Array:
    """Compact JSON arrays of the texts of several columns, row by row; null where one of the `required` first is null,
    of which there are as many as columns unless it is said. A null of another one is a null of the array.
    """
    count = len(texts) if required is None else required
    quoted = [quoted_texts(text) for text in texts]
    quoted[count:] = [pc.fill_null(text, "null") for text in quoted[count:]]
    return pc.binary_join_element_wise("[", pc.binary_join_element_wise(*quoted, ","), "]", "")


def quoted_texts(texts: pa.Array) -> pa.Array:
    """Texts as JSON strings; null stays."""
    return pc.binary_join_element_wise('"', _escaped(texts), '"', "")


def composite_id(texts: Sequence[str]) -> str:
    """Compact JSON array of the texts of several columns.

    >>> composite_id(["n", "1"])
    '["n","1"]'
    """
    return json.dumps(list(texts), ensure_ascii=False, separators=(",", ":"))


def endpoint_id(value: object, node: NodeType) -> str | None:
    """The node id that `from` or `to` means, None when a value of this kind cannot name a node of the type.

    Text is an id as it stands; for Date and DateTime keys it may also be a date. Numbers and booleans name nodes whose
    key is of that kind, arrays those with several key columns.
    """
    return end_id(value, key_columns(node))


def id_form(node: NodeType) -> str:
    """What a message adds about ids of a node type whose key has several columns; nothing for others.

    >>> from spark_omnigraph.lang.pg import compile_schema
    >>> id_form(compile_schema("node Order { shop: String  number: I32  @key(shop, number) }").nodes["Order"])
    '; an id of Order is the array of its key in the order of names, as [number, shop]'
    """
    names = ", ".join(name for name, _ in key_columns(node))
    if "," not in names:
        return ""
    return f"; an id of {node.name} is the array of its key in the order of names, as [{names}]"


def end_id(value: object, columns: Sequence[tuple[str, Scalar]]) -> str | None:
    """`endpoint_id` for a node type with these key columns."""
    if isinstance(value, str):
        return value if len(columns) != 1 else key_text(value, columns[0][1])
    if isinstance(value, list):
        if len(columns) < 2 or len(value) != len(columns):
            return None
        texts = [key_text(part, scalar) for part, (_, scalar) in zip(value, columns, strict=True)]
        return None if None in texts else composite_id([text for text in texts if text is not None])
    return key_text(value, columns[0][1]) if len(columns) == 1 else None


def key_text(value: object, scalar: Scalar) -> str | None:
    """Canonical text of one key value as JSON gives it; None when the kind does not fit the column."""
    if isinstance(value, str):
        return _text_of_text(value, scalar)
    if isinstance(value, bool):
        return str(value).lower() if scalar is Scalar.BOOL else None
    if not isinstance(value, (int, float)):
        return None
    if scalar.is_integer:
        whole = integral(value)
        return None if whole is None else str(whole)
    if scalar in (Scalar.DATE, Scalar.DATETIME):
        days_or_millis = whole_number(value)
        return None if days_or_millis is None else str(days_or_millis)
    if scalar not in _FLOATS:
        return None
    stored = float_value(value, scalar)
    return None if stored is None or stored in (float("inf"), float("-inf")) else float_text(stored, scalar)


def _text_of_text(value: str, scalar: Scalar) -> str:
    if scalar not in (Scalar.DATE, Scalar.DATETIME) or STORED_DATE.fullmatch(value):
        return value
    stored = parse_date(value) if scalar is Scalar.DATE else parse_datetime(value)
    return value if stored is None else str(stored)


def column_text(column: pa.Array, scalar: Scalar) -> pa.Array:
    """Canonical texts of a stored key column; null where it holds no finite number."""
    if pa.types.is_string(column.type):
        return column
    if scalar is Scalar.DATE:
        return column.view(pa.int32()).cast(pa.string())
    if scalar is Scalar.DATETIME:
        return column.view(pa.int64()).cast(pa.string())
    if scalar not in _FLOATS:
        return column.cast(pa.string())
    encoded = pc.dictionary_encode(column)
    finite = [v is not None and abs(v) < float("inf") for v in encoded.dictionary.to_pylist()]
    texts = [float_text(v, scalar) if ok else None for v, ok in zip(encoded.dictionary.to_pylist(), finite)]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _escaped(text: pa.Array) -> pa.Array:
    """Text as it stands between the quotes of a JSON string."""
    odd = pc.match_substring_regex(text, _ESCAPED)
    if not pc.any(odd).as_py():
        return text
    inner = [None if v is None else json.dumps(v, ensure_ascii=False)[1:-1] for v in text.to_pylist()]
    return pa.array(inner, pa.string())
