"""A reference that is accepted can be written; what Lance would refuse is a bad row, not a failed load."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.records.arrow_schema import BLOB, BLOB_METADATA
from spark_omnigraph.records.mode import BLOB_SCHEMES
from spark_omnigraph.records.values import BadValueError, read_blob

ACCEPTED = [
    *(f"{scheme}://bucket/some/key" for scheme in BLOB_SCHEMES),
    "file:///tmp/a picture.png",
    "S3://bucket/é",
    "gs://bucket/key?x=1#y",
    "abfss://files@account.dfs.core.windows.net/k",
    "s3://bucket",
    "s3://bucket:9000/k",
    "s3://bucket/[1].png",
]
REFUSED = [
    "",
    "cat.png",
    "/tmp/cat.png",
    "https://example.org/cat.png",
    "s3a://bucket/key",
    "data:text/plain,x",
    "C:\\cat.png",
    "s3://[x/y",
    "s3://a b/key",
    "s3://bucket:port/key",
    " s3://bucket/key",
    "s3://bucket/key ",
    "s3://bucket/key\n",
    "BASE64:AAEC",
]


def write(folder: Path, uri: str) -> None:
    schema = pa.schema([pa.field("p", BLOB, metadata=BLOB_METADATA)])
    table = pa.table([pa.array([{"data": None, "uri": uri}], BLOB)], schema=schema)
    lance.write_dataset(
        table, str(folder / "blobs.lance"), data_storage_version="2.2", allow_external_blob_outside_bases=True
    )


@pytest.mark.parametrize("uri", ACCEPTED)
def test_accepted_references_can_be_written(uri: str, tmp_path: Path) -> None:
    assert read_blob("p", uri, BLOB_SCHEMES) == {"data": None, "uri": uri}
    write(tmp_path, uri)


@pytest.mark.parametrize("uri", REFUSED)
def test_refused_references(uri: str) -> None:
    with pytest.raises(BadValueError) as error:
        read_blob("p", uri, BLOB_SCHEMES)
    assert error.value.rule is Rule.INVALID_BLOB


@pytest.mark.parametrize("uri", ["cat.png", "https://example.org/cat.png", "s3://[x/y"])
def test_lance_refuses_them_too(uri: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Invalid user input"):
        write(tmp_path, uri)


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "FILE:///etc/passwd"])
def test_a_file_of_whoever_reads_is_no_reference_unless_it_is_allowed(uri: str) -> None:
    with pytest.raises(BadValueError, match="refers to 'file:', which this load does not allow") as error:
        read_blob("p", uri)
    assert error.value.rule is Rule.INVALID_BLOB
    with pytest.raises(BadValueError, match="it allows no references"):
        read_blob("p", "s3://b/k", ())
