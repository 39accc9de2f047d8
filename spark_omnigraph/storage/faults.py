"""Foreign exceptions become ours here, once, with the cause kept."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from lance.commit import CommitConflictError

from spark_omnigraph.errors import BadRequestError, ConflictError, StorageError, is_panic


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

    def told(self, what: str, is_lost: bool = False) -> ConflictError | StorageError:
        """The error for callers: a lost race is run again, also one that only the caller knows to be lost; a store that
        refuses has to be looked at first.
        """
        if is_lost or self.outcome is Outcome.LOST:
            return ConflictError(f"{what} ({self}); run it again")
        way_out = "Look at the store, the network and the disk, which may be full, then run it again"
        return StorageError(f"storage: {what} ({self}). {way_out}")


_LANCE_SOURCE = re.compile(r",?\s*/\S+\.rs:\d+:\d+")
_LAYERS = re.compile("Invalid user input: |(?:External|Query Execution|Execution|Schema) error: ")
_PREDICATE_FAILED = "Error applying filter expression"
_INTERRUPT = re.compile(r"(?:[\w ]+: )*KeyboardInterrupt:?\s*")
_LOST_INDEX = re.compile(
    r"(?i)(?:not found|no such file).*/_indices/|/_indices/.*(?:not found|no such file)", re.DOTALL
)
_DAMAGED = "A file is damaged, or was cut while it was read: run it again; if that fails, put it back from a backup"
_BRANCH_IS_THERE = "Clone operation should not enter build_manifest"
"""What Lance says of a new branch whose first version somebody else has made."""
_LOST_TEXTS = ("Too many concurrent writers", "Retryable commit conflict", "Incompatible transaction", _BRANCH_IS_THERE)


@contextmanager
def committing(what: str) -> Iterator[None]:
    """Classifies failures of one Lance commit: a lost race is proven, everything else is unknown until read back."""
    try:
        yield
    except CommitConflictError as error:
        raise CommitFailed(Outcome.LOST, f"{what}: {reason(error)}") from error
    except (OSError, ValueError, RuntimeError) as error:
        refuse_interrupt(error)
        text = str(error)
        lost = any(t in text for t in _LOST_TEXTS)
        raise CommitFailed(Outcome.LOST if lost else Outcome.UNKNOWN, f"{what}: {reason(error)}") from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise CommitFailed(Outcome.UNKNOWN, f"{what}: {reason(error)}") from error


@contextmanager
def alone(what: str) -> Iterator[None]:
    """Turns a failed commit to what nobody else writes into the StorageError that it is then."""
    try:
        yield
    except CommitFailed as failure:
        raise StorageError(f"storage: {what}: {failure}") from failure


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turns failures of reads, staging and small objects into StorageError. A predicate that fails on a stored value is
    its writer's to mend: BadRequestError.
    """
    try:
        yield
    except (OSError, ValueError, RuntimeError, EOFError, OverflowError, zlib.error) as error:
        refuse_interrupt(error)
        if _PREDICATE_FAILED in str(error):
            raise BadRequestError(f"filter fails on a stored value: {reason(error)}") from error
        raise StorageError(f"storage: {what}: {reason(error)}{_way_out(error)}") from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise StorageError(f"storage: {what}: Lance failed: {reason(error)}. {_DAMAGED}") from error


def refuse_interrupt(error: BaseException) -> None:
    """Lance and Arrow carry an interrupt as the text of an error of theirs; here it becomes one again."""
    if _INTERRUPT.fullmatch(reason(error)) is not None:
        raise KeyboardInterrupt from error


def _way_out(error: BaseException) -> str:
    """What to say besides Lance's own words where they do not tell how to go on."""
    if _LOST_INDEX.search(str(error)) is not None:
        return ". A file of an index is gone, the rows are not: the verb index (ensure_indices) builds the index anew"
    return ""


def said(error: BaseException) -> str:
    """All that is said, bounded: for errors that say on further lines what the first one is about."""
    return " ".join(str(error).split())[:300]


def reason(error: BaseException) -> str:
    """What is said first, without the places in Lance's own source and the names of its layers."""
    text = _LANCE_SOURCE.sub("", str(error).strip())
    return _LAYERS.sub("", text.splitlines()[0]) if text else type(error).__name__
