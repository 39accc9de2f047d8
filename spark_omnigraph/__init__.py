"""Omnigraph for Spark: a typed property graph on Lance, loaded, versioned and read from Python and Spark.

Everything public is importable from here; the rooms below are internal. Names load on first use, so that importing
the package needs neither Lance nor Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_omnigraph.bad_rows import BadRow, BadRowSummary, Mistake, Rule
    from spark_omnigraph.engine.result import QueryResult
    from spark_omnigraph.errors import (
        AlreadyInitializedError,
        BadRequestError,
        BadRowsError,
        BranchExistsError,
        CatalogError,
        ConflictError,
        ConstraintError,
        DamagedError,
        DriftError,
        ExpectedVersionMismatch,
        InputError,
        InternalError,
        IoError,
        MergeConflict,
        MergeConflictsError,
        NotFoundError,
        OmnigraphError,
        ParameterError,
        PolicyError,
        QueryEngineError,
        QueryParseError,
        QueryTypeError,
        RecoveryRequiredError,
        SchemaFilesError,
        SchemaParseError,
        StorageError,
        TransactionCommittedError,
        UnsupportedFormatError,
        UsageError,
        WriterBusyError,
    )
    from spark_omnigraph.graph.handle import Graph
    from spark_omnigraph.graph.load.options import LoadOptions, LoadReport, TableCounts
    from spark_omnigraph.graph.mutate.mutate import MutationResult
    from spark_omnigraph.graph.mutate.staging import ChangedRows
    from spark_omnigraph.lang.pg import compile_schema
    from spark_omnigraph.manifest.lineage import Commit
    from spark_omnigraph.spark.api import create_views, read_edges, read_nodes, register
    from spark_omnigraph.spark.executor import SparkExecutor
    from spark_omnigraph.spark.session import local_session
    from spark_omnigraph.write.executor import LocalExecutor

__version__ = "0.1.0"

_HOMES = {
    "bad_rows": ("BadRow", "BadRowSummary", "Mistake", "Rule"),
    "errors": (
        "AlreadyInitializedError",
        "BadRequestError",
        "BadRowsError",
        "BranchExistsError",
        "CatalogError",
        "ConflictError",
        "ConstraintError",
        "DamagedError",
        "DriftError",
        "ExpectedVersionMismatch",
        "QueryTypeError",
        "QueryEngineError",
        "QueryParseError",
        "ParameterError",
        "PolicyError",
        "MergeConflictsError",
        "MergeConflict",
        "IoError",
        "InputError",
        "InternalError",
        "NotFoundError",
        "OmnigraphError",
        "RecoveryRequiredError",
        "SchemaFilesError",
        "SchemaParseError",
        "StorageError",
        "TransactionCommittedError",
        "UnsupportedFormatError",
        "UsageError",
        "WriterBusyError",
    ),
    "engine.result": ("QueryResult",),
    "write.executor": ("LocalExecutor",),
    "graph.handle": ("Graph",),
    "graph.load.options": ("LoadOptions", "LoadReport", "TableCounts"),
    "graph.mutate.mutate": ("MutationResult",),
    "graph.mutate.staging": ("ChangedRows",),
    "lang.pg": ("compile_schema",),
    "manifest.lineage": ("Commit",),
    "spark.api": ("create_views", "read_edges", "read_nodes", "register"),
    "spark.executor": ("SparkExecutor",),
    "spark.session": ("local_session",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AlreadyInitializedError",
    "BadRequestError",
    "BadRow",
    "BadRowSummary",
    "BadRowsError",
    "BranchExistsError",
    "CatalogError",
    "ChangedRows",
    "Commit",
    "ConflictError",
    "ConstraintError",
    "DamagedError",
    "DriftError",
    "ExpectedVersionMismatch",
    "Graph",
    "InputError",
    "InternalError",
    "IoError",
    "LoadOptions",
    "LoadReport",
    "LocalExecutor",
    "MergeConflict",
    "MergeConflictsError",
    "Mistake",
    "MutationResult",
    "NotFoundError",
    "OmnigraphError",
    "ParameterError",
    "PolicyError",
    "QueryEngineError",
    "QueryParseError",
    "QueryResult",
    "QueryTypeError",
    "RecoveryRequiredError",
    "Rule",
    "SchemaFilesError",
    "SchemaParseError",
    "SparkExecutor",
    "StorageError",
    "TableCounts",
    "TransactionCommittedError",
    "UnsupportedFormatError",
    "UsageError",
    "WriterBusyError",
    "compile_schema",
    "create_views",
    "local_session",
    "read_edges",
    "read_nodes",
    "register",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{home}"), name)
