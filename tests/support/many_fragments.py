"""A table of thousands of fragments, made in a second: they share the rows of one file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import lance

from spark_omnigraph.graph.handle import Graph


def graph_of_fragments(root: Path, count: int) -> Graph:
    """A graph whose nodes of type `Dot` lie in `count` fragments of two rows each."""
    graph = Graph.init(root, "node Dot { name: String @key  size: I32? }")
    graph.load(['{"type": "Dot", "data": {"name": "a", "size": 1}}', '{"type": "Dot", "data": {"name": "b"}}'])
    entry = graph.snapshot().entries["node:Dot"]
    uri = graph.store.table_uri(entry.location, entry.branch)
    dataset = lance.dataset(uri)
    first = dataset.get_fragments()[0].metadata
    copies = [dataclasses.replace(first, id=0, row_id_meta=None) for _ in range(count - 1)]
    lance.LanceDataset.commit(uri, lance.LanceOperation.Append(copies), read_version=dataset.version)
    graph.repair(confirm=True, force=True)
    return graph
