"""Texts → vectors of a provider, each asked once: what is answered is kept within seconds, and never asked again.

Whoever dies loses what was under way and what came after it last kept something; whoever asks again finds the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spark_omnigraph.embed.embedder import Embedder, Role, Usage
from spark_omnigraph.embed.hashes import key_of
from spark_omnigraph.errors import EmbeddingError
from spark_omnigraph.storage.vectors import VectorStore

EVERY_TEXTS, EVERY_SECONDS = 1000, 10.0
"""Answers, and seconds, after which they are kept. Where nobody says how many, a provider that gives more than these in
`SELDOM` seconds is slowed down by no more than a commit in that time.
"""
SELDOM = 0.2
KEPT_BYTES = 16 << 20
"""Numbers of answers that wait at most."""
AT_ONCE = 512
"""Texts that are asked together."""
TIDY_EVERY = 64
"""Additions after which a task joins the files of the store."""


@dataclass(frozen=True, slots=True)
class Replies:
    """What became of some texts: how many got an answer, and why others got none, by key."""

    answered: int = 0
    failures: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

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

    def key(self) -> Callable[[str], str]:
        """Text → the name of its answer."""
        digest = key_of(self.embedder.identity, self.dimension, Role.DOCUMENT)
        return lambda text: digest(text).hex()

    def ask(self, keys: Sequence[str], texts: Callable[[int, int], list[str]], most: int) -> Replies:
        """Asks for all keys, whose `texts(first, last)` are read as they are needed, and gives up when more than `most`
        got no answer.

        EmbeddingConfigError when no text would ever get an answer, EmbeddingError when none of the first did.
        """
        done = Replies()
        for part in self._parts(keys, texts):
            done += part
            if len(done.failures) > most:
                break
            if not done.answered and len(done.failures) < len(keys):
                first = next(iter(done.failures.values()))
                raise EmbeddingError(f"none of {len(done.failures)} texts got a vector: {first}")
        return done

    def _parts(self, keys: Sequence[str], texts: Callable[[int, int], list[str]]) -> Iterator[Replies]:
        keeper = _Keeper(self)
        try:
            for start in range(0, len(keys), self.at_once):
                asked = keys[start : start + self.at_once]
                wanted = texts(start, start + len(asked))
                given = self.embedder.embed(wanted, dimension=self.dimension, role=Role.DOCUMENT)
                good = [at for at in range(len(asked)) if at not in given.failures]
                keeper.add([asked[at] for at in good], given.vectors[good])
                yield Replies(len(good), {asked[at]: why for at, why in given.failures.items()}, given.usage)
        finally:
            keeper.keep()


class _Keeper:
    """Answers that are not kept yet."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._keys: list[str] = []
        self._vectors: list[npt.NDArray[np.float32]] = []
        self._since = time.monotonic()
        self._times = 0

    def add(self, keys: list[str], vectors: npt.NDArray[np.float32]) -> None:
        self._keys += keys
        self._vectors.append(vectors)
        if self._is_due(time.monotonic() - self._since):
            self.keep()

    def _is_due(self, waited: float) -> bool:
        asking, count = self._asking, len(self._keys)
        if waited >= asking.every_seconds or count * asking.dimension * 4 >= KEPT_BYTES:
            return True
        if asking.every_texts is not None:
            return count >= asking.every_texts
        return count >= EVERY_TEXTS and waited >= SELDOM

    def keep(self) -> None:
        asking = self._asking
        if self._keys:
            asking.store.add(asking.dimension, self._keys, np.concatenate(self._vectors))
            self._keys, self._vectors = [], []
            self._times += 1
            if self._times % TIDY_EVERY == 0:
                asking.store.tidy(asking.dimension)
        self._since = time.monotonic()
