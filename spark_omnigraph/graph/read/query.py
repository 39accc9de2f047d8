"""Read queries: text → plan of one snapshot → rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import pyarrow as pa

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, PropType
from spark_omnigraph.embed.callables import EmbedFunction
from spark_omnigraph.embed.config import EmbedConfig
from spark_omnigraph.embed.embedder import Embedder
from spark_omnigraph.engine.costs import DEFAULT, Costs
from spark_omnigraph.engine.execute import run_plan
from spark_omnigraph.engine.result import QueryResult
from spark_omnigraph.engine.source import EngineSource
from spark_omnigraph.graph.read.embedding import with_vectors
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.lang.gq.bind import binder, rebuilder
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.choose import choose
from spark_omnigraph.lang.gq.explain import explain, operators
from spark_omnigraph.lang.gq.lower import lower
from spark_omnigraph.lang.gq.needs import MANY, is_lookup, leading_scan
from spark_omnigraph.lang.gq.params import bind_params
from spark_omnigraph.lang.gq.plan import Nearest, Plan, Value
from spark_omnigraph.lang.gq.syntax.parser import check_kinds, parse_queries, pick_query
from spark_omnigraph.limits import Leaving, Limits, Watch
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.memory import LruCache
from spark_omnigraph.progress.meter import Progress, begin
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import TASK_ROWS, PinnedTable


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked read query: its plan, whose parameters are open, what they are declared as, and the plan of values."""

    plan: Plan
    params: Mapping[str, PropType]
    bound: Callable[[Mapping[str, Value]], Plan]
    has_nearest: bool


PHASE = "query"
NO_LIMITS = Limits()
PLANS = 256
"""Plans that are kept, the least used going first."""
LONGEST = 16 << 10
"""Letters of a text whose plans are kept."""


class PlanCache:
    """Plans by the schema, the text and the name of a query; none of them depends on anything else."""

    def __init__(self, most: int = PLANS) -> None:
        self._kept: LruCache[tuple[str, str, str | None], Prepared] = LruCache(most)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, catalog: Catalog, text: str, name: str | None) -> Prepared:
        """The plan of one query of a text, made if it is not here."""
        check_kinds(text, name)
        key = (catalog.ir_hash, text, name)
        found = self._kept.get(key)
        if found is not None:
            return found
        read = check_read(catalog, pick_query(parse_queries(text), name))
        plan = lower(catalog, read)
        made = Prepared(plan, read.params, binder(plan), rebuilder(plan, Nearest) is not None)
        if len(text) <= LONGEST:
            self._kept.put(key, made)
        return made


_PLANS = PlanCache()


def prepare(catalog: Catalog, text: str, name: str | None = None) -> Prepared:
    """The plan of one query of a text. QueryParseError, QueryTypeError or BadRequestError when there is none."""
    return _PLANS.get(catalog, text, name)


def bound_plan(
    prepared: Prepared,
    params: Mapping[str, object] | None,
    now: datetime | None = None,
    embedder: Embedder | EmbedConfig | EmbedFunction | None = None,
) -> Plan:
    """The plan with its parameters' values, and with vectors for texts of `nearest`; `now()` is the instant `now`, by
    default this one, and the embedder by default that of the environment.
    """
    plan = _bound(prepared, params, now)
    return with_vectors(plan, embedder) if prepared.has_nearest else plan


def _bound(prepared: Prepared, params: Mapping[str, object] | None, now: datetime | None = None) -> Plan:
    at = now if now is not None else datetime.now(timezone.utc)
    values = bind_params(prepared.plan.query, prepared.params, params, at)
    return prepared.bound(values)


def source_of(store: GraphStore, catalog: Catalog, snapshot: Snapshot, costs: Costs = DEFAULT) -> EngineSource:
    """The tables of a snapshot for the engine."""

    def pinned(table_key: TableKey) -> PinnedTable | None:
        entry = snapshot.entries.get(table_key)
        return pin(store, entry) if entry is not None else None

    return EngineSource(catalog, pinned, store.reads, costs)


