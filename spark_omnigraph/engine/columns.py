"""Columns of a table: single rows are read, or a whole column, which is kept in memory.

Which of them follows what was spent on a column so far: once looking rows up has cost as much as reading everything,
everything is read and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_omnigraph.engine.costs import Costs
from spark_omnigraph.engine.int_arrays import is_range
from spark_omnigraph.engine.order import Numbered, value_numbers
from spark_omnigraph.memory import Memory
from spark_omnigraph.storage.tables.reader import Positions, TableReader
from spark_omnigraph.validate.key_index import TextIndex

_INDEX_BYTES = 12
"""Bytes a row of an index of texts."""
_TWICE = 2.0
"""Look-ups before any index of texts is made: who asks once should not wait, nor read what Lance would not."""
_COLUMN, _INDEX = "column", "index"
_FEW = 8
"""Rows that are not worth a call of Arrow."""
_RUN = 32
"""Rows of a sample that lie beside each other."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Reads columns of one table at one version, and keeps those that pay in the memory of its reader."""

    reader: TableReader
    costs: Costs

    @property
    def _memory(self) -> Memory:
        return self.reader.memory

    def read(self, positions: Positions, names: Sequence[str]) -> dict[str, pa.Array]:
        """Columns of rows, in the order of `positions`."""
        found: dict[str, pa.Array] = {}
        missing: list[str] = []
        for name in names:
            whole = self._memory.get(pa.Array, self._key(name))
            if whole is None:
                missing.append(name)
            else:
                found[name] = self._of_rows(whole, positions)
                self._memory.notes.add(self._served(_COLUMN, name), self._rows_spent(len(positions)))
        if missing:
            wanted = [name for name in missing if self._is_worth(name, len(positions))]
            for name, whole in self.whole(wanted).items():
                found[name] = self._of_rows(whole, positions)
            missing = [name for name in missing if name not in found]
        if missing:
            table = self.reader.take(positions, missing)
            found.update((name, one_array(table.column(name))) for name in missing)
        return found

    def _of_rows(self, whole: pa.Array, positions: Positions) -> pa.Array:
        """A column's values of rows; those of few are put together, since taking them would cost Arrow more."""
        if is_range(positions, self.reader.rows):
            return whole
        if len(positions) > _FEW:
            return whole.take(pa.array(positions))
        return pa.concat_arrays([whole.slice(place, 1) for place in positions.tolist()] or [whole.slice(0, 0)])

    def whole(self, names: Sequence[str]) -> dict[str, pa.Array]:
        """Columns of all rows: those that are not here are read together, and kept."""
        kept = {name: self._memory.get(pa.Array, self._key(name)) for name in names}
        found = {name: values for name, values in kept.items() if values is not None}
        missing = [name for name in names if name not in found]
        if missing:
            table = self.reader.columns(missing)
            for name in missing:
                found[name] = one_array(table.column(name))
                self._keep(name, found[name])
        return found

    def text_numbers(self, name: str) -> Numbered | None:
        """Numbers for the texts of all rows; None for a column of other values, or too large to be kept."""
        of = self.reader.dataset.schema.field(name).type
        if not (pa.types.is_string(of) or pa.types.is_large_string(of)):
            return None
        kept = self._memory.get(Numbered, self._key(name))
        if kept is not None:
            return kept
        if not self.fits([name]):
            return None
        made = value_numbers(self.whole([name])[name])
        self._memory.put(Numbered, self._key(name), made, made.numbers.nbytes)
        return made

    def find(self, name: str, texts: Sequence[str], beside: Sequence[str] = ()) -> tuple[Positions, Positions] | None:
        """Rows of a column without nulls that have one of these different texts, by an index in memory: which text each
        has, and its position. None while there is no such index, as long as asking Lance costs less: once that was done
        often enough, one is made, and the columns `beside` it are kept too.
        """
        index = self._memory.get(TextIndex, self._key(name))
        if index is None:
            if not self._index_pays(name, len(texts), beside):
                return None
            index = TextIndex(self.whole([name, *beside])[name])
            self._memory.put(TextIndex, self._key(name), index, index.bytes)
        self._memory.notes.add(self._served(_INDEX, name), self._weight(len(texts)))
        return index.find(texts, lambda rows: self.read(rows, [name])[name])

    def _index_pays(self, name: str, count: int, beside: Sequence[str]) -> bool:
        """Whether an index of a column is worth while by now."""
        costs = self.costs
        price = max(self.reader.rows / costs.index_rows, _TWICE)
        first = max(costs.first_asked, price / costs.first_share)
        if not self._is_due(_INDEX, name, self._weight(count), price, first) or not self._can_be_indexed(name, beside):
            return False
        self._begin(_INDEX, name)
        return True

    def _is_due(self, what: str, name: str, spent: float, price: float, first: float) -> bool:
        """Whether something is to be made of a column by now, for lack of which so much more was spent. The first one
        of a table is made soon, since who asks some times will ask more often. When a version was written over before
        that had paid, the next one has to pay first: so whoever writes as often as he asks loses little.
        """
        served = self._memory.notes.get(self._served(what, name))
        due = min(price, first) if served is None or served >= price else price
        return self._memory.notes.add((*self._key(name), what), spent) >= due

    def _begin(self, what: str, name: str) -> None:
        """Notes that something was made of a column, and has not served yet."""
        self._memory.notes.forget((*self._key(name), what))
        self._memory.notes.put(self._served(what, name), 0.0)

    def _can_be_indexed(self, name: str, beside: Sequence[str]) -> bool:
        is_text = pa.types.is_string(self.reader.dataset.schema.field(name).type)  # others write larger offsets, too
        size = self.reader.rows * _INDEX_BYTES
        return is_text and size <= self._memory.budget / self.costs.column_share and self.fits([name, *beside])

    def _served(self, what: str, name: str) -> tuple[object, ...]:
        """Names the figure of how often the newest that was made of a column has served, whatever its version."""
        return self.reader.table.uri, name, what

    def _weight(self, count: int) -> float:
        """What asking Lance for so many texts costs, against one."""
        return 1 + count / self.costs.texts_asked

    def sample(self, name: str) -> pa.Array:
        """Values of some rows, spread over the table."""
        at = _spread(self.reader.rows, self.costs.sample_rows)
        if len(at) == self.reader.rows:
            return self.whole([name])[name]
        whole = self._memory.get(pa.Array, self._key(name))
        if whole is not None:
            return whole.take(pa.array(at))
        key = (*self._key(name), len(at))
        known = self._memory.get(pa.Array, key)
        if known is None:
            known = one_array(self.reader.take(at, [name]).column(name))
            self._memory.put(pa.Array, key, known, _size(known))
        return known

    def fits(self, names: Iterable[str]) -> bool:
        """Whether all these columns would be kept if they were read."""
        return all(self._fits(name) for name in set(names))

    def _key(self, name: str) -> tuple[object, ...]:
        return self.reader.identity, name

    def _fits(self, name: str) -> bool:
        return self._width(name) * self.reader.rows <= self._memory.budget / self.costs.column_share

    def _is_worth(self, name: str, count: int) -> bool:
        """Whether reading a column whole is worth while by now, for so many rows."""
        if count * self.costs.many_share >= self.reader.rows:
            return True
        spent, price = self._rows_spent(count), self._price(name)
        if not self._fits(name):
            return spent >= price
        first = max(self.costs.first_asked * self.costs.request_rows, price / self.costs.first_part)
        return self._is_due(_COLUMN, name, spent, price, first)

    def _rows_spent(self, count: int) -> float:
        """What reading so many rows by their places costs, in single rows."""
        return self.costs.request_rows + count

    def _price(self, name: str) -> float:
        """What reading a column whole costs, in single rows."""
        return self.costs.request_rows + self._width(name) * self.reader.rows / self.costs.row_bytes

    def _width(self, name: str) -> float:
        """Bytes a row."""
        key = (*self._key(name), "width")
        known = self._memory.notes.get(key)
        if known is None:
            known = _width(self.reader, name, self.costs.sample_rows)
            self._memory.notes.put(key, known)
        return known

    def _keep(self, name: str, values: pa.Array) -> None:
        size = _size(values)
        if size <= self._memory.budget // self.costs.column_share:
            self._memory.put(pa.Array, self._key(name), values, size)
        self._begin(_COLUMN, name)


def _size(values: pa.Array) -> int:
    return int(values.get_total_buffer_size())


def _width(reader: TableReader, name: str, sample: int) -> float:
    """Bytes a row: by the type, or of some rows where lengths differ."""
    of = reader.dataset.schema.field(name).type
    items = of.list_size if pa.types.is_fixed_size_list(of) else 1
    one = of.value_type if pa.types.is_fixed_size_list(of) else of
    if pa.types.is_primitive(one):
        return float(items * one.bit_width / 8)
    if not reader.rows:
        return 0.0
    at = _spread(reader.rows, sample)[::_RUN]
    return float(reader.take(at, [name]).nbytes / len(at))


def _spread(rows: int, most: int) -> Positions:
    """Positions of at most `most` of so many rows, ascending."""
    if rows <= most:
        return np.arange(rows, dtype=np.int64)
    begins = np.linspace(0, rows - _RUN, most // _RUN).astype(np.int64)
    found: Positions = np.unique(begins[:, None] + np.arange(_RUN))
    return found


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column of any number of chunks."""
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):  # a column of no chunks, or one too large for 32-bit offsets
        return pa.concat_arrays(combined.chunks) if combined.num_chunks else pa.array([], column.type)
    return combined
