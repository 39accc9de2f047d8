"""A request that a process sent before it was killed arrives late: others have seen at once that the process is dead,
and went on. What arrives then is refused, or has no effect.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.commit import lease as lease_room
from spark_omnigraph.commit.crash_points import CrashPoint
from spark_omnigraph.commit.lease import Lease, lease_path
from spark_omnigraph.commit.process import this_process
from spark_omnigraph.storage.graph_store import GraphStore
from tests.crash.worlds import BEFORE, assert_whole, knows, make_graph, person, state
from tests.faults.proxy import Held, Proxy
from tests.support.object_store import S3Server

pytestmark = [
    pytest.mark.s3,
    pytest.mark.timeout(300),
    pytest.mark.skipif(this_process() is None, reason="this system does not say which process is which"),
]

ROOT = Path(__file__).parents[2]
LATER = {"Person:later=7", "Knows:kl"}
PLACES = {
    "stage": ("/__recovery/x_stage~", ".lease"),
    "lease": ("/__recovery/0", ".lease"),
    "sidecar": ("/__recovery/0", ".json"),
    "landing of a node": ("/nodes/", ".manifest"),
    "landing of an edge": ("/edges/", ".manifest"),
    "publish": ("/__manifest/_versions/", ".manifest"),
}
REFUSED = {"landing of a node", "landing of an edge", "publish"}


def puts(uri: str, place: str) -> Held:
    """The first PUT below a graph to such a place."""
    folder, ending = PLACES[place]
    root = "/" + uri.removeprefix("s3://")
    return Held(lambda method, path: method == "PUT" and path.startswith(root + folder) and path.endswith(ending))


@pytest.mark.parametrize(
    "place", [pytest.param(name, marks=() if name == "landing of a node" else pytest.mark.long) for name in PLACES]
)
def test_a_request_that_arrives_after_its_sender_was_killed(
    uri: str, s3: S3Server, proxy: Proxy, options: dict[str, str], place: str
) -> None:
    make_graph(uri, s3.storage_options)
    proxy.held = held = puts(uri, place)
    words = ["tests.crash.victim", uri, "merge", CrashPoint.UNDO_STARTED.value, json.dumps(options)]
    writer = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT)
    held.wait()
    writer.kill()
    writer.wait()
    graph = Graph.open(uri, storage_options=s3.storage_options)
    assert_whole(graph)
    armed = place in REFUSED
    done = place == "publish"
    assert [each.kind.value for each in graph.recovered] == (["RolledForward" if done else "RolledBack"] * armed)
    graph.load([person("later", 7), knows("later", "later", "kl")], "merge")
    expected = state(graph)
    assert expected == (BEFORE | LATER if not done else expected | LATER | {"Person:c=3", "Person:a=9"})
    assert held.deliver() in ((409, 412) if armed else (200,))
    assert state(Graph.open(uri, mode="r", storage_options=s3.storage_options)) == expected
    again = Graph.open(uri, storage_options=s3.storage_options)
    assert_whole(again)
    assert state(again) == expected
    again.load([person("last", 8)], "merge")
    assert state(again) == expected | {"Person:last=8"}
    assert_whole(again)


@pytest.mark.parametrize("removed", [True, False], ids=["after its lease was removed", "in time"])
def test_a_heartbeat_that_arrives_late(
    uri: str, s3: S3Server, proxy: Proxy, options: dict[str, str], monkeypatch: pytest.MonkeyPatch, removed: bool
) -> None:
    """It asks for the version that it has read, which is gone: no lease comes back."""
    path = lease_path("01J0000000000000000000000A")
    direct = make_graph(uri, s3.storage_options).store.objects
    proxy.held = held = Held(lambda method, where: method == "PUT" and where.endswith(path) and proxied)
    proxied = False
    with Lease(GraphStore.open(uri, options), "01J0000000000000000000000A") as lease:
        monkeypatch.setattr(lease_room, "TERM", 0.03)
        lease.acquire()
        proxied = True
        held.wait()
        if removed:
            assert not direct.remove(path, b"as it was once")
            assert direct.remove(path, direct.get(path))
        answers: list[int] = []
        thread = Thread(target=lambda: answers.append(held.deliver()))
        thread.start()
        thread.join()
        assert answers[0] in ((404, 412) if removed else (200,))
        assert (direct.get(path) is None) == removed
        monkeypatch.undo()
