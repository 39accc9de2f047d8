"""What a provider's numbers must be, and how they become vectors of length 1, bit for bit as in the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spark_omnigraph.errors import EmbeddingConfigError

Vectors = npt.NDArray[np.float32]
NORMALISATION = "l2"
"""How vectors are normalised, in identities."""
_NO_LENGTH = np.float32(1.1920929e-07)
_ABOUT = 1e-3
_RUN = 1 << 20
"""Components whose squares are in memory at one time."""


Numbers = Sequence[float] | np.ndarray


def checked(
    given: npt.ArrayLike | Sequence[Numbers], dimension: int, model: str = ""
) -> tuple[Vectors, dict[int, str]]:
    """Rows of numbers as vectors of length 1, and by number those that are none, which are NaN.

    EmbeddingConfigError when the rows have another dimension: no text would ever get a vector that fits.
    """
    with np.errstate(over="ignore"):
        rows = np.array(given, dtype=np.float32, order="C", ndmin=2)
    if rows.shape[1] != dimension:
        raise EmbeddingConfigError(mismatch(dimension, rows.shape[1], model))
    failures = {int(at): _infinite(rows[at]) for at in np.flatnonzero(~np.isfinite(rows).all(axis=1))}
    lengths = _lengths(rows)
    with np.errstate(invalid="ignore", over="ignore"):
        for at in np.flatnonzero(~(lengths > _NO_LENGTH) | np.isinf(lengths)):
            failures.setdefault(int(at), _WITHOUT_DIRECTION)
        lengths[list(failures)] = np.nan
        rows /= lengths[:, None]
    return rows, failures


def have_length(vectors: Vectors) -> npt.NDArray[np.bool_]:
    """Which of some vectors have the length 1, about, as whatever this room gives; numbers that are none have not."""
    with np.errstate(invalid="ignore", over="ignore"):
        found: npt.NDArray[np.bool_] = np.abs(np.einsum("ij,ij->i", vectors, vectors) - 1) < _ABOUT
    return found


def mismatch(dimension: int, got: int, model: str) -> str:
    """What to say when vectors have another dimension than the one that was asked for."""
    whose = f" from model '{model}'" if model else ""
    return f"embedding dimension mismatch: expected {dimension}, got {got}{whose}"


_WITHOUT_DIRECTION = "embedding has zero norm (no direction)"


def _infinite(row: Vectors) -> str:
    at = int(np.flatnonzero(~np.isfinite(row))[0])
    return f"embedding component {at} is not finite ({row[at]})"


def _lengths(rows: Vectors) -> Vectors:
    """Of each row, its squares added in double precision from left to right: numpy's own sums add pairwise."""
    found = np.empty(len(rows), dtype=np.float32)
    run = max(1, _RUN // max(1, rows.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, len(rows), run):
            squares = np.square(rows[start : start + run].astype(np.float64))
            found[start : start + run] = np.sqrt(np.cumsum(squares, axis=1)[:, -1])
    return found
