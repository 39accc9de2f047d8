"""Our errors through the text that Spark keeps of an exception."""

from __future__ import annotations

import traceback

import pytest
from pyspark.errors import PySparkException

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.commit.protocol import _SteppedBackError
from spark_omnigraph.errors import (
    AlreadyInitializedError,
    BadRequestError,
    BadRowsError,
    ExpectedVersionMismatch,
    InternalError,
    MergeConflict,
    MergeConflictsError,
    NotFoundError,
    OmnigraphError,
    SchemaParseError,
    StorageError,
    TooManyDeletesError,
    UsageError,
    WriterBusyError,
)
from spark_omnigraph.spark.errors import CodedError, coded, encode, task_failure, translate, typed_errors


@pytest.mark.parametrize(
    "error",
    [
        BadRequestError("column 'a: b' is not there"),
        NotFoundError("branch 'x' not found"),
        WriterBusyError("busy"),
        StorageError("storage: disk"),
        InternalError("bug"),
        SchemaParseError("no"),
        ExpectedVersionMismatch("node:P", 3, 4),
        AlreadyInitializedError("/g"),
        MergeConflictsError([MergeConflict("node:P", None, "orphan_edge", "no end")], {"orphan_edge": 200}),
        BadRowsError("2 bad rows", BadRowSummary(2, {"required": 2}, report="/r")),
        TooManyDeletesError("too many", 7),
    ],
)
def test_errors_come_back_as_themselves(error: OmnigraphError) -> None:
    text = f"[PYTHON_DATA_SOURCE_ERROR] Failed: Traceback\n  x\n{_raised(error)}\n\nJVM stacktrace:\norg.apache\n"
    found = translate(PySparkException(text))
    assert type(found) is type(error)
    assert found is not None
    assert found.to_dict() == error.to_dict()


def _raised(error: OmnigraphError) -> str:
    try:
        with coded():
            raise error
    except CodedError as caught:
        return "".join(traceback.format_exception(caught))


def test_the_code_starts_the_text() -> None:
    assert encode(NotFoundError("no graph at '/g'")) == "OMNIGRAPH_NOT_FOUND: no graph at '/g'"


def test_lines_are_joined() -> None:
    assert encode(BadRequestError("one\n  two\n")) == "OMNIGRAPH_BAD_REQUEST: one; two"


def test_a_kind_of_a_newer_release_is_still_ours() -> None:
    assert type(translate(PySparkException("OMNIGRAPH_NEW_THING: text"))) is InternalError


def test_what_has_no_kind_of_its_own_comes_back_as_the_class_whose_kind_it_is() -> None:
    assert type(translate(PySparkException(_raised(_SteppedBackError("busy"))))) is WriterBusyError


def test_other_exceptions_are_left_alone() -> None:
    assert translate(PySparkException("something else")) is None
    with pytest.raises(PySparkException, match="something else"), typed_errors():
        raise PySparkException("something else")
    with pytest.raises(NotFoundError, match="gone"), typed_errors():
        raise PySparkException("OMNIGRAPH_NOT_FOUND: gone")
    with pytest.raises(KeyError), coded():
        raise KeyError("x")


@pytest.mark.parametrize(("kind", "is_shown"), [("NOT_FOUND", False), ("STORAGE", False), ("INTERNAL", True)])
def test_an_error_of_ours_is_shown_without_sparks_unless_it_is_a_bug(kind: str, is_shown: bool) -> None:
    sparks = PySparkException(f"OMNIGRAPH_{kind}: gone\n\nJVM stacktrace:\nmany lines")
    with pytest.raises(OmnigraphError, match="gone") as caught, typed_errors():
        raise sparks
    shown = "".join(traceback.format_exception(caught.value))
    assert ("JVM stacktrace" in shown) is is_shown
    assert caught.value.__context__ is sparks


def test_a_missing_package_says_what_to_do() -> None:
    found = translate(PySparkException("… ModuleNotFoundError: No module named 'lance'\n"))
    assert type(found) is UsageError
    assert "'lance' is missing" in found.message
    assert "PYSPARK_PYTHON" in found.message
    traceback = 'File "/env/lib/python3.11/site-packages/pyspark/worker.py", line 1'
    text = f"{traceback}\nModuleNotFoundError: No module named 'lance'"
    where = translate(PySparkException(text))
    assert where is not None
    assert "in a Python worker of Spark (its pyspark is /env/lib/python3.11/site-packages/pyspark): " in where.message


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("… Traceback\n  File\nOSError: disk full\n", StorageError, "a Spark task failed: OSError: disk full"),
        ("… Traceback\n  File\nKeyError: 'x'\n", InternalError, "a Spark task failed: KeyError: 'x'"),
        ("Job aborted: executor lost\nat org.apache", StorageError, "Spark could not run the tasks: Job aborted"),
        ("…\nspark.errors.CodedError: OMNIGRAPH_CONFLICT: lost", OmnigraphError, "lost"),
    ],
)
def test_failures_of_tasks_are_one_line(text: str, kind: type[OmnigraphError], message: str) -> None:
    found = task_failure(PySparkException(text))
    assert isinstance(found, kind)
    assert found.message.startswith(message)
    assert "\n" not in found.message
