"""Missing indexes: derived state, built as a write of its own that makes no commit.

When a load is changing one of the tables right now, the indexes are left for the next time: an index never holds up
data, and a missing one never changes an answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog, EdgeType, EntityType, Index, Key, Property, Scalar
from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.plan import TableWrite, WriterKind
from spark_omnigraph.errors import ConflictError, OmnigraphError, StorageError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.facts import CommitFacts
from spark_omnigraph.manifest.snapshot import Snapshot, TableEntry
from spark_omnigraph.progress.meter import in_phase
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.commits import TableChange
from spark_omnigraph.storage.tables.index import (
    IndexBuild,
    Upkeep,
    WantedIndex,
    build,
    coverage,
    has_values,
    is_behind,
    is_due,
    named,
    unlisted,
)
from spark_omnigraph.words import TextEnum
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.candidates import maintenance
from spark_omnigraph.write.executor import Executor, available_cores
from spark_omnigraph.write.staged_files import staged_files


class IndexProgress(TextEnum):
    """How far an index is."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"
    DEFERRED = "deferred"
    """A vector column that holds no value yet."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One index that the schema asks for: how many of the table's rows it covers. `name` is None when it is missing."""

    table_key: TableKey
    column: str
    kind: str
    name: str | None
    rows: int
    total: int
    progress: IndexProgress


def index_status(store: GraphStore, catalog: Catalog, snapshot: Snapshot) -> list[IndexStatus]:
    """All indexes that the schema asks for, by table and column."""
    return [
        status
        for key in sorted(snapshot.entries)
        if (entity := catalog.table(key)) is not None
        for status in table_status(store, entity, snapshot.entries[key])
    ]


def table_status(store: GraphStore, entity: EntityType, entry: TableEntry) -> list[IndexStatus]:
    """The indexes that one table should have."""
    dataset = store.open_table(entry)
    indexes = coverage(dataset)
    found = []
    for want in wanted_indexes(entity):
        index = want.best(indexes, None)
        name, rows = (index.name, index.rows) if index is not None else (None, 0)
        if index is not None:
            progress = IndexProgress.PARTIAL if index.uncovered else IndexProgress.COMPLETE
        elif want.kind == "IVF_FLAT" and not has_values(dataset, want.column):
            progress = IndexProgress.DEFERRED
        else:
            progress = IndexProgress.MISSING if entry.row_count else IndexProgress.COMPLETE
        found.append(IndexStatus(entry.table_key, want.column, want.kind, name, rows, entry.row_count, progress))
    return found


class BuiltIndexes(list[str]):
    """Names of the indexes that were built, as `table.column`; `warnings` say which could not be, and the way out."""

    def __init__(self, names: Iterable[str] = (), warnings: Iterable[str] = ()) -> None:
        super().__init__(names)
        self.warnings = tuple(warnings)


@dataclass(frozen=True, slots=True)
class _Task:
    """One index of one opened table, and how it is kept up (None: built when it is missing, and then only)."""

    entry: TableEntry
    want: WantedIndex
    upkeep: Upkeep | None

    @property
    def name(self) -> str:
        return f"{self.entry.table_key}.{self.want.column}"


def ensure_indices(
    store: GraphStore,
    branch: Branch,
    tables: Iterable[str] | None = None,
    *,
    upkeep: Upkeep | None = None,
    attempts: int = 1,
    executor: Executor | None = None,
) -> BuiltIndexes:
    """Builds missing indexes of these tables (all by default) that the branch owns in one write, and extends those that
    many small writes have left behind; with `upkeep`, all that existing ones lack, and anew those that cannot be
    extended or have too many segments: of another engine, version or setting, or with lost files. One that cannot be
    built leaves a warning and the others alone. An executor builds one index an item, by default threads of this
    process do.

    None are built when other writes got in the way, which the next call makes up for.
    """
    whole = WholeBranch(store, branch)
    names = None if tables is None else set(tables)

    def attempt() -> BuiltIndexes:
        tasks = _due(whole, names, upkeep)
        return _in_one_write(store, branch, tasks, executor) if tasks else BuiltIndexes()

    try:
        return in_attempts(store, branch, attempt, lambda _: frozenset(), most=attempts, lost=ConflictError)
    except ConflictError:
        return BuiltIndexes()


