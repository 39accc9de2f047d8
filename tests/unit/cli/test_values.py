from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from spark_omnigraph.cli import values


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500", 500), ("500B", 500), ("2kB", 2000), ("1KiB", 1024), ("1.5 GiB", 3 << 29), ("1G", 10**9), ("1Ti", 1 << 40)],
)
def test_size(text: str, expected: int) -> None:
    assert values.size(text) == expected


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1PB", "1 2"])
def test_size_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        values.size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", timedelta(days=7)),
        ("12h", timedelta(hours=12)),
        ("90 m", timedelta(minutes=90)),
        ("0s", timedelta(0)),
        ("1.5D", timedelta(hours=36)),
        ("2w", timedelta(days=14)),
    ],
)
def test_duration(text: str, expected: timedelta) -> None:
    assert values.duration(text) == expected


@pytest.mark.parametrize("text", ["", "7", "d", "-7d", "7y", "1e3d", "7d 1h", "٣d"])
def test_duration_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="not a length of time"):
        values.duration(text)


def test_a_duration_beyond_all_measure() -> None:
    with pytest.raises(ValueError, match="too long"):
        values.duration("99999999999d")


@pytest.mark.parametrize("text", ["0", "-3", "1.0", "two", ""])
def test_positive_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        values.positive(text)


def test_graph_uri_refuses_credentials() -> None:
    assert values.graph_uri("s3://bucket/a@b") == "s3://bucket/a@b"
    with pytest.raises(ValueError, match="credentials"):
        values.graph_uri("s3://key:secret@bucket/graph")


def test_storage_option() -> None:
    assert values.storage_option("aws_endpoint=http://127.0.0.1:9000/?a=b") == (
        "aws_endpoint",
        "http://127.0.0.1:9000/?a=b",
    )
    assert values.storage_option("aws_access_key_id=AK") == ("aws_access_key_id", "AK")


@pytest.mark.parametrize(
    "key", ["aws_secret_access_key", "AWS_SESSION_TOKEN", "azure_storage_account_key", "password", "secret", "sas_key"]
)
def test_storage_option_refuses_secrets_without_showing_them(key: str) -> None:
    with pytest.raises(ValueError, match="names a secret") as caught:
        values.storage_option(f"{key}=hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["aws_region", "=x", " =x"])
def test_storage_option_refuses_what_is_no_pair(text: str) -> None:
    with pytest.raises(ValueError, match="not KEY=VALUE"):
        values.storage_option(text)


def test_a_new_file_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    for path in ("a.csv", "b.csv", "x/y/c.csv"):
        assert values.new_file(f"{tmp_path}/{path}") == f"{tmp_path}/{path}"
    with pytest.raises(ValueError, match="is a folder; name a file in it"):
        values.new_file(str(tmp_path))
    with pytest.raises(ValueError, match=r"a\.csv' is a file, not a folder"):
        values.new_file(f"{tmp_path}/a.csv/b.csv")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("size", [1, 400])
def test_a_query_in_place_of_its_file_is_told_where_it_goes(size: int) -> None:
    text = f'query m() {{ insert A {{ name: "{"x" * size}" }} }}'
    with pytest.raises(ValueError, match="a query itself is given with -e"):
        values.query_file(text)
    with pytest.raises(values.MissingFileError, match=r"there is no file 'changes\.gq'"):
        values.query_file("changes.gq")


def test_a_local_path_may_be_a_file_uri(tmp_path: Path) -> None:
    (tmp_path / "a b.pg").touch()
    assert values.existing_file(f"file://{tmp_path}/a%20b.pg") == f"{tmp_path}/a b.pg"
    with pytest.raises(ValueError, match="is a folder, not a file"):
        values.existing_file(str(tmp_path))
    with pytest.raises(ValueError, match=f"'{os.devnull}' is no regular file"):
        values.existing_file(os.devnull)


def test_local_path_refuses_uris() -> None:
    with pytest.raises(ValueError, match="names no path of this machine"):
        values.local_path("file://server/summary.json")
    with pytest.raises(ValueError, match="on this machine"):
        values.local_path("s3://bucket/summary.json")
