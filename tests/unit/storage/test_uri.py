"""Graph roots: what is accepted, and how it is normalised."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.storage.uri import locate


def test_local_roots_become_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate("g/").root == f"{tmp_path}/g"
    assert locate(f"file://{tmp_path}/a%20b/").root == f"{tmp_path}/a b"
    assert locate("g").join("nodes", "x") == f"{tmp_path}/g/nodes/x"


def test_object_paths_are_as_manifest_rows_record_them() -> None:
    assert locate("/srv/g").object_path("/srv/g/nodes/x") == "srv/g/nodes/x"
    assert locate("s3://bucket/graphs/g/").object_path("s3://bucket/graphs/g/nodes/x") == "graphs/g/nodes/x"


@pytest.mark.parametrize(
    "uri", ["file:///srv/a%20b", "file:/srv/a%20b", "FILE:///srv/a%20b/", "file://localhost/srv/a%20b"]
)
def test_every_spelling_of_a_file_uri_is_a_path(uri: str) -> None:
    assert locate(uri).root == "/srv/a b"
    assert locate(uri).is_local


@pytest.mark.parametrize("uri", ["s3a://bucket/g/", "s3n://bucket/g", "S3://bucket/g"])
def test_the_names_that_hadoop_has_for_s3_are_taken(uri: str) -> None:
    assert locate(uri).root == "s3://bucket/g"


@pytest.mark.parametrize("uri", ["file://server/share/g", "file://g"])
def test_a_file_of_another_machine_is_refused(uri: str) -> None:
    with pytest.raises(BadRequestError, match="names no path of this machine: write file:///"):
        locate(uri)


def test_a_colon_in_a_name_is_no_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate("a:b").root == f"{tmp_path}/a:b"
    assert locate("s3").root == f"{tmp_path}/s3"


@pytest.mark.parametrize("uri", ["/Volumes/a/b/c", "/dbfs/x", "dbfs:/x"])
def test_mounts_without_atomic_links_are_refused(uri: str) -> None:
    with pytest.raises(BadRequestError, match="cannot hold a graph"):
        locate(uri)


@pytest.mark.parametrize(
    "uri", ["hdfs://x/y", "gs://b/g", "https://x", "abfss://c@a.dfs.core.windows.net/g", "hdfs:/x", "s4://b/g"]
)
def test_other_schemes_are_refused(uri: str) -> None:
    with pytest.raises(BadRequestError, match=r"unsupported scheme: a graph lives on a local disk .* or on S3"):
        locate(uri)


def test_an_empty_root_is_refused() -> None:
    with pytest.raises(BadRequestError, match="empty"):
        locate(" ")


def test_the_environment_fills_s3_options_and_explicit_ones_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:2")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    options = locate("s3://b/g").options
    assert (options["aws_endpoint"], options["allow_http"]) == ("http://127.0.0.1:2", "true")
    assert locate("s3://b/g", {"aws_endpoint": "http://127.0.0.1:3"}).options["aws_endpoint"] == "http://127.0.0.1:3"


def test_options_do_not_show_in_texts() -> None:
    assert "hidden" not in repr(locate("s3://b/g", {"aws_secret_access_key": "hidden"}))
