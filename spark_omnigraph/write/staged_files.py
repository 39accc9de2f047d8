"""Who removes staged files: their writer, until they are handed to the commit protocol, which knows what may land."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

from spark_omnigraph.commit.plan import PreparedCommit, Published
from spark_omnigraph.commit.protocol import commit
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.staged import StagedFile, discard


@dataclass
class StagedFiles(AbstractContextManager["StagedFiles"]):
    """Files that a write has staged and that no commit was tried with. As a context it removes what it still owns on
    the way out: of a write that was refused, had no effect, or wrote them anew. An interrupt leaves them to `cleanup`.

    `stages` are those under which they are staged. With `several_attempts` a commit that could land nothing gives its
    files back, for the next attempt to read.
    """

    store: GraphStore
    stages: tuple[str, ...] = ()
    several_attempts: bool = False
    _owned: set[StagedFile] = field(default_factory=set)

    def add(self, files: Iterable[StagedFile]) -> None:
        """Owns these from now on."""
        self._owned.update(files)

    def commit(self, prepared: PreparedCommit) -> Published:
        """Commits. From here on its files are the protocol's; those that may have landed never come back."""
        handed = self._owned.intersection(prepared.staged)
        self._owned -= handed
        try:
            return commit(self.store, replace(prepared, stages=self.stages, keeps_files=self.several_attempts))
        except OmnigraphError as failure:
            if self.several_attempts and failure.nothing_landed:
                self._owned |= handed
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, OmnigraphError):
            discard(self.store.objects, self._owned)


@contextmanager
def staged_files(store: GraphStore) -> Iterator[StagedFiles]:
    """The owner of what one attempt stages, under a stage that keeps clean-up away as long as the block runs."""
    with staging(store) as stage, StagedFiles(store, (stage,)) as files:
        yield files
