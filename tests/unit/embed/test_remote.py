"""Providers over the network, against a server that answers as a script says."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from spark_omnigraph.embed import remote
from spark_omnigraph.embed.config import resolve_config
from spark_omnigraph.embed.embedder import Embedded, Embedder, Role, Streamed, Usage, embed_text
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.embed.providers import embedder_for
from spark_omnigraph.errors import EmbeddingConfigError, EmbeddingError
from tests.support.embedding_server import Act, EmbeddingServer, Reply, refusal

KEY = "sk-test-0123456789"
TEXTS = [f"text number {number}" for number in range(10)]
WIDE = 5


@pytest.fixture(params=["openai-compatible", "gemini"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


def asker(server: EmbeddingServer, provider: str = "openai-compatible", **limits: float) -> Embedder:
    config = resolve_config(server.environ(provider, KEY))
    return embedder_for(replace(config, **{"batch_size": 4, "parallel": 2, **limits}))  # type: ignore[arg-type]  # of several types


def ask(embedder: Embedder, texts: list[str] = TEXTS, role: Role = Role.DOCUMENT) -> Embedded:
    return embedder.embed(texts, dimension=WIDE, role=role)


def right(found: Embedded, texts: list[str] = TEXTS) -> None:
    """All vectors, in place, are those of the texts: the server gives the mock's, sent in JSON or in base64."""
    wanted = MockEmbedder().embed(texts, dimension=WIDE, role=Role.DOCUMENT).vectors
    assert not found.failures
    np.testing.assert_allclose(found.vectors, wanted, rtol=3e-7)


def test_vectors_are_those_of_their_texts_in_batches(server: EmbeddingServer, provider: str) -> None:
    found = ask(asker(server, provider))
    right(found)
    assert sorted(server.asked) == sorted(TEXTS)
    assert sorted(len(each.texts) for each in server.log) == [2, 4, 4]
    assert found.usage == Usage(3, 0, 30 if provider == "openai-compatible" else None)


def test_no_text_is_no_request(server: EmbeddingServer, provider: str) -> None:
    assert ask(asker(server, provider), []).vectors.shape == (0, WIDE)
    assert not server.log


@pytest.mark.parametrize("script", [[Act.REORDERED] * 3, [refusal(429)], [refusal(503)] * 2, [Act.DROPPED], [Act.CUT]])
def test_an_answer_that_comes_in_the_end_is_right(
    server: EmbeddingServer, provider: str, script: list[Act | Reply]
) -> None:
    server.script.extend(script)
    found = ask(asker(server, provider, batch_size=100))
    right(found)
    again = 0 if script[0] is Act.REORDERED else len(script)
    assert (found.usage.requests, found.usage.retries, len(server.log)) == (1 + again, again, 1 + again)


@pytest.mark.parametrize(
    ("act", "requests", "message"),
    [
        (refusal(500, "broken"), 4, "embedding request failed with status 500 Internal Server Error: broken"),
        (Act.DROPPED, 4, "embedding request failed: "),
        (Act.MALFORMED, 1, "embedding response decode failed: "),
        (Act.HTML, 1, "embedding response decode failed: "),
        (Reply(200, "[1, 2]"), 1, "embedding response decode failed: "),
        (Reply(200, {}), 1, "embedding response decode failed: "),
        (Reply(200, "[" * 200_000), 1, "embedding response decode failed: "),
        (Reply(200, '{"x":' * 50_000), 1, "embedding response decode failed: "),
        (Reply(500, "[" * 200_000), 4, "embedding request failed with status 500 Internal Server Error: [["),
    ],
)
def test_what_never_comes_fails_for_its_texts_alone(
    server: EmbeddingServer, provider: str, act: Act | Reply, requests: int, message: str
) -> None:
    server.script.extend([act] * requests)
    found = ask(asker(server, provider, parallel=1))
    assert found.failures.keys() == {0, 1, 2, 3}
    assert all(each.startswith(message) for each in found.failures.values()), found.failures
    assert np.isnan(found.vectors[:4]).all()
    right(Embedded(found.vectors[4:]), TEXTS[4:])
    assert found.usage.requests == len(server.log) == requests + 2


