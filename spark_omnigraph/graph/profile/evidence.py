"""What the values of a column show, batch by batch, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.records.columns import read_texts

FEW_VALUES = 12
"""Distinct texts that may be an enumeration."""
KEPT_BYTES = 128 << 20
"""Of the values of one column that are kept to see whether each occurs once."""
_PATTERNS = {
    Scalar.BOOL: "^(true|false)$",
    Scalar.I64: "^(0|-?[1-9][0-9]{0,17})$",
    Scalar.F64: r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$",
    Scalar.DATE: r"^\+?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}$",
    Scalar.DATETIME: r"^\+?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?$",
}
"""Texts that spell a value of another type; leading zeros would be lost in a number. What looks like a date, and is no
mere number, must be one for a load, too.
"""
_DATES = (Scalar.DATE, Scalar.DATETIME)
_TYPES: tuple[tuple[Callable[[pa.DataType], bool], Scalar], ...] = (
    (pa.types.is_boolean, Scalar.BOOL),
    (lambda of: of in (pa.int8(), pa.int16(), pa.int32()), Scalar.I32),
    (pa.types.is_int64, Scalar.I64),
    (lambda of: of in (pa.uint8(), pa.uint16(), pa.uint32()), Scalar.U32),
    (pa.types.is_uint64, Scalar.U64),
    (lambda of: of in (pa.float16(), pa.float32()), Scalar.F32),
    (pa.types.is_float64, Scalar.F64),
    (pa.types.is_date, Scalar.DATE),
    (pa.types.is_timestamp, Scalar.DATETIME),
    (lambda of: pa.types.is_string(of) or pa.types.is_large_string(of), Scalar.STRING),
    (lambda of: pa.types.is_binary(of) or pa.types.is_large_binary(of), Scalar.BLOB),
)


def scalar_of(of: pa.DataType) -> Scalar | None:
    """The type of the schema language that takes values of an Arrow type, None when none does."""
    return next((scalar for holds, scalar in _TYPES if holds(of)), None)


@dataclass(slots=True)
class ColumnEvidence:
    """What has been seen of a column. `scalar` None is of no type of the schema language, or of several."""

    name: str
    spelled: bool
    """Whether texts may spell numbers, as those of CSV do."""
    values: int = 0
    """Those that are not null."""
    scalar: Scalar | None = None
    dimension: int | None = None
    is_list: bool = False
    mixed: str = ""
    """Why it has no type."""
    low: int | float | None = None
    high: int | float | None = None
    few: set[str] | None = field(default_factory=set)
    """Its distinct texts, None when there are many."""
    spelling: dict[Scalar, int] = field(default_factory=dict)
    """How many of its texts spell a value of a type, for types that most of them spell."""
    others: dict[Scalar, str] = field(default_factory=dict)
    """The first text that does not, where one was seen."""
    each_once: list[pa.Array] | None = field(default_factory=list)
    """Its values while no one was seen twice in a batch; None when one was, or they are too many to be kept."""
    known_unique: bool | None = None
    """What `is_unique` found, once all has been seen."""
    kept: int = 0
    too_many: bool = False

    def see(self, column: pa.Array) -> None:
        """Takes a batch in."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        found = column.drop_null() if column.null_count else column
        if not len(found):
            return
        first = self.values == 0
        self.values += len(found)
        self._see_type(found, first)
        if self.mixed:
            self.each_once = self.few = None
            return
        if self.scalar is not None and (self.scalar.is_numeric and not self.is_list and not self.dimension):
            self._see_bounds(found)
        if self.scalar is Scalar.STRING and not self.is_list:
            self._see_spelling(found, first)
        self._see_distinct(found)

    def _see_type(self, found: pa.Array, first: bool) -> None:
        of, is_list, dimension = found.type, False, None
        if pa.types.is_fixed_size_list(of) and pa.types.is_floating(of.value_type):
            of, dimension = of.value_type, of.list_size
        elif pa.types.is_list(of) or pa.types.is_large_list(of):
            of, is_list = of.value_type, True
        scalar = Scalar.VECTOR if dimension else scalar_of(of)
        shape = (scalar, is_list, dimension)
        mine = (self.scalar, self.is_list, self.dimension)
        if first:
            self.scalar, self.is_list, self.dimension = shape
        elif shape != mine and {scalar, self.scalar} == {Scalar.I64, Scalar.F64} and is_list == self.is_list:
            self.scalar = Scalar.F64
        elif shape != mine:
            self.mixed = "values of several types"
        if scalar is None:
            self.mixed = f"values of type {found.type}, which no property takes"

    def _see_bounds(self, found: pa.Array) -> None:
        bounds = pc.min_max(found).as_py()
        self.low = bounds["min"] if self.low is None else min(self.low, bounds["min"])
        self.high = bounds["max"] if self.high is None else max(self.high, bounds["max"])

    def _see_spelling(self, found: pa.Array, first: bool) -> None:
        if first:
            self.spelling = dict.fromkeys(_PATTERNS if self.spelled else _DATES, 0)
        for scalar in [*self.spelling]:
            spells = _spells(found, scalar)
            self.spelling[scalar] += spells.true_count
            if spells.true_count < len(found):
                self.others.setdefault(scalar, found.filter(pc.invert(spells))[0].as_py())
            if self.spelling[scalar] * 2 <= self.values:
                del self.spelling[scalar]
        number = next((each for each in (Scalar.I64, Scalar.F64) if each in self.possible), None)
        if number is not None:
            self._see_bounds(found.cast(pa.int64() if number is Scalar.I64 else pa.float64()))

    def _see_distinct(self, found: pa.Array) -> None:
        keyed = self.scalar is not None and (self.scalar.is_integer or self.scalar is Scalar.STRING)
        if self.is_list or not keyed:
            self.each_once = self.few = None
            return
        if self.each_once is None and (self.few is None or self.scalar is not Scalar.STRING):
            return
        distinct = pc.unique(found)
        if self.few is not None and self.scalar is Scalar.STRING:
            self.few = None if len(distinct) > FEW_VALUES else self.few | set(distinct.to_pylist())
            self.few = None if self.few is None or len(self.few) > FEW_VALUES else self.few
        if self.each_once is not None:
            self.kept += distinct.nbytes
            self.too_many = self.kept > KEPT_BYTES
            self.each_once = None if len(distinct) < len(found) or self.too_many else [*self.each_once, distinct]

    @property
    def possible(self) -> set[Scalar]:
        """What all its texts may spell."""
        return {scalar for scalar, count in self.spelling.items() if count == self.values}

    @property
    def most(self) -> tuple[Scalar, int, str] | None:
        """What most of its texts spell where all spell no one type, how many do, and the first that does not."""
        if self.possible or not self.spelling or self.mixed:
            return None
        scalar = max(self.spelling, key=self.spelling.__getitem__)
        return scalar, self.spelling[scalar], self.others[scalar]

    @property
    def type_name(self) -> str | None:
        """The scalar as it is proposed: what all texts spell, or their type."""
        if self.mixed or self.scalar is None:
            return None
        if self.dimension:
            return f"Vector({self.dimension})"
        scalar = self.proposed
        return f"[{scalar}]" if self.is_list else str(scalar)

    @property
    def proposed(self) -> Scalar | None:
        """The scalar type; texts that all spell a value of another type are of that."""
        spelled = next((each for each in _PATTERNS if each in self.possible), None)
        return spelled if self.scalar is Scalar.STRING and spelled is not None and self.values else self.scalar

    def is_unique(self) -> bool:
        """Whether each value was seen once; the values are kept then. Two texts may spell one fraction or time, so only
        whole numbers and texts count.
        """
        if self.known_unique is None:
            whole = pa.chunked_array(self.each_once) if self.each_once else None
            exact = self.proposed is not None and (self.proposed.is_integer or self.proposed is Scalar.STRING)
            self.known_unique = (
                exact
                and whole is not None
                and (whole.num_chunks == 1 or pc.count_distinct(whole).as_py() == len(whole))
            )
            self.each_once = self.each_once if self.known_unique else None
        return self.known_unique


