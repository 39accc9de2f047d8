"""Texts → vectors of a provider, each asked once: what is answered is kept within seconds, and never asked again.

Whoever dies loses what was under way and what came after it last kept something; whoever asks again finds the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.embed.embedder import Embedder, Role, Usage, ask_in_parts
from spark_omnigraph.embed.hashes import key_of
from spark_omnigraph.embed.vectors import Vectors
from spark_omnigraph.errors import EmbeddingError, StorageError
from spark_omnigraph.storage.vectors import VectorStore, answered

EVERY_TEXTS, EVERY_SECONDS = 1000, 10.0
"""Answers that are not kept at most, and seconds after which they are. Where nobody says how many, half of them are
written while the others come; and a provider that gives more than these in `SELDOM` seconds, which may be at work on
the processor that would write, is slowed down by no more than a commit in that time.
"""
SELDOM = 0.2
KEPT_BYTES = 16 << 20
"""Numbers of answers that wait at most."""
AT_ONCE = 512
"""Texts that are asked together."""
TIDY_EVERY = 64
"""Additions after which a task joins the files of the store."""
_NAME = 64
"""Letters of the name of an answer: a digest."""
_NO_TEXT = pa.scalar(None, pa.string())


def without_blank(texts: pa.Array) -> pa.Array:
    """Texts, null where one has nothing to say."""
    says = pc.greater(pc.binary_length(pc.utf8_trim_whitespace(texts)), 0)
    return pc.if_else(says, texts, _NO_TEXT)


@dataclass(frozen=True, slots=True)
class Replies:
    """What became of some texts: how many got an answer, and why others got none, by key."""

    answered: int = 0
    failures: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    @property
    def texts(self) -> int:
        """How many were asked for."""
        return self.answered + len(self.failures)

    def __add__(self, other: Replies) -> Replies:
        failures = {**self.failures, **other.failures}
        return Replies(self.answered + other.answered, failures, self.usage + other.usage)


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked, for vectors of how many numbers, where answers are kept, and how often. Picklable."""

    embedder: Embedder
    dimension: int
    store: VectorStore
    at_once: int = AT_ONCE
    every_texts: int | None = None
    every_seconds: float = EVERY_SECONDS
    clock: Callable[[], float] = time.monotonic

    def keys(self, texts: pa.Array) -> pa.Array:
        """The names of the answers to some texts, null where there is none."""
        digest = key_of(self.embedder.identity, self.dimension, Role.DOCUMENT)
        names = b"".join(map(digest, texts.drop_null().cast(pa.binary()).to_pylist())).hex().encode()
        ends = np.cumsum(np.append(0, np.where(np.asarray(texts.is_valid()), _NAME, 0)), dtype=np.int32)
        keys = pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(names))
        return pc.if_else(texts.is_valid(), keys, _NO_TEXT) if texts.null_count else keys

    def ask(self, keys: pa.Array, texts: Callable[[int, int], list[str]], most: int) -> Replies:
        """Asks for all keys, whose `texts(first, last)` are read as they are needed, and gives up when more than `most`
        got no answer.

        EmbeddingConfigError when no text would ever get an answer, EmbeddingError when none of the first did.
        """
        done = Replies()
        with _Keeper.of(self) as keeper:
            for start in range(0, len(keys), self.at_once):
                asked = keys.slice(start, self.at_once)
                for part in self._parts(asked, texts(start, start + len(asked)), keeper):
                    done += part
                    if len(done.failures) > most:
                        return done
                if not done.answered and len(done.failures) < len(keys):
                    first = next(iter(done.failures.values()))
                    raise EmbeddingError(f"none of {len(done.failures)} texts got a vector: {first}")
        return done

    def _parts(self, keys: pa.Array, texts: list[str], keeper: _Keeper) -> Iterator[Replies]:
        """What becomes of some texts, as it is known; what is answered is the keeper's by then."""
        for start, given in ask_in_parts(self.embedder, texts, self.dimension, Role.DOCUMENT, keeper.patience):
            asked = keys.slice(start, len(given.vectors))
            keeper.add(asked, given.vectors, list(given.failures))
            failures = {asked[at].as_py(): why for at, why in given.failures.items()}
            yield Replies(len(asked) - len(failures), failures, given.usage)


class _Keeper:
    """Answers that are not kept yet: those that wait, and those that a thread writes while the next texts are asked."""

    def __init__(self, asking: Asking, beside: ThreadPoolExecutor) -> None:
        self._asking = asking
        self._beside = beside
        self._writing: Future[None] | None = None
        self._answers: list[pa.RecordBatch] = []
        self._under_way: list[pa.RecordBatch] = []
        self._since = asking.clock()
        self._times = 0

    @classmethod
    @contextmanager
    def of(cls, asking: Asking) -> Iterator[_Keeper]:
        """At the end everything is kept, whatever it is that ends it; what could not be written is tried once more."""
        with ThreadPoolExecutor(1) as beside:
            keeper = cls(asking, beside)
            try:
                yield keeper
            finally:
                try:
                    keeper.keep()
                except StorageError:
                    keeper.keep()
                    raise

    @property
    def _count(self) -> int:
        return _rows(self._answers)

    def patience(self) -> float | None:
        """Seconds until what waits is to be kept, None where nothing does."""
        return max(0.0, self._since + self._asking.every_seconds - self._asking.clock()) if self._count else None

    def add(self, keys: pa.Array, vectors: Vectors, failed: list[int]) -> None:
        if failed:
            good = np.delete(np.arange(len(keys)), failed)
            keys, vectors = keys.take(pa.array(good)), vectors[good]
        if len(keys):
            self._answers.append(answered(keys, vectors))
        if _rows(self._under_way) + self._count > EVERY_TEXTS:
            self._settle()
        waited = self._asking.clock() - self._since
        if self._is_due(waited):
            self.keep()
        elif self._asking.every_texts is None and self._count >= EVERY_TEXTS // 2 and waited >= SELDOM:
            self._write()

    def _is_due(self, waited: float) -> bool:
        asking, count = self._asking, self._count
        if waited >= asking.every_seconds or count * asking.dimension * 4 >= KEPT_BYTES:
            return True
        if asking.every_texts is not None:
            return count >= asking.every_texts
        return count >= EVERY_TEXTS and waited >= SELDOM

    def keep(self) -> None:
        """Writes what waits: everything is kept then."""
        self._write()
        self._settle()

    def _write(self) -> None:
        """Has what waits written, once all before it is kept. Raises what became of that."""
        self._settle()
        if self._answers:
            self._times += 1
            self._writing = self._beside.submit(self._add, self._answers, self._times % TIDY_EVERY == 0)
            self._answers, self._under_way = [], self._answers
        self._since = self._asking.clock()

    def _settle(self) -> None:
        """Waits until what is being written is kept. Where that failed it waits again, with what came later."""
        writing, self._writing = self._writing, None
        answers, self._under_way = self._under_way, []
        try:
            if writing is not None:
                writing.result()
        except StorageError:
            self._answers = [*answers, *self._answers]
            raise

    def _add(self, answers: Sequence[pa.RecordBatch], tidies: bool) -> None:
        store, dimension = self._asking.store, self._asking.dimension
        store.add(dimension, answers)
        if tidies:
            store.tidy(dimension)


def _rows(answers: Sequence[pa.RecordBatch]) -> int:
    return sum(part.num_rows for part in answers)
