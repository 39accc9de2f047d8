"""Our errors on their way through Spark: written as a coded text inside a worker, typed again at the caller.

Spark keeps nothing of an exception but its text. `coded()` therefore writes `OMNIGRAPH_<KIND>: message`, with the facts
of the class behind it as JSON, and `translate()` reads it back.
"""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from pyspark.errors import PySparkException

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.errors import (
    AlreadyInitializedError,
    BadRowsError,
    EmbeddingConfigError,
    ExpectedVersionMismatch,
    InternalError,
    MergeConflict,
    MergeConflictsError,
    OmnigraphError,
    StorageError,
    TooManyDeletesError,
    UsageError,
)

try:
    from py4j.protocol import Py4JError as _JavaError
except ImportError:  # a Connect client may come without py4j
    _JavaError = PySparkException

JavaError = _JavaError
"""What the JVM of a classic session raises that pyspark has no class for."""

_PREFIX = "OMNIGRAPH_"
_FACTS = " OMNIGRAPH_FACTS="
_CODED = re.compile(rf"\b{_PREFIX}(?!FACTS)([A-Z_]+): ([^\n]*)")
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_WORKER_PYSPARK = re.compile(r'File "([^"\n]*?/pyspark)/')
_RAISED = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)): (.*)$", re.MULTILINE)
_STORAGE_CAUSES = ("OSError", "IOError", "MemoryError", "ConnectionError", "TimeoutError", "PermissionError")

INSTALL_ON_EXECUTORS = (
    "install spark-omnigraph[spark] into the Python that the executors run (PYSPARK_PYTHON), "
    "or ship an environment that has it (--archives environment.tar.gz#environment)"
)


@contextmanager
def provider_of_process(process: str, way_out: str) -> Iterator[None]:
    """Says of an embedding provider that is missing, or none, whose environment named it."""
    try:
        yield
    except EmbeddingConfigError as error:
        raise EmbeddingConfigError(
            f"{error.message}; the provider is that of the {process}, whose environment is what it was when the "
            "session began: set variables before that, those of a cluster in its settings (over Spark Connect: the "
            f"server's). {way_out}"
        ) from error


class CodedError(Exception):
    """An OmnigraphError as text; only for crossing Spark."""


class coded(AbstractContextManager[None]):  # noqa: N801 - used as a function, and a class keeps two lines out of texts
    """Inside a worker of Spark: errors of ours leave as coded texts, and so does a package that is missing there."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OmnigraphError):
            raise CodedError(encode(error)) from error
        if isinstance(error, ModuleNotFoundError):
            missing = missing_package(error.name or str(error), socket.gethostname(), sys.executable)
            raise CodedError(encode(missing)) from error


@contextmanager
def typed_errors() -> Iterator[None]:
    """Around an action on a DataFrame: exceptions of Spark that carry an error of ours become it.

    It is shown alone, since over Connect Spark's own has a hundred lines; that of a bug is shown too. `__context__` has
    Spark's in any case.
    """
    try:
        yield
    except PySparkException as error:
        found = translate(error)
        if found is None:
            raise
        raise found from (error if isinstance(found, InternalError) else None)


def encode(error: OmnigraphError) -> str:
    """One line: code, message, and the facts that the class has beside its message."""
    body = error.to_dict()
    facts = {k: v for k, v in body.items() if k not in ("error", "code", "kind")}
    if isinstance(error, AlreadyInitializedError):
        facts["uri"] = error.uri
    message = "; ".join(line.strip() for line in error.message.splitlines() if line.strip())
    return f"{_PREFIX}{error.kind.upper()}: {message}" + (f"{_FACTS}{json.dumps(facts)}" if facts else "")


def translate(error: BaseException) -> OmnigraphError | None:
    """The error of ours that an exception of Spark carries; None when there is none in it.

    Example: `raise (translate(error) or error) from None`.
    """
    found = _CODED.findall(str(error))
    if not found:
        return _missing_package(str(error))
    kind, text = found[-1]
    message, _, facts = text.partition(_FACTS)
    return _decode(kind.lower(), message, _parse_facts(facts))


def task_failure(error: BaseException) -> OmnigraphError:
    """What to raise when tasks failed: the error of ours in the exception, else its reason in one line."""
    found = translate(error)
    if found is not None:
        return found
    raised = _RAISED.findall(str(error))
    if not raised:
        return StorageError(f"Spark could not run the tasks: {_first_line(error)}")
    name, reason = raised[-1]
    text = f"a Spark task failed: {name}: {reason}"
    return StorageError(text) if name.rsplit(".", 1)[-1] in _STORAGE_CAUSES else InternalError(text)


def missing_package(module: str, host: str, python: str) -> UsageError:
    """The package that a worker of Spark could not import, where, and the way out."""
    return UsageError(f"Python package '{module}' is missing on {host} ({python}): {INSTALL_ON_EXECUTORS}")


def _missing_package(text: str) -> UsageError | None:
    found = _MISSING_MODULE.search(text)
    if found is None:
        return None
    # The worker's own pyspark is in the traceback, unless tracebacks are hidden.
    pyspark = _WORKER_PYSPARK.search(text)
    where = f" (its pyspark is {pyspark.group(1)})" if pyspark is not None else ""
    return UsageError(
        f"Python package '{found.group(1)}' is missing in a Python worker of Spark{where}: {INSTALL_ON_EXECUTORS}"
    )


def _decode(kind: str, message: str, facts: dict[str, object]) -> OmnigraphError:
    moved = facts.get("manifest_conflict")
    if kind == ExpectedVersionMismatch.kind and isinstance(moved, dict):
        return ExpectedVersionMismatch(str(moved["table_key"]), int(moved["expected"]), int(moved["actual"]))
    conflicts, counts = facts.get("merge_conflicts"), facts.get("conflict_counts")
    if kind == MergeConflictsError.kind and isinstance(conflicts, list) and isinstance(counts, dict):
        return MergeConflictsError([MergeConflict(**conflict) for conflict in conflicts], counts)
    if kind == AlreadyInitializedError.kind and "uri" in facts:
        return AlreadyInitializedError(str(facts["uri"]))
    if kind == BadRowsError.kind:
        return BadRowsError(message, _summary(facts.get("bad_rows")))
    if kind == TooManyDeletesError.kind:
        return TooManyDeletesError(message, int(str(facts.get("deletes", 0))))
    return _CLASSES.get(kind, InternalError)(message)


def _summary(facts: object) -> BadRowSummary:
    if not isinstance(facts, dict):
        return BadRowSummary()
    return BadRowSummary(facts["total"], facts["per_rule"], report=facts["report"])


def _parse_facts(text: str) -> dict[str, object]:
    if not text:
        return {}
    facts, _ = json.JSONDecoder().raw_decode(text)
    return dict(facts)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _leaves(base: type[OmnigraphError]) -> Iterator[type[OmnigraphError]]:
    yield base
    for child in base.__subclasses__():
        yield from _leaves(child)


_CLASSES = {c.kind: c for c in _leaves(OmnigraphError) if "kind" in vars(c)}