def _due(whole: WholeBranch, names: set[str] | None, upkeep: Upkeep | None) -> list[_Task]:
    """The indexes to build now, by table and column."""
    store, branch = whole.store, whole.branch
    catalog, snapshot = read_catalog(store), store.snapshot(branch)
    tasks: list[_Task] = []
    for key in sorted(names if names is not None else snapshot.entries):
        entry, entity = snapshot.entries.get(key), catalog.table(key)
        if entry is None or entity is None or entry.branch != branch:
            continue
        if not entry.row_count and not (upkeep is not None and upkeep.anew):
            continue
        dataset = store.open_table(entry)
        indexes, wants = coverage(dataset), wanted_indexes(entity)
        behind = {want for want in wants if upkeep is None and is_behind(want, indexes, entry.row_count)}
        asked = upkeep if upkeep is not None else Upkeep() if behind else None
        kept = replace(asked, files=store.index_files(entry, dataset)) if asked is not None else None
        all_due = kept if upkeep is not None else None
        tasks += [
            _Task(entry, want, kept)
            for want in wants
            if want in behind or (is_due(want, indexes, all_due) and (entry.row_count or want.best(indexes, None)))
        ]
    return tasks


def _in_one_write(
    store: GraphStore, branch: Branch, tasks: list[_Task], executor: Executor | None = None
) -> BuiltIndexes:
    """Builds and commits everything at once. What the store refuses so is built again whole, each index by itself:
    one that no engine can go on with must not hold up the others.
    """
    try:
        return _write(store, branch, tasks, executor)
    except StorageError:
        whole = [replace(t, upkeep=replace(t.upkeep, whole=True) if t.upkeep is not None else None) for t in tasks]
    built: list[str] = []
    warnings: list[str] = []
    for task in whole:
        try:
            done = _write(store, branch, [replace(task, entry=store.snapshot(branch).entry(task.entry.table_key))])
        except StorageError as error:
            warnings.append(_not_built(task, error))
        else:
            built += done
            warnings += done.warnings
    return BuiltIndexes(built, warnings)


def _write(store: GraphStore, branch: Branch, tasks: list[_Task], executor: Executor | None = None) -> BuiltIndexes:
    branch_id = store.branch_id(branch)
    with staged_files(store) as files:
        results = _built(store, tasks, executor)
        builds = [(task, made) for task, made in zip(tasks, results, strict=True) if isinstance(made, IndexBuild)]
        warnings = [made for made in results if isinstance(made, str)]
        writes = _writes(store, branch, builds)
        if writes:
            prepared = maintenance(store, WriterKind.ENSURE_INDICES, branch, branch_id, *writes)
            if any(task.upkeep is not None and task.upkeep.anew for task in tasks):
                # States from the newest commit on do not expire: those that show the former indexes come before it.
                identity = replace(prepared.identity, commit_id=new_ulid())
                prepared = replace(prepared, identity=identity, facts=CommitFacts("index"))
            files.commit(prepared)
    return BuiltIndexes([task.name for task, made in builds if made.segments], warnings)


