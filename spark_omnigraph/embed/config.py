"""Which provider, which model, and within which limits it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import urlsplit

from spark_omnigraph.errors import EmbeddingConfigError
from spark_omnigraph.redaction import excerpt, has_credentials, redact
from spark_omnigraph.words import TextEnum, nearest


class Provider(TextEnum):
    """Kinds of providers: two shapes of requests, vectors of the text alone, and a model on this machine."""

    OPENAI = "openai-compatible"
    GEMINI = "gemini"
    MOCK = "mock"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class EmbedConfig:
    """A provider and its limits. It may be pickled, with its key, which no text that is made from it shows."""

    provider: Provider
    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    key_name: str = ""
    """Variables that the key may come from, for messages."""
    batch_size: int = 64
    """Texts in one request."""
    parallel: int = 8
    """Requests at one time."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 30.0
    """Seconds for one request."""
    attempts: int = 4
    """How often one request is sent at most."""
    backoff: float = 0.2
    """Seconds before the second attempt at most; before each later one twice as much."""
    deadline: float = 60.0
    """Seconds for a request with all its attempts; 0 is none."""
    proxy: str = field(default="", repr=False)
    """URL of the proxy through which the provider is reached."""


class _Defaults(NamedTuple):
    provider: Provider
    base_url: str
    model: str
    keys: tuple[str, ...]


UNSET = "openai-compatible"
KINDS: Mapping[str, _Defaults] = {
    "openai-compatible": _Defaults(
        Provider.OPENAI,
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    ),
    "openai": _Defaults(Provider.OPENAI, "https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",)),
    "gemini": _Defaults(
        Provider.GEMINI,
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        ("GEMINI_API_KEY",),
    ),
    "mock": _Defaults(Provider.MOCK, "", "", ()),
    "local": _Defaults(Provider.LOCAL, "", "wordllama-256", ()),
}
"""Names of providers with what holds where nothing else is said."""
MOCK = "OMNIGRAPH_EMBEDDINGS_MOCK"
PROVIDER = "OMNIGRAPH_EMBED_PROVIDER"
BASE_URL = "OMNIGRAPH_EMBED_BASE_URL"
MODEL = "OMNIGRAPH_EMBED_MODEL"
TIMEOUT = "OMNIGRAPH_EMBED_TIMEOUT_MS"
ATTEMPTS = "OMNIGRAPH_EMBED_RETRY_ATTEMPTS"
BACKOFF = "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS"
DEADLINE = "OMNIGRAPH_EMBED_DEADLINE_MS"
REQUESTS = "OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE"
TOKENS = "OMNIGRAPH_EMBED_TOKENS_PER_MINUTE"
KEYS = ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
VARIABLES = (MOCK, PROVIDER, BASE_URL, MODEL, TIMEOUT, ATTEMPTS, BACKOFF, DEADLINE, REQUESTS, TOKENS)
_TRUE = ("1", "true", "yes", "on")
_LONGEST = 1 << 31
"""Milliseconds and attempts beyond this are not meant."""


def resolve_config(
    environ: Mapping[str, str],
    *,
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
) -> EmbedConfig:
    """The provider that variables name; what is given here wins over them. EmbeddingConfigError says what is missing.

    A mock that is switched on wins over a provider that a variable names, and over none that is given here.
    """
    if provider is None and _variable(environ, MOCK).lower() in _TRUE:
        provider = Provider.MOCK
    name = (provider or _variable(environ, PROVIDER) or UNSET).strip()
    kind = KINDS.get(name)
    if kind is None:
        raise EmbeddingConfigError(
            f"unknown embedding provider '{excerpt(name)}' (expected {'|'.join(KINDS)}){nearest(name, KINDS)}"
        )
    url = (base_url or "").strip() or _variable(environ, BASE_URL) or kind.base_url if kind.base_url else ""
    url = checked_url(url.rstrip("/")) if url else ""
    return EmbedConfig(
        provider=kind.provider,
        model=(model or "").strip() or _variable(environ, MODEL) or kind.model,
        base_url=url,
        api_key=_key(environ, name, kind, api_key),
        key_name=" or ".join(kind.keys),
        requests_per_minute=_limit(environ, REQUESTS),
        tokens_per_minute=_limit(environ, TOKENS),
        timeout=_positive(environ, TIMEOUT, 30_000) / 1000,
        attempts=_positive(environ, ATTEMPTS, 4),
        backoff=_positive(environ, BACKOFF, 200) / 1000,
        deadline=_positive(environ, DEADLINE, 60_000, least=0) / 1000,
        proxy=proxy_of(environ, url),
    )


