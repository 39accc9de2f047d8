"""Vectors made from the text alone, bit for bit those of the reference engine's mock: for tests, and for trying out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_omnigraph.embed.embedder import Embedded, Role, check_dimension
from spark_omnigraph.embed.vectors import NORMALISATION, checked

_Words = npt.NDArray[np.uint64]
_OFFSET = np.uint64(14695981039346656037)
_PRIME = np.uint64(1099511628211)
_RUN = 256
"""Texts whose numbers are made together: their state stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class MockEmbedder:
    """No model and no network. The name of the model changes no vector."""

    model: str = ""

    @property
    def identity(self) -> str:
        """With the name of the model, as a real one's."""
        return f"mock/{self.model}/{NORMALISATION}"

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        """Never fails; a text and a dimension have one vector, in either role."""
        check_dimension(dimension)
        found = np.empty((len(texts), dimension), dtype=np.float32)
        for start in range(0, len(texts), _RUN):
            seeds = _hashes([text.encode(errors="surrogatepass") for text in texts[start : start + _RUN]])
            found[start : start + _RUN] = _components(seeds, dimension).T
        vectors, failures = checked(found, dimension) if len(texts) else (found, {})
        return Embedded(vectors, failures)


def _hashes(texts: Sequence[bytes]) -> _Words:
    """FNV-1a of each text, all of them byte by byte together, the longest first so that those that end drop out."""
    sizes = np.array([len(text) for text in texts])
    order = np.argsort(-sizes, kind="stable")
    letters = np.frombuffer(b"".join(texts[at] for at in order), dtype=np.uint8)
    ends = np.cumsum(sizes[order])
    begins = ends - sizes[order]
    found = np.full(len(texts), _OFFSET)
    alive = len(texts)
    for at in range(int(sizes.max(initial=0))):
        while sizes[order[alive - 1]] <= at:
            alive -= 1
        found[:alive] = (found[:alive] ^ letters[begins[:alive] + at]) * _PRIME
    hashes = np.empty_like(found)
    hashes[order] = found
    return hashes


def _components(state: _Words, dimension: int) -> npt.NDArray[np.float32]:
    """A random number from -1 to 1 for each dimension and text, by xorshift."""
    found = np.empty((dimension, len(state)), dtype=np.float32)
    for at in range(dimension):
        state = state ^ (state << np.uint64(13))
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        ratio = (state.astype(np.float64) / 2.0**64).astype(np.float32)
        found[at] = ratio * np.float32(2) - np.float32(1)
    return found
