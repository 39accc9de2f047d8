"""Text that comes in as Arrow: no library checks that it is UTF-8, and nobody could read it once it is stored.

All columns are looked at once, where they enter. What is no text becomes its bytes in hexadecimal, so that the rest of
the program can show it; the rows that hold it are never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_omnigraph.records.columns import Bools, rows_of_items

_SHOWN, _BEFORE = 40, 20
"""Characters of a bad value in a message, and how many of them stand before its first bad byte."""


@dataclass(frozen=True, slots=True)
class LegibleBatch:
    """A batch all of whose texts are UTF-8, and what was wrong: by column, the rows that held other bytes."""

    batch: pa.RecordBatch
    illegible: dict[str, Bools]

    @property
    def bad_rows(self) -> Bools:
        """Rows with such a value in any column."""
        bad = np.zeros(self.batch.num_rows, dtype=bool)
        for rows in self.illegible.values():
            bad |= rows
        return bad

    def columns_of(self, row: int) -> list[str]:
        """Names of the columns that are at fault in a row."""
        return [name for name, rows in self.illegible.items() if rows[row]]


def legible_batch(batch: pa.RecordBatch) -> LegibleBatch:
    """The batch itself where all is well, at the cost of reading its text once."""
    columns, illegible, is_same = [], {}, True
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        clean, bad = legible(column)
        columns.append(clean)
        is_same = is_same and clean is column
        if bad is not None:
            illegible[name] = bad
    if is_same:
        return LegibleBatch(batch, {})
    return LegibleBatch(pa.RecordBatch.from_arrays(columns, names=batch.schema.names), illegible)


def legible(column: pa.Array) -> tuple[pa.Array, Bools | None]:
    """A column and None when all its texts are UTF-8; else the column with its bad bytes in hexadecimal, and the rows.

    Texts of any layout, also in lists and dictionaries; columns of other types are left as they are. An array of no
    values is made anew: Arrow for Java, which Spark 4.1 has, gives it no offset, and Lance reads one.
    """
    kind = column.type
    if not len(column):
        return pa.array([], kind), None
    if _is_text(kind):
        return _legible_texts(column)
    if pa.types.is_dictionary(kind):
        return _legible_dictionary(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _legible_lists(column)
    return column, None


def why_illegible(names: Sequence[str], column: pa.Array) -> str:
    """The message about a row: its columns, and the first of their values as `legible` gave it back."""
    value = column[0].as_py()
    shown = shown_bytes(value if isinstance(value, str) else next(v for v in value if v is not None and "\\x" in v))
    which = f"column '{names[0]}' holds" if len(names) == 1 else f"columns {', '.join(map(repr, names))} hold"
    return f"{which} bytes that are no UTF-8 text: '{shown}'"


def shown_bytes(text: str) -> str:
    r"""A text that `legible` gave back, shortened so that the first of its bad bytes is seen.

    >>> shown_bytes("a" * 100 + "\\xff" + "b" * 100)
    '…aaaaaaaaaaaaaaaaaaaa\\xffbbbbbbbbbbbbbbbb…'
    """
    start = max(0, text.find("\\x") - _BEFORE)
    end = start + _SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _legible_texts(column: pa.Array) -> tuple[pa.Array, Bools | None]:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        pass
    else:
        return column, None
    texts: list[str | None] = []
    bad = np.zeros(len(column), dtype=bool)
    for row, raw in enumerate(_bytes(column).to_pylist()):
        try:
            texts.append(None if raw is None else raw.decode())
        except UnicodeDecodeError:
            texts.append(raw.decode(errors="backslashreplace"))
            bad[row] = True
    return pa.array(texts, column.type), bad


def _bytes(column: pa.Array) -> pa.Array:
    if pa.types.is_string_view(column.type):
        return column.view(pa.binary_view())
    return column.view(pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary())


def _legible_dictionary(column: pa.DictionaryArray) -> tuple[pa.Array, Bools | None]:
    words, bad = legible(column.dictionary)
    if bad is None:
        return column, None
    places = np.asarray(column.indices.fill_null(0))
    rows: Bools = bad[places] & column.is_valid().to_numpy(zero_copy_only=False)
    return pa.DictionaryArray.from_arrays(column.indices, words), rows


def _legible_lists(column: pa.ListArray | pa.LargeListArray) -> tuple[pa.Array, Bools | None]:
    offsets = np.asarray(column.offsets)
    # A part of a longer array has the items of all; only its own are looked at.
    items, bad = legible(column.values.slice(offsets[0], offsets[-1] - offsets[0]))
    if bad is None and len(items):
        return column, None
    mask = column.is_null() if column.null_count else None
    clean = type(column).from_arrays(pa.array(offsets - offsets[0]), items, type=column.type, mask=mask)
    if bad is None:
        return clean, None
    rows = rows_of_items(clean, bad)
    return clean, np.zeros(len(column), dtype=bool) if rows is None else rows
