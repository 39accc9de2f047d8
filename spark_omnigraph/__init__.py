"""Omnigraph for Spark: a typed property graph on Lance, loaded, versioned and read from Python and Spark.

Everything public is importable from here; the rooms below are internal. Names load on first use, so that importing
the package needs neither Lance nor Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_omnigraph.bad_rows import BadRow as BadRow
    from spark_omnigraph.bad_rows import BadRowSummary as BadRowSummary
    from spark_omnigraph.bad_rows import Mistake as Mistake
    from spark_omnigraph.bad_rows import Rule as Rule
    from spark_omnigraph.branch.conflicts import OnConflict as OnConflict
    from spark_omnigraph.branch.consumers import Consumer as Consumer
    from spark_omnigraph.branch.delete import DeletedBranch as DeletedBranch
    from spark_omnigraph.branch.delete import MergedBranches as MergedBranches
    from spark_omnigraph.branch.info import BranchInfo as BranchInfo
    from spark_omnigraph.catalog.identity import TableKey as TableKey
    from spark_omnigraph.catalog.migration.effects import StepWork as StepWork
    from spark_omnigraph.catalog.migration.steps import FromColumn as FromColumn
    from spark_omnigraph.catalog.migration.steps import SchemaStep as SchemaStep
    from spark_omnigraph.catalog.types import Annotation as Annotation
    from spark_omnigraph.catalog.types import Cardinality as Cardinality
    from spark_omnigraph.catalog.types import Catalog as Catalog
    from spark_omnigraph.catalog.types import Check as Check
    from spark_omnigraph.catalog.types import EdgeType as EdgeType
    from spark_omnigraph.catalog.types import Index as Index
    from spark_omnigraph.catalog.types import InterfaceType as InterfaceType
    from spark_omnigraph.catalog.types import Key as Key
    from spark_omnigraph.catalog.types import NodeType as NodeType
    from spark_omnigraph.catalog.types import Property as Property
    from spark_omnigraph.catalog.types import PropType as PropType
    from spark_omnigraph.catalog.types import Range as Range
    from spark_omnigraph.catalog.types import Scalar as Scalar
    from spark_omnigraph.catalog.types import Unique as Unique
    from spark_omnigraph.commit.ending import RecoveryKind as RecoveryKind
    from spark_omnigraph.commit.lost import LostPublishes as LostPublishes
    from spark_omnigraph.commit.plan import WriterKind as WriterKind
    from spark_omnigraph.commit.recovery import Recovered as Recovered
    from spark_omnigraph.commit.recovery import TableOutcome as TableOutcome
    from spark_omnigraph.draw.card import Grid as Grid
    from spark_omnigraph.draw.picture import DrawnEdge as DrawnEdge
    from spark_omnigraph.draw.picture import DrawnNode as DrawnNode
    from spark_omnigraph.draw.picture import DrawnProperty as DrawnProperty
    from spark_omnigraph.draw.picture import SchemaPicture as SchemaPicture
    from spark_omnigraph.embed.callables import embedder_of as embedder_of
    from spark_omnigraph.embed.config import EmbedConfig as EmbedConfig
    from spark_omnigraph.embed.config import Provider as Provider
    from spark_omnigraph.embed.counts import PropertyCounts as PropertyCounts
    from spark_omnigraph.embed.embedder import Embedded as Embedded
    from spark_omnigraph.embed.embedder import Embedder as Embedder
    from spark_omnigraph.embed.embedder import Role as Role
    from spark_omnigraph.embed.embedder import Usage as Usage
    from spark_omnigraph.engine.result import QueryResult as QueryResult
    from spark_omnigraph.errors import AlreadyInitializedError as AlreadyInitializedError
    from spark_omnigraph.errors import BadRequestError as BadRequestError
    from spark_omnigraph.errors import BadRowsError as BadRowsError
    from spark_omnigraph.errors import BranchExistsError as BranchExistsError
    from spark_omnigraph.errors import CatalogError as CatalogError
    from spark_omnigraph.errors import ConflictError as ConflictError
    from spark_omnigraph.errors import ConstraintError as ConstraintError
    from spark_omnigraph.errors import DamagedError as DamagedError
    from spark_omnigraph.errors import DriftError as DriftError
    from spark_omnigraph.errors import EmbeddingConfigError as EmbeddingConfigError
    from spark_omnigraph.errors import EmbeddingError as EmbeddingError
    from spark_omnigraph.errors import ExpectedVersionMismatch as ExpectedVersionMismatch
    from spark_omnigraph.errors import FeedLostError as FeedLostError
    from spark_omnigraph.errors import InputError as InputError
    from spark_omnigraph.errors import InternalError as InternalError
    from spark_omnigraph.errors import IoError as IoError
    from spark_omnigraph.errors import LimitError as LimitError
    from spark_omnigraph.errors import MergeConflict as MergeConflict
    from spark_omnigraph.errors import MergeConflictsError as MergeConflictsError
    from spark_omnigraph.errors import NotFoundError as NotFoundError
    from spark_omnigraph.errors import OmnigraphError as OmnigraphError
    from spark_omnigraph.errors import ParameterError as ParameterError
    from spark_omnigraph.errors import PolicyError as PolicyError
    from spark_omnigraph.errors import QueryEngineError as QueryEngineError
    from spark_omnigraph.errors import QueryParseError as QueryParseError
    from spark_omnigraph.errors import QueryTypeError as QueryTypeError
    from spark_omnigraph.errors import RecoveryRequiredError as RecoveryRequiredError
    from spark_omnigraph.errors import SchemaFilesError as SchemaFilesError
    from spark_omnigraph.errors import SchemaParseError as SchemaParseError
    from spark_omnigraph.errors import SourceError as SourceError
    from spark_omnigraph.errors import StorageError as StorageError
    from spark_omnigraph.errors import TagExistsError as TagExistsError
    from spark_omnigraph.errors import TooManyDeletesError as TooManyDeletesError
    from spark_omnigraph.errors import TransactionCommittedError as TransactionCommittedError
    from spark_omnigraph.errors import UnsupportedFormatError as UnsupportedFormatError
    from spark_omnigraph.errors import UsageError as UsageError
    from spark_omnigraph.errors import VersionExpiredError as VersionExpiredError
    from spark_omnigraph.errors import WriterBusyError as WriterBusyError
    from spark_omnigraph.graph.changes.diff import Diff as Diff
    from spark_omnigraph.graph.changes.diff import DiffFilter as DiffFilter
    from spark_omnigraph.graph.changes.diff import Operation as Operation
    from spark_omnigraph.graph.changes.diff import RowChange as RowChange
    from spark_omnigraph.graph.delete.by_id import DeleteReport as DeleteReport
    from spark_omnigraph.graph.embed.report import EmbedReport as EmbedReport
    from spark_omnigraph.graph.embed.request import EmbedChoices as EmbedChoices
    from spark_omnigraph.graph.embed.request import EmbedMode as EmbedMode
    from spark_omnigraph.graph.export.tables import ExportOutcome as ExportOutcome
    from spark_omnigraph.graph.export.tables import WrittenTable as WrittenTable
    from spark_omnigraph.graph.handle import Graph as Graph
    from spark_omnigraph.graph.load.inputs import InputArguments as InputArguments
    from spark_omnigraph.graph.load.inputs import LoadArguments as LoadArguments
    from spark_omnigraph.graph.load.options import LoadOptions as LoadOptions
    from spark_omnigraph.graph.load.options import LoadReport as LoadReport
    from spark_omnigraph.graph.load.options import TableCounts as TableCounts
    from spark_omnigraph.graph.maintain.cleanup import CleanupItem as CleanupItem
    from spark_omnigraph.graph.maintain.cleanup import CleanupReport as CleanupReport
    from spark_omnigraph.graph.maintain.cleanup import KeptObject as KeptObject
    from spark_omnigraph.graph.maintain.expire import ExpiredLine as ExpiredLine
    from spark_omnigraph.graph.maintain.expire import ExpiredStates as ExpiredStates
    from spark_omnigraph.graph.maintain.expire import ExpiryReport as ExpiryReport
    from spark_omnigraph.graph.maintain.optimize import CompactedTable as CompactedTable
    from spark_omnigraph.graph.maintain.optimize import OptimizeReport as OptimizeReport
    from spark_omnigraph.graph.maintain.repair import Drift as Drift
    from spark_omnigraph.graph.maintain.repair import RepairAction as RepairAction
    from spark_omnigraph.graph.maintain.repair import RepairReport as RepairReport
    from spark_omnigraph.graph.maintain.repair import Verdict as Verdict
    from spark_omnigraph.graph.merge.merge import MergeChoices as MergeChoices
    from spark_omnigraph.graph.merge.merge import MergeOutcome as MergeOutcome
    from spark_omnigraph.graph.merge.merge import MergeReport as MergeReport
    from spark_omnigraph.graph.merge.rows import MergedTable as MergedTable
    from spark_omnigraph.graph.mutate.mutate import MutationResult as MutationResult
    from spark_omnigraph.graph.mutate.staging import ChangedRows as ChangedRows
    from spark_omnigraph.graph.profile.profile import Profile as Profile
    from spark_omnigraph.graph.profile.profile import propose_schema as propose_schema
    from spark_omnigraph.graph.provider import embedding_config as embedding_config
    from spark_omnigraph.graph.read.describe import GraphDescription as GraphDescription
    from spark_omnigraph.graph.read.describe import StoredIndex as StoredIndex
    from spark_omnigraph.graph.read.describe import TableDescription as TableDescription
    from spark_omnigraph.graph.read.describe import TableUpkeep as TableUpkeep
    from spark_omnigraph.graph.read.describe import TypeDescription as TypeDescription
    from spark_omnigraph.graph.read.history import Bounded as Bounded
    from spark_omnigraph.graph.read.history import Watched as Watched
    from spark_omnigraph.graph.read.history import Where as Where
    from spark_omnigraph.graph.read.pending import PendingWrite as PendingWrite
    from spark_omnigraph.graph.read.sql import SqlChoices as SqlChoices
    from spark_omnigraph.graph.restore.restore import LaterApplication as LaterApplication
    from spark_omnigraph.graph.restore.restore import RestoreChoices as RestoreChoices
    from spark_omnigraph.graph.restore.restore import RestoreReport as RestoreReport
    from spark_omnigraph.graph.schema.apply import ApplyChoices as ApplyChoices
    from spark_omnigraph.graph.schema.apply import SchemaReport as SchemaReport
    from spark_omnigraph.graph.schema.count import StepCount as StepCount
    from spark_omnigraph.graph.schema.preview import SchemaChoices as SchemaChoices
    from spark_omnigraph.graph.schema.preview import SchemaPreview as SchemaPreview
    from spark_omnigraph.graph.sync.sync import SyncChoices as SyncChoices
    from spark_omnigraph.graph.sync.sync import SyncOutcome as SyncOutcome
    from spark_omnigraph.graph.sync.sync import SyncReport as SyncReport
    from spark_omnigraph.lang.gq.plan import ResultColumn as ResultColumn
    from spark_omnigraph.lang.pg import compile_schema as compile_schema
    from spark_omnigraph.manifest.copied import CopyOrigin as CopyOrigin
    from spark_omnigraph.manifest.facts import CommitFacts as CommitFacts
    from spark_omnigraph.manifest.facts import CommitOrigin as CommitOrigin
    from spark_omnigraph.manifest.facts import RowFacts as RowFacts
    from spark_omnigraph.manifest.kept import Tag as Tag
    from spark_omnigraph.manifest.lineage import Commit as Commit
    from spark_omnigraph.manifest.rows import SchemaEpoch as SchemaEpoch
    from spark_omnigraph.manifest.rows import TableId as TableId
    from spark_omnigraph.manifest.rows import Transaction as Transaction
    from spark_omnigraph.manifest.snapshot import GraphMark as GraphMark
    from spark_omnigraph.manifest.snapshot import Snapshot as Snapshot
    from spark_omnigraph.manifest.snapshot import TableEntry as TableEntry
    from spark_omnigraph.progress.meter import Progress as Progress
    from spark_omnigraph.progress.shown import progress_bar as progress_bar
    from spark_omnigraph.records.mode import EmbedAtLoad as EmbedAtLoad
    from spark_omnigraph.records.mode import LoadMode as LoadMode
    from spark_omnigraph.records.mode import Nulls as Nulls
    from spark_omnigraph.records.mode import OnDuplicate as OnDuplicate
    from spark_omnigraph.records.mode import OnMissing as OnMissing
    from spark_omnigraph.records.mode import UnknownFields as UnknownFields
    from spark_omnigraph.spark.api import create_views as create_views
    from spark_omnigraph.spark.api import read_edges as read_edges
    from spark_omnigraph.spark.api import read_nodes as read_nodes
    from spark_omnigraph.spark.api import register as register
    from spark_omnigraph.spark.delta import delta_source as delta_source
    from spark_omnigraph.spark.executor import SparkExecutor as SparkExecutor
    from spark_omnigraph.spark.query.read import read_query as read_query
    from spark_omnigraph.spark.session import local_session as local_session
    from spark_omnigraph.spark.writes import last_write as last_write
    from spark_omnigraph.spark.writes import write_edges as write_edges
    from spark_omnigraph.spark.writes import write_nodes as write_nodes
    from spark_omnigraph.sql.result import SqlResult as SqlResult
    from spark_omnigraph.storage.manifest.commit_log import RecoveryAudit as RecoveryAudit
    from spark_omnigraph.write.executor import Executor as Executor
    from spark_omnigraph.write.executor import LocalExecutor as LocalExecutor
    from spark_omnigraph.write.executor import WatchedExecutor as WatchedExecutor
    from spark_omnigraph.write.indexes import BuiltIndexes as BuiltIndexes
    from spark_omnigraph.write.indexes import IndexProgress as IndexProgress
    from spark_omnigraph.write.indexes import IndexStatus as IndexStatus

__version__ = "0.1.0"

_HOMES = {
    "bad_rows": ("BadRow", "BadRowSummary", "Mistake", "Rule"),
    "branch.conflicts": ("OnConflict",),
    "branch.consumers": ("Consumer",),
    "branch.delete": ("DeletedBranch", "MergedBranches"),
    "branch.info": ("BranchInfo",),
    "catalog.identity": ("TableKey",),
    "catalog.migration.effects": ("StepWork",),
    "catalog.migration.steps": ("FromColumn", "SchemaStep"),
    "catalog.types": (
        "Annotation", "Cardinality", "Catalog", "Check", "EdgeType", "Index", "InterfaceType", "Key", "NodeType",
        "Property", "PropType", "Range", "Scalar", "Unique",
    ),
    "commit.ending": ("RecoveryKind",),
    "commit.lost": ("LostPublishes",),
    "commit.plan": ("WriterKind",),
    "commit.recovery": ("Recovered", "TableOutcome"),
    "draw.card": ("Grid",),
    "draw.picture": ("DrawnEdge", "DrawnNode", "DrawnProperty", "SchemaPicture"),
    "embed.callables": ("embedder_of",),
    "embed.config": ("EmbedConfig", "Provider"),
    "embed.counts": ("PropertyCounts",),
    "embed.embedder": ("Embedded", "Embedder", "Role", "Usage"),
    "engine.result": ("QueryResult",),
    "errors": (
        "AlreadyInitializedError", "BadRequestError", "BadRowsError", "BranchExistsError", "CatalogError",
        "ConflictError", "ConstraintError", "DamagedError", "DriftError", "EmbeddingConfigError", "EmbeddingError",
        "ExpectedVersionMismatch", "FeedLostError", "InputError", "InternalError", "IoError", "LimitError",
        "MergeConflict", "MergeConflictsError", "NotFoundError", "OmnigraphError", "ParameterError", "PolicyError",
        "QueryEngineError", "QueryParseError", "QueryTypeError", "RecoveryRequiredError", "SchemaFilesError",
        "SchemaParseError", "SourceError", "StorageError", "TagExistsError", "TooManyDeletesError",
        "TransactionCommittedError", "UnsupportedFormatError", "UsageError", "VersionExpiredError", "WriterBusyError",
    ),
    "graph.changes.diff": ("Diff", "DiffFilter", "Operation", "RowChange"),
    "graph.delete.by_id": ("DeleteReport",),
    "graph.embed.report": ("EmbedReport",),
    "graph.embed.request": ("EmbedChoices", "EmbedMode"),
    "graph.export.tables": ("ExportOutcome", "WrittenTable"),
    "graph.handle": ("Graph",),
    "graph.load.inputs": ("InputArguments", "LoadArguments"),
    "graph.load.options": ("LoadOptions", "LoadReport", "TableCounts"),
    "graph.maintain.cleanup": ("CleanupItem", "CleanupReport", "KeptObject"),
    "graph.maintain.expire": ("ExpiredLine", "ExpiredStates", "ExpiryReport"),
    "graph.maintain.optimize": ("CompactedTable", "OptimizeReport"),
    "graph.maintain.repair": ("Drift", "RepairAction", "RepairReport", "Verdict"),
    "graph.merge.merge": ("MergeChoices", "MergeOutcome", "MergeReport"),
    "graph.merge.rows": ("MergedTable",),
    "graph.mutate.mutate": ("MutationResult",),
    "graph.mutate.staging": ("ChangedRows",),
    "graph.profile.profile": ("Profile", "propose_schema"),
    "graph.provider": ("embedding_config",),
    "graph.read.describe": ("GraphDescription", "StoredIndex", "TableDescription", "TableUpkeep", "TypeDescription"),
    "graph.read.history": ("Bounded", "Watched", "Where"),
    "graph.read.pending": ("PendingWrite",),
    "graph.read.sql": ("SqlChoices",),
    "graph.restore.restore": ("LaterApplication", "RestoreChoices", "RestoreReport"),
    "graph.schema.apply": ("ApplyChoices", "SchemaReport"),
    "graph.schema.count": ("StepCount",),
    "graph.schema.preview": ("SchemaChoices", "SchemaPreview"),
    "graph.sync.sync": ("SyncChoices", "SyncOutcome", "SyncReport"),
    "lang.gq.plan": ("ResultColumn",),
    "lang.pg": ("compile_schema",),
    "manifest.copied": ("CopyOrigin",),
    "manifest.facts": ("CommitFacts", "CommitOrigin", "RowFacts"),
    "manifest.kept": ("Tag",),
    "manifest.lineage": ("Commit",),
    "manifest.rows": ("SchemaEpoch", "TableId", "Transaction"),
    "manifest.snapshot": ("GraphMark", "Snapshot", "TableEntry"),
    "progress.meter": ("Progress",),
    "progress.shown": ("progress_bar",),
    "records.mode": ("EmbedAtLoad", "LoadMode", "Nulls", "OnDuplicate", "OnMissing", "UnknownFields"),
    "spark.api": ("create_views", "read_edges", "read_nodes", "register"),
    "spark.delta": ("delta_source",),
    "spark.executor": ("SparkExecutor",),
    "spark.query.read": ("read_query",),
    "spark.session": ("local_session",),
    "spark.writes": ("last_write", "write_edges", "write_nodes"),
    "sql.result": ("SqlResult",),
    "storage.manifest.commit_log": ("RecoveryAudit",),
    "write.executor": ("Executor", "LocalExecutor", "WatchedExecutor"),
    "write.indexes": ("BuiltIndexes", "IndexProgress", "IndexStatus"),
}  # laid out as a table  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
