"""Running the statements of one mutation, in order: each sees the stored rows and what those before it did."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, NodeType, Scalar
from spark_omnigraph.errors import BadRequestError, ConstraintError, InternalError
from spark_omnigraph.graph.delete.cascade import Deletion
from spark_omnigraph.graph.mutate.condition import condition
from spark_omnigraph.graph.mutate.pending import MutationStaging
from spark_omnigraph.graph.mutate.row_maker import RowMaker, with_values
from spark_omnigraph.lang.gq.check.mutation import TypedDelete, TypedInsert, TypedStatement, TypedUpdate
from spark_omnigraph.lang.gq.plan import Constant, Operand, Value
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.predicates.condition import Condition
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.rows import rows_to_write

_WORDS: Mapping[type, str] = {TypedInsert: "insert", TypedUpdate: "update", TypedDelete: "delete"}


class Statements:
    """One run over one snapshot. Nothing is written; `pending` and `deletion` say what is to be.

    `unborn` holds, by edge column and node table, the ends of new edges that no earlier statement had made, each with
    the place of the first statement that names it: those must be stored, since a statement does not see what comes
    after it.
    """

    def __init__(self, store: GraphStore, catalog: Catalog, snapshot: Snapshot) -> None:
        self.catalog = catalog
        self.pending = MutationStaging()
        self.deletion = Deletion(store, catalog, snapshot)
        self.affected_nodes = 0
        self.affected_edges = 0
        self.unborn: dict[tuple[str, TableKey], dict[str, str]] = {}
        self._store = store
        self._snapshot = snapshot
        self._makers: dict[str, RowMaker] = {}
        self._scanned: set[str] = set()

    @property
    def looked_at(self) -> set[str]:
        """Tables whose rows decided what the statements did."""
        return self._scanned | self.deletion.looked_at

    @property
    def written(self) -> set[str]:
        """Tables that will change."""
        return self.pending.written().keys() | self.deletion.changes().keys()

    def run(self, statement: TypedStatement) -> None:
        """Runs one statement whose parameters are bound. What it raises about its values names the statement."""
        try:
            self._run(statement)
        except (BadRequestError, ConstraintError) as error:
            raise type(error)(f"{error.message} ({place_of(statement)})") from error

    def _run(self, statement: TypedStatement) -> None:
        if isinstance(statement, TypedInsert):
            self._insert(statement)
        elif isinstance(statement, TypedUpdate):
            self._update(statement)
        else:
            self._delete(statement)

    def _insert(self, statement: TypedInsert) -> None:
        entity = statement.entity
        row = self._maker(entity).new_row(_values(statement.values))
        has_key = "id" in row
        row.setdefault("id", new_ulid())
        if isinstance(entity, EdgeType):
            for column, node in (("src", entity.from_type), ("dst", entity.to_type)):
                if row[column] not in self.pending.inserted(TableKey.node(node)):
                    ends = self.unborn.setdefault((column, TableKey.node(node)), {})
                    ends.setdefault(str(row[column]), place_of(statement))
            self.affected_edges += 1
        else:
            self.affected_nodes += 1
        self.pending.of(entity).put(row, has_key, place_of(statement))

    def _update(self, statement: TypedUpdate) -> None:
        entity, test = statement.entity, condition(statement.entity, statement.where)
        maker = self._maker(entity)
        values = {name: maker.stored(name, value) for name, value in _values(statement.values).items()}
        if test.is_empty:
            return
        pending = self.pending.of(entity)
        stored = pending.hidden(self._stored(entity, test))
        rows = pa.concat_tables([stored, pending.matching(test)])
        if rows.num_rows:
            pending.put_rows(with_values(entity, rows, values), values, place_of(statement))
        self.affected_nodes += rows.num_rows

    def _delete(self, statement: TypedDelete) -> None:
        test = condition(statement.entity, statement.where)
        if test.is_empty:
            return
        removed = self.deletion.where(statement.entity, test.sql)
        self.affected_nodes += removed.nodes
        self.affected_edges += removed.edges

    def _stored(self, entity: NodeType, test: Condition) -> pa.Table:
        """Stored rows that meet a condition, as they could be written again."""
        entry, schema = self._snapshot.entries.get(entity.table_key), physical_schema(entity)
        self._scanned.add(entity.table_key)
        if entry is None or not entry.row_count:
            return schema.empty_table()
        blobs = [p.name for p in entity.properties if p.type.scalar is Scalar.BLOB]
        batches = list(rows_to_write(self._store.open_table(entry), blobs, test.sql))
        if not batches:
            return schema.empty_table()
        found = pa.Table.from_batches(batches)
        return pa.Table.from_arrays([found.column(field.name).cast(field.type) for field in schema], schema=schema)

    def _maker(self, entity: EntityType) -> RowMaker:
        if entity.table_key not in self._makers:
            self._makers[entity.table_key] = RowMaker(self.catalog, entity)
        return self._makers[entity.table_key]


def place_of(statement: TypedStatement) -> str:
    """What messages call a statement: `line 3: insert Person`."""
    return f"line {statement.line}: {_WORDS[type(statement)]} {statement.entity.name}"


def _values(values: Mapping[str, Operand]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, operand in values.items():
        if not isinstance(operand, Constant):
            raise InternalError(f"the value of '{name}' was not bound")
        found[name] = operand.value
    return found
