"""What one write, one open and one point read ask of the object store. Every request is counted by the proxy.

The figures are bounds: one that rises fails here, one that falls should be lowered here. A graph of many commits costs
more: a publish reads every file of the manifest since it was last compacted, and checks and reads by id open every
data file of a table, of which each load leaves one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from spark_omnigraph import Graph, LoadOptions
from tests.crash.worlds import SCHEMA, person
from tests.faults.proxy import Proxy
from tests.support.object_store import BUCKET, S3Server

pytestmark = [pytest.mark.s3, pytest.mark.timeout(3600)]

OPTIONS = LoadOptions(build_indexes=False)


@dataclass(frozen=True)
class Cost:
    """Requests of an open, of an embedded write of one row, and of a read of one row by id."""

    opening: int
    write: int
    read: int

    def __le__(self, other: Cost) -> bool:
        return self.opening <= other.opening and self.write <= other.write and self.read <= other.read


def write(graph: Graph, number: int) -> None:
    graph.load([person(f"p{number}", number)], options=OPTIONS)


def upload(root: Path, s3: S3Server, name: str) -> None:
    """Copies a local graph into the bucket: building it there would take most of an hour."""
    store = S3Store(
        BUCKET,
        endpoint=s3.endpoint,
        region="us-east-1",
        access_key_id="testing",
        secret_access_key="testing",
        client_options={"allow_http": True},
        virtual_hosted_style_request=False,
    )
    for path in root.rglob("*"):
        if path.is_file():
            obstore.put(store, f"{name}/{path.relative_to(root)}", path.read_bytes())


def measure(uri: str, proxy: Proxy, options: dict[str, str], depth: int) -> Cost:
    """The costs for a handle that has written before."""
    proxy.reset()
    graph = Graph.open(uri, storage_options=options)
    opening = len(proxy.requests)
    write(graph, depth)
    proxy.reset()
    write(graph, depth + 1)
    writing = len(proxy.requests)
    proxy.reset()
    assert graph.entity("node:Person", f"p{depth // 2}") is not None
    return Cost(opening, writing, len(proxy.requests))


def check(folder: Path, s3: S3Server, proxy: Proxy, depth: int, bound: Cost) -> None:
    graph = Graph.init(folder / "g", SCHEMA)
    for number in range(depth):
        write(graph, number)
    upload(folder / "g", s3, f"depth{depth}")
    found = measure(f"s3://{BUCKET}/depth{depth}", proxy, proxy.server(s3).storage_options, depth)
    assert found <= bound, found


def test_costs_at_a_depth_of_ten_commits(tmp_path: Path, s3: S3Server, proxy: Proxy) -> None:
    check(tmp_path, s3, proxy, 10, Cost(opening=13, write=84, read=21))


@pytest.mark.long
def test_costs_at_a_depth_of_a_thousand_commits(tmp_path: Path, s3: S3Server, proxy: Proxy) -> None:
    check(tmp_path, s3, proxy, 1000, Cost(opening=13, write=1202, read=1013))