def test_a_query_that_gets_no_vector_is_an_error(server: EmbeddingServer) -> None:
    server.script.append(Act.HTML)
    with pytest.raises(EmbeddingError, match="decode failed"):
        embed_text(asker(server), "a", WIDE, Role.QUERY)


def test_a_short_answer_fails_where_it_is_short(server: EmbeddingServer) -> None:
    server.script.append(Act.SHORT)
    found = ask(asker(server, parallel=1))
    assert dict(found.failures) == {3: "embedding response missing data[3]"}
    right(Embedded(found.vectors[4:]), TEXTS[4:])


def test_a_short_answer_without_places_says_nothing(server: EmbeddingServer) -> None:
    server.script.append(Act.SHORT)
    found = ask(asker(server, "gemini", parallel=1))
    assert set(found.failures) == {0, 1, 2, 3}
    assert found.failures[0] == "embedding response decode failed: expected 4 embeddings, got 3"


ROW = [0.0, 0.0, 3.0, 4.0, 0.0]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([(0, ROW), (0, ROW)], "two items have the index 0"),
        ([(1, ROW), (2, ROW)], "an item has the index 2, of 2 texts"),
        ([(0, ROW), (-1, ROW)], "an item has no index"),
        ([(0, ROW), (1, "AAA=")], "numbers in base64"),
        ([(0, ROW), (1, "é")], "numbers in base64"),
    ],
)
def test_answers_whose_places_are_in_doubt_are_taken_for_none(
    server: EmbeddingServer, items: list[tuple[int, object]], message: str
) -> None:
    server.script.append(Reply(200, {"data": [{"index": at, "embedding": row} for at, row in items]}))
    found = ask(asker(server), ["a", "b"])
    assert set(found.failures) == {0, 1}
    assert message in found.failures[0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.0, 2.0], "embedding dimension mismatch: expected 5, got 2"),
        ([0.0] * 5, "embedding has zero norm (no direction)"),
        ([0.0, 1e300, 0.0, 0.0, 0.0], "embedding component 1 is not finite (inf)"),
    ],
)
def test_numbers_that_are_no_vector_fail_for_their_text(
    server: EmbeddingServer, row: list[float], message: str
) -> None:
    server.script.append(Reply(200, {"data": [{"embedding": ROW}, {"embedding": row}]}))
    found = ask(asker(server), ["a", "b"])
    assert dict(found.failures) == {1: message}
    assert found.vectors[0].tolist() == pytest.approx([0, 0, 0.6, 0.8, 0])
    assert np.isnan(found.vectors[1]).all()


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ("free", None),
        (7, None),
        ({"total_tokens": -5}, None),
        ({"total_tokens": 10**30, "prompt_tokens": 3}, 3),
        ({"total_tokens": "12"}, None),
        ({"total_tokens": None, "prompt_tokens": 4}, 4),
    ],
)
def test_what_an_answer_costs_is_no_reason_to_refuse_it(
    server: EmbeddingServer, usage: object, tokens: int | None
) -> None:
    server.script.append(Reply(200, {"data": [{"embedding": ROW}], "usage": usage}))
    found = ask(asker(server), ["a"])
    assert (dict(found.failures), found.usage.tokens) == ({}, tokens)


def test_a_model_of_another_dimension_ends_everything(server: EmbeddingServer, provider: str) -> None:
    server.script.extend([Act.NARROW] * 9)
    with pytest.raises(EmbeddingConfigError, match="expected 5, got 4 from model 'maker/m1'"):
        ask(asker(server, provider, parallel=1))


