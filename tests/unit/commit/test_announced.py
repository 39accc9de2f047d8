"""What names in `__recovery/` stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.branch.consumers import take_consumer
from spark_omnigraph.commit import stage
from spark_omnigraph.commit.announced import announced, claim_path
from spark_omnigraph.commit.lease import lease_path
from spark_omnigraph.commit.sidecar import sidecar_path
from spark_omnigraph.storage.layout import RECOVERY

from .builders import make_store


def test_every_name_is_one_thing_and_leads_back_to_its_object(tmp_path: Path) -> None:
    store = make_store(tmp_path / "g")
    files = ["a.json", "a.lease", "x_claim~fork~t~b.claim", "x_making~m.lease", "x_published~main", "x_stage~s.lease"]
    strangers = ["notes.txt", "x_probe_1", "y.claim", "z.lease.tmp"]
    for name in (*files, *strangers):
        store.objects.put(f"{RECOVERY}/{name}", b"{}")
    found = announced(store)
    assert (found.sidecars, found.leases, found.makings) == (("a",), ("a",), ("x_making~m",))
    assert (found.stages, found.claims, found.notes) == (("x_stage~s",), ("fork~t~b",), ("x_published~main",))
    assert found.others == tuple(strangers)
    paths = [*map(sidecar_path, found.sidecars), *map(lease_path, found.held), *map(claim_path, found.claims)]
    assert sorted((*paths, *(f"{RECOVERY}/{note}" for note in found.notes))) == [f"{RECOVERY}/{each}" for each in files]


def test_a_stage_is_told_from_other_leases(tmp_path: Path) -> None:
    store = make_store(tmp_path / "g")
    with stage.staging(store) as name:
        assert (announced(store).stages, announced(store).leases) == ((name,), ())
        assert not stage.has_ended(store, [name])
    assert announced(store).held == ()
    assert stage.has_ended(store, [name])


@pytest.mark.parametrize("name", ["draft.json", "x/y.lease", "b.claim"])
def test_what_a_caller_names_is_never_taken_for_a_sidecar(tmp_path: Path, name: str) -> None:
    """Neither here nor by other engines, which go by how names end: a graph with a torn sidecar opens for nobody."""
    graph = Graph.init(tmp_path / "g", "node P { k: String @key }")
    graph.load(['{"type":"P","data":{"k":"a"}}'])
    graph.create_branch(name)
    graph.load(['{"type":"P","data":{"k":"b"}}'], branch=name)
    graph.optimize(branch=name)
    reader = name.replace("/", "-")
    take_consumer(graph.store, reader, None, graph.commits(), graph.snapshot().version)
    assert [each.name for each in graph.consumers()] == [reader]
    assert [path.name for path in (tmp_path / "g" / "__recovery").iterdir() if path.suffix in (".json", ".lease")] == []
    again = Graph.open(tmp_path / "g", branch=name)
    assert again.recover() == []
    again.load(['{"type":"P","data":{"k":"c"}}'])
    again.delete_consumer(reader)
    Graph.open(tmp_path / "g").delete_branch(name)
    assert list((tmp_path / "g" / "__recovery").glob("*~")) == []
