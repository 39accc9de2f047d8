"""The functions behind `Graph` that need much, each imported at its first use: who only looks waits for no more."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_omnigraph.engine.result import QueryResult as QueryResult
    from spark_omnigraph.graph.changes.diff import Diff as Diff
    from spark_omnigraph.graph.changes.diff import DiffFilter as DiffFilter
    from spark_omnigraph.graph.changes.diff import diff as diff
    from spark_omnigraph.graph.convert.convert import convert_graph as convert_graph
    from spark_omnigraph.graph.copy.copy import copy_graph as copy_graph
    from spark_omnigraph.graph.create import create_graph as create_graph
    from spark_omnigraph.graph.delete.by_id import DeleteReport as DeleteReport
    from spark_omnigraph.graph.delete.by_id import DeleteRequest as DeleteRequest
    from spark_omnigraph.graph.delete.by_id import delete_ids as delete_ids
    from spark_omnigraph.graph.delete.by_id import id_array as id_array
    from spark_omnigraph.graph.embed.embed import embed as embed
    from spark_omnigraph.graph.embed.report import EmbedReport as EmbedReport
    from spark_omnigraph.graph.embed.request import EmbedChoices as EmbedChoices
    from spark_omnigraph.graph.embed.request import embed_request as embed_request
    from spark_omnigraph.graph.erase.erase import EraseRequest as EraseRequest
    from spark_omnigraph.graph.erase.erase import erase as erase
    from spark_omnigraph.graph.export.tables import WrittenTable as WrittenTable
    from spark_omnigraph.graph.export.tables import export_types as export_types
    from spark_omnigraph.graph.load.inputs import InputArguments as InputArguments
    from spark_omnigraph.graph.load.inputs import LoadArguments as LoadArguments
    from spark_omnigraph.graph.load.source import LoadCall as LoadCall
    from spark_omnigraph.graph.load.source import load_source as load_source
    from spark_omnigraph.graph.maintain.cleanup import CleanupReport as CleanupReport
    from spark_omnigraph.graph.maintain.cleanup import cleanup as cleanup
    from spark_omnigraph.graph.maintain.expire import Policy as Policy
    from spark_omnigraph.graph.maintain.optimize import OptimizeReport as OptimizeReport
    from spark_omnigraph.graph.maintain.optimize import OptimizeRequest as OptimizeRequest
    from spark_omnigraph.graph.maintain.optimize import optimize as optimize
    from spark_omnigraph.graph.maintain.repair import RepairReport as RepairReport
    from spark_omnigraph.graph.maintain.repair import repair as repair
    from spark_omnigraph.graph.merge.merge import MergeChoices as MergeChoices
    from spark_omnigraph.graph.merge.merge import MergeReport as MergeReport
    from spark_omnigraph.graph.merge.merge import merge_branch as merge_branch
    from spark_omnigraph.graph.merge.merge import merge_request as merge_request
    from spark_omnigraph.graph.mutate.mutate import MutationResult as MutationResult
    from spark_omnigraph.graph.mutate.mutate import mutate as mutate
    from spark_omnigraph.graph.mutate.mutate import prepare_mutation as prepare_mutation
    from spark_omnigraph.graph.read.history import commit_history as commit_history
    from spark_omnigraph.graph.read.history import get_commit as get_commit
    from spark_omnigraph.graph.read.query import analyze_query as analyze_query
    from spark_omnigraph.graph.read.query import answer_query as answer_query
    from spark_omnigraph.graph.read.query import bound_plan as bound_plan
    from spark_omnigraph.graph.read.query import explain_query as explain_query
    from spark_omnigraph.graph.read.query import prepare as prepare
    from spark_omnigraph.graph.read.query import source_of as source_of
    from spark_omnigraph.graph.read.sql import SqlChoices as SqlChoices
    from spark_omnigraph.graph.read.sql import SqlGraph as SqlGraph
    from spark_omnigraph.graph.restore.restore import restore as restore
    from spark_omnigraph.graph.restore.restore import restore_request as restore_request
    from spark_omnigraph.graph.schema.apply import ApplyChoices as ApplyChoices
    from spark_omnigraph.graph.schema.apply import SchemaReport as SchemaReport
    from spark_omnigraph.graph.schema.apply import apply_request as apply_request
    from spark_omnigraph.graph.schema.apply import apply_schema as apply_schema
    from spark_omnigraph.graph.schema.preview import SchemaChoices as SchemaChoices
    from spark_omnigraph.graph.schema.preview import SchemaPreview as SchemaPreview
    from spark_omnigraph.graph.schema.preview import change_request as change_request
    from spark_omnigraph.graph.schema.preview import preview as preview
    from spark_omnigraph.graph.sync.source import DeltaSource as DeltaSource
    from spark_omnigraph.graph.sync.source import LocalDelta as LocalDelta
    from spark_omnigraph.graph.sync.source import place_of as place_of
    from spark_omnigraph.graph.sync.sync import SyncChoices as SyncChoices
    from spark_omnigraph.graph.sync.sync import SyncReport as SyncReport
    from spark_omnigraph.graph.sync.sync import sync as sync
    from spark_omnigraph.graph.sync.sync import sync_request as sync_request
    from spark_omnigraph.sql.result import SqlResult as SqlResult

_HOMES = {
    "engine.result": ("QueryResult",),
    "graph.changes.diff": ("Diff", "DiffFilter", "diff"),
    "graph.convert.convert": ("convert_graph",),
    "graph.copy.copy": ("copy_graph",),
    "graph.create": ("create_graph",),
    "graph.delete.by_id": ("DeleteReport", "DeleteRequest", "delete_ids", "id_array"),
    "graph.embed.embed": ("embed",),
    "graph.embed.report": ("EmbedReport",),
    "graph.embed.request": ("EmbedChoices", "embed_request"),
    "graph.erase.erase": ("EraseRequest", "erase"),
    "graph.export.tables": ("WrittenTable", "export_types"),
    "graph.load.inputs": ("InputArguments", "LoadArguments"),
    "graph.load.source": ("LoadCall", "load_source"),
    "graph.maintain.cleanup": ("CleanupReport", "cleanup"),
    "graph.maintain.expire": ("Policy",),
    "graph.maintain.optimize": ("OptimizeReport", "OptimizeRequest", "optimize"),
    "graph.maintain.repair": ("RepairReport", "repair"),
    "graph.merge.merge": ("MergeReport", "MergeChoices", "merge_branch", "merge_request"),
    "graph.mutate.mutate": ("MutationResult", "mutate", "prepare_mutation"),
    "graph.read.history": ("commit_history", "get_commit"),
    "graph.read.query": ("analyze_query", "answer_query", "bound_plan", "explain_query", "prepare", "source_of"),
    "graph.read.sql": ("SqlChoices", "SqlGraph"),
    "graph.restore.restore": ("restore", "restore_request"),
    "graph.schema.apply": ("ApplyChoices", "SchemaReport", "apply_request", "apply_schema"),
    "graph.schema.preview": ("SchemaChoices", "SchemaPreview", "change_request", "preview"),
    "graph.sync.source": ("DeltaSource", "LocalDelta", "place_of"),
    "graph.sync.sync": ("SyncChoices", "SyncReport", "sync", "sync_request"),
    "sql.result": ("SqlResult",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(f"spark_omnigraph.{home}"), name)
    return found
