"""A small sentence model of the BERT family (MiniLM and the like), computed with numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_omnigraph.embed.vectors import Vectors

Weights = Mapping[str, npt.NDArray[np.float32]]
WORDS = "embeddings.word_embeddings.weight"
EPSILON = 1e-12
"""What is added to a variance, where no file says it."""
_EMBEDDED = ("word", "position", "token_type")
_TOGETHER = 16
"""Texts that are computed together: their attention takes memory with the square of the longest."""
_MASKED = np.float32(-1e9)
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Abramowitz and Stegun, 7.1.26: within 1.5e-7."""


@dataclass(frozen=True, slots=True)
class Bert:
    """Weights by their usual names; `heads` of attention, `epsilon` of the normalisation of layers."""

    weights: Weights
    heads: int
    epsilon: float = EPSILON

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return int(self.weights[WORDS].shape[1])

    @property
    def longest(self) -> int:
        """Tokens of a text that the model can take."""
        return len(self.weights["embeddings.position_embeddings.weight"])

    def vectors(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """The mean of what each text's tokens (at least one) become, not normalised."""
        found = np.empty((len(texts), self.width), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for start in range(0, len(order), _TOGETHER):
            chosen = order[start : start + _TOGETHER]
            found[chosen] = self._means([texts[at] for at in chosen])
        return found

    def _means(self, texts: Sequence[Sequence[int]]) -> Vectors:
        longest = max(map(len, texts))
        tokens = np.zeros((len(texts), longest), dtype=np.int64)
        real = np.zeros((len(texts), longest), dtype=np.float32)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = text
            real[row, : len(text)] = 1
        state = self._embedded(tokens)
        barred = ((1 - real) * _MASKED)[:, None, None, :]
        layer = 0
        while f"encoder.layer.{layer}.attention.self.query.weight" in self.weights:
            state = self._layer(f"encoder.layer.{layer}.", state, barred)
            layer += 1
        means: Vectors = (state * real[:, :, None]).sum(axis=1) / real.sum(axis=1)[:, None]
        return means

    def _embedded(self, tokens: npt.NDArray[np.int64]) -> Vectors:
        word, position, kind = (self.weights[f"embeddings.{name}_embeddings.weight"] for name in _EMBEDDED)
        return self._normed("embeddings.LayerNorm.", word[tokens] + position[: tokens.shape[1]] + kind[0])

    def _layer(self, name: str, state: Vectors, barred: Vectors) -> Vectors:
        count, length, width = state.shape
        split = (count, length, self.heads, width // self.heads)
        query, key, value = (
            self._linear(f"{name}attention.self.{part}.", state).reshape(split).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // self.heads)) + barred
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        seen = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        seen = seen.transpose(0, 2, 1, 3).reshape(count, length, width)
        state = self._normed(
            f"{name}attention.output.LayerNorm.", state + self._linear(f"{name}attention.output.dense.", seen)
        )
        inner = _gelu(self._linear(f"{name}intermediate.dense.", state))
        return self._normed(f"{name}output.LayerNorm.", state + self._linear(f"{name}output.dense.", inner))

    def _linear(self, name: str, state: Vectors) -> Vectors:
        found: Vectors = state @ self.weights[f"{name}weight"].T + self.weights[f"{name}bias"]
        return found

    def _normed(self, name: str, state: Vectors) -> Vectors:
        apart = state - state.mean(axis=-1, keepdims=True)
        spread = np.sqrt(np.square(apart).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        found: Vectors = apart / spread * self.weights[f"{name}weight"] + self.weights[f"{name}bias"]
        return found


def _gelu(values: Vectors) -> Vectors:
    found: Vectors = values * np.float32(0.5) * (1 + _erf(values / np.float32(np.sqrt(2))))
    return found


def _erf(values: Vectors) -> Vectors:
    size = np.abs(values)
    t = 1 / (1 + np.float32(0.3275911) * size)
    total = np.zeros_like(t)
    for factor in reversed(_ERF):
        total = (total + np.float32(factor)) * t
    found: Vectors = np.sign(values) * (1 - total * np.exp(-size * size))
    return found
