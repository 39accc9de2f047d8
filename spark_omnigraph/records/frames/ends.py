"""Columns that spell the key of a node → its ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import NodeType, PropType, Scalar
from spark_omnigraph.records.frames.columns import convert, is_text, takes
from spark_omnigraph.records.json_texts import value_of_text
from spark_omnigraph.records.keys import column_text, composite_ids, key_columns, key_text


def end_texts(node: NodeType, columns: Sequence[pa.Array]) -> pa.Array:
    """The ids that columns of key values mean, in the order of the key; null where one of them is null. What is no
    value of the key stays as it is written, and names no node.
    """
    if not key_columns(node):
        return columns[0]
    texts = [_text(node, name, column) for (name, _), column in zip(key_columns(node), columns, strict=True)]
    return texts[0] if len(texts) == 1 else composite_ids(texts)


def fits_end(node: NodeType, kinds: Sequence[pa.DataType]) -> bool:
    """Whether columns of these types can hold the values of a node's key, which a text can."""
    names = [name for name, _ in key_columns(node)] or ["id"]
    if len(kinds) != len(names):
        return False
    props = [node.property(name) for name in names]
    return all(is_text(k) or (p is not None and takes(p, k)) for k, p in zip(kinds, props, strict=True))


def _text(node: NodeType, name: str, column: pa.Array) -> pa.Array:
    prop = node.property(name)
    assert prop is not None
    stored, unsure = convert(prop, column)
    texts = column_text(stored, prop.type.scalar)
    odd = np.asarray(texts.is_null()) if unsure is None else np.asarray(texts.is_null()) | unsure
    odd &= np.asarray(column.is_valid())
    if not odd.any():
        return texts
    read = [_one(each, prop.type.scalar) for each in column.filter(pa.array(odd)).cast(pa.string()).to_pylist()]
    return pc.replace_with_mask(texts, pa.array(odd), pa.array(read, pa.string()))


def _one(text: str, scalar: Scalar) -> str:
    return key_text(value_of_text(PropType(scalar), text), scalar) or text
