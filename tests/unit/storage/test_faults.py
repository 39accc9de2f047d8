"""What Lance and Arrow raise, as callers see it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph.errors import StorageError
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.storage.faults import CommitFailed, Outcome, committing, reading
from spark_omnigraph.storage.tables.commits import create_branch, create_dataset

Guard = Callable[[str], AbstractContextManager[None]]


INTERRUPTS = ["External error: KeyboardInterrupt: ", "KeyboardInterrupt", "A: B c: KeyboardInterrupt: \nat x"]


@pytest.mark.parametrize("guard", [reading, committing])
@pytest.mark.parametrize("text", INTERRUPTS)
def test_an_interrupt_stays_one(guard: Guard, text: str) -> None:
    with pytest.raises(KeyboardInterrupt), guard("read x"):
        raise ValueError(text)


def test_a_text_about_interrupts_is_none() -> None:
    with pytest.raises(StorageError, match="no such column: KeyboardInterrupt 5"), reading("read x"):
        raise ValueError("no such column: KeyboardInterrupt 5")


def test_a_lost_index_file_names_the_way_out() -> None:
    lost = "LanceError(IO): Not found: /g/nodes/x/_indices/173c3533/page_lookup.lance"
    says = r"page_lookup\.lance\. A file of an index is gone.*the verb index"
    with pytest.raises(StorageError, match=says), reading("scan x"):
        raise OSError(lost)
    with pytest.raises(StorageError, match=r"y\.lance$"), reading("scan x"):
        raise OSError("Not found: /g/nodes/x/data/y.lance")


def test_numbers_that_do_not_fit_are_a_storage_error() -> None:
    with pytest.raises(StorageError, match="too big"), reading("open x"):
        raise OverflowError("int too big to convert")


class PanicException(BaseException):
    """As pyo3 raises it: no Exception, of a module that cannot be imported."""


def test_a_panic_of_lance_is_an_error_of_ours() -> None:
    panic = PanicException("range end index 4 out of range for slice of length 0")
    with pytest.raises(StorageError, match=r"open x: Lance failed: range end.*put it back"), reading("open x"):
        raise panic
    with pytest.raises(CommitFailed) as failed, committing("commit x"):
        raise panic
    assert failed.value.outcome is Outcome.UNKNOWN
    with pytest.raises(SystemExit), reading("open x"):
        raise SystemExit(3)


def test_a_branch_that_somebody_else_makes_at_this_moment_is_a_lost_race(tmp_path: Path) -> None:
    """Lance calls it an error of its own, also before it names the other one as a branch."""
    dataset = create_dataset(str(tmp_path / "table"), pa.schema([("number", pa.int64())]), None, {})
    create_branch(dataset, BranchName("draft"), None, 1)
    (tmp_path / "table" / "_refs" / "branches" / "draft.json").unlink()
    with pytest.raises(CommitFailed) as failed:
        create_branch(dataset, BranchName("draft"), None, 1)
    assert failed.value.outcome is Outcome.LOST
