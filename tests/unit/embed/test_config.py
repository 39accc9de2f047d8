"""Which provider the variables name, and what is said when they name none."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from spark_omnigraph.embed.config import EmbedConfig, Provider, proxy_of, resolve_config, shared_limits, way_to_model
from spark_omnigraph.errors import EmbeddingConfigError

KEY = {"OPENAI_API_KEY": "sk-0123456789"}


@pytest.mark.parametrize("said", ["1", "true", " Yes ", "ON"])
def test_the_mock_wins_over_a_provider_that_a_variable_names(said: str) -> None:
    environ = {"OMNIGRAPH_EMBEDDINGS_MOCK": said, "OMNIGRAPH_EMBED_PROVIDER": "openai", **KEY}
    assert resolve_config(environ).provider is Provider.MOCK
    assert resolve_config(environ, provider="openai").provider is Provider.OPENAI, "but not over one that is given"


def test_what_is_given_wins_over_variables() -> None:
    environ = {
        "OMNIGRAPH_EMBED_PROVIDER": "gemini",
        "GEMINI_API_KEY": "g-key",
        "OMNIGRAPH_EMBED_MODEL": "m1",
        "OMNIGRAPH_EMBED_BASE_URL": "https://one/v1/",
    }
    found = resolve_config(environ)
    assert (found.model, found.base_url, found.api_key) == ("m1", "https://one/v1", "g-key")
    found = resolve_config(environ, model="m2", base_url="http://two:8080/x", api_key=" k2 ")
    assert (found.model, found.base_url, found.api_key) == ("m2", "http://two:8080/x", "k2")


@pytest.mark.parametrize(
    ("text", "seconds"), [("250", 0.25), ("0", 30), ("-5", 30), ("soon", 30), ("1.5", 30), ("²", 30), ("9" * 5000, 30)]
)
def test_a_tuning_that_is_none_is_the_default(text: str, seconds: float) -> None:
    assert resolve_config({"OMNIGRAPH_EMBED_TIMEOUT_MS": text, **KEY}).timeout == seconds


def test_what_a_minute_allows_is_named_or_unlimited_and_never_guessed() -> None:
    requests, tokens = "OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE", "OMNIGRAPH_EMBED_TOKENS_PER_MINUTE"
    found = resolve_config({requests: "500", tokens: " 90000 ", **KEY})
    assert (found.requests_per_minute, found.tokens_per_minute) == (500, 90000)
    assert (resolve_config(KEY).requests_per_minute, resolve_config(KEY).tokens_per_minute) == (None, None)
    for name in (requests, tokens):
        for text in ("0", "-1", "1.5", "many"):
            with pytest.raises(EmbeddingConfigError, match=f"{name} must be a whole number above 0"):
                resolve_config({name: text, **KEY})


def test_a_deadline_of_0_is_none() -> None:
    assert resolve_config({"OMNIGRAPH_EMBED_DEADLINE_MS": "0", **KEY}).deadline == 0
    assert resolve_config(KEY).deadline == 60


@pytest.mark.parametrize("key", ["sk-01234\n56789", "sk-0123456789é", "sk-0123456789\x00x"])
def test_a_key_that_no_header_can_hold_is_not_shown(key: str) -> None:
    with pytest.raises(EmbeddingConfigError, match="OPENROUTER_API_KEY or OPENAI_API_KEY") as caught:
        resolve_config({"OPENAI_API_KEY": key})
    assert "sk-0" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["ftp://host/v1", "host/v1", "https://", "http://h:0/", "http://h:99999/", "https://h/v1?a=b", "https://h/ö"]
)
def test_a_base_url_is_one_of_http(url: str) -> None:
    with pytest.raises(EmbeddingConfigError, match="OMNIGRAPH_EMBED_BASE_URL"):
        resolve_config(KEY, base_url=url)


def test_a_base_url_with_a_secret_is_refused_and_not_shown() -> None:
    with pytest.raises(EmbeddingConfigError, match="has a user or a secret in it") as caught:
        resolve_config(KEY, base_url="https://me:hush-hush@host/v1")
    assert "hush" not in str(caught.value)


def test_an_unknown_provider_is_answered_with_the_nearest() -> None:
    with pytest.raises(EmbeddingConfigError, match="did you mean 'gemini'"):
        resolve_config({"OMNIGRAPH_EMBED_PROVIDER": "gemni"})


def test_no_text_of_a_configuration_has_the_key_or_the_proxy() -> None:
    config = resolve_config({"HTTPS_PROXY": "http://me:hush@proxy:3128", **KEY})
    shown = f"{config!r} {config} {[config]}"
    assert "sk-0" not in shown
    assert "hush" not in shown
    assert pickle.loads(pickle.dumps(config)) == config


def test_tasks_share_the_limits() -> None:
    config = replace(EmbedConfig(Provider.OPENAI), requests_per_minute=100.0, tokens_per_minute=9.0, parallel=8)
    shared = shared_limits(config, 3)
    assert shared.requests_per_minute == pytest.approx(100 / 3)
    assert (shared.tokens_per_minute, shared.parallel) == (3.0, 2)
    assert shared_limits(config, 20).parallel == 1
    assert shared_limits(config, 1) == config


@pytest.mark.parametrize(
    ("environ", "url", "proxy"),
    [
        ({}, "https://api/v1", ""),
        ({"HTTPS_PROXY": "http://p:1"}, "https://api/v1", "http://p:1"),
        ({"https_proxy": "p:1"}, "https://api/v1", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://api/v1", ""),
        ({"HTTP_PROXY": "http://p:1"}, "http://api/v1", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "https://api/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "other, .corp"}, "https://api/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "other, .corp"}, "https://a.corp/v1", ""),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "corp"}, "https://a.corp/v1", ""),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "corp"}, "https://acorp/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "api:8443"}, "https://api:8443/v1", ""),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, "https://api/v1", ""),
    ],
)
def test_the_proxy_that_variables_name(environ: dict[str, str], url: str, proxy: str) -> None:
    assert proxy_of(environ, url) == proxy


@pytest.mark.parametrize("proxy", ["https://p:1", "socks5://p:1", "http://", "http://p:0"])
def test_a_proxy_that_cannot_be_used_is_named_without_its_secret(proxy: str) -> None:
    with pytest.raises(EmbeddingConfigError, match="HTTPS_PROXY"):
        resolve_config({"HTTPS_PROXY": proxy, **KEY})


@pytest.mark.parametrize(
    ("wanted", "identity", "said"),
    [
        ("wordllama-256", "mock//x", "provider of that model (OMNIGRAPH_EMBED_PROVIDER='local') with"),
        ("maker/m1", "mock//x", "provider of that model (OMNIGRAPH_EMBED_PROVIDER) with OMNIGRAPH_EMBEDDINGS_MOCK off"),
        ("maker/m1", "mock/m2/x", "set OMNIGRAPH_EMBED_MODEL='maker/m1' (and the matching provider)"),
        ("wordllama-256", "openai/m2/x", "set OMNIGRAPH_EMBED_MODEL='wordllama-256' (and the matching provider)"),
    ],
)
def test_what_to_name_where_the_schema_names_another_model(wanted: str, identity: str, said: str) -> None:
    assert said in way_to_model(wanted, identity)
