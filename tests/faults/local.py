"""Faults on a local disk, below everything of the product: in the calls of obstore and in those of Lance that write.

Each call is numbered. One of them fails before it takes effect, or after (its answer is lost), or is refused by its own
success, as when a client asks again after a lost answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from unittest.mock import patch

import lance
import obstore
from lance.commit import CommitConflictError
from lance.dataset import MergeInsertBuilder
from lance.optimize import Compaction
from obstore.exceptions import AlreadyExistsError, GenericError

from spark_omnigraph.storage.objects import local_swap
from spark_omnigraph.storage.objects import small as objects
from spark_omnigraph.storage.objects.local_walk import FileStamp
from spark_omnigraph.storage.tables import commits, staged


class When(Enum):
    """How the call fails."""

    BEFORE = "before"
    AFTER = "after"
    BY_ITSELF = "by itself"


@dataclass
class Faults:
    """Names of the calls so far; the one with the number `at` fails."""

    at: int = -1
    when: When = When.BEFORE
    calls: list[str] = field(default_factory=list)

    def call(self, name: str, do: Callable[[], Any], error: Exception, own_success: Exception | None) -> Any:
        """One call of the store: `error` stands for a failure, `own_success` for a refusal by its own success."""
        number = len(self.calls)
        self.calls.append(name)
        if number != self.at:
            return do()
        if self.when is When.BEFORE:
            raise error
        done = do()
        if self.when is When.AFTER:
            raise error
        if own_success is None:
            return done  # asked again, such a call answers as it did
        raise own_success


class _Store:
    """The functions of obstore that the product calls."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def get(self, store: Any, path: str) -> Any:
        return self._call("get", lambda: obstore.get(store, path))

    def put(self, store: Any, path: str, content: bytes, **options: Any) -> Any:
        own = AlreadyExistsError("already exists") if options.get("mode") == "create" else None
        return self._call("create" if own else "put", lambda: obstore.put(store, path, content, **options), own)

    def delete(self, store: Any, paths: Any) -> Any:
        return self._call("delete", lambda: obstore.delete(store, paths))

    def list(self, store: Any, prefix: str | None = None, **options: Any) -> Any:
        return self._call("list", lambda: obstore.list(store, prefix, **options))

    def list_with_delimiter(self, store: Any, prefix: str | None = None, **options: Any) -> Any:
        return self._call("list", lambda: obstore.list_with_delimiter(store, prefix, **options))

    def _call(self, name: str, do: Callable[[], Any], own_success: Exception | None = None) -> Any:
        return self._faults.call(name, do, GenericError(f"injected into {name}"), own_success)


@contextmanager
def injected(faults: Faults) -> Iterator[Faults]:
    """Every call in the block runs through the faults."""
    commit, dataset, write = lance.LanceDataset.commit, lance.dataset, lance.fragment.write_fragments
    execute = MergeInsertBuilder.execute
    compact, remove = Compaction.commit, local_swap.remove_file

    def faulty_commit(*arguments: Any, **options: Any) -> Any:
        lost, own = OSError("injected into commit"), CommitConflictError("Failed to commit the transaction")
        return faults.call("commit", lambda: commit(*arguments, **options), lost, own)

    def faulty_execute(builder: Any, rows: Any) -> Any:
        lost, own = OSError("injected into publish"), OSError("Too many concurrent writers. Attempted 0 retries.")
        return faults.call("publish", lambda: execute(builder, rows), lost, own)

    class FaultyCompaction:
        @staticmethod
        def commit(*arguments: Any) -> Any:
            lost, own = OSError("injected into compaction"), OSError("Retryable commit conflict for version 9")
            return faults.call("compaction", lambda: compact(*arguments), lost, own)

    def faulty_open(*arguments: Any, **options: Any) -> Any:
        return faults.call("open", lambda: dataset(*arguments, **options), OSError("injected into open"), None)

    def faulty_write(*arguments: Any, **options: Any) -> Any:
        return faults.call("write", lambda: write(*arguments, **options), OSError("injected into write"), None)

    def faulty_remove(*arguments: Any) -> Any:
        return faults.call("remove", lambda: remove(*arguments), OSError("injected into remove"), None)

    with ExitStack() as stack:
        # Every file is read again, else the number of calls would depend on how long ago one was written.
        stack.enter_context(patch.object(FileStamp, "may_recur", True))
        stack.enter_context(patch.object(objects, "obstore", _Store(faults)))
        stack.enter_context(patch.object(objects, "remove_file", faulty_remove))
        stack.enter_context(patch.object(lance.LanceDataset, "commit", staticmethod(faulty_commit)))
        stack.enter_context(patch.object(MergeInsertBuilder, "execute", faulty_execute))
        stack.enter_context(patch.object(commits, "Compaction", FaultyCompaction))
        stack.enter_context(patch.object(lance.fragment, "write_fragments", faulty_write))
        stack.enter_context(patch.object(staged, "write_fragments", faulty_write))
        stack.enter_context(patch.object(lance, "dataset", faulty_open))
        yield faults