def drop_indices(store: GraphStore, columns: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Removes from tables of main the indexes of these columns, unless the schema asks for them; warnings. Where other
    writes got in the way they stay, which costs room and changes no answer.
    """
    if not columns:
        return ()

    def attempt() -> None:
        catalog, snapshot = read_catalog(store), store.snapshot(None)
        writes = []
        for key in sorted(columns.keys() & snapshot.entries.keys()):
            entry, entity = snapshot.entry(key), catalog.require(key)
            unasked = set(columns[key]) - {want.column for want in wanted_indexes(entity)}
            found = [each for each in coverage(store.open_table(entry)) if unasked.issuperset(each.columns)]
            gone = unlisted(segment.uuid for each in found for segment in each.segments)
            writes += [TableWrite(entry, None, TableChange(replaced_segments=gone))] if gone else []
        if writes:
            with staged_files(store) as files:
                files.commit(maintenance(store, WriterKind.ENSURE_INDICES, None, None, *writes))

    try:
        in_attempts(store, None, attempt, lambda _: frozenset(), most=1, lost=ConflictError)
    except ConflictError:
        return ()
    except OmnigraphError as error:
        return (f"the schema has changed, but indexes that it asks for no more are still there: {error.message}",)
    return ()


def _built(store: GraphStore, tasks: list[_Task], executor: Executor | None) -> list[IndexBuild | str]:
    if executor is not None:
        return list(executor.map(partial(_build_remotely, store.root, store.storage_options), tasks))
    # Lance builds outside the interpreter lock, most kinds on one core; a handle serves one build at a time.
    with ThreadPoolExecutor(max_workers=available_cores()) as pool:
        return list(pool.map(lambda task: _attempt(store, task), tasks))


@in_phase("index")
def _build_remotely(root: str, options: Mapping[str, str], task: _Task) -> IndexBuild | str:
    """One index whole, by a task: in parts that stand side by side, each look-up would ask every part."""
    return _attempt(GraphStore.open(root, options or None), task)


def _attempt(store: GraphStore, task: _Task) -> IndexBuild | str:
    """A staged index, or the warning that it cannot be built."""
    try:
        return build(store.open_table(task.entry), task.want, task.upkeep)
    except StorageError as error:
        return _not_built(task, error)


def _not_built(task: _Task, error: StorageError) -> str:
    return (
        f"index '{task.name}' could not be built: {error.message}; answers do without it: mend what this names, then "
        "run index again"
    )


def _writes(store: GraphStore, branch: Branch, builds: list[tuple[_Task, IndexBuild]]) -> tuple[TableWrite, ...]:
    """One change a table. Segments that Lance does not list go with it: they would keep files apart that could be
    joined.
    """
    writes: list[TableWrite] = []
    done = [(task, made) for task, made in builds if made.segments or made.replaced]
    for key in dict.fromkeys(task.entry.table_key for task, _ in done):
        parts = [(task, made) for task, made in done if task.entry.table_key == key]
        entry, upkeep = parts[0][0].entry, parts[0][0].upkeep
        segments = tuple(segment for _, made in parts for segment in made.segments)
        replaced = tuple(old for _, made in parts for old in made.replaced)
        dataset = store.open_table(entry)
        files = upkeep.files if upkeep is not None else None
        replaced += unlisted((files or store.index_files(entry, dataset)).unnamed(coverage(dataset)))
        if upkeep is not None and upkeep.anew:
            wanted = wanted_indexes(read_catalog(store).require(key))
            others = [each for each in coverage(dataset) if not any(want.is_met_by(each) for want in wanted)]
            replaced += named(dataset, others)
        change = TableChange(segments=segments, replaced_segments=replaced)
        writes.append(TableWrite(entry, branch, change))
    return tuple(writes)


def wanted_indexes(entity: EntityType) -> list[WantedIndex]:
    """Indexes of a table by the rules of the storage format, section 9.1."""
    wanted = [WantedIndex("id", "BTREE")]
    if isinstance(entity, EdgeType):
        return [*wanted, WantedIndex("src", "BTREE"), WantedIndex("dst", "BTREE")]
    for constraint in entity.constraints:
        if isinstance(constraint, (Key, Index)) and len(constraint.columns) == 1:
            prop = entity.property(constraint.columns[0])
            kind = _kind(prop) if prop is not None else None
            if prop is not None and kind is not None:
                wanted.append(WantedIndex(prop.name, kind))
    return list(dict.fromkeys(wanted))


def _kind(prop: Property) -> str | None:
    if prop.type.is_list:
        return None
    if prop.type.is_vector:
        return "IVF_FLAT"
    if prop.type.scalar is Scalar.STRING:
        return "BTREE" if prop.type.is_enum else "INVERTED"
    return None if prop.type.scalar is Scalar.BLOB else "BTREE"
