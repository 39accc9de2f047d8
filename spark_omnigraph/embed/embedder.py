"""What gives vectors for texts, whoever the provider is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from spark_omnigraph.embed.vectors import Vectors, have_length
from spark_omnigraph.errors import EmbeddingConfigError, EmbeddingError
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.words import TextEnum


class Role(TextEnum):
    """What a text is to the provider: something that is stored, or a question about what is stored."""

    DOCUMENT = "document"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class Usage:
    """What some texts cost: requests that were sent (`retries` of them again), and the provider's own count of tokens.
    `tokens` is None where the provider says none.
    """

    requests: int = 0
    retries: int = 0
    tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        told = [each.tokens for each in (self, other) if each.tokens is not None]
        return Usage(self.requests + other.requests, self.retries + other.retries, sum(told) if told else None)


@dataclass(frozen=True, slots=True)
class Embedded:
    """`vectors[i]` (`float32[n, dimension]`, of length 1) is that of text `i`; where `failures` has `i`, it is NaN."""

    vectors: Vectors
    failures: Mapping[int, str] = field(default_factory=dict)
    usage: Usage = Usage()


@runtime_checkable
class Embedder(Protocol):
    """Gives vectors for texts. Pickled, it goes to other processes; one object may be used by several threads."""

    @property
    def model(self) -> str:
        """What `@embed(model=…)` is compared with; empty where the provider names none."""

    @property
    def identity(self) -> str:
        """Equal for embedders that give the same vectors: kind of provider, model and normalisation."""

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        """A vector for each text, in order. What fails for single texts stands in `failures`.

        EmbeddingConfigError when no text would ever get a vector so: the key, the model, the dimension.
        """


Patience = Callable[[], float | None]
"""Seconds that somebody waits for the next part, asked each time; None is for ever."""


@runtime_checkable
class Streamed(Protocol):
    """An embedder that tells what is answered when it is, before the rest of the texts."""

    def parts(
        self, texts: Sequence[str], *, dimension: int, role: Role, patience: Patience
    ) -> Iterator[tuple[int, Embedded]]:
        """The number of a text, and vectors of it and those after it, in any order of the parts; a part of no text
        when none came in time.
        """


@runtime_checkable
class Limited(Protocol):
    """An embedder that may be asked so much in a minute, by all tasks together."""

    def share_of(self, tasks: int | None, name: str | None) -> Embedder:
        """What one of so many tasks asks that were told this one; in one process, those of a `name` keep one pace.
        EmbeddingConfigError where nobody knows how many tasks there are, and there is a limit to share.
        """


def ask(embedder: Embedder, texts: Sequence[str], dimension: int, role: Role) -> Embedded:
    """What an embedder gives, looked at: whoever wrote it, an answer that is no vector of these numbers is a failure of
    its text. EmbeddingConfigError for another number of vectors, or of another dimension.
    """
    return _looked_at(embedder, embedder.embed(texts, dimension=dimension, role=role), len(texts), dimension)


def ask_in_parts(
    embedder: Embedder, texts: Sequence[str], dimension: int, role: Role, patience: Patience
) -> Iterator[tuple[int, Embedded]]:
    """`ask` in parts where the embedder can, as `Streamed.parts`."""
    if not isinstance(embedder, Streamed):
        yield 0, ask(embedder, texts, dimension, role)
        return
    for start, part in embedder.parts(texts, dimension=dimension, role=role, patience=patience):
        yield start, _looked_at(embedder, part, len(part.vectors), dimension)


def _looked_at(embedder: Embedder, given: Embedded, count: int, dimension: int) -> Embedded:
    shape = (count, dimension)
    is_one = isinstance(given, Embedded) and getattr(given.vectors, "shape", None) == shape
    if not is_one or not all(0 <= at < count for at in given.failures):
        raise EmbeddingConfigError(
            f"{type(embedder).__name__}.embed must give an Embedded whose vectors are an array of shape {shape}, and "
            f"failures by the numbers of texts, got {as_shown(given)}"
        )
    vectors = np.ascontiguousarray(given.vectors, dtype=np.float32)
    failures = {at: str(why) for at, why in given.failures.items()}
    for at in np.flatnonzero(~have_length(vectors)).tolist():
        failures.setdefault(at, "the embedding has not the length 1")
    return replace(given, vectors=vectors, failures=failures)


def embed_text(embedder: Embedder, text: str, dimension: int, role: Role) -> tuple[float, ...]:
    """The vector of one text. EmbeddingError when there is none."""
    found = ask(embedder, [text], dimension, role)
    if found.failures:
        raise EmbeddingError(found.failures[0])
    return tuple(found.vectors[0].tolist())


def check_dimension(dimension: int) -> None:
    """EmbeddingConfigError for a dimension that no vector has."""
    if dimension <= 0:
        raise EmbeddingConfigError("embedding dimension must be greater than zero")


def together(parts: Iterable[tuple[int, Embedded]], count: int, dimension: int) -> Embedded:
    """Answers that each begin at a number, as one of `count` texts; a text that no part has is NaN."""
    vectors = np.full((count, dimension), np.nan, dtype=np.float32)
    failures: dict[int, str] = {}
    usage = Usage()
    for start, part in parts:
        vectors[start : start + len(part.vectors)] = part.vectors
        failures.update((start + at, message) for at, message in part.failures.items())
        usage += part.usage
    return Embedded(vectors, failures, usage)
