"""Which files a job and a load may write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.storage.targets import why_not


def test_a_new_file_may_be_written(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").touch()
    assert why_not(str(tmp_path / "out.jsonl"), str(tmp_path / "g"), [str(tmp_path / "*.jsonl")]) is None
    assert why_not("s3://b/out.jsonl", "s3://b/g", ["s3://b/in.jsonl"]) is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("g/bad.jsonl", "lies inside the graph"),
        ("in", "is a folder"),
        ("in/new/", "is a folder"),
        ("in/a.jsonl", "is read"),
        ("link.jsonl", "is read"),
        ("in/a.jsonl/b.jsonl", "in/a.jsonl is no folder; name a file elsewhere"),
        (f"{'x' * 300}.jsonl", "cannot be written: File name too long; name another file"),
        ("bad\0.jsonl", "has a zero byte"),
    ],
)
def test_others_may_not(path: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").touch()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "in" / "a.jsonl")
    for read in ("in", "in/*.jsonl", "in/a.jsonl"):
        assert reason in (why_not(f"{tmp_path}/{path}", f"{tmp_path}/g", [f"{tmp_path}/{read}"]) or "")


def test_a_place_without_leave_is_found_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may write everywhere, so the answer of the system is made here."""
    assert why_not(f"{tmp_path}/new/folder/out.jsonl", "", ()) is None
    assert why_not("/dev/null", "", ()) is None
    monkeypatch.setattr(os, "access", lambda place, mode, **_: (str(place), mode) != (str(tmp_path), os.W_OK))
    says = f"cannot be written: {tmp_path} does not allow it; name another file"
    assert why_not(f"{tmp_path}/new/folder/out.jsonl", "", ()) == says
    (tmp_path / "old.jsonl").touch()
    assert why_not(f"{tmp_path}/old.jsonl", "", ()) == says, "it is replaced, not written into"


def test_a_report_is_judged_as_the_outputs_of_the_program_are(tmp_path: Path) -> None:
    for path, reason in (
        (f"{tmp_path}/g/x", "lies inside the graph"),
        (f"{tmp_path}", "is a folder: name a file in it"),
    ):
        with pytest.raises(BadRequestError, match=reason):
            check_report_path(path, (), f"{tmp_path}/g")
    with pytest.raises(BadRequestError, match="unsupported scheme"):
        check_report_path("gs://b/bad.jsonl", ())
