"""`plan_schema`: what a schema change would do to a graph, step by step, with the rows that stand in its way.

    contract, desired text ──plan_change──▶ SchemaPlan ──check_steps──▶ StepCounts ──▶ SchemaPreview

Nothing is written: the graph may be open for reading alone, and other branches may be there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.branch.control import list_branches
from spark_omnigraph.catalog.migration.document import document
from spark_omnigraph.catalog.migration.planner import SchemaPlan, plan_schema
from spark_omnigraph.catalog.migration.sentences import sentence
from spark_omnigraph.catalog.migration.steps import Unsupported
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.commit.contract import Contract, current_hash, read_contract
from spark_omnigraph.commit.schema.removal import needing_tags
from spark_omnigraph.draw.card import Card, grid, phases_grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError, CatalogError, ConflictError, SchemaParseError
from spark_omnigraph.graph.arguments import PATH, require, require_known
from spark_omnigraph.graph.create import accept_schema, schema_text
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.graph.schema.bad_rows import report_broken
from spark_omnigraph.graph.schema.count import StepCount, check_steps
from spark_omnigraph.graph.schema.tables import removals_of
from spark_omnigraph.graph.schema.values import digest_of, digest_of_last_change, values_of
from spark_omnigraph.lang.pg import compile_stored_schema
from spark_omnigraph.manifest.branches import MAIN
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.executor import Executor, LocalExecutor


class SchemaChoices(TypedDict, total=False):
    """How a schema change is to be done; see `Graph.plan_schema`."""

    values: Mapping[str, object]
    allow_data_loss: bool
    bad_rows: str | os.PathLike[str] | None
    executor: Executor | None


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A desired schema, values for stored rows (as `values_of` takes them), whether what is dropped is gone at once,
    and the file for rows that the change would break.
    """

    source: str
    values: Mapping[str, object] = field(default_factory=dict)
    allow_data_loss: bool = False
    bad_rows: str | None = None


def change_request(schema: str | os.PathLike[str], choices: SchemaChoices) -> ChangeRequest:
    """A request by `.pg` text or a file's path. BadRequestError for a choice that there is not."""
    require("schema", schema, PATH)
    require_known(choices, SchemaChoices, "a schema change")
    values, path = choices.get("values"), choices.get("bad_rows")
    if values is not None and not isinstance(values, Mapping):
        raise BadRequestError(f"values are a mapping such as {{'Type.property': 1}}, not {as_shown(values)}")
    report = None if path is None else os.fspath(path)
    return ChangeRequest(schema_text(schema), values or {}, choices.get("allow_data_loss", False), report)


@dataclass(frozen=True, slots=True, repr=False)
class SchemaPreview(Displayed):
    """The steps of a plan with their counts, on what main shows at `manifest_version`; the first rows that would break;
    and the branches and tags that an apply would have to wait for.
    """

    manifest_version: int
    steps: tuple[StepCount, ...]
    bad_rows: BadRowSummary
    branches: tuple[str, ...]
    tags: tuple[str, ...]
    """Those that keep what would be dropped for good."""
    phases: Mapping[str, float]

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Why there are steps that no apply can do, a text each."""
        return tuple(each.step.message for each in self.steps if isinstance(each.step, Unsupported))

    @property
    def supported(self) -> bool:
        """Whether an apply can do every step."""
        return not self.unsupported

    @property
    def applicable(self) -> bool:
        """Whether an apply would succeed on the graph as it is."""
        return self.supported and not self.bad_rows.total and not (self.steps and self.branches) and not self.tags

    def _card(self) -> Card:
        would = "can be applied" if self.applicable else "would be refused"
        rows = ((sentence(c.step), c.rows, c.touched, c.rewritten, c.broken) for c in self.steps)
        columns = ("step", "rows", "touched", "written", "would break")
        return Card(
            "SchemaPreview",
            f"{len(self.steps):,} step{'' if len(self.steps) == 1 else 's'}, {would}"
            if self.steps
            else "nothing to do",
            {"manifest version": self.manifest_version, "branches in the way": ", ".join(self.branches) or None},
            without_empty(
                grid("Steps", columns, rows, len(self.steps)), *self.bad_rows.grids(), phases_grid(self.phases)
            ),
            self.unsupported,
        )

    def to_dict(self) -> dict[str, object]:
        """The plan, each step with its figures, and what stands in the way."""
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [{**document(each.step), **_figures(each)} for each in self.steps],
            "applicable": self.applicable,
            "branches": list(self.branches),
            "tags": list(self.tags),
        }


def _figures(count: StepCount) -> dict[str, object]:
    return {
        "rows": count.rows,
        "touched": count.touched,
        "rewritten": count.rewritten,
        "would_break": count.broken,
        "writes": str(count.work),
        "shows_updates": count.shows_updates,
    }


def plan_change(contract: Contract, request: ChangeRequest, store: GraphStore | None = None) -> SchemaPlan:
    """The plan from the accepted schema to a text; without steps where the change is made already. The values that it
    gave then may be given again, if the graph is of this `store`; others are refused, as no stored row takes them.

    Raises SchemaParseError and CatalogError for a text that is no schema, BadRequestError for one without types,
    NotFoundError and BadRequestError for values that no property takes. A step that no apply can do is in the plan.
    """
    desired = _desired(contract, request.source)
    if not request.allow_data_loss and not any(desired.tables()) and any(contract.catalog.tables()):
        raise BadRequestError(
            "the new schema has no type, so that all of the graph's would go: is it the right file? "
            "--allow-data-loss (allow_data_loss) says that they may"
        )
    plan = plan_schema(contract.catalog, desired, allow_data_loss=request.allow_data_loss)
    if not request.values:
        return plan
    values = values_of(desired, request.values)
    if not plan.steps and store is not None and digest_of_last_change(store) == digest_of(values):
        return plan
    return plan_schema(contract.catalog, desired, values, allow_data_loss=request.allow_data_loss)


def _desired(contract: Contract, source: str) -> Catalog:
    """A graph of another engine may have a schema that is accepted from nobody any more: then the rules of the format
    alone hold for what it becomes, too.
    """
    try:
        return accept_schema(source)
    except (SchemaParseError, CatalogError):
        if _is_acceptable(contract.source):
            raise
        return compile_stored_schema(source)


def _is_acceptable(source: str) -> bool:
    try:
        accept_schema(source)
    except (SchemaParseError, CatalogError):
        return False
    return True


def preview(store: GraphStore, request: ChangeRequest, executor: Executor | None = None) -> SchemaPreview:
    """Plans and counts, in this process unless an executor is given.

    Raises what `plan_change` raises, and ConflictError when another change won meanwhile.
    """
    check_report_path(request.bad_rows, (), store.root)
    clock = Clock()
    with clock.phase("plan"):
        contract, snapshot = read_contract(store), store.snapshot(None)
        plan = plan_change(contract, request, store)
    with clock.phase("check"):
        counts = check_steps(store, snapshot, plan, executor or LocalExecutor(1))
        summary = report_broken(counts, plan, request.bad_rows, store.storage_options)
    if current_hash(store) != contract.schema_hash:
        raise ConflictError("the schema was changed while its change was planned; plan it again")
    branches = tuple(name for name in list_branches(store) if name != MAIN)
    tags = needing_tags(store, removals_of(snapshot, plan.tables))
    return SchemaPreview(snapshot.version, counts.steps, summary, branches, tags, clock.seconds())
