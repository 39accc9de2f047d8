"""Questions by meaning: a text as the query of `nearest`, from which a vector is made when the query is bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_omnigraph.answer import Json
from spark_omnigraph.embed.callables import embedder_of
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import BadRequestError, EmbeddingConfigError, EmbeddingError
from spark_omnigraph.graph.handle import Graph
from tests.support.embedding_server import Act, EmbeddingServer

SCHEMA = """
    node Page {
        slug: String @key
        body: String
        v: Vector(3)? @embed("body")
        w: Vector(3)? @embed("body", model="maker/m1")
    }
"""
BODIES = ["bees", "wax", "honey"]
ASK = "query q($t: String?) { match { $p: Page } return { $p.slug } order { nearest($p.%s, $t) } limit 1 }"
TWICE = """
    query q($t: String) {
        match { $p: Page }
        return { $p.slug, nearest($p.w, $t) as far, nearest($p.w, "wax") as off }
        order { nearest($p.w, $t) } limit 1
    }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = Graph.init(tmp_path_factory.mktemp("pages") / "g", SCHEMA)
    vectors = MockEmbedder().embed(BODIES, dimension=3, role=Role.DOCUMENT).vectors.tolist()
    rows = [{"slug": body, "body": body, "v": row, "w": row} for body, row in zip(BODIES, vectors)]
    made.load([json.dumps({"type": "Page", "data": row}) for row in rows])
    return made


def ask(graph: Graph, prop: str, text: str | None, **options: Any) -> list[dict[str, Json]]:
    return graph.query(ASK % prop, params={"t": text}, **options).to_pylist()


def test_the_provider_of_the_environment_is_asked_in_the_role_of_a_query(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddingServer() as server:
        for name, value in server.environ("gemini").items():
            monkeypatch.setenv(name, value)
        assert ask(graph, "w", "wax") == [{"p.slug": "wax"}]
        (asked,) = server.log
    assert (asked.body["taskType"], asked.body["outputDimensionality"]) == ("RETRIEVAL_QUERY", 3)


def test_a_property_without_a_recorded_model_takes_any(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    assert ask(graph, "v", "honey") == [{"p.slug": "honey"}]


def test_the_recorded_model_must_be_that_of_the_provider(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "maker/m2")
    with pytest.raises(BadRequestError) as caught:
        ask(graph, "w", "wax")
    assert caught.value.message == (
        "nearest() on 'w': its stored vectors were embedded with model 'maker/m1', but the query embedder resolves to "
        "'maker/m2'. Set OMNIGRAPH_EMBED_MODEL='maker/m1' (and the matching provider) or re-embed the stored vectors."
    )
    vector = "query q($t: Vector(3)) { match { $p: Page } return { $p.slug } order { nearest($p.w, $t) } limit 1 }"
    assert graph.query(vector, params={"t": [1, 0, 0]}).row_count == 1, "a vector needs no provider"


def test_the_mock_that_has_no_model_is_told_from_a_provider(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    with pytest.raises(BadRequestError) as caught:
        ask(graph, "w", "wax")
    assert caught.value.message.endswith(
        "''. Name the provider of that model (OMNIGRAPH_EMBED_PROVIDER) with OMNIGRAPH_EMBEDDINGS_MOCK off, or "
        "let the mock, which makes vectors up, stand in for it (OMNIGRAPH_EMBED_MODEL='maker/m1') or re-embed the "
        "stored vectors."
    )


def test_without_a_provider_the_variables_are_named(graph: Graph) -> None:
    with pytest.raises(EmbeddingConfigError, match="OPENROUTER_API_KEY or OPENAI_API_KEY is required"):
        ask(graph, "v", "wax")


def test_a_function_is_a_provider(graph: Graph) -> None:
    def of(texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = MockEmbedder().embed(texts, dimension=3, role=Role.QUERY).vectors.tolist()
        return vectors

    assert ask(graph, "v", "bees", embedder=of) == [{"p.slug": "bees"}]
    assert ask(graph, "w", "bees", embedder=embedder_of(of, model="maker/m1")) == [{"p.slug": "bees"}]
    with pytest.raises(BadRequestError, match="the query embedder resolves to ''"):
        ask(graph, "w", "bees", embedder=of)


def test_a_text_is_asked_for_once_a_query(graph: Graph) -> None:
    asked: list[str] = []

    def of(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0, 0.0, 0.0]]

    graph.query(TWICE, params={"t": "bees"}, embedder=embedder_of(of, model="maker/m1"))
    assert sorted(asked) == ["bees", "wax"]


def test_no_text_no_question(graph: Graph) -> None:
    assert ask(graph, "v", None) == []


def test_explaining_asks_nobody(graph: Graph) -> None:
    assert '"bees"' in graph.explain(ASK % "w", params={"t": "bees"})


def test_a_text_that_gets_no_vector_is_an_error(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingServer([Act.HTML]) as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        with pytest.raises(EmbeddingError, match="decode failed"):
            ask(graph, "w", "wax")