def test_what_is_answered_is_told_before_the_rest(server: EmbeddingServer, provider: str) -> None:
    """And whoever has no patience any more hears nothing, instead of waiting for a slow answer."""
    server.script.append(Act.SLOW)
    embedder = asker(server, provider, parallel=3)
    assert isinstance(embedder, Streamed)
    told: list[tuple[int, int]] = []
    found = np.full((10, WIDE), np.nan, dtype=np.float32)
    usage = Usage()
    for start, part in embedder.parts(
        TEXTS, dimension=WIDE, role=Role.DOCUMENT, patience=lambda: 0 if len(told) == 2 else None
    ):
        told.append((start, len(part.vectors)))
        found[start : start + len(part.vectors)] = part.vectors
        usage += part.usage
        if len(told) == 3:
            server.release.set()
    slow = ({(0, 4), (4, 4), (8, 2)} - set(told[:2])).pop()
    assert (told[2], told[3]) == ((0, 0), slow)
    right(Embedded(found))
    assert (usage.requests, usage.retries) == (3, 0)


def test_whoever_ends_early_ends_what_is_under_way(server: EmbeddingServer) -> None:
    server.script.extend([Act.WELL, *[Act.SLOW] * 49])
    embedder = asker(server, parallel=2)
    assert isinstance(embedder, Streamed)
    parts = embedder.parts(TEXTS * 20, dimension=WIDE, role=Role.DOCUMENT, patience=lambda: None)
    next(parts)
    assert server.slow.wait(30)
    parts.close()  # type: ignore[attr-defined]  # it is a generator
    assert len(server.log) <= 3


def test_a_text_that_is_refused_is_found_by_halving(provider: str) -> None:
    refused = {TEXTS[2], TEXTS[9]}
    with EmbeddingServer(refuses=refused.__contains__) as server:
        found = ask(asker(server, provider, batch_size=8))
    assert found.failures.keys() == {2, 9}
    assert found.failures[2] == "embedding request failed with status 400 Bad Request: a text is refused"
    fine = [text for text in TEXTS if text not in refused]
    right(Embedded(np.delete(found.vectors, [2, 9], axis=0)), fine)


def test_a_text_that_is_not_utf8_fails_alone(server: EmbeddingServer, provider: str) -> None:
    found = ask(asker(server, provider), ["a", "\ud800", "b"])
    assert dict(found.failures) == {1: "the text has half of a surrogate pair, which is not UTF-8"}


def test_where_every_text_is_refused_few_are_asked(provider: str) -> None:
    with (
        EmbeddingServer([refusal(400, "no such dimension")], repeat_last=True) as server,
        pytest.raises(EmbeddingConfigError, match=r"no such dimension \(for every text: look at OMNIGRAPH_"),
    ):
        ask(asker(server, provider, parallel=1), [f"t{number}" for number in range(400)])
    assert len(server.log) <= 4


def test_a_server_that_knows_the_plain_shape_alone_is_asked_so(provider: str) -> None:
    with EmbeddingServer(quick=False) as server:
        embedder = asker(server, provider, parallel=1)
        right(ask(embedder))
        refused = len(server.log)
        right(ask(embedder))
    plain = [
        each for each in server.log[refused:] if "encoding_format" not in each.body and "requests" not in each.body
    ]
    assert len(plain) == len(server.log) - refused, "the second call remembers"
    assert {len(each.texts) for each in plain} == ({1} if provider == "gemini" else {2, 4})


@pytest.mark.parametrize("status", [301, 401, 402, 403, 405])
def test_a_refusal_of_everything_is_not_asked_again(server: EmbeddingServer, provider: str, status: int) -> None:
    server.script.extend([refusal(status, "not you")] * 20)
    with pytest.raises(EmbeddingConfigError) as caught:
        ask(asker(server, provider, parallel=1), TEXTS[:4])
    assert len(server.log) == 1
    assert f"failed with status {status} " in caught.value.message
    assert ": not you (" in caught.value.message
    named = "GEMINI_API_KEY" if provider == "gemini" else "OPENROUTER_API_KEY or OPENAI_API_KEY"
    wanted = named if status in (401, 402, 403) else "OMNIGRAPH_EMBED_BASE_URL and OMNIGRAPH_EMBED_MODEL"
    assert f"look at {wanted}" in caught.value.message
    assert caught.value.exit_code == 2


def test_a_refusal_ends_what_is_under_way(provider: str) -> None:
    with EmbeddingServer([Act.SLOW, refusal(401)]) as server, pytest.raises(EmbeddingConfigError):
        ask(asker(server, provider), TEXTS * 20)
    assert len(server.log) <= 2, "nothing is asked after the refusal"