def run_query(
    store: GraphStore,
    catalog: Catalog,
    snapshot: Snapshot,
    plan: Plan,
    costs: Costs = DEFAULT,
    limits: Limits = NO_LIMITS,
) -> QueryResult:
    """The rows of a bound plan on a snapshot. LimitError when they take more than they may."""
    return answer_query(source_of(store, catalog, snapshot, costs), snapshot, plan, limits)


def answer_query(
    source: EngineSource, snapshot: Snapshot, plan: Plan, limits: Limits, progress: Progress | None = None
) -> QueryResult:
    """As `run_query`; `progress` is told of each operator that is done, in the thread that does them."""
    watch = None
    if progress is not None:
        total = operators(plan.root)
        begin(progress, PHASE, total)
        watch = Watch(lambda done: progress(PHASE, done, total))
    table = _within(limits, source, plan, watch)
    limits.check_rows(table.num_rows)
    if progress is not None:
        progress(PHASE, total, total)  # some have no rows of their own, since another one did their work
    return QueryResult(plan.query, plan.columns, table, display(snapshot.branch), snapshot.version)


def analyze_query(source: EngineSource, plan: Plan, limits: Limits) -> str:
    """The text of a bound plan that has run, with the rows of each operator and the time that it took by itself."""
    watch = Watch()
    limits.check_rows(_within(limits, source, plan, watch).num_rows)
    return explain(plan, watch.note) + f"{watch.seconds * 1000:,.1f} ms\n"


def _within(limits: Limits, source: EngineSource, plan: Plan, watch: Watch | None = None) -> pa.Table:
    """The rows of a plan, made in a thread that is left where the limit of time is reached."""
    if limits.seconds is None:
        return run_plan(plan, source, watch)
    work = Leaving[pa.Table](limits.seconds)
    bounded = replace(source, costs=replace(source.costs, check=work.check))
    return work.value(lambda: run_plan(plan, bounded, watch))


def explain_query(
    catalog: Catalog, snapshot: Snapshot, text: str, name: str | None, params: Mapping[str, object] | None
) -> str:
    """The plan of a query as text, and which engine a frame of Spark would take by itself; with `params` their values
    stand in it. No provider is asked for vectors, and no table is opened.
    """
    prepared = prepare(catalog, text, name)
    plan = prepared.plan if params is None else _bound(prepared, params)
    return f"{explain(plan)}engine auto: {choose(plan, catalog, stored_rows(snapshot))}\n"


def stored_rows(snapshot: Snapshot) -> Callable[[TableKey], int]:
    """Numbers of rows of types, as the manifest has them."""

    def rows(key: TableKey) -> int:
        entry = snapshot.entries.get(key)
        return 0 if entry is None else entry.row_count

    return rows


@dataclass(frozen=True, slots=True)
class QueryTask:
    """A bound plan and the tables that it may read, for another process."""

    catalog: Catalog
    tables: Mapping[str, PinnedTable]
    rows: Mapping[str, int]
    plan: Plan

    def run(self, share: tuple[int, int] | None = None) -> pa.Table:
        """The rows, or those of a share of its leading scan."""
        return run_plan(self.plan, EngineSource(self.catalog, self.tables.get, share=share))

    def shares(self, slots: int) -> list[tuple[int, int] | None]:
        """Shares for so many tasks at once, whose rows together are the answer: as many as have enough rows to do,
        [None] for a plan that one task must run.
        """
        scan = leading_scan(self.plan.root)
        key = None if scan is None else TableKey.node(scan.node_type)
        if scan is None or key is None or is_lookup(self.catalog.require(key), scan.predicates):
            return [None]
        rows = self.rows.get(key, 0)
        parts = min(slots, rows // TASK_ROWS)
        if parts < 2:
            return [None]
        starts = [rows * part // parts for part in range(parts)]
        return list(zip(starts, [*starts[1:], MANY]))


def query_task(store: GraphStore, catalog: Catalog, snapshot: Snapshot, plan: Plan) -> QueryTask:
    """What another process needs to run a plan on a snapshot."""
    tables = {key: pin(store, entry) for key, entry in snapshot.entries.items()}
    return QueryTask(catalog, tables, {key: entry.row_count for key, entry in snapshot.entries.items()}, plan)
