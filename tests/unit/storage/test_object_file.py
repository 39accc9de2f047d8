"""An object reads like the file that it was."""

from __future__ import annotations

import io

import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import LocalStore

from spark_omnigraph.storage.objects.files import ObjectFile, split_s3


@given(st.binary(max_size=50), st.lists(st.tuples(st.integers(0, 60), st.integers(-1, 60)), max_size=6))
def test_reads_and_seeks_are_those_of_a_file(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, steps: list[tuple[int, int]]
) -> None:
    store = LocalStore(tmp_path_factory.getbasetemp())
    obstore.put(store, "object", content)
    file, same = ObjectFile(store, "object", len(content)), io.BytesIO(content)
    for start, count in steps:
        assert file.seek(start) == same.seek(start) == file.tell()
        assert file.read(count) == same.read(count)
    assert file.seek(-1, io.SEEK_CUR) == max(0, same.tell() - 1)
    assert file.seek(0, io.SEEK_END) == len(content)
    assert file.read() == b""


def test_a_uri_is_a_bucket_and_a_key() -> None:
    assert split_s3("s3://b/x/y.jsonl") == ("s3://b", "x/y.jsonl")
    assert split_s3("s3://b") == ("s3://b", "")
    assert split_s3("s3://b/in/a?.jsonl") == ("s3://b", "in/a?.jsonl")
    assert split_s3("s3://b/in/#1/a.jsonl") == ("s3://b", "in/#1/a.jsonl")