def _spells(texts: pa.Array, scalar: Scalar) -> pa.Array:
    """Which texts spell a value of a type."""
    spells = pc.match_substring_regex(texts, _PATTERNS[scalar])
    if scalar not in _DATES or not spells.true_count:
        return spells
    _, bad = read_texts(texts.filter(spells).cast(pa.string()), scalar)
    return pc.replace_with_mask(spells, spells, pa.array(~bad))


@dataclass(slots=True)
class TableEvidence:
    """What has been seen of the rows of one future type. `ends` are those of records of edges."""

    name: str
    source: str
    rows: int = 0
    columns: dict[str, ColumnEvidence] = field(default_factory=dict)
    is_edge: bool = False
    left_out: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By file, how many of its rows no load takes, and the first of them."""

    def leave_out(self, source: str, rows: int, first: str) -> None:
        """Takes note of rows of a file that are in no batch."""
        before, told = self.left_out.get(source, (0, first))
        self.left_out[source] = before + rows, told

    def see(self, batch: pa.RecordBatch, spelled: bool, mixed: Iterable[str] = ()) -> None:
        """Takes a batch in; `mixed` are columns whose values have no common type."""
        self.rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns):
            self.columns.setdefault(name, ColumnEvidence(name, spelled)).see(column)
        for name in mixed:
            column = self.columns.setdefault(name, ColumnEvidence(name, spelled))
            column.mixed, column.each_once, column.few = "values of several types", None, None
