"""Texts in batches to a provider over the network: at one pace, several requests at a time, each tried a bounded number
of times.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import lru_cache
from http import HTTPStatus
from threading import Event, Lock
from time import monotonic
from uuid import uuid4

import numpy as np

from spark_omnigraph.embed.config import BASE_URL, MODEL, REQUESTS, TOKENS, EmbedConfig, shared_limits
from spark_omnigraph.embed.embedder import Embedded, Patience, Role, Usage, check_dimension, together
from spark_omnigraph.embed.http import Answer, Connections, TransportError
from spark_omnigraph.embed.pace import Pace, retry_after
from spark_omnigraph.embed.vectors import NORMALISATION, checked, mismatch
from spark_omnigraph.embed.wire import Parsed, message_of, wire_of
from spark_omnigraph.errors import EmbeddingConfigError, EmbeddingError
from spark_omnigraph.redaction import HIDDEN, one_line

_REFUSED = frozenset({400, 413, 422})
"""Statuses that speak of the texts, perhaps of one of them alone."""
_AGAIN = frozenset({408, 429})
"""Statuses that are worth another attempt, as those from 500 are."""
_BYTES_OF_A_NUMBER = 32
_BYTES_BESIDE = 1 << 20
_PROBE = "text"
"""Asked for alone where everything is refused, to learn whether the texts are to blame."""
_SHOWN = 500
"""Characters of what a provider says."""
_SHORTEST_KEY = 4
_MOST_DOUBLINGS = 10
_BYTES_OF_A_TOKEN = 4


class _RefusedError(Exception):
    """The provider refuses a request for what is in it, or does not know its shape."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class _Call:
    """One call of `embed`: what it asks for, what it cost, and whether it was ended."""

    dimension: int
    role: Role
    over: Event = field(default_factory=Event)
    usage: Usage = field(default_factory=Usage)
    lock: Lock = field(default_factory=Lock)

    def count(self, more: Usage) -> None:
        with self.lock:
            self.usage += more

    def cost(self) -> Usage:
        """What it cost since it was asked last."""
        with self.lock:
            cost, self.usage = self.usage, Usage()
            return cost

    def pause(self, seconds: float) -> None:
        """Waits. EmbeddingError when the call ends meanwhile."""
        if self.over.wait(seconds) if seconds > 0 else self.over.is_set():
            raise EmbeddingError("embedding was ended")


