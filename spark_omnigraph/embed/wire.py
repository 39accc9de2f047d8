"""The two shapes of requests and answers: bytes on one side, texts and numbers on the other."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
import numpy as np

from spark_omnigraph.embed.config import EmbedConfig, Provider
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.vectors import Numbers
from spark_omnigraph.errors import EmbeddingError


class Parsed(NamedTuple):
    """Numbers by the place of their text, None where the answer has none, and the tokens that it says it counted."""

    rows: list[Numbers | None]
    tokens: int | None


class Wire(Protocol):
    """One shape. `plain` is the one that every server of the kind understands; the other one is quicker."""

    @property
    def unknown(self) -> frozenset[int]:
        """Statuses of servers that know the plain shape alone."""

    def together(self, plain: bool) -> bool:
        """Whether a request may have several texts."""

    def path(self, texts: Sequence[str], plain: bool) -> str:
        """Where a request goes."""

    def headers(self) -> dict[str, str]:
        """With the key."""

    def body(self, texts: Sequence[str], dimension: int, role: Role, plain: bool) -> bytes:
        """What it asks."""

    def parsed(self, body: bytes, count: int) -> Parsed:
        """What was answered. EmbeddingError for anything else than an answer to `count` texts."""


class _Item(msgspec.Struct):
    embedding: list[float] | str
    index: int | None = None


class _OpenAiAnswer(msgspec.Struct):
    data: list[_Item]
    usage: object = None


class _Values(msgspec.Struct):
    values: list[float]


class _GeminiAnswer(msgspec.Struct):
    embedding: _Values | None = None
    embeddings: list[_Values] = msgspec.field(default_factory=list)


_Answer = TypeVar("_Answer")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_MOST_TOKENS = 1 << 53
_OPENAI = msgspec.json.Decoder(_OpenAiAnswer)
_GEMINI = msgspec.json.Decoder(_GeminiAnswer)


@dataclass(frozen=True, slots=True)
class OpenAiWire:
    """`POST {base}/embeddings`, texts as an array, numbers in base64 where the server has that."""

    config: EmbedConfig = field(repr=False)
    unknown = frozenset({400, 422})

    def together(self, plain: bool) -> bool:
        return True

    def path(self, texts: Sequence[str], plain: bool) -> str:
        return f"{urlsplit(self.config.base_url).path}/embeddings"

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.config.api_key}", "Content-Type": "application/json"}

    def body(self, texts: Sequence[str], dimension: int, role: Role, plain: bool) -> bytes:
        asked: dict[str, object] = {"model": self.config.model, "input": list(texts), "dimensions": dimension}
        if not plain:
            asked["encoding_format"] = "base64"
        return msgspec.json.encode(asked)

    def parsed(self, body: bytes, count: int) -> Parsed:
        """Each answer goes to the place that its `index` says; without any, they stand in order."""
        answer = _decoded(_OPENAI, body)
        rows: list[Numbers | None] = [None] * count
        in_order = len(answer.data) == count and all(item.index is None for item in answer.data)
        for place, item in enumerate(answer.data):
            at = place if in_order else item.index
            if at is None or at < 0:
                raise _malformed("an item has no index")
            if at >= count == 1:
                continue
            if at >= count:
                raise _malformed(f"an item has the index {at}, of {count} texts")
            if rows[at] is not None:
                raise _malformed(f"two items have the index {at}")
            rows[at] = _from_base64(item.embedding) if isinstance(item.embedding, str) else item.embedding
        return Parsed(rows, _tokens(answer.usage))


def _tokens(usage: object) -> int | None:
    """What an answer says about its cost, in whatever form: vectors are not worth less for it."""
    told = [usage.get(name) for name in ("total_tokens", "prompt_tokens")] if isinstance(usage, dict) else []
    return next((count for count in told if isinstance(count, int) and 0 <= count <= _MOST_TOKENS), None)


_TASKS = {Role.DOCUMENT: "RETRIEVAL_DOCUMENT", Role.QUERY: "RETRIEVAL_QUERY"}


@dataclass(frozen=True, slots=True)
class GeminiWire:
    """`POST {base}/models/{model}:embedContent` for one text, `:batchEmbedContents` for several."""

    config: EmbedConfig = field(repr=False)
    unknown = frozenset({404})

    def together(self, plain: bool) -> bool:
        return not plain

    def path(self, texts: Sequence[str], plain: bool) -> str:
        method = "embedContent" if len(texts) == 1 else "batchEmbedContents"
        return f"{urlsplit(self.config.base_url).path}/models/{quote(self.config.model)}:{method}"

    def headers(self) -> dict[str, str]:
        return {"x-goog-api-key": self.config.api_key, "Content-Type": "application/json"}

    def body(self, texts: Sequence[str], dimension: int, role: Role, plain: bool) -> bytes:
        asked = [
            {
                "model": f"models/{self.config.model}",
                "content": {"parts": [{"text": text}]},
                "taskType": _TASKS[role],
                "outputDimensionality": dimension,
            }
            for text in texts
        ]
        return msgspec.json.encode(asked[0] if len(asked) == 1 else {"requests": asked})

    def parsed(self, body: bytes, count: int) -> Parsed:
        """Answers stand in the order of the texts, so another number of them says nothing about any."""
        answer = _decoded(_GEMINI, body)
        found = answer.embeddings or ([answer.embedding] if answer.embedding is not None else [])
        if len(found) != count:
            raise _malformed(f"expected {count} embeddings, got {len(found)}")
        return Parsed([each.values for each in found], None)


def wire_of(config: EmbedConfig) -> Wire:
    """The shape of a provider that is asked over the network."""
    return GeminiWire(config) if config.provider is Provider.GEMINI else OpenAiWire(config)


def message_of(body: bytes) -> str:
    """What a provider says about a refusal: its message where the body has one, else the body."""
    try:
        said = msgspec.json.decode(body)
    except _UNREADABLE:
        return body.decode(errors="replace").strip()
    error = said.get("error", said) if isinstance(said, dict) else said
    told = error.get("message") if isinstance(error, dict) else error
    return told if isinstance(told, str) else body.decode(errors="replace").strip()


def _decoded(decoder: msgspec.json.Decoder[_Answer], body: bytes) -> _Answer:
    try:
        return decoder.decode(body)
    except _UNREADABLE as error:
        raise _malformed(str(error)) from error


def _from_base64(text: str) -> np.ndarray:
    try:
        return np.frombuffer(b64decode(text, validate=True), dtype="<f4")
    except ValueError as error:
        raise _malformed(f"numbers in base64: {error}") from error


def _malformed(why: str) -> EmbeddingError:
    return EmbeddingError(f"embedding response decode failed: {why}")
