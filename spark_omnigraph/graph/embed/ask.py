"""Texts that no answer is stored for, asked of the provider: each once, and kept within seconds.

Tasks read the texts by themselves and keep the answers by themselves, so that neither travels. A task that dies loses
what was under way and what came after it last kept something; whoever asks again finds the rest.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.embed.embedder import Embedder, Role, Usage
from spark_omnigraph.errors import EmbeddingError
from spark_omnigraph.graph.embed.request import EmbedTarget
from spark_omnigraph.graph.embed.select import texts_of
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.storage.tables.stored_rows import StoredRows
from spark_omnigraph.storage.vectors import VectorStore

TIDY_EVERY = 64
"""Additions after which a task joins the files of the store."""


@dataclass(frozen=True, slots=True)
class AskContext:
    """What a task asks whom, how many texts at once, and after how many answers or seconds it keeps them. It gives up
    when more than `most_failures` texts got no answer.
    """

    embedder: Embedder
    target: EmbedTarget
    table: PinnedTable
    store: VectorStore
    at_once: int
    every_texts: int
    every_seconds: float
    most_failures: int


@dataclass(frozen=True, slots=True, eq=False)
class AskPart:
    """Rows of which each has another text, and the names of the answers."""

    rows: npt.NDArray[np.uint64]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Replies:
    """What became of some texts: how many got an answer, and why others got none, by the names of the answers."""

    answered: int = 0
    failures: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    def __add__(self, other: Replies) -> Replies:
        failures = {**self.failures, **other.failures}
        return Replies(self.answered + other.answered, failures, self.usage + other.usage)


def ask(context: AskContext, question: AskPart) -> Replies:
    """Asks, and keeps what is answered. Runs on an executor.

    EmbeddingConfigError when no text would ever get an answer, EmbeddingError when none of the first did.
    """
    rows = StoredRows.open(context.table, context.target.columns)
    keeper = _Keeper(context)
    done = Replies()
    try:
        for start in range(0, len(question.keys), context.at_once):
            keys = question.keys[start : start + context.at_once]
            found = rows.take(pa.array(question.rows[start : start + context.at_once]))
            texts = [text or "" for text in texts_of(context.target, found)]
            given = context.embedder.embed(texts, dimension=context.target.dimension, role=Role.DOCUMENT)
            good = [at for at in range(len(keys)) if at not in given.failures]
            keeper.add([keys[at] for at in good], given.vectors[good])
            done += Replies(len(good), {keys[at]: text for at, text in given.failures.items()}, given.usage)
            if len(done.failures) > context.most_failures:
                break
            if not done.answered and len(done.failures) < len(question.keys):
                raise EmbeddingError(f"none of {len(done.failures)} texts got a vector: {given.failures[0]}")
    finally:
        keeper.keep()
    return done


class _Keeper:
    """Answers that are not kept yet."""

    def __init__(self, context: AskContext) -> None:
        self._context = context
        self._keys: list[str] = []
        self._vectors: list[npt.NDArray[np.float32]] = []
        self._since = time.monotonic()
        self._times = 0

    def add(self, keys: list[str], vectors: npt.NDArray[np.float32]) -> None:
        context = self._context
        self._keys += keys
        self._vectors.append(vectors)
        late = time.monotonic() - self._since >= context.every_seconds
        if late or len(self._keys) + context.at_once > context.every_texts:
            self.keep()

    def keep(self) -> None:
        if self._keys:
            self._context.store.add(self._context.target.dimension, self._keys, np.concatenate(self._vectors))
            self._keys, self._vectors = [], []
            self._times += 1
            if self._times % TIDY_EVERY == 0:
                self._context.store.tidy(self._context.target.dimension)
        self._since = time.monotonic()