class RemoteEmbedder:
    """Asks one provider. Made anew from its configuration where it is unpickled: connections do not travel, and all
    that come to one process from the same one keep one pace.
    """

    def __init__(self, config: EmbedConfig, name: str = "") -> None:
        self._config = config
        self._name = name or uuid4().hex
        self._wire = wire_of(config)
        self._pace = _pace_of(self._name, config.requests_per_minute, config.tokens_per_minute)
        self._connections = Connections(config.base_url, config.proxy, config.timeout)
        self._plain = False
        """Known: the provider has the plain shape of requests alone."""
        self._quick = False
        """Known: it has the quick one."""
        self._proven = False
        """Known: it gives vectors at all."""

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._config, self._name)

    def __repr__(self) -> str:
        return f"RemoteEmbedder({self._config!r})"

    def share_of(self, tasks: int | None, name: str | None) -> RemoteEmbedder:
        """As `Limited.share_of`."""
        if tasks is None and (self._config.requests_per_minute or self._config.tokens_per_minute):
            raise EmbeddingConfigError(
                f"what {REQUESTS} and {TOKENS} allow is for all tasks together, and nobody knows how many ask at a "
                "time: say it by the option embedTasks, or in Spark's configuration (spark.default.parallelism)"
            )
        return RemoteEmbedder(shared_limits(self._config, tasks or 1), name or self._name)

    @property
    def model(self) -> str:
        """That of the configuration."""
        return self._config.model

    @property
    def identity(self) -> str:
        """Wherever the provider is: one model is one model."""
        return f"{self._config.provider}/{self.model}/{NORMALISATION}"

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        """Batches are asked for in any order, several at a time. One that failed after all attempts fails for its texts
        alone; EmbeddingConfigError ends the call at once, with what is under way.
        """
        check_dimension(dimension)
        if 0 < len(texts) <= self._config.batch_size:
            call = _Call(dimension, role)
            found = self._batch(call, texts, self._plain)
            return replace(found, usage=call.cost())
        return together(self.parts(texts, dimension=dimension, role=role, patience=lambda: None), len(texts), dimension)

    def parts(
        self, texts: Sequence[str], *, dimension: int, role: Role, patience: Patience
    ) -> Iterator[tuple[int, Embedded]]:
        """As `Streamed.parts`. Whoever ends early ends what is under way."""
        check_dimension(dimension)
        call = _Call(dimension, role)
        starts = range(0, len(texts), self._config.batch_size)
        with ThreadPoolExecutor(max(1, min(self._config.parallel, len(starts))), "embed") as pool:
            waiting = {
                pool.submit(self._batch, call, texts[start : start + starts.step], self._plain): start
                for start in starts
            }
            try:
                while waiting:
                    done, _ = wait(waiting, patience(), FIRST_COMPLETED)
                    if not done:
                        yield 0, together([], 0, dimension)
                    for each in done:
                        yield waiting.pop(each), replace(each.result(), usage=call.cost())
            except BaseException:
                call.over.set()
                pool.shutdown(wait=False, cancel_futures=True)
                self._connections.abort()
                raise

    def _batch(self, call: _Call, texts: Sequence[str], plain: bool) -> Embedded:
        try:
            return self._parted(call, texts, plain)
        except EmbeddingError as error:
            return _failed(len(texts), call.dimension, error.message)
        except EmbeddingConfigError:
            call.over.set()
            raise

    def _parted(self, call: _Call, texts: Sequence[str], plain: bool) -> Embedded:
        """One batch; where it is refused, its halves, until a text that is refused stands alone."""
        single = len(texts) == 1
        if not single and not self._wire.together(plain):
            return self._pieces(call, texts, plain, 1)
        try:
            parsed = self._wire.parsed(self._post(call, texts, plain or single), len(texts))
        except _RefusedError as refusal:
            if single:
                return _failed(1, call.dimension, str(refusal))
            if not (plain or self._quick) and refusal.status in self._wire.unknown:
                found = self._batch(call, texts, plain=True)
                self._plain |= not found.failures
                return found
            self._prove(call)
            return self._pieces(call, texts, plain, (len(texts) + 1) // 2)
        self._proven = True
        self._quick |= not (plain or single)
        call.count(Usage(tokens=parsed.tokens))
        return self._vectors(parsed, call.dimension)

    def _pieces(self, call: _Call, texts: Sequence[str], plain: bool, size: int) -> Embedded:
        starts = range(0, len(texts), size)
        parts = ((start, self._batch(call, texts[start : start + size], plain)) for start in starts)
        return together(parts, len(texts), call.dimension)

    def _prove(self, call: _Call) -> None:
        """EmbeddingConfigError when the provider refuses a harmless text too: halving would ask it for every text."""
        if self._proven:
            return
        try:
            self._post(call, [_PROBE], plain=True)
        except _RefusedError as refusal:
            raise EmbeddingConfigError(f"{refusal} (for every text: look at {MODEL} and the dimension)") from refusal
        self._proven = True

    def _post(self, call: _Call, texts: Sequence[str], plain: bool) -> bytes:
        """The body of a good answer. EmbeddingError after all attempts, or when the time is up."""
        path, body = self._request(call, texts, plain)
        most = len(texts) * call.dimension * _BYTES_OF_A_NUMBER + _BYTES_BESIDE
        first: float | None = None
        failure = "the provider asks for a longer wait"
        for attempt in range(self._config.attempts):
            self._check_deadline(self._pace.held(), failure)
            call.pause(self._pace.turn(sum(map(len, texts)) / _BYTES_OF_A_TOKEN))
            sent = monotonic()
            first = sent if first is None else first
            call.count(Usage(requests=1, retries=int(attempt > 0)))
            delay = random.uniform(0, self._config.backoff * 2 ** min(attempt, _MOST_DOUBLINGS))
            try:
                answer = self._connections.post(path, self._wire.headers(), body, most)
            except TransportError as error:
                failure = self._without_key(f"embedding request failed: {error}")
            else:
                if answer.status // 100 == HTTPStatus.OK // 100:
                    self._pace.went_well()
                    return answer.body
                failure = self._refused(answer, plain)
                asked = retry_after(answer.retry_after)
                delay = delay if asked is None else asked
                if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
                    self._pace.too_fast(sent, asked or 0)
            if attempt + 1 < self._config.attempts:
                self._check_deadline(monotonic() + delay - first, failure)
                call.pause(delay)
        raise EmbeddingError(failure)

    def _request(self, call: _Call, texts: Sequence[str], plain: bool) -> tuple[str, bytes]:
        try:
            return self._wire.path(texts, plain), self._wire.body(texts, call.dimension, call.role, plain)
        except UnicodeEncodeError as error:
            raise _RefusedError("the text has half of a surrogate pair, which is not UTF-8", 400) from error

    def _refused(self, answer: Answer, plain: bool) -> str:
        """What an answer says that is none, if asking again may help."""
        status = answer.status
        phrase = HTTPStatus(status).phrase if status in _KNOWN else ""
        said = one_line(self._without_key(message_of(answer.body)))[:_SHOWN]
        message = f"embedding request failed with status {status} {phrase}".rstrip() + (f": {said}" if said else "")
        if status in _AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return message
        if status in _REFUSED or (not plain and status in self._wire.unknown):
            raise _RefusedError(message, status)
        look = self._config.key_name if status in _OF_THE_KEY else f"{BASE_URL} and {MODEL}"
        raise EmbeddingConfigError(f"{message} ({self._config.base_url}; look at {look})")

    def _check_deadline(self, spent: float, failure: str) -> None:
        deadline = self._config.deadline
        if deadline and spent > deadline:
            raise EmbeddingError(
                f"embedding deadline exceeded after {deadline * 1000:.0f} ms (provider={self._config.provider}, "
                f"model={self.model}): {failure}"
            )

    def _without_key(self, text: str) -> str:
        """A text without the key, also where a provider shows its beginning and its end."""
        key = self._config.api_key
        if len(key) < _SHORTEST_KEY:
            return text
        begins = re.escape(key[:_SHORTEST_KEY])
        return re.sub(rf"{begins}\S*[*.…]\S*", HIDDEN, text.replace(key, HIDDEN))

    def _vectors(self, parsed: Parsed, dimension: int) -> Embedded:
        """Vectors of the rows that are fit for it. EmbeddingConfigError when none has the dimension."""
        widths = {at: len(row) for at, row in enumerate(parsed.rows) if row is not None}
        if widths and dimension not in widths.values():
            raise EmbeddingConfigError(mismatch(dimension, min(widths.values()), self.model))
        failures = {at: mismatch(dimension, width, "") for at, width in widths.items() if width != dimension}
        missing = [at for at in range(len(parsed.rows)) if at not in widths]
        failures.update((at, f"embedding response missing data[{at}]") for at in missing)
        vectors = np.full((len(parsed.rows), dimension), np.nan, dtype=np.float32)
        fit = {at: row for at, row in enumerate(parsed.rows) if row is not None and at not in failures}
        if fit:
            places = list(fit)
            vectors[places], wrong = checked(list(fit.values()), dimension)
            failures.update((places[at], message) for at, message in wrong.items())
        return Embedded(vectors, failures)


@lru_cache(maxsize=64)
def _pace_of(name: str, requests_per_minute: float | None, tokens_per_minute: float | None) -> Pace:
    """The pace of an embedder in this process, by the name that it travels with."""
    return Pace(requests_per_minute, tokens_per_minute)


_KNOWN = frozenset(status.value for status in HTTPStatus)
_OF_THE_KEY = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN})


def _failed(count: int, dimension: int, message: str) -> Embedded:
    return replace(together([], count, dimension), failures=dict.fromkeys(range(count), message))
