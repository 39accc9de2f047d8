"""Rows between operators as a DataFrame, and the types that columns have there.

Columns are called `c0`, `c1`, …, and no two scans share a name: so neither dots nor Spark's blindness to case matter,
and a frame can be joined with itself. Dates are days and instants milliseconds until the end, which makes them
independent of the session's time zone and calendar.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
)

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.lang.gq.plan import IDENTITY, Column, Constant, Ranking, Value
from spark_omnigraph.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_JSON: Mapping[type, DataType] = {str: StringType(), bool: BooleanType(), float: DoubleType()}
_FOLDER = "spark.checkpoint.dir"
_INSIDE: Mapping[Scalar, DataType] = {Scalar.DATE: IntegerType(), Scalar.DATETIME: LongType()}


class Names:
    """Hands out names of columns, each once."""

    def __init__(self) -> None:
        self._numbers = count()

    def fresh(self) -> str:
        return f"c{next(self._numbers)}"


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of variables: which column has what of which variable, the tables of variables, and columns of scores."""

    data: DataFrame
    columns: Mapping[tuple[str, str], str]
    tables: Mapping[str, TableKey]
    scores: Mapping[Ranking, str] = field(default_factory=dict)

    def name(self, variable: str, column: str = IDENTITY) -> str:
        """What the column of a variable is called."""
        return self.columns[variable, column]

    def column(self, column: Column) -> SparkColumn:
        return F.col(self.name(column.variable, column.name))

    def ids(self) -> list[str]:
        """Columns of the ids of all variables, in order of their names."""
        return [self.name(variable) for variable in sorted(self.tables)]

    def of(self, data: DataFrame) -> Frame:
        """Other rows of the same columns."""
        return replace(self, data=data)

    def beside(self, other: Frame, data: DataFrame) -> Frame:
        """Rows that have the columns of both."""
        return Frame(
            data,
            {**self.columns, **other.columns},
            {**self.tables, **other.tables},
            {**self.scores, **other.scores},
        )

    def only(self, variables: Collection[str], wanted: Collection[tuple[str, str]]) -> Frame:
        """The ids and the wanted columns of some variables, each combination of ids once."""
        kept = {k: n for k, n in self.columns.items() if k[0] in variables and (k[1] == IDENTITY or k in wanted)}
        tables = {v: key for v, key in self.tables.items() if v in variables}
        data = self.data.select(*sorted(set(kept.values())))
        if tables.keys() == self.tables.keys():
            return Frame(data, kept, tables)  # no two rows have the same entities
        ids = [name for (_, column), name in kept.items() if column == IDENTITY]
        return Frame(data.dropDuplicates(ids), kept, tables)


def same(left: str, right: str, number: str | None = None) -> SparkColumn:
    """Equality of two columns of ids. Rows meet by a number of each; `number` is the column that has it of the right
    one, where there is one. Their texts are compared then, in a way that Spark does not take for a key: it sorts by one
    whole number sooner than by texts, and what is shuffled by it stays where it is for what is grouped by it next.
    """
    met = F.xxhash64(left) == (F.xxhash64(right) if number is None else F.col(number))
    return met & (F.col(left) <= F.col(right)) & (F.col(left) >= F.col(right))


def renamed(data: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Some columns of a frame under other names."""
    return data.select(*(F.col(name).alias(new) for name, new in names.items()))


def inside_type(prop: PropType) -> DataType:
    """The type that values of a property have between operators."""
    scalar = _INSIDE.get(prop.scalar)
    if scalar is None:
        return spark_type(prop)
    return ArrayType(scalar) if prop.is_list else scalar


def shown(column: SparkColumn, prop: PropType) -> SparkColumn:
    """Values as they leave."""
    if prop.scalar not in _INSIDE:
        return column.cast(spark_type(prop))
    made = F.date_from_unix_date if prop.scalar is Scalar.DATE else F.timestamp_millis
    return F.transform(column, made) if prop.is_list else made(column)


def literal(constant: Constant) -> SparkColumn:
    """A constant as a column of its declared type."""
    of = inside_type(constant.type)
    value = constant.value
    if isinstance(value, tuple):
        return array(value).cast(of)
    return (F.lit(None) if value is None else plain(value)).cast(of)


def array(items: Sequence[Value]) -> SparkColumn:
    """Items of one kind as a list: one text, since a column for each takes milliseconds."""
    known = next((item for item in items if item is not None), "")
    of = next((of for kind, of in _JSON.items() if isinstance(known, kind)), DecimalType(38, 0))
    return F.from_json(F.lit(json.dumps(items)), ArrayType(of), {"mode": "FAILFAST"})


def plain(value: Value) -> SparkColumn:
    """A value as itself: an integer of any size is exact."""
    if isinstance(value, bool) or not isinstance(value, int):
        return F.lit(float(value) if isinstance(value, float) else value)
    if -(2**63) <= value < 2**63:
        return F.lit(value).cast(LongType())
    return F.lit(str(value)).cast(DecimalType(38, 0))


def kept(data: DataFrame) -> DataFrame:
    """The same rows, made once: in the folder that the session has for checkpoints, or on the executors."""
    folder = data.sparkSession.conf.get(_FOLDER, None)
    return data.checkpoint() if folder else data.localCheckpoint()


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of frames of the same columns."""
    whole = frames[0]
    for each in frames[1:]:
        whole = whole.unionAll(each)
    return whole
