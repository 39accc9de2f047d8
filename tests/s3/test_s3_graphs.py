"""Graphs on an S3 server: all load modes, branches, two writers, and stores that cannot be trusted."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from obstore.store import S3Store

from spark_omnigraph.cli import main
from spark_omnigraph.errors import (
    AlreadyInitializedError,
    BadRequestError,
    BadRowsError,
    NotFoundError,
    OmnigraphError,
)
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.storage.input.found import list_inputs
from spark_omnigraph.storage.objects.files import put_file
from tests.races.loads import SCHEMA, records
from tests.support.cases import Json
from tests.support.object_store import BUCKET, S3Server, careless_server
from tests.support.workers import Worker

pytestmark = [pytest.mark.s3, pytest.mark.timeout(300)]

ROUNDS = 4


def tags(graph: Graph, branch: str = "main") -> dict[str, str]:
    """Id of every part → its tag."""
    found: dict[str, str] = {}
    for line in graph.export(tables=["node:Part"], branch=branch):
        data = json.loads(line)["data"]
        assert data["id"] not in found
        found[data["id"]] = data["tag"]
    return found


def test_the_three_load_modes(s3: S3Server, uri: str) -> None:
    g = Graph.init(uri, SCHEMA, storage_options=s3.storage_options)
    first = g.load(records("one", ["a", "b"]), mode="append")
    assert (first.nodes_loaded, first.edges_loaded) == ({"Part": 2, "Bin": 2}, {"In": 2})
    g.load(records("two", ["b", "c"]), mode="merge")
    assert tags(g) == {"a": "one", "b": "two", "c": "two"}
    g.load(records("three", ["z"]), mode="overwrite")
    again = Graph.open(uri, mode="r", storage_options=s3.storage_options)
    assert tags(again) == {"z": "three"}
    assert [again.count(table) for table in ("node:Bin", "edge:In")] == [1, 1]
    assert len(again.commits()) == 4


def test_input_is_an_object_a_folder_or_a_glob(s3: S3Server, uri: str) -> None:
    g = Graph.init(uri, SCHEMA, storage_options=s3.storage_options)
    folder = f"s3://{BUCKET}/in-{uri.rpartition('/')[2]}"
    for name in ("a.jsonl", "b.jsonl", "_c.jsonl", "a.jsonl.old"):
        put_file(f"{folder}/{name}", io.BytesIO("\n".join(records(name, [name])).encode()), s3.storage_options)
    assert g.load(f"{folder}/a.jsonl").nodes_loaded == {"Part": 1, "Bin": 1}
    assert g.load([f"{folder}/*.jsonl", f"{folder}/b.jsonl"], mode="merge").nodes_loaded == {"Part": 2, "Bin": 2}
    assert g.load(f"{folder}/_*.jsonl", mode="merge").nodes_loaded == {"Part": 1, "Bin": 1}
    assert set(tags(g)) == {"a.jsonl", "b.jsonl", "_c.jsonl"}
    packed = gzip.compress("\n".join(records("zip", ["zip"])).encode())
    put_file(f"{folder}/d.jsonl.gz", io.BytesIO(packed), s3.storage_options)
    g.load(f"{folder}/d.jsonl.gz", mode="merge")
    again = Graph.open(uri.replace("s3://", "s3a://"), storage_options=s3.storage_options)
    again.load(folder.replace("s3://", "s3a://"), mode="overwrite")
    assert set(tags(g)) == {"a.jsonl", "b.jsonl", "a.jsonl.old", "zip"}
    with pytest.raises(NotFoundError, match="no object matches"):
        g.load(f"{folder}/a.json")


def test_tables_are_objects_too(s3: S3Server, uri: str) -> None:
    g = Graph.init(uri, "node P { name: String @key  n: I32? }", storage_options=s3.storage_options)
    folder = f"s3://{BUCKET}/tables-{uri.rpartition('/')[2]}"
    table, content = pa.table({"name": ["a", "b", "c"], "n": pa.array([1, None, 3], pa.int32())}), io.BytesIO()
    pq.write_table(table, content, row_group_size=1)
    arrow = io.BytesIO()
    with ipc.new_file(arrow, table.schema) as out:
        out.write_table(table)
    texts = b'name,n\n"d\nd",4\ne,\n'
    objects = {"p.parquet": content.getvalue(), "p.arrow": arrow.getvalue(), "p.csv": texts}
    for name, data in {**objects, "p.csv.gz": gzip.compress(texts)}.items():
        put_file(f"{folder}/{name}", io.BytesIO(data), s3.storage_options)
        assert g.load(f"{folder}/{name}", mode="merge", node="P").tables["node:P"].valid == (2 if ".csv" in name else 3)
    assert [json.loads(line)["data"]["n"] for line in g.export()] == [1, None, 3, 4, None]


def test_a_glob_of_objects_means_what_it_means_in_a_folder(s3: S3Server, uri: str) -> None:
    folder = f"s3://{BUCKET}/globs-{uri.rpartition('/')[2]}"
    left_out = ("_temporary/0/a.jsonl", "_a.jsonl", "b.jsonl.tmp", "old/_committed_1")
    for name in ("a.jsonl", "b.jsonl", "old/a.jsonl", "old/er/a.jsonl", "in/deep/b.jsonl", ".c/a.jsonl", *left_out):
        put_file(f"{folder}/{name}", io.BytesIO(b"{}"), s3.storage_options)

    def found(glob: str) -> list[str]:
        return [f.name.removeprefix(f"{folder}/") for f in list_inputs(f"{folder}/{glob}", s3.storage_options).files]

    assert found("*.jsonl") == ["a.jsonl", "b.jsonl"]
    assert found("?.jsonl") == ["a.jsonl", "b.jsonl"]
    assert found("[b-z].jsonl") == ["b.jsonl"]
    assert found("*/a.jsonl") == ["old/a.jsonl"]
    assert found("**/a.jsonl") == ["a.jsonl", "old/a.jsonl", "old/er/a.jsonl"]
    assert found("o*") == ["old/a.jsonl", "old/er/a.jsonl"]
    assert found("_temporary/*/*") == ["_temporary/0/a.jsonl"]
    assert found("b.*") == ["b.jsonl"]
    assert found("old/") == ["old/a.jsonl", "old/er/a.jsonl"]
    (warning,) = list_inputs(folder, s3.storage_options).warnings
    assert f"left out as unfinished, by its name: {folder}/b.jsonl.tmp;" in warning
    with pytest.raises(NotFoundError, match="no object matches"):
        found("*/b.jsonl")


def test_a_report_of_bad_rows_may_be_an_object(s3: S3Server, uri: str) -> None:
    g = Graph.init(uri, SCHEMA, storage_options=s3.storage_options)
    report = f"s3://{BUCKET}/reports/bad.jsonl"
    with pytest.raises(BadRowsError) as caught:
        g.load(['{"type": "Nothing", "data": {}}'], options=LoadOptions(bad_rows=report))
    assert caught.value.summary.report == report
    (file,) = list_inputs(report, s3.storage_options).files
    assert 0 < file.size < 1000
    with pytest.raises(BadRequestError, match="is a folder: name a file in it"):
        g.load([], options=LoadOptions(bad_rows="s3://bucket/reports/"))
    with pytest.raises(BadRequestError, match="would be replaced"):
        g.load(report, options=LoadOptions(bad_rows=report))


def test_rows_of_the_program_may_be_an_object(s3: S3Server, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    g = Graph.init(uri, SCHEMA)
    before = g.snapshot().version
    g.load(records("t", ["a", "b"]))
    out = f"s3://{BUCKET}/rows"
    assert main(["export", "--graph", uri, "--output", f"{out}/all.jsonl.gz"]) == 0
    query = "query q() { match { $p: Part } return { $p.tag as tag } }"
    assert main(["query", "--graph", uri, "-e", query, "--format", "jsonl", "--output", f"{out}/tags.jsonl"]) == 0
    assert main(["diff", str(before), "main", "--graph", uri, "--output", f"{out}/changes.jsonl"]) == 0
    store = _client(s3)
    read = {name: bytes(obstore.get(store, f"rows/{name}").bytes()) for name in ("tags.jsonl", "changes.jsonl")}
    assert [json.loads(line) for line in read["tags.jsonl"].splitlines()] == [{"tag": "t"}] * 2
    assert [json.loads(line)["op"] for line in read["changes.jsonl"].splitlines()].count("insert") >= 2
    again = Graph.init(f"{uri}-again", SCHEMA)
    again.load(f"{out}/all.jsonl.gz")
    assert tags(again) == tags(g) == {"a": "t", "b": "t"}


def test_init_twice_and_open_nowhere(s3: S3Server, uri: str) -> None:
    Graph.init(uri, SCHEMA, storage_options=s3.storage_options)
    with pytest.raises(AlreadyInitializedError):
        Graph.init(uri, SCHEMA, storage_options=s3.storage_options)
    with pytest.raises(NotFoundError):
        Graph.open(f"{uri}-elsewhere", storage_options=s3.storage_options)


def test_ingest_into_a_new_branch(s3: S3Server, uri: str) -> None:
    g = Graph.init(uri, SCHEMA, storage_options=s3.storage_options)
    g.load(records("main", ["a"]))
    report = g.ingest(records("draft", ["b"]), branch="draft", base="main", mode="append")
    assert (report.branch, report.base_branch, report.branch_created) == ("draft", "main", True)
    assert tags(g) == {"a": "main"}
    assert tags(g, branch="draft") == {"a": "main", "b": "draft"}
    again = g.ingest(records("more", ["c"]), branch="draft", base="main", mode="append")
    assert again.branch_created is False
    assert tags(g, branch="draft") == {"a": "main", "b": "draft", "c": "more"}


def test_two_writers_on_s3(s3: S3Server, uri: str) -> None:
    Graph.init(uri, SCHEMA, storage_options=s3.storage_options)
    expected: dict[str, str] = {}
    with Worker("tests.races.partner") as a, Worker("tests.races.partner") as b:
        writers = {"a": a, "b": b}
        assert all(worker.call("open", root=uri, options=s3.storage_options) for worker in writers.values())
        for number in range(ROUNDS):
            keys = {name: [f"{number}-shared", f"{number}-{name}"] for name in writers}
            requests: dict[str, Json] = {
                name: {"lines": records(f"{number}{name}", keys[name]), "mode": "append", "actor": name}
                for name in writers
            }
            for name, worker in writers.items():
                worker.send("load", **requests[name])
            outcomes = {name: worker.receive() for name, worker in writers.items()}
            for name, worker in writers.items():
                for _ in range(10):
                    if outcomes[name]["outcome"] == "conflict":
                        outcomes[name] = worker.call("load", **requests[name])
            assert sorted(each["outcome"] for each in outcomes.values()) == ["refused", "won"], json.dumps(
                outcomes, indent=1
            )
            winner = next(name for name in writers if outcomes[name]["outcome"] == "won")
            expected.update(dict.fromkeys(keys[winner], f"{number}{winner}"))
    g = Graph.open(uri, mode="r", storage_options=s3.storage_options)
    assert tags(g) == expected
    assert len(g.commits()) == ROUNDS + 1


def test_options_from_the_environment(s3: S3Server, uri: str, tmp_path: Path) -> None:
    data = tmp_path / "in.jsonl"
    data.write_text("\n".join(records("env", ["a"])), encoding="utf-8")
    program = (
        "import sys\n"
        "from spark_omnigraph.graph.handle import Graph\n"
        "g = Graph.init(sys.argv[1], sys.argv[2])\n"
        "print(g.load(sys.argv[3]).nodes_loaded['Part'], Graph.open(sys.argv[1]).count('node:Part'))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, uri, SCHEMA, str(data)],
        env={**os.environ, **s3.environment},
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["1", "1"]


def test_a_store_that_ignores_conditions_is_refused() -> None:
    with careless_server() as (store, objects):
        with pytest.raises(OmnigraphError, match=r"(?i)conditional") as refused:
            Graph.init(f"s3://{BUCKET}/g", SCHEMA, storage_options=store.storage_options)
        assert BUCKET in str(refused.value) or store.endpoint in str(refused.value)
        assert [key for key in objects if "_versions" in key or "_schema" in key] == []


def test_a_store_that_came_to_ignore_conditions_is_refused_at_open(s3: S3Server, uri: str) -> None:
    """The probe runs at every read-write open, not only at init."""
    Graph.init(uri, SCHEMA, storage_options=s3.storage_options)
    with careless_server() as (store, objects):
        _copy(s3, uri, objects)
        assert Graph.open(uri, mode="r", storage_options=store.storage_options).count("node:Part") == 0
        with pytest.raises(OmnigraphError, match=r"(?i)conditional"):
            Graph.open(uri, mode="rw", storage_options=store.storage_options)


def _client(server: S3Server) -> S3Store:
    return S3Store(
        BUCKET,
        endpoint=server.endpoint,
        region="us-east-1",
        access_key_id="testing",
        secret_access_key="testing",
        client_options={"allow_http": True},
        virtual_hosted_style_request=False,
    )


def _copy(source: S3Server, uri: str, objects: dict[str, bytes]) -> None:
    """Puts all objects of a graph into the dictionary of a careless store."""
    store = _client(source)
    for page in obstore.list(store, uri.removeprefix(f"s3://{BUCKET}/")):
        for found in page:
            objects[f"/{BUCKET}/{found['path']}"] = bytes(obstore.get(store, found["path"]).bytes())
