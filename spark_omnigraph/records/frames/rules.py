"""The rules of a table on its columns: checked before a row is read, then each batch as frames of types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.catalog.types import END_MEMBERS, Catalog, EdgeType, EntityType, NodeType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.frames.changed_columns import without_changes
from spark_omnigraph.records.frames.decode import FramePlan, plan_frame
from spark_omnigraph.records.frames.ends import end_texts, fits_end
from spark_omnigraph.records.frames.layouts import plain_schema
from spark_omnigraph.records.frames.mapping import MappingRule, TableInput
from spark_omnigraph.records.keys import composite_ids
from spark_omnigraph.records.mode import DecodeOptions, UnknownFields
from spark_omnigraph.words import nearest

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """One rule on the columns of a table: where each column of its frame comes from. Picklable."""

    rule: MappingRule
    frame: FramePlan
    named: tuple[tuple[str, str], ...]
    """Columns of the frame that are columns of the table."""
    constants: tuple[tuple[str, pa.Scalar], ...]
    ends: tuple[tuple[str, NodeType, tuple[str, ...]], ...]

    def rows(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s | None]:
        """Rows of the frame, and which of the table they are (None: all of them)."""
        kept = None
        if self.rule.when is not None:
            kept = np.flatnonzero(np.asarray(batch.column(self.rule.when).is_valid()))
            batch = batch.take(pa.array(kept))
        columns = {name: batch.column(source) for name, source in self.named}
        for name, node, sources in self.ends:
            columns[name] = end_texts(node, [batch.column(source) for source in sources])
        if self.rule.id:
            texts = [batch.column(source).cast(pa.string()) for source in self.rule.id]
            columns["id"] = texts[0] if len(texts) == 1 else composite_ids(texts, required=0)
        for name, value in self.constants:
            columns[name] = pa.repeat(value, batch.num_rows)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)), kept


def plan_rows(catalog: Catalog, how: TableInput, columns: pa.Schema, decode: DecodeOptions) -> tuple[PlannedRows, ...]:
    """The rules of a table on its columns. BadRequestError names a column that is unknown, missing, or of a type that
    its property does not take.
    """
    columns = plain_schema(columns)
    decode = replace(decode, coerce=how.coerce or decode.coerce)
    _check_names(how, columns, decode)
    if decode.edge_id is not None and any(
        rule.id and rule.table_key and rule.table_key.kind == "edge" for rule in how.rules
    ):
        raise BadRequestError("the mapping gives ids of edges; edge_id contradicts it")
    if decode.changes:
        columns = _of_types(catalog, how, columns)
    picks = [_pick(catalog, rule, columns) for rule in how.rules]
    used = set().union(*(pick.used for pick in picks), how.ignore)
    # With one rule what is left over is named by the check of its frame, which knows names that are near.
    left = [name for name in columns.names if name not in used and not _ignores(decode)]
    taken = set().union(*(pick.names for pick in picks))
    lost = next((name for name in left if len(picks) > 1 or name in taken), None)
    if lost is not None:
        raise BadRequestError(f"column '{lost}' becomes no property of a type of its rows; map it, or ignore it")
    planned = []
    for rule, pick in zip(how.rules, picks, strict=True):
        named = {**pick.named} | {name: name for name in left}
        schema = pa.schema([(name, columns.field(source).type) for name, source in named.items()])
        for name in (*pick.ends, *(("id",) if rule.id else ())):
            schema = schema.append(pa.field(name, pa.string()))
        for name, value in pick.constants.items():
            schema = schema.append(pa.field(name, value.type))
        frame = plan_frame(catalog, rule.table_key, schema, decode)
        ends = tuple((name, node, sources) for name, (node, sources) in pick.ends.items())
        planned.append(PlannedRows(rule, frame, tuple(named.items()), tuple(pick.constants.items()), ends))
    return tuple(planned)


def _check_names(how: TableInput, columns: pa.Schema, decode: DecodeOptions) -> None:
    """BadRequestError for columns that nobody can tell apart or name, and for one that would be lost."""
    for name in columns.names:
        if columns.names.count(name) > 1:
            raise BadRequestError(f"column '{name}' is there twice")
        if not name and name not in how.ignore:
            raise BadRequestError(
                "a column has no name, as an index has that pandas wrote: name it, or leave it out (a mapping with "
                "ignore: [''])"
            )
    known = {*columns.names, *how.ignore, *(name for rule in how.rules for name, _ in rule.constants)}
    lost = next((name for name in how.partitions if name not in known), None)
    if lost is not None and not _ignores(decode):
        raise BadRequestError(
            f"column '{lost}' is in the names of folders alone, which are not read: give each folder by itself, with "
            "its value among the 'constants' of a mapping, or 'ignore' the column"
        )


def _of_types(catalog: Catalog, how: TableInput, columns: pa.Schema) -> pa.Schema:
    """The columns besides those that tell of changes."""
    if any(rule.distinct for rule in how.rules):
        raise BadRequestError("'distinct' does not go with mode changes: no change tells that the last equal row went")
    types = (catalog.table(rule.table_key) for rule in how.rules if rule.table_key is not None)
    return without_changes(columns, [entity for entity in types if entity is not None])


def _ignores(decode: DecodeOptions) -> bool:
    return decode.unknown_fields is UnknownFields.IGNORE


@dataclass(frozen=True, slots=True)
class _Pick:
    """What a rule takes of a table."""

    named: Mapping[str, str]
    constants: Mapping[str, pa.Scalar]
    ends: Mapping[str, tuple[NodeType, tuple[str, ...]]]
    used: frozenset[str]

    @property
    def names(self) -> set[str]:
        return {*self.named, *self.constants, *self.ends}


def _pick(catalog: Catalog, rule: MappingRule, columns: pa.Schema) -> _Pick:
    # A type that is not there is told by the check of the frame.
    entity = catalog.table(rule.table_key) if rule.table_key is not None else None
    if entity is None:
        return _Pick({name: name for name in columns.names}, {}, {}, frozenset(columns.names))
    ends = {name: _end(catalog, entity, name, sources, columns) for name, sources in rule.ends}
    named: dict[str, str] = {}
    for source, name in rule.columns:
        _require(columns, source)
        if name in named:
            raise BadRequestError(f"'{entity.name}.{name}' is given by two columns, '{named[name]}' and '{source}'")
        if entity.property(name) is None and name not in _names(entity):
            raise BadRequestError(f"'{entity.name}' has no property '{name}'{nearest(name, _names(entity))}")
        named[name] = source
    constants = {name: _constant(entity, name, value) for name, value in rule.constants}
    twice = next((name for name in constants if name in named or name in columns.names), None)
    if twice is not None:
        raise BadRequestError(f"'{entity.name}.{twice}' is given by a column and by a constant; ignore the column")
    sources = {source for source, _ in rule.columns}
    given = {*named, *constants, *ends, *(END_MEMBERS[name] for name in ends), *(("id",) if rule.id else ())}
    own = [n for n in columns.names if n in _names(entity) and n not in given and n not in sources]
    named |= {name: name for name in own}
    others = {*rule.id, *(source for _, (_, several) in ends.items() for source in several)}
    if rule.when is not None:
        others.add(rule.when)
    for name in others:
        _require(columns, name)
    for name in rule.id:
        _require_text(columns, name)
    if rule.distinct:
        _check_distinct(entity, {*named, *(("id",) if rule.id else ())})
    return _Pick(named, constants, ends, frozenset({*named.values(), *others}))


def _check_distinct(entity: EntityType, given: Set[str]) -> None:
    """Equal rows are those of one id that have equal values, which are not read back of blobs."""
    if not entity.key and "id" not in given:
        raise BadRequestError(f"'distinct' needs ids: '{entity.name}' has no key, and its rows no 'id'")
    blob = next((p.name for p in entity.properties if p.type.scalar is Scalar.BLOB and p.name in given), None)
    if blob is not None:
        raise BadRequestError(f"'distinct' does not go with the blob '{entity.name}.{blob}', which is not compared")


def _names(entity: EntityType) -> list[str]:
    ends = ["from", "to"] if isinstance(entity, EdgeType) else []
    return [*physical_schema(entity).names, *ends]


def _require(columns: pa.Schema, name: str) -> None:
    if name not in columns.names:
        raise BadRequestError(f"the table has no column '{name}'{nearest(name, columns.names)}")


def _require_text(columns: pa.Schema, name: str) -> None:
    """Ids are texts, and not every value is spelt as one."""
    kind = columns.field(name).type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        raise BadRequestError(f"column '{name}' is {kind}, of which no id can be made")


def _end(
    catalog: Catalog, entity: EntityType, name: str, sources: Sequence[str], columns: pa.Schema
) -> tuple[NodeType, tuple[str, ...]]:
    if not isinstance(entity, EdgeType):
        raise BadRequestError(f"'{entity.name}' is no edge, and has no '{END_MEMBERS[name]}'")
    node = catalog.nodes[entity.from_type if name == "src" else entity.to_type]
    for source in sources:
        _require(columns, source)
    kinds = [columns.field(source).type for source in sources]
    if not fits_end(node, kinds):
        key = ", ".join(node.key or ("id",))
        shown = ", ".join(f"{source} ({kind})" for source, kind in zip(sources, kinds, strict=True))
        end = f"'{END_MEMBERS[name]}' of '{entity.name}'"
        raise BadRequestError(f"{end} is the key of {node.name}, {key}; {shown} is not")
    return node, tuple(sources)


def _constant(entity: EntityType, name: str, value: object) -> pa.Scalar:
    if entity.property(name) is None:
        near = nearest(name, [prop.name for prop in entity.properties])
        raise BadRequestError(f"a constant is of a property, and '{entity.name}' has none called '{name}'{near}")
    try:
        return pa.scalar(value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise BadRequestError(f"the constant of '{entity.name}.{name}' is no value of a column: {error}") from None
