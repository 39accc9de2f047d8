"""Names of texts and of answers: what a cache of vectors finds them by. No text can be read back from one. And
checksums of vectors, which tell that one is not what it was.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256, shake_128

import numpy as np
import numpy.typing as npt

from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.vectors import Vectors

_Words = npt.NDArray[np.uint64]


def text_hash(text: str) -> bytes:
    """Of a text as it is: equal texts are asked for once."""
    return sha256(text.encode(errors="surrogatepass")).digest()


def cache_key(identity: str, dimension: int, role: Role, text: str) -> bytes:
    """Of an answer: who gave it (`Embedder.identity`), how many numbers, in which role, for which text.

    Each part is told by its length first, so that no two answers have one key.
    """
    return key_of(identity, dimension, role)(text.encode(errors="surrogatepass"))


def key_of(identity: str, dimension: int, role: Role) -> Callable[[bytes], bytes]:
    """`cache_key` for many texts, each as UTF-8."""
    before = sha256()
    for part in (identity, str(dimension), str(role)):
        before.update(_told(part))

    copied = before.copy

    def key(coded: bytes) -> bytes:
        found = copied()
        found.update(len(coded).to_bytes(8, "big"))
        found.update(coded)
        return found.digest()

    return key


def checksums(vectors: Vectors) -> _Words:
    """Of each vector, of its bits: the multilinear hash of 32-bit words (Lemire and Kaser, "Strongly universal string
    hashing is fast"), which numpy makes of many vectors in a fifth of the time of zlib's CRCs. One number that differs
    is always seen, and of any other differences all but one in 2^32.
    """
    bits = vectors.view(np.uint32)
    found: _Words = np.einsum("ij,j->i", bits, _weights(vectors.shape[1]), dtype=np.uint64, casting="unsafe")
    return found


@lru_cache(maxsize=8)
def _weights(count: int) -> _Words:
    """Odd numbers that look like random ones, the same in every release: stored checksums stand on them."""
    told = shake_128(b"omnigraph vectors").digest(8 * count)
    return np.frombuffer(told, "<u8").astype(np.uint64) | np.uint64(1)


def _told(part: str) -> bytes:
    coded = part.encode(errors="surrogatepass")
    return len(coded).to_bytes(8, "big") + coded
