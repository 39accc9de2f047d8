"""Small objects of a store with anything in them: every verb answers, or raises one of our errors, and soon.

The seed is printed.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

from spark_omnigraph import Graph, LoadOptions, OmnigraphError
from tests.support.fuzz import SEED, soon, within_bounds

SCHEMA = "node A { k: String @key }"
PLAIN = LoadOptions(build_indexes=False)
OPERATION = "01J0000000000000000000000A"
SOON = 10.0
"""Seconds for all verbs together on a busy machine; what hangs takes for ever."""
NAMES = (
    f"__recovery/{OPERATION}.json",
    f"__recovery/{OPERATION}.lease",
    f"__recovery/x_stage~{OPERATION}.lease",
    f"__recovery/x_claim~recover~{OPERATION}.claim",
    "__recovery/x_claim~fork~nodes~x~b.claim",
    "__schema_state.json",
    "_schema.ir.json",
    "_schema.pg",
    "_schema.pg.staging",
    "_schema.ir.json.staging",
    "__schema_state.json.staging",
)
ROUGH = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"\x00",
    b"{}" * 3,
    b'{"schema_version": Infinity}',
    b'{"expires_at": 1e400, "owner": "a"}',
    b'{"expires_at": 1e300, "owner": "a"}',
    b'{"format_version": ' + b"9" * 20_000 + b', "schema_ir_hash": "x"}',
    b'{"schema_version": 2, "x": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    b"node A { k: String @key }" * 2,
    b"node A { " + b"{" * 20_000,
)
numbers = st.one_of(st.integers(-2, 5), st.sampled_from([2**31, 2**63 - 1, 2**63, 10**30, 1.5, -0.0]))
texts = st.one_of(
    st.sampled_from(
        ["node:A", "node:Ghost", "main", "", "..", "../x", "/etc", "nodes/x", "a\nb", "Load", "BranchMerge"]
    ),
    st.text(max_size=8),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


def member_of(names: list[str]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(names), values, max_size=2)


PIN_MEMBERS = ["table_key", "table_path", "expected_version", "post_commit_pin", "confirmed_version", "table_branch"]
BODY_MEMBERS = [
    "schema_version", "operation_id", "started_at", "branch", "actor_id", "writer_kind", "tables", "tombstones",
    "merge_source_commit_id", "additional_registrations", "x_commit_id", "x_schema_ir_hash", "x_read_expectations",
    "x_transaction",
]  # laid out as a table  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def bounded(request: pytest.FixtureRequest) -> Iterator[None]:
    yield from within_bounds(request.config, "small objects of a store")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = Graph.init(tmp_path_factory.mktemp("fuzz") / "kept", SCHEMA)
    graph.load([json.dumps({"type": "A", "data": {"k": "a"}})], options=PLAIN)
    return Path(graph.uri)


@pytest.fixture
def root(fresh: Path) -> Iterator[Path]:
    copy = fresh.with_name("g")
    yield copy
    shutil.rmtree(copy, ignore_errors=True)


def sidecar(fresh: Path, changes: dict[str, object], pin: dict[str, object]) -> bytes:
    """A sidecar as an engine writes it, with some members changed."""
    entry = Graph.open(fresh, mode="r").snapshot().entries["node:A"]
    table: dict[str, object] = {
        "table_key": "node:A", "table_path": f"{fresh}/{entry.location}",
        "expected_version": entry.version, "post_commit_pin": entry.version + 1,
    }  # laid out as a table  # fmt: skip
    body: dict[str, object] = {
        "schema_version": 2, "operation_id": OPERATION, "started_at": "1750000000000000", "branch": None,
        "actor_id": None, "writer_kind": "Load", "tables": [{**table, **pin}],
    }  # laid out as a table  # fmt: skip
    return json.dumps({**body, **changes}).encode()


def every_verb(root: Path) -> None:
    """All of them, each with a fresh handle where one can be had; nothing but our errors may come out."""
    began = time.monotonic()
    writers: list[Graph] = []
    for mode in ("r", "rw"):
        with soon(), suppress(OmnigraphError):
            graph = Graph.open(root, mode=mode)
            writers += [graph] if mode == "rw" else []
            for read in (graph.describe, graph.commits, graph.interrupted, graph.running, graph.branches):
                with soon(), suppress(OmnigraphError):
                    read()
    for graph in writers:
        for write in (
            graph.recover,
            graph.repair,
            lambda graph=graph: graph.load([json.dumps({"type": "A", "data": {"k": "b"}})], "merge", options=PLAIN),
            lambda graph=graph: graph.cleanup(timedelta(0), confirm=True),
        ):
            with soon(), suppress(OmnigraphError):
                write()
    assert time.monotonic() - began < SOON


def put(fresh: Path, root: Path, name: str, content: bytes) -> None:
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(fresh, root)
    (root / name).write_bytes(content)


BOUNDED = settings(
    max_examples=5,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("name", NAMES)
def test_rough_objects_raise_nothing_but_our_errors(fresh: Path, root: Path, name: str) -> None:
    for content in ROUGH[NAMES.index(name) % 7 :: 7]:
        put(fresh, root, name, content)
        every_verb(root)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("content", ROUGH, ids=range(len(ROUGH)))
def test_all_rough_objects(fresh: Path, root: Path, name: str, content: bytes) -> None:
    put(fresh, root, name, content)
    every_verb(root)


@BOUNDED
@seed(SEED)
@given(name=st.sampled_from(NAMES), value=values)
def test_any_json_in_a_small_object(fresh: Path, root: Path, name: str, value: object) -> None:
    put(fresh, root, name, json.dumps(value).encode("utf-8", "surrogatepass"))
    every_verb(root)


@pytest.mark.long
@settings(BOUNDED, max_examples=300)
@seed(SEED)
@given(name=st.sampled_from(NAMES), value=values)
def test_much_json_in_a_small_object(fresh: Path, root: Path, name: str, value: object) -> None:
    put(fresh, root, name, json.dumps(value).encode("utf-8", "surrogatepass"))
    every_verb(root)


@pytest.mark.long
@settings(BOUNDED, max_examples=300)
@seed(SEED)
@given(changes=member_of(BODY_MEMBERS), pin=member_of(PIN_MEMBERS))
def test_many_members_of_a_sidecar(fresh: Path, root: Path, changes: dict[str, object], pin: dict[str, object]) -> None:
    put(fresh, root, NAMES[0], sidecar(fresh, changes, pin))
    every_verb(root)


@BOUNDED
@seed(SEED)
@given(changes=member_of(BODY_MEMBERS), pin=member_of(PIN_MEMBERS))
@example(changes={}, pin={"table_key": "node:Ghost"})
@example(changes={"branch": "gone"}, pin={})
@example(changes={"writer_kind": "BranchMerge", "merge_source_commit_id": "x"}, pin={"expected_version": 0})
def test_any_member_of_a_sidecar(fresh: Path, root: Path, changes: dict[str, object], pin: dict[str, object]) -> None:
    put(fresh, root, NAMES[0], sidecar(fresh, changes, pin))
    every_verb(root)
    assert Graph.open(root, mode="r").entity("node:A", "a") == {"id": "a", "k": "a"}, "nothing is lost by it"


@pytest.mark.parametrize("name", NAMES[:2] + NAMES[4:8:3])
def test_a_pipe_in_place_of_an_object_hangs_nobody(fresh: Path, root: Path, name: str) -> None:
    shutil.copytree(fresh, root)
    (root / name).unlink(missing_ok=True)
    os.mkfifo(root / name)
    every_verb(root)
