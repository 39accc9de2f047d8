"""Foreign exceptions become ours here, once, with the cause kept."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from lance.commit import CommitConflictError

from spark_omnigraph.errors import StorageError


class Outcome(Enum):
    """What a failed commit proves."""

    LOST = "lost"
    """Somebody else won; nothing of ours landed."""
    UNKNOWN = "unknown"
    """It may have landed; read back before deciding."""


class CommitFailed(Exception):  # noqa: N818 - an outcome that the protocol handles, not an error for callers
    """A Lance commit raised; `outcome` says what that proves. Never leaves the commit room."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


_LANCE_SOURCE = re.compile(r",?\s*/\S+\.rs:\d+:\d+")
_LOST_TEXTS = ("Too many concurrent writers", "Retryable commit conflict", "Incompatible transaction")


@contextmanager
def committing(what: str) -> Iterator[None]:
    """Classifies failures of one Lance commit: a lost race is proven, everything else is unknown until read back."""
    try:
        yield
    except CommitConflictError as error:
        raise CommitFailed(Outcome.LOST, f"{what}: {_first_line(error)}") from error
    except (OSError, ValueError, RuntimeError) as error:
        text = str(error)
        lost = any(t in text for t in _LOST_TEXTS)
        raise CommitFailed(Outcome.LOST if lost else Outcome.UNKNOWN, f"{what}: {_first_line(error)}") from error


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turns failures of reads, staging and small objects into StorageError."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, EOFError, zlib.error) as error:
        raise StorageError(f"storage: {what}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    """What is said first, without the places in Lance's own source."""
    text = _LANCE_SOURCE.sub("", str(error).strip())
    return text.splitlines()[0] if text else type(error).__name__