@pytest.mark.parametrize(
    "said", [f"Incorrect API key: {KEY}.", "Incorrect API key provided: sk-t********shown.", KEY * 90]
)
def test_the_key_is_in_no_text(server: EmbeddingServer, provider: str, said: str) -> None:
    server.script.extend([refusal(401, said), refusal(400, said), Reply(200, f'"{KEY}')])
    embedder = asker(server, provider)
    with pytest.raises(EmbeddingConfigError) as caught:
        ask(embedder, ["a"])
    failures = [ask(embedder, ["a"]).failures[0], ask(embedder, ["a"]).failures[0]]
    for shown in (str(caught.value), str(caught.value.to_dict()), repr(embedder), *failures):
        assert "sk-t" not in shown
        assert "shown" not in shown
        assert len(shown) < 900


def test_a_slow_answer_is_not_waited_for(server: EmbeddingServer, provider: str) -> None:
    server.script.extend([Act.SLOW] * 2)
    found = ask(asker(server, provider, timeout=0.05, attempts=2), ["a"])
    assert found.failures[0] == "embedding request failed: no answer within 0.05 s"


def test_a_wait_past_the_deadline_is_not_begun(server: EmbeddingServer, provider: str) -> None:
    server.script.append(refusal(429, "slow down", Retry_After="3600"))
    found = ask(asker(server, provider), ["a"])
    assert found.failures[0].startswith(
        f"embedding deadline exceeded after 60000 ms (provider={provider}, model=maker/m1): embedding request failed "
        "with status 429 Too Many Requests: slow down"
    )


def test_nobody_waits_for_a_turn_past_the_deadline(server: EmbeddingServer, provider: str) -> None:
    """What the provider asks of one request holds for those that come after it."""
    server.script.append(refusal(429, "slow down", Retry_After="3600"))
    found = ask(asker(server, provider, parallel=1))
    assert len(server.log) == 1
    assert found.failures.keys() == set(range(10))
    assert found.failures[9].startswith("embedding deadline exceeded after 60000 ms")
    assert found.failures[9].endswith("the provider asks for a longer wait")


def test_nobody_there_is_a_failure_of_the_texts(provider: str) -> None:
    with EmbeddingServer() as gone:
        embedder = asker(gone, provider)
    found = ask(embedder)
    assert set(found.failures) == set(range(10))
    assert "embedding request failed: " in found.failures[0]


def test_it_travels_and_serves_several_threads(server: EmbeddingServer, provider: str) -> None:
    embedder = pickle.loads(pickle.dumps(asker(server, provider)))
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda part: (part, ask(embedder, part)), [TEXTS[n:] + TEXTS[:n] for n in range(8)]))
    for texts, found in parts:
        right(found, texts)


def test_all_that_come_to_a_process_from_one_keep_one_pace(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(remote._Call, "pause", lambda call, seconds: waits.append(seconds))
    embedder = asker(server, requests_per_minute=0.001)
    for each in (embedder, pickle.loads(pickle.dumps(embedder)), asker(server, requests_per_minute=0.001)):
        ask(each, ["a"])
    assert [wait > 10_000 for wait in waits] == [False, True, False]


def test_the_role_is_told_where_there_is_one(server: EmbeddingServer) -> None:
    embedder = asker(server, "gemini")
    ask(embedder, ["a"], Role.QUERY)
    ask(embedder, ["a", "b"])
    assert server.log[0].body["taskType"] == "RETRIEVAL_QUERY"
    assert [each["taskType"] for each in server.log[1].body["requests"]] == ["RETRIEVAL_DOCUMENT"] * 2
    assert server.log[1].target == "/v1beta/models/maker/m1:batchEmbedContents"


def test_identities_differ_by_provider_and_model(server: EmbeddingServer) -> None:
    config = resolve_config(server.environ())
    names = {embedder_for(replace(config, model=model)).identity for model in ("a", "b")}
    assert names == {"openai-compatible/a/l2", "openai-compatible/b/l2"}
    assert asker(server, "gemini").identity == "gemini/maker/m1/l2"
