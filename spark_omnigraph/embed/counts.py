"""Figures of what was embedded, by property, and estimates of what asking would take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from spark_omnigraph.embed.config import EmbedConfig, Provider
from spark_omnigraph.embed.embedder import Usage
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.limits import beyond

BYTES_A_TOKEN = 4
"""Of a text in UTF-8, roughly."""
NOBODY_WAS_ASKED = "nobody was asked; choose fewer rows"
"""How a refusal ends that comes before any question."""


@dataclass(frozen=True, slots=True)
class PropertyCounts:
    """Figures of one property. `rows` are all of the type, of a load those that it brings; `distinct` texts were
    wanted, of which `cached` had an answer already; `requested` ones were asked for in `requests`, some of them
    `retries`. `tokens` is the provider's count, None where it says none. In a dry run `requested` ones would be asked
    for, and `requests` and `tokens` are estimates. `embedded` rows got a vector, `failed` ones got none. Each task of a
    load counts for itself: a text that several of them have is distinct in each.
    """

    rows: int = 0
    missing: int = 0
    stale: int = 0
    blank: int = 0
    distinct: int = 0
    cached: int = 0
    requested: int = 0
    requests: int = 0
    retries: int = 0
    tokens: int | None = None
    embedded: int = 0
    cleaned: int = 0
    failed: int = 0
    bytes: int = 0
    """Of the texts to ask for, in UTF-8."""

    def __add__(self, other: PropertyCounts) -> PropertyCounts:
        told = {each.name: (getattr(self, each.name), getattr(other, each.name)) for each in fields(self)}
        return PropertyCounts(**{name: one if two is None else (one or 0) + two for name, (one, two) in told.items()})


Properties = Mapping[str, PropertyCounts]
"""By `Type.property`."""


def took(texts: int, usage: Usage) -> PropertyCounts:
    """What asking for so many texts took, alone."""
    return PropertyCounts(requested=texts, requests=usage.requests, retries=usage.retries, tokens=usage.tokens)


def cost_of(counts: PropertyCounts) -> PropertyCounts:
    """What asking took, alone."""
    return took(counts.requested, Usage(counts.requests, counts.retries, counts.tokens))


def estimated(counts: PropertyCounts, provider: object) -> PropertyCounts:
    """Of a dry run: with what asking would take."""
    texts = counts.distinct - counts.cached
    requests = requests_of(provider, texts)
    return replace(counts, requested=texts, requests=requests, tokens=tokens_of(counts.bytes))


def summed(parts: Iterable[Properties]) -> dict[str, PropertyCounts]:
    """Those of several tasks."""
    found: dict[str, PropertyCounts] = {}
    for part in parts:
        for name, counts in part.items():
            found[name] = found.get(name, PropertyCounts()) + counts
    return dict(sorted(found.items()))


def tokens_of(size: int) -> int:
    """Of texts of so many bytes, about."""
    return -(-size // BYTES_A_TOKEN)


def requests_of(provider: object, texts: int) -> int:
    """Requests that so many texts take when none is sent again; none where no request is sent."""
    is_asked = isinstance(provider, EmbedConfig) and provider.provider in (Provider.OPENAI, Provider.GEMINI)
    return -(-texts // provider.batch_size) if isinstance(provider, EmbedConfig) and is_asked else 0


def minutes(provider: object, counts: Iterable[PropertyCounts]) -> float | None:
    """How long asking takes at least, None where nothing limits it."""
    if not isinstance(provider, EmbedConfig):
        return None
    total = sum(counts, PropertyCounts())
    limited = ((total.requests, provider.requests_per_minute), (total.tokens or 0, provider.tokens_per_minute))
    least = [count / limit for count, limit in limited if limit is not None]
    return round(max(least), 2) if least else None


def refuse_dear(size: int, most: int | None) -> None:
    """BadRequestError where texts of so many bytes have more tokens, about, than may be asked for."""
    tokens = tokens_of(size)
    if most is not None and tokens > most:
        told = f"about {tokens:,} tokens would be asked for, and at most {most:,} may be: {NOBODY_WAS_ASKED}"
        raise beyond(BadRequestError, told, "max_tokens", tokens)
