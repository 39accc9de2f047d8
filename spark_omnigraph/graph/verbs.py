"""The functions behind `Graph` that need much, each imported at its first use: who only looks waits for no more."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_omnigraph.graph.changes.diff import diff as diff
    from spark_omnigraph.graph.create import create_graph as create_graph
    from spark_omnigraph.graph.delete.by_id import DeleteRequest as DeleteRequest
    from spark_omnigraph.graph.delete.by_id import delete_ids as delete_ids
    from spark_omnigraph.graph.delete.by_id import id_array as id_array
    from spark_omnigraph.graph.load.source import LoadCall as LoadCall
    from spark_omnigraph.graph.load.source import load_source as load_source
    from spark_omnigraph.graph.maintain.cleanup import cleanup as cleanup
    from spark_omnigraph.graph.maintain.optimize import optimize as optimize
    from spark_omnigraph.graph.maintain.repair import repair as repair
    from spark_omnigraph.graph.merge.merge import merge_branch as merge_branch
    from spark_omnigraph.graph.merge.merge import merge_request as merge_request
    from spark_omnigraph.graph.mutate.mutate import mutate as mutate
    from spark_omnigraph.graph.mutate.mutate import prepare_mutation as prepare_mutation
    from spark_omnigraph.graph.read.query import bound_plan as bound_plan
    from spark_omnigraph.graph.read.query import explain_query as explain_query
    from spark_omnigraph.graph.read.query import prepare as prepare
    from spark_omnigraph.graph.read.query import run_query as run_query

_HOMES = {
    "graph.changes.diff": ("diff",),
    "graph.create": ("create_graph",),
    "graph.delete.by_id": ("DeleteRequest", "delete_ids", "id_array"),
    "graph.load.source": ("LoadCall", "load_source"),
    "graph.maintain.cleanup": ("cleanup",),
    "graph.maintain.optimize": ("optimize",),
    "graph.maintain.repair": ("repair",),
    "graph.merge.merge": ("merge_branch", "merge_request"),
    "graph.mutate.mutate": ("mutate", "prepare_mutation"),
    "graph.read.query": ("bound_plan", "explain_query", "prepare", "run_query"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(f"spark_omnigraph.{home}"), name)
    return found
