"""Opening a graph: what is looked at, brought up to date and recovered before anybody has a handle."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass

from spark_omnigraph.branch.control import parse_branch
from spark_omnigraph.commit.contract import read_contract
from spark_omnigraph.commit.lost import LostPublishes, find_lost, whole_manifest
from spark_omnigraph.commit.recovery import Recovered, Scope, recover_for_writing
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY
from spark_omnigraph.storage.manifest.stamp import migrate

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedGraph:
    """A graph and one of its branches; the writes that were finished or undone, and publishes that are missing."""

    store: GraphStore
    branch: Branch
    recovered: tuple[Recovered, ...] = ()
    lost: LostPublishes | None = None


def open_graph(
    uri: str | os.PathLike[str], mode: str, branch: str, storage_options: Mapping[str, str] | None
) -> OpenedGraph:
    """As `Graph.open`, which says what is raised."""
    if mode not in ("r", "rw"):
        raise BadRequestError(f"mode must be 'r' or 'rw', got '{mode}'")
    store = GraphStore.open(uri, storage_options)
    name = parse_branch(branch)
    store.require_branch(name)
    recovered: tuple[Recovered, ...] = ()
    lost = None
    if mode == "rw":
        manifests = [whole_manifest(store, each) for each in {None, name}]
        store.objects.probe(RECOVERY)
        for manifest in manifests:
            migrate(manifest)
        recovered = tuple(recover_for_writing(store, Scope.FULL))
    else:
        lost = find_lost(store, name)
    read_contract(store)
    if lost is not None:
        _LOG.warning("%s: %s", store.root, lost)
    return OpenedGraph(store, name, recovered, lost)
