"""Names of texts and of answers: what a cache of vectors finds them by. No text can be read back from one."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from spark_omnigraph.embed.embedder import Role


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


def _told(part: str) -> bytes:
    coded = part.encode(errors="surrogatepass")
    return len(coded).to_bytes(8, "big") + coded