def overridden(environ: Mapping[str, str], provider: str | None = None) -> str | None:
    """What to warn of: a mock that is switched on beside a provider that a variable names, which is not asked then."""
    named = _variable(environ, PROVIDER)
    if provider is not None or _variable(environ, MOCK).lower() not in _TRUE or named in ("", Provider.MOCK):
        return None
    return f"{MOCK} is on: vectors are made up, and the provider of {PROVIDER} ('{excerpt(named)}') is not asked"


def way_to_model(wanted: str, identity: str) -> str:
    """What to do where a schema names a model and vectors come from somebody else, of this identity."""
    if not identity.startswith(f"{Provider.MOCK}//"):  # without the name of a model
        return f"set {MODEL}='{wanted}' (and the matching provider)"
    known = next((f"='{name}'" for name, kind in KINDS.items() if kind.model == wanted), "")
    return (
        f"name the provider of that model ({PROVIDER}{known}) with {MOCK} off, or let the mock, which makes vectors "
        f"up, stand in for it ({MODEL}='{wanted}')"
    )


def shared_limits(config: EmbedConfig, tasks: int) -> EmbedConfig:
    """The configuration of one of several tasks that ask at the same time: each has its part of what a minute allows,
    and of the requests at one time.
    """
    if tasks <= 1:
        return config
    requests, tokens = config.requests_per_minute, config.tokens_per_minute
    return replace(
        config,
        requests_per_minute=None if requests is None else requests / tasks,
        tokens_per_minute=None if tokens is None else tokens / tasks,
        parallel=max(1, config.parallel // tasks),
    )


def checked_url(url: str) -> str:
    """The base URL of a provider. EmbeddingConfigError when requests cannot go there, or a secret stands in it."""
    if has_credentials(url):
        raise EmbeddingConfigError(
            f"the base URL of the embedding provider has a user or a secret in it; leave it out of {BASE_URL}, the "
            "key has a variable of its own"
        )
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        wrong = True
    if wrong or parts.query or parts.fragment or not url.isascii() or not url.isprintable() or " " in url:
        raise EmbeddingConfigError(
            f"the base URL of the embedding provider must be http(s)://HOST[:PORT][/PATH] ({BASE_URL}), got "
            f"'{excerpt(url)}'"
        )
    return url


def proxy_of(environ: Mapping[str, str], url: str) -> str:
    """URL of the proxy that variables name for a URL, empty where they name none or except its host."""
    if not url:
        return ""
    named = {name.lower(): value.strip() for name, value in environ.items() if name.lower().endswith("_proxy")}
    parts = urlsplit(url)
    found = named.get(f"{parts.scheme}_proxy") or named.get("all_proxy", "")
    if not found or _is_excepted(parts.hostname or "", parts.netloc, named.get("no_proxy", "")):
        return ""
    return _checked_proxy(found if "://" in found else f"http://{found}")


def _checked_proxy(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme == "http" and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise EmbeddingConfigError(
            f"the proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY must be http://HOST:PORT, got '{excerpt(redact(url))}'"
        )
    return url


def _is_excepted(host: str, host_and_port: str, exceptions: str) -> bool:
    """Whether a list of hosts and ends of hosts that are reached without the proxy has a host; `*` has every one."""
    for name in filter(None, (each.strip().lower().removeprefix("*.").lstrip(".") for each in exceptions.split(","))):
        if name in ("*", host, host_and_port.lower()) or host.endswith(f".{name}"):
            return True
    return False


def _key(environ: Mapping[str, str], name: str, kind: _Defaults, given: str | None) -> str:
    if not kind.keys:
        return ""
    key = (given or "").strip() or next(filter(None, (_variable(environ, each) for each in kind.keys)), "")
    variables = " or ".join(kind.keys)
    if not key:
        raise EmbeddingConfigError(
            f"{variables} is required for the {name} embedding provider; OMNIGRAPH_EMBED_PROVIDER names another one, "
            "of which local and mock need no key"
        )
    if not key.isascii() or not key.isprintable():
        raise EmbeddingConfigError(f"the key of {variables} holds characters that no key has: line breaks or others")
    return key


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip()


def _limit(environ: Mapping[str, str], name: str) -> float | None:
    """What a minute allows; it is an error where it is none, since nobody wants to ask faster than they may."""
    text = _variable(environ, name)
    found = _positive(environ, name, 0)
    if text and not found:
        raise EmbeddingConfigError(f"{name} must be a whole number above 0, got '{excerpt(text)}'")
    return found or None


def _positive(environ: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    """A whole number of a variable; what is none, or too small, is as if it were not there."""
    text = _variable(environ, name)
    found = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_LONGEST)) else default
    return min(found, _LONGEST) if found >= least else default
