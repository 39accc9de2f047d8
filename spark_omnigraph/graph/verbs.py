"""The functions behind `Graph` that need much, each imported at its first use: who only looks waits for no more."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_omnigraph.graph.changes.diff import diff
    from spark_omnigraph.graph.create import create_graph
    from spark_omnigraph.graph.delete.by_id import DeleteRequest, delete_ids, id_array
    from spark_omnigraph.graph.load.bad_rows import check_report_path
    from spark_omnigraph.graph.load.load import LoadRequest, load
    from spark_omnigraph.graph.maintain.cleanup import cleanup
    from spark_omnigraph.graph.maintain.optimize import optimize
    from spark_omnigraph.graph.maintain.repair import repair
    from spark_omnigraph.graph.merge.merge import merge_branch, merge_request
    from spark_omnigraph.graph.mutate.mutate import mutate, prepare_mutation
    from spark_omnigraph.graph.read.query import bound_plan, explain_query, prepare, run_query
    from spark_omnigraph.storage.input.found import list_inputs

_HOMES = {
    "storage.input.found": ("list_inputs",),
    "graph.changes.diff": ("diff",),
    "graph.create": ("create_graph",),
    "graph.delete.by_id": (
        "DeleteRequest",
        "delete_ids",
        "id_array",
    ),
    "graph.load.bad_rows": ("check_report_path",),
    "graph.load.load": (
        "LoadRequest",
        "load",
    ),
    "graph.maintain.cleanup": ("cleanup",),
    "graph.maintain.optimize": ("optimize",),
    "graph.maintain.repair": ("repair",),
    "graph.merge.merge": ("merge_branch", "merge_request"),
    "graph.mutate.mutate": (
        "mutate",
        "prepare_mutation",
    ),
    "graph.read.query": (
        "bound_plan",
        "explain_query",
        "prepare",
        "run_query",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DeleteRequest",
    "LoadRequest",
    "bound_plan",
    "check_report_path",
    "cleanup",
    "create_graph",
    "delete_ids",
    "diff",
    "explain_query",
    "id_array",
    "list_inputs",
    "load",
    "merge_branch",
    "merge_request",
    "mutate",
    "optimize",
    "prepare",
    "prepare_mutation",
    "repair",
    "run_query",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(f"spark_omnigraph.{home}"), name)
    return found
