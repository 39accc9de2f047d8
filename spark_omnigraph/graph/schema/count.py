"""Counts the rows that each step of a schema change touches, writes and would break; reads alone.

rules_of           steps that rows may break
answer             one scan of the needed columns of each table                     executors
WriteChecker       unique values and numbers of edges, over whole columns           driver
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import numpy as np
import pyarrow as pa

from spark_omnigraph.catalog.migration.effects import StepWork, shows_updates, work_of
from spark_omnigraph.catalog.migration.planner import SchemaPlan, TableMigration
from spark_omnigraph.catalog.migration.steps import (
    AddProperty,
    DropProperty,
    DropType,
    PropertyStep,
    RenameProperty,
    RenameType,
    RequireProperty,
    SchemaStep,
    Unsupported,
    WidenProperty,
)
from spark_omnigraph.catalog.types import Scalar
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.graph.schema.projection import Projection
from spark_omnigraph.graph.schema.rules import RowRule, TableRule, rules_of
from spark_omnigraph.graph.schema.stored import RowQuestions, StoredTable, answer
from spark_omnigraph.graph.schema.tables import layout_beside, layout_of
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.records.arrow_schema import physical_schema
from spark_omnigraph.records.mode import LoadMode, OnDuplicate
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import PinnedTable, fragment_sizes, group_fragments, open_pinned, refuse_lost
from spark_omnigraph.validate.batch import BatchChecker
from spark_omnigraph.write.candidates import target_of
from spark_omnigraph.write.checker import Finding, WriteChecker
from spark_omnigraph.write.executor import Executor
from spark_omnigraph.write.staged_table import Rows

_ONE_ROW = pa.table({"~": pa.nulls(1)})


@dataclass(frozen=True, slots=True)
class StepCount:
    """Of one step: rows of its table; rows whose values it gives, takes away or changes; rows that it would break; and
    what it writes of the table as it is stored. None is unknown: vectors and blobs are not read to be counted, and no
    rule is asked of a property with a step that is not supported.
    """

    step: SchemaStep
    rows: int
    touched: int | None
    broken: int | None
    work: StepWork = StepWork.NOTHING

    @property
    def rewritten(self) -> int:
        """Rows of which something is written."""
        return self.rows if self.work in (StepWork.VALUES, StepWork.ROWS) else 0

    @property
    def shows_updates(self) -> bool:
        """Whether the change feed shows every row of the table as updated."""
        return self.rows > 0 and shows_updates(self.step)


@dataclass(frozen=True, slots=True, eq=False)
class BrokenRule:
    """The rows of a table, by their places in storage order (int64[n], rising), that break the rule of a step. What
    breaks a rule of the whole table is a `finding`.
    """

    rule: RowRule | TableRule
    places: Rows
    finding: Finding | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BrokenTable:
    """What of one table a schema change would break."""

    diff: TableMigration
    table: PinnedTable
    rules: tuple[BrokenRule, ...]

    @property
    def places(self) -> Rows:
        """int64[n]: the rows that break a rule, each once, in storage order."""
        return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(each.places for each in self.rules)]))


@dataclass(frozen=True, slots=True)
class StepCounts:
    """The counts of all steps in their order, and the tables with rows that break one; `per_rule` counts mistakes."""

    steps: tuple[StepCount, ...]
    broken: tuple[BrokenTable, ...]
    per_rule: Mapping[str, int]

    @property
    def bad_rows(self) -> int:
        """Rows that break a rule; one that breaks two counts once."""
        return sum(len(each.places) for each in self.broken)


def check_steps(
    store: GraphStore, snapshot: Snapshot, plan: SchemaPlan, executor: Executor, *, rules_only: bool = False
) -> StepCounts:
    """Counts the steps of a plan against what a snapshot shows: each table is read once, and of it what the answers
    need. With `rules_only` nothing is read but for steps that rows may break; `touched` is unknown then where only
    values tell it.
    """
    counts: list[StepCount] = []
    broken: list[BrokenTable] = []
    per_rule: Counter[str] = Counter()
    for diff in plan.tables:
        counter = _TableCounter(store, snapshot, plan, diff, rules_only)
        of_table = counter.run(executor)
        counts += counter.counts()
        per_rule += counter.per_rule
        if of_table is not None and of_table.rules:
            broken.append(of_table)
    interfaces = plan.steps[: len(plan.steps) - len(counts)]  # they come first, and have no rows
    without = [
        StepCount(step, 0, 0, None if isinstance(step, Unsupported) else 0, work_of(step)) for step in interfaces
    ]
    return StepCounts((*without, *counts), tuple(broken), dict(sorted(per_rule.items())))


class _TableCounter:
    """The counts of one table."""

    def __init__(
        self, store: GraphStore, snapshot: Snapshot, plan: SchemaPlan, diff: TableMigration, rules_only: bool
    ) -> None:
        self.per_rule: Counter[str] = Counter()
        self._store, self._snapshot, self._plan, self._diff = store, snapshot, plan, diff
        entry = None if diff.old is None else snapshot.entries.get(diff.old.table_key)
        self._table = None if entry is None or not entry.row_count else pin(store, entry)
        self._rows = 0 if entry is None else entry.row_count
        rows, table = rules_of(diff)
        blocked = _blocked(diff)
        self._row_rules = [rule for rule in rows if not blocked.intersection(rule.columns)]
        self._table_rules = [rule for rule in table if not blocked.intersection(rule.columns)]
        self._unasked = [rule.step for rule in rows if blocked.intersection(rule.columns)]
        self._unasked += [rule.step for rule in table if blocked.intersection(rule.columns)]
        self._projection = Projection(diff.columns)
        self._counted = () if rules_only else _counted(diff)
        self._lost: list[str] = []
        self._works = {} if rules_only else self._look()
        self._valued: dict[str, int] = {}
        self._broken: list[BrokenRule] = []

    def run(self, executor: Executor) -> BrokenTable | None:
        """What is broken, None of a table without rows."""
        if self._table is None:
            self._valued = dict.fromkeys(self._counted, 0)
            return None
        found = [*self._ask_rows(self._table, executor), *self._ask_table(self._table)]
        self._valued |= dict.fromkeys(self._lost, 0)
        self._broken = [each for each in found if len(each.places)]
        return BrokenTable(self._diff, self._table, tuple(self._broken))

    def counts(self) -> list[StepCount]:
        """One for each step, after `run`."""
        return [self._count(step) for step in self._diff.steps]

    def _count(self, step: SchemaStep) -> StepCount:
        unknown = isinstance(step, Unsupported) or any(step is each for each in self._unasked)
        broken = None if unknown else sum(len(each.places) for each in self._broken if each.rule.step is step)
        work = work_of(step)
        if work is StepWork.VALUES and isinstance(step, PropertyStep):
            work = self._works.get(step.property_name, work)
        return StepCount(step, self._rows, self._touched(step), broken, work)

    def _look(self) -> dict[str, StepWork]:
        """What is written for each property that gets values, of the table as it is stored. DamagedError where that has
        lost a column which stays; one that goes holds no value.
        """
        old, new, table = self._diff.old, self._diff.new, self._table
        if old is None or new is None:
            return {}
        is_supported = not any(isinstance(step, Unsupported) for step in self._diff.steps)
        layout = layout_of(old, new, self._diff.columns) if is_supported else None
        stored = physical_schema(old) if table is None else open_pinned(table).schema
        if table is not None:
            gone = {step.property_name for step in self._diff.steps if isinstance(step, DropProperty)}
            kept = [name for name in old.columns if name not in gone] if layout is None else layout.stored
            refuse_lost(old.table_key, table.version, kept, stored.names)
        self._lost = [name for name in self._counted if name not in stored.names]
        self._counted = tuple(name for name in self._counted if name in stored.names)
        if layout is None:
            return {}
        beside = layout_beside(self._diff, layout, stored)
        if beside is None:
            return dict.fromkeys(layout.schema.names, StepWork.ROWS)
        return {
            column.field.name: StepWork.VALUES if column.is_written else StepWork.COLUMNS for column in beside.filled
        }

    def _touched(self, step: SchemaStep) -> int | None:
        match step:
            case RenameType() | DropType() | RenameProperty():
                return self._rows
            case AddProperty(value=value):
                return 0 if value is None else self._rows
            case DropProperty(property_name=name):
                return self._valued.get(name)
            case WidenProperty(property_name=name):
                return self._valued.get(_stored(self._diff, name))
            case RequireProperty(property_name=name, value=value) if value is not None:
                held = self._valued.get(_stored(self._diff, name))
                return None if held is None else self._rows - held
            case _:
                return 0

    def _ask_rows(self, table: PinnedTable, executor: Executor) -> list[BrokenRule]:
        rules = [rule for rule in self._row_rules if self._projection.needed(rule.columns)]
        asked = RowQuestions(table, self._projection, tuple(rules), self._counted)
        is_one = executor.parallelism == 1  # who reads everything opens the table once
        groups = [None] if is_one else group_fragments(fragment_sizes(table), executor.parallelism)
        parts = list(executor.map(partial(answer, asked), groups if asked.columns else []))
        for part in parts:
            self.per_rule += part.per_rule
        self._valued = {name: sum(part.valued[i] for part in parts) for i, name in enumerate(self._counted)}
        first = list(accumulate((part.rows for part in parts), initial=0))
        found = [
            np.concatenate([start + part.places(i) for start, part in zip(first, parts, strict=False)])
            for i in range(len(rules))
        ]
        places = iter(found)
        return [BrokenRule(rule, next(places) if rule in rules else self._ask_value(rule)) for rule in self._row_rules]

    def _ask_value(self, rule: RowRule) -> Rows:
        """The rows that break a rule about nothing but one value for all of them: all or none, and none is read."""
        found = list(BatchChecker(rule.entity).broken(self._projection.of(_ONE_ROW, rule.columns)))
        self.per_rule += Counter({str(each.rule): self._rows * len(each.rows) for each in found})
        return np.arange(self._rows if found else 0)

    def _ask_table(self, table: PinnedTable) -> list[BrokenRule]:
        if not self._table_rules or self._diff.old is None or self._diff.new is None:
            return []
        entry = self._snapshot.entry(self._diff.old.table_key)
        target = target_of(self._store, self._snapshot, entry.table_key, entry.branch)
        rows = StoredTable(self._diff.new.table_key, table, target, self._projection)
        checker = WriteChecker(
            self._plan.desired, LoadMode.OVERWRITE, OnDuplicate.ERROR, {}, {}, self._store.storage_options
        )
        rows.load(("id", *(name for rule in self._table_rules for name in rule.columns)))
        found = []
        for rule in self._table_rules:
            for finding in checker.run_alone(rows, rule.probe):
                order = np.argsort(finding.rows)
                found.append(BrokenRule(rule, finding.rows[order], _sorted(finding, order)))
                self.per_rule[str(finding.rule)] += len(finding.rows)
        return found


def _sorted(finding: Finding, order: Rows) -> Finding:
    """The finding with its rows in this order."""
    holders = None if finding.holders is None else finding.holders[order]
    message = finding.message
    return replace(finding, rows=finding.rows[order], holders=holders, message=lambda i: message(int(order[i])))


def _blocked(diff: TableMigration) -> set[str]:
    """Properties that nobody can say the values of, since a step that gives them is not supported."""
    return {step.property_name for step in diff.steps if isinstance(step, Unsupported) and step.property_name}


def _counted(diff: TableMigration) -> tuple[str, ...]:
    """Stored columns whose values are counted: those that a step takes away, casts or completes, but no large ones."""
    if diff.old is None:
        return ()
    names = []
    for step in diff.steps:
        if isinstance(step, DropProperty):
            names.append(step.property_name)
        elif isinstance(step, WidenProperty) or (isinstance(step, RequireProperty) and step.value is not None):
            names.append(_stored(diff, step.property_name))
    large = {prop.name for prop in diff.old.properties if prop.type.is_vector or prop.type.scalar is Scalar.BLOB}
    return tuple(name for name in dict.fromkeys(names) if name not in large)


def _stored(diff: TableMigration, name: str) -> str:
    """The stored column of a property of the desired type."""
    return next(each.stored or name for each in diff.columns if each.prop.name == name)
