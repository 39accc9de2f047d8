"""No secret is repeated, and no file of the graph or of the input is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_omnigraph.cli.program import main
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.storage.uri import is_inside

SECRET = "wJalrXUtnFEMI/K7MDENG"
SCHEMA = "node T { k: String @key }"
QUERY = "query q() { match { $t: T } return { $t.k } }"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Graph.init("g", SCHEMA)
    (tmp_path / "in.jsonl").write_text('{"type":"T","data":{"k":"a"}}\n')
    (tmp_path / "q.gq").write_text(QUERY)
    os.symlink("g", "link")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["ingest", "--graph", "g", "--input", "in.jsonl", "--bad-rows", f"s3://KEY:{SECRET}@b/x"],
        ["ingest", "--graph", "g", "--input", f"s3://KEY:{SECRET}@b/x"],
        ["export", "--graph", "g", "--output", f"s3://KEY:{SECRET}@b/x"],
        ["describe", "--graph", f"s3://k:{SECRET}@b/x"],
        ["describe", "--graph", "g", "--storage-option", f"aws_secret_access_key:{SECRET}"],
        ["describe", "--graph", "g", "--storage-option", "aws_secret_access_key", SECRET],
        ["describe", "--graph", "g", "--storage-option", SECRET],
        ["describe", "--graph", "g", f"--aws-secret-access-key:{SECRET}"],
        ["describe", "--graph", "g", "--config", "secret.yaml"],
        ["describe", "--graph", f"none/{SECRET}"],
    ],
)
def test_no_secret_is_repeated(
    words: list[str], place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    (place / "secret.yaml").write_text(f'storage_options: {{aws_secret_access_key: "{SECRET}')
    assert main([*words, "--summary", "summary.json", "--log-level", "debug"]) in (2, 6)
    out, err = capsys.readouterr()
    assert SECRET.split("/")[0] not in out + err + (place / "summary.json").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["export", "--graph", "g", "--output", "g/_schema.pg"],
        ["export", "--graph", "link", "--output", "g/new"],
        ["export", "--graph", "g", "--output", "link/new"],
        ["export", "--graph", "file:g/../g", "--output", "./x/../g/_schema.pg"],
        ["describe", "--graph", "g", "--summary", "g/_schema.pg"],
        ["describe", "--graph", "g", "--summary", "g/_schema.pg", "--unknown"],
        ["ingest", "--graph", "g", "--input", "in.jsonl", "--bad-rows", "g/bad"],
        ["ingest", "--graph", "g", "--input", "in.jsonl", "--summary", "in.jsonl"],
        ["ingest", "--graph", "g", "--input", "*.jsonl", "--bad-rows", "in.jsonl"],
        ["ingest", "--graph", "g", "--input", ".", "--summary", "in.jsonl"],
        ["query", "--graph", "g", "--file", "q.gq", "--output", "q.gq"],
        ["cleanup", "--graph", "g", "--report", "g/_schema.pg"],
        ["ingest", "--graph", "s3://b/g", "--input", "in.jsonl", "--bad-rows", "s3a://b//g/x"],
    ],
)
def test_files_of_the_graph_and_of_the_input_stay(words: list[str], place: Path) -> None:
    before = {path: path.read_bytes() for path in (place / "g" / "_schema.pg", place / "in.jsonl", place / "q.gq")}
    assert main(words) == 2
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(path.name for path in place.iterdir()) == ["g", "in.jsonl", "link", "q.gq"]


def test_a_report_of_the_library_stays_outside_too(place: Path) -> None:
    with pytest.raises(BadRequestError, match="lies inside the graph"):
        Graph.open("g").load("in.jsonl", options=LoadOptions(bad_rows="g/_schema.pg"))


def test_a_device_is_written_and_not_replaced(place: Path) -> None:
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert main(["query", "--graph", "g", "--file", "q.gq", "--format", "csv", "--output", "pipe"]) == 0
    assert os.read(reader, 100) == b"t.k\n"
    os.close(reader)
    assert (place / "pipe").is_fifo()


def test_inside() -> None:
    found = [is_inside(a, b) for a, b in (("s3://b/g", "s3a://b/g/"), ("s3://b/gg", "s3://b/g"), ("/a/g", "s3://a/g"))]
    assert found == [True, False, False]
