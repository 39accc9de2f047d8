"""Values of a query text → rows in stored layout: lossless, or refused with the property and the value."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, NodeType
from spark_omnigraph.errors import BadRequestError, InternalError
from spark_omnigraph.lang.gq.plan import Value
from spark_omnigraph.records.columns import python_column
from spark_omnigraph.records.json_line import show
from spark_omnigraph.records.keys import composite_id, end_id, id_form, key_columns, key_text
from spark_omnigraph.records.values import BadValueError, Reader, value_reader

Row = dict[str, object]


class RowMaker:
    """Makes rows of one type from assigned values."""

    def __init__(self, catalog: Catalog, entity: EntityType) -> None:
        self._entity = entity
        self._readers: dict[str, Reader] = {p.name: value_reader(p) for p in entity.properties}
        self._ends: dict[str, NodeType] = {}
        if isinstance(entity, EdgeType):
            self._ends = {"src": catalog.nodes[entity.from_type], "dst": catalog.nodes[entity.to_type]}

    def new_row(self, assigned: Mapping[str, Value]) -> Row:
        """A whole row; `id` is missing where the type has no key. What is not assigned is null."""
        row: Row = {column: self._end(column, node, assigned[column]) for column, node in self._ends.items()}
        for prop in self._entity.properties:
            if prop.name not in assigned and not prop.type.nullable:
                raise BadRequestError(f"insert into {self._entity.name}: missing required property '{prop.name}'")
            row[prop.name] = self.stored(prop.name, assigned.get(prop.name))
        if isinstance(self._entity, NodeType) and self._entity.key is not None:
            row["id"] = self._key(row, self._entity)
        return row

    def stored(self, name: str, value: Value) -> object:
        """A value as a property stores it."""
        plain = _plain(value)
        prop = self._entity.property(name)
        if prop is None:
            raise InternalError(f"the checked query assigns '{self._entity.name}.{name}', which does not exist")
        try:
            return self._readers[name](plain)
        except BadValueError as bad:
            reason = f"{self._entity.name}: {bad.message}"
            if value is None:
                raise BadRequestError(reason) from None
            raise BadRequestError(f"cannot convert {show(plain)} to {prop.type.display()}: {reason}") from None

    def _end(self, column: str, node: NodeType, value: Value) -> str:
        found = None if value is None else end_id(_plain(value), key_columns(node))
        if found is None:
            end = "from" if column == "src" else "to"
            raise BadRequestError(
                f"insert into {self._entity.name}: {show(_plain(value))} for '{end}' cannot be the id of a {node.name}"
                f"{id_form(node)}"
            )
        return found

    def _key(self, row: Row, node: NodeType) -> str:
        texts = []
        for name, scalar in key_columns(node):
            text = None if row[name] is None else key_text(row[name], scalar)
            if text is None:
                raise BadRequestError(f"node {self._entity.name} missing @key property '{name}'")
            texts.append(text)
        return texts[0] if len(texts) == 1 else composite_id(texts)


def as_table(entity: EntityType, schema: pa.Schema, rows: list[Row]) -> pa.Table:
    """Rows in stored layout."""
    types = {p.name: p.type for p in entity.properties}
    columns = []
    for name in schema.names:
        values = [row[name] for row in rows]
        columns.append(python_column(types[name], values) if name in types else pa.array(values, pa.string()))
    return pa.Table.from_arrays(columns, schema=schema)


def with_values(entity: EntityType, rows: pa.Table, values: Mapping[str, object]) -> pa.Table:
    """The rows with some properties set, each to one stored value."""
    same = pa.array(np.zeros(rows.num_rows, dtype=np.int64))
    for name, value in values.items():
        prop = entity.property(name)
        if prop is not None:
            place = rows.schema.get_field_index(name)
            column = python_column(prop.type, [value]).take(same)
            rows = rows.set_column(place, rows.schema.field(place), column)
    return rows


def _plain(value: Value) -> object:
    """The value as a JSON reader would give it."""
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
