"""Columns of tables in memory: whole ones that are read often are kept, within bounded memory.

A version of a table never changes, and what is kept is kept under the identity of the version, so it is never stale.
Whether to read single rows or the whole column follows what was spent on it so far: once looking rows up has cost as
much as reading everything, everything is read and kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pyarrow as pa

from spark_omnigraph.engine.cache import Kept
from spark_omnigraph.engine.int_arrays import is_range
from spark_omnigraph.engine.order import Numbered, value_numbers
from spark_omnigraph.storage.tables.reader import Positions, TableReader

MEMORY = 512 << 20
"""Bytes of all columns together."""
SHARE = 4
"""A column that takes more than one part in so many of the memory is not kept."""
FEW = 16
"""A column is read whole, wide or not, when more than one row in so many is wanted."""
LOOK = 25
"""What asking for any rows costs, in single rows that could be read meanwhile."""
ROW = 5_000
"""Bytes of a whole column that are read in the time of one row by its place."""
SAMPLE = 512
"""Rows by which shares of a table are estimated, in runs of neighbours."""
_RUN = 32
_COUNTED = 4096
"""Columns whose costs are remembered."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one column, one for each row of a table."""

    values: pa.Array

    @property
    def bytes(self) -> int:
        return int(self.values.get_total_buffer_size())


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers for the values of one column, one for each row of a table."""

    numbered: Numbered

    @property
    def bytes(self) -> int:
        return self.numbered.numbers.nbytes


@dataclass(slots=True)
class _Cost:
    """Bytes a row, and what was spent on single rows since the column was last read whole."""

    width: float
    spent: int = 0


class ColumnCache:
    """Reads columns of tables, and keeps those that pay; may be used from several threads."""

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory = memory
        self._kept: Kept[Column | Numbers] = Kept(memory)
        self._lock = Lock()
        self._costs: OrderedDict[tuple[object, ...], _Cost] = OrderedDict()

    @property
    def bytes(self) -> int:
        """Bytes in use."""
        return self._kept.bytes

    def read(self, reader: TableReader, positions: Positions, names: Sequence[str]) -> dict[str, pa.Array]:
        """Columns of rows, in the order of `positions`."""
        found: dict[str, pa.Array] = {}
        wanted = [n for n in names if self._is_worth(reader, n, len(positions))]
        at = None if not wanted or is_range(positions, reader.rows) else pa.array(positions)
        for name, whole in self.whole(reader, wanted).items():
            found[name] = whole if at is None else whole.take(at)
        rest = [name for name in names if name not in found]
        if rest:
            table = reader.take(positions, rest)
            found.update((name, one_array(table.column(name))) for name in rest)
        return found

    def whole(self, reader: TableReader, names: Sequence[str]) -> dict[str, pa.Array]:
        """Columns of all rows: those that are not here are read together, and kept."""
        found: dict[str, pa.Array] = {}
        for name in names:
            kept = self._kept.get((reader.identity, name))
            if isinstance(kept, Column):
                found[name] = kept.values
        missing = [name for name in names if name not in found]
        if missing:
            table = reader.columns(missing)
            for name in missing:
                found[name] = one_array(table.column(name))
                self._keep(reader, name, found[name])
        return found

    def text_numbers(self, reader: TableReader, name: str) -> Numbered | None:
        """Numbers for the texts of all rows; None for a column of other values, or too large to be kept."""
        of = reader.dataset.schema.field(name).type
        if not (pa.types.is_string(of) or pa.types.is_large_string(of)):
            return None
        kept = self._kept.get((reader.identity, name, "numbers"))
        if isinstance(kept, Numbers):
            return kept.numbered
        if not self.fits(reader, [name]):
            return None
        made = Numbers(value_numbers(self.whole(reader, [name])[name]))
        self._kept.put((reader.identity, name, "numbers"), made)
        return made.numbered

    def sample(self, reader: TableReader, name: str) -> pa.Array:
        """Values of some rows, spread over the table."""
        if reader.rows <= SAMPLE:
            return self.whole(reader, [name])[name]
        at = _spread(reader.rows)
        kept = self._kept.get((reader.identity, name))
        if isinstance(kept, Column):
            return kept.values.take(pa.array(at))
        known = self._kept.get((reader.identity, name, "sample"))
        if not isinstance(known, Column):
            known = Column(one_array(reader.take(at, [name]).column(name)))
            self._kept.put((reader.identity, name, "sample"), known)
        return known.values

    def fits(self, reader: TableReader, names: Iterable[str]) -> bool:
        """Whether all these columns are here, or would be kept if they were read."""
        return all(self._fits(reader, name) for name in set(names))

    def _fits(self, reader: TableReader, name: str) -> bool:
        if self._kept.has((reader.identity, name)):
            return True
        return self._cost(reader, name).width * reader.rows <= self.memory / SHARE

    def _is_worth(self, reader: TableReader, name: str, count: int) -> bool:
        """Whether a column is here, or reading it whole costs no more than what these and earlier rows cost."""
        if self._kept.has((reader.identity, name)) or count * FEW >= reader.rows:
            return True
        cost, fits = self._cost(reader, name), self._fits(reader, name)
        price = LOOK + cost.width * reader.rows / ROW
        with self._lock:
            spent = cost.spent + LOOK + count
            cost.spent = spent if fits else 0
        return spent >= price

    def _cost(self, reader: TableReader, name: str) -> _Cost:
        key = (reader.identity, name)
        with self._lock:
            found = self._costs.get(key)
            if found is not None:
                self._costs.move_to_end(key)
                return found
        found = _Cost(_width(reader, name))
        with self._lock:
            self._costs[key] = found
            while len(self._costs) > _COUNTED:
                self._costs.popitem(last=False)
        return found

    def _keep(self, reader: TableReader, name: str, values: pa.Array) -> None:
        made = Column(values)
        if made.bytes <= self.memory // SHARE:
            self._kept.put((reader.identity, name), made)
        with self._lock:
            cost = self._costs.get((reader.identity, name))
            if cost is not None:
                cost.spent = 0


def _width(reader: TableReader, name: str) -> float:
    """Bytes a row: by the type, or of some rows where lengths differ."""
    of = reader.dataset.schema.field(name).type
    items = of.list_size if pa.types.is_fixed_size_list(of) else 1
    one = of.value_type if pa.types.is_fixed_size_list(of) else of
    if pa.types.is_primitive(one):
        return float(items * one.bit_width / 8)
    if not reader.rows:
        return 0.0
    at = _spread(reader.rows)[::_RUN]
    return float(reader.take(at, [name]).nbytes / len(at))


def _spread(rows: int) -> Positions:
    """Positions of at most `SAMPLE` rows, ascending."""
    if rows <= SAMPLE:
        return np.arange(rows, dtype=np.int64)
    begins = np.linspace(0, rows - _RUN, SAMPLE // _RUN).astype(np.int64)
    found: Positions = np.unique(begins[:, None] + np.arange(_RUN))
    return found


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column of any number of chunks."""
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):  # a column of no chunks, or one too large for 32-bit offsets
        return pa.concat_arrays(combined.chunks) if combined.num_chunks else pa.array([], column.type)
    return combined


COLUMNS = ColumnCache()
"""Of this process."""
