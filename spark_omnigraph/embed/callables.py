"""Any function from texts to vectors as a provider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from spark_omnigraph.embed.embedder import Embedded, Embedder, Role, Usage, check_dimension
from spark_omnigraph.embed.vectors import NORMALISATION, checked
from spark_omnigraph.errors import EmbeddingConfigError
from spark_omnigraph.redaction import as_shown

EmbedFunction = Callable[[list[str]], npt.ArrayLike]
_NUMBERS = "biufO"
"""Kinds of arrays that are numbers, or may be (`O`). Texts, instants and complex numbers can be cast, and are none."""


@dataclass(frozen=True, slots=True)
class CallableEmbedder:
    """A function `f(texts) -> vectors`. Without a name of its model nobody knows whether two functions are the same, so
    each gets an identity of its own, and nothing that another one gave is taken for its answer.
    """

    function: EmbedFunction
    model: str = ""
    nonce: str = field(default_factory=lambda: uuid4().hex)

    @property
    def identity(self) -> str:
        return f"callable/{self.model or self.nonce}/{NORMALISATION}"

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        """What the function gives, checked. EmbeddingConfigError for another number of vectors, or of another kind.

        An error of the function itself goes to the caller as it is.
        """
        check_dimension(dimension)
        if not len(texts):
            return Embedded(np.empty((0, dimension), dtype=np.float32))
        given = self.function(list(texts))
        vectors, failures = checked(self._rows(given, len(texts)), dimension, self.model)
        return Embedded(vectors, failures, Usage(requests=1))

    def _rows(self, given: npt.ArrayLike, count: int) -> npt.NDArray[np.float64]:
        refusal = f"the embedding function must return one list of numbers a text, all of one length: {as_shown(given)}"
        try:
            found: Any = np.ma.asarray(given)
            if found.dtype.kind not in _NUMBERS:
                raise EmbeddingConfigError(refusal)
            rows = np.ma.filled(found.astype(np.float64), np.nan)
        except (TypeError, ValueError, OverflowError) as error:
            raise EmbeddingConfigError(refusal) from error
        if rows.ndim != 2 or len(rows) != count:
            raise EmbeddingConfigError(
                f"the embedding function was given {count} texts and must return as many vectors, got an array of "
                f"shape {rows.shape}"
            )
        return rows


def embedder_of(function: EmbedFunction, model: str = "") -> Embedder:
    """A function `f(list[str]) -> array-like` as an embedder; `model` names what it computes, for a cache and for
    `@embed(model=…)`.
    """
    return CallableEmbedder(function, model)
