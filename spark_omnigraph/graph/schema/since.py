"""Whether the rows of an old state are still rows of the schema that the graph has now."""

from __future__ import annotations

from spark_omnigraph.catalog.migration.planner import plan_schema
from spark_omnigraph.catalog.migration.sentences import sentence
from spark_omnigraph.catalog.migration.steps import (
    AddConstraint,
    RemoveConstraint,
    SchemaStep,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from spark_omnigraph.catalog.types import Catalog, Index
from spark_omnigraph.commit.contract import Contract, contract_at
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore


def refuse_another_schema(store: GraphStore, present: Contract, now: Snapshot, state: Snapshot, way_out: str) -> None:
    """BadRequestError for a state of before a change of the schema that is of rows, which it names; descriptions and
    indexes are not. Where nobody kept the schema of then, the tables tell, by those that the branch shows `now`.
    """
    then = contract_at(store, state, present)
    changes = [sentence(step) for step in plan_schema(then.catalog, present.catalog).steps if _is_of_rows(step)]
    changes = changes or changed_tables(store, present.catalog, now, state)
    if changes:
        raise BadRequestError(
            f"version {state.version} of branch '{display(state.branch)}' is of before a change of the schema: "
            f"{'; '.join(changes)}. {way_out}"
        )


def _is_of_rows(step: SchemaStep) -> bool:
    match step:
        case UpdateTypeMetadata() | UpdatePropertyMetadata():
            return False
        case AddConstraint(constraint=Index()) | RemoveConstraint(constraint=Index()):
            return False
        case _:
            return getattr(step, "type_kind", None) != "interface"


def changed_tables(store: GraphStore, catalog: Catalog, now: Snapshot, state: Snapshot) -> list[str]:
    """What is different in the tables of two states, as far as columns tell."""
    added = [entity.table_key for entity in catalog.tables() if entity.table_key not in state.entries]
    dropped = sorted(state.entries.keys() - {entity.table_key for entity in catalog.tables()})
    changes = [f"{key.spelled} was added" for key in added] + [f"'{key}' was dropped" for key in dropped]
    for key in sorted(state.entries.keys() & now.entries.keys()):
        if now.place(key) != state.place(key):
            changes += _changed_columns(store, key, now, state)
    return changes


def _changed_columns(store: GraphStore, key: str, now: Snapshot, state: Snapshot) -> list[str]:
    then, today = (
        {field.name: (field.type, field.nullable) for field in store.open_table(snapshot.entry(key)).schema}
        for snapshot in (state, now)
    )
    found = [f"'{key}' has a new property '{name}'" for name in sorted(today.keys() - then.keys())]
    found += [f"'{key}' lost the property '{name}'" for name in sorted(then.keys() - today.keys())]
    both = sorted(then.keys() & today.keys())
    return found + [f"property '{name}' of '{key}' changed its type" for name in both if then[name] != today[name]]
