"""Delta tables on an S3 server, by the settings of graphs: read, followed, and reported to."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_omnigraph.cli.program import main
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.export.tables import ExportOutcome
from spark_omnigraph.graph.handle import Graph
from tests.support.object_store import S3Server

pytestmark = [pytest.mark.s3, pytest.mark.timeout(300)]

SCHEMA = "node Film { name: String @key  age: I32? }"


def test_tables_are_read_and_follow_the_graph(s3: S3Server, uri: str) -> None:
    graph = Graph.init(f"{uri}/graph", SCHEMA, storage_options=s3.storage_options)
    rows = pa.table({"name": ["a", "b"], "age": pa.array([1, 2], pa.int32())})
    write_deltalake(f"{uri}/in", rows, storage_options=s3.storage_options)
    graph.load(f"delta:{uri}/in".replace("s3://", "s3a://"), node="Film")
    with pytest.raises(BadRequestError, match=f"'{uri}/in' is a Delta table.* delta:{uri}/in"):
        graph.load(f"{uri}/", node="Film")
    out, outcomes = f"{uri}/out", []
    for patch in ({}, {"name": "b", "age": 3}, {}):
        if patch:
            graph.load([json.dumps({"type": "Film", "data": patch})], "merge")
        outcomes.append(graph.export_tables(out, incremental=True)["node:Film"].outcome)
    assert outcomes == [ExportOutcome.WHOLE, ExportOutcome.CHANGES, ExportOutcome.SAME]
    stored = pa.table(DeltaTable(f"{out}/nodes/Film", storage_options=s3.storage_options).to_pyarrow_table())
    assert stored.select(["id", "age"]).sort_by("id").to_pylist() == [{"id": "a", "age": 1}, {"id": "b", "age": 3}]


def test_the_verbs_take_settings_and_secrets_from_where_a_graph_does(
    s3: S3Server, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The place and the region by options, the secret by the environment; a log shows neither."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, s3.environment[name])
    given = ["--graph", str(tmp_path / "g")]
    for name in ("aws_endpoint", "allow_http", "aws_region"):
        given += ["--storage-option", f"{name}={s3.storage_options[name]}"]
    Graph.init(tmp_path / "g", SCHEMA)
    (tmp_path / "films.jsonl").write_text('{"type": "Film", "data": {"name": "a"}}\n{"type": "Film", "data": {}}\n')
    source = ["--input", str(tmp_path / "films.jsonl"), "--max-bad-rows", "1", "--bad-rows", f"delta:{uri}/bad"]
    assert main(["ingest", *given, *source]) == 0
    assert main(["export", *given, "--format", "delta", "--output", f"delta:{uri}/out"]) == 0
    assert main(["merge", *given, "--input", f"delta:{uri}/out/nodes/Film", "--mapping", str(mapping(tmp_path))]) == 0
    texts = capsys.readouterr()
    assert s3.storage_options["aws_endpoint"] not in texts.out
    bad = pa.table(DeltaTable(f"{uri}/bad", storage_options=s3.storage_options).to_pyarrow_table())
    assert bad.column("line").to_pylist() == [2]


def mapping(folder: Path) -> Path:
    path = folder / "mapping.yaml"
    path.write_text("inputs:\n  - node: Film\n    ignore: [id]\n")
    return path
