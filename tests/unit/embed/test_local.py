"""Models on this machine. Arithmetic is compared with the same model written down in loops; what needs a tokenizer runs
where the extra `local-embeddings` is installed.
"""

from __future__ import annotations

import json
import math
import pickle
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from spark_omnigraph.embed.config import resolve_config
from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.models.bert import WORDS, Bert
from spark_omnigraph.embed.models.local import WORDLLAMA, LocalEmbedder, Static, is_installed
from spark_omnigraph.embed.providers import embedder_for
from spark_omnigraph.errors import EmbeddingConfigError

WIDTH, HEADS, LAYERS, INNER, TOKENS, LONGEST = 8, 2, 2, 12, 11, 7
needs_tokenizers = pytest.mark.skipif(
    not all(map(find_spec, ("tokenizers", "safetensors"))), reason="needs the extra local-embeddings"
)


def tiny_weights() -> dict[str, np.ndarray]:
    """A sentence model of two layers, with the names that such models have."""
    chance = np.random.default_rng(4)
    shapes: dict[str, tuple[int, ...]] = {
        WORDS: (TOKENS, WIDTH),
        "embeddings.position_embeddings.weight": (LONGEST, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for layer in range(LAYERS):
        sizes = {
            "attention.self.query": (WIDTH, WIDTH),
            "attention.self.key": (WIDTH, WIDTH),
            "attention.self.value": (WIDTH, WIDTH),
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH),
            "output.dense": (WIDTH, INNER),
        }
        for name, size in sizes.items():
            shapes[f"encoder.layer.{layer}.{name}.weight"] = size
            shapes[f"encoder.layer.{layer}.{name}.bias"] = size[:1]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"encoder.layer.{layer}.{name}.weight"] = (WIDTH,)
            shapes[f"encoder.layer.{layer}.{name}.bias"] = (WIDTH,)
    return {name: chance.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def by_hand(weights: dict[str, np.ndarray], tokens: list[int]) -> list[float]:
    """One text, number by number in double precision."""

    def linear(name: str, row: list[float]) -> list[float]:
        w, b = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return [sum(float(w[o][i]) * row[i] for i in range(len(row))) + float(b[o]) for o in range(len(b))]

    def normed(name: str, row: list[float]) -> list[float]:
        mean = sum(row) / len(row)
        spread = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + 1e-12)
        w, b = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return [(x - mean) / spread * float(w[i]) + float(b[i]) for i, x in enumerate(row)]

    def attended(name: str, rows: list[list[float]]) -> list[list[float]]:
        q, k, v = ([linear(f"{name}.self.{part}", row) for row in rows] for part in ("query", "key", "value"))
        size = WIDTH // HEADS
        found = []
        for at in range(len(rows)):
            out: list[float] = []
            for head in range(HEADS):
                part = slice(head * size, (head + 1) * size)
                scores = [sum(a * b for a, b in zip(q[at][part], other[part])) / math.sqrt(size) for other in k]
                shares = [math.exp(score - max(scores)) for score in scores]
                out += [sum(s * row[part][i] for s, row in zip(shares, v)) / sum(shares) for i in range(size)]
            found.append(linear(f"{name}.output.dense", out))
        return found

    tables = [weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")]
    rows = [
        normed(
            "embeddings.LayerNorm", [sum(map(float, parts)) for parts in zip(tables[0][t], tables[1][p], tables[2][0])]
        )
        for p, t in enumerate(tokens)
    ]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        seen = attended(f"{name}.attention", rows)
        rows = [
            normed(f"{name}.attention.output.LayerNorm", [a + b for a, b in zip(row, more)])
            for row, more in zip(rows, seen)
        ]
        inner = [linear(f"{name}.intermediate.dense", row) for row in rows]
        inner = [[x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in row] for row in inner]
        more = [linear(f"{name}.output.dense", row) for row in inner]
        rows = [normed(f"{name}.output.LayerNorm", [a + b for a, b in zip(r, m)]) for r, m in zip(rows, more)]
    return [sum(row[i] for row in rows) / len(rows) for i in range(WIDTH)]


def test_a_sentence_model_is_what_it_says() -> None:
    weights = tiny_weights()
    texts = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 0], [3, 2, 1], *([[n % TOKENS, 2] for n in range(30)])]
    found = Bert(weights, HEADS).vectors(texts)
    assert found.shape == (len(texts), WIDTH)
    for at in (0, 1, 2, 3, 20, 33):
        np.testing.assert_allclose(found[at], by_hand(weights, texts[at]), rtol=2e-4, atol=2e-5)


def test_a_static_model_is_a_mean() -> None:
    table = np.arange(12, dtype=np.float16).reshape(4, 3)
    found = Static(table).vectors([[0, 3, 3], [], [1]])  # type: ignore[arg-type]  # half precision, as stored
    np.testing.assert_allclose(found, [[6, 7, 8], [0, 0, 0], [3, 4, 5]], rtol=1e-6)


def folder_model(folder: Path, weights: dict[str, np.ndarray]) -> LocalEmbedder:
    """A folder with a model whose tokens are words, and an embedder that reads it."""
    from safetensors.numpy import save_file  # noqa: PLC0415 - of the extra
    from tokenizers import Tokenizer, models, pre_tokenizers, processors  # noqa: PLC0415 - of the extra

    folder.mkdir(exist_ok=True)
    words = {word: at for at, word in enumerate(["[UNK]", "[CLS]", "[SEP]", *"abcdefgh"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"num_attention_heads": HEADS}))
    made = embedder_for(resolve_config({}, provider="local", model=str(folder)))
    assert isinstance(made, LocalEmbedder)
    return made


@needs_tokenizers
def test_a_folder_with_a_sentence_model(tmp_path: Path) -> None:
    weights = tiny_weights()
    embedder = folder_model(tmp_path / "m", {f"bert.{name}": value for name, value in weights.items()})
    again = pickle.loads(pickle.dumps(embedder))
    texts = ["a b", "h", "a b c d e f g h", "\ud800"]
    found = again.embed(texts, dimension=WIDTH, role=Role.DOCUMENT)
    for at, tokens in enumerate([[1, 3, 4, 2], [1, 10, 2], [1, 3, 4, 5, 6, 7, 2]]):
        wanted = np.array(by_hand(weights, tokens))
        np.testing.assert_allclose(found.vectors[at], wanted / np.linalg.norm(wanted), rtol=2e-4, atol=2e-5)
    assert dict(found.failures) == {3: "the text is not UTF-8"}
    with pytest.raises(EmbeddingConfigError, match="expected 4, got 8"):
        embedder.embed(["a"], dimension=4, role=Role.QUERY)


@needs_tokenizers
def test_a_folder_with_token_vectors(tmp_path: Path) -> None:
    table = np.random.default_rng(1).normal(size=(TOKENS, 4)).astype(np.float32)
    embedder = folder_model(tmp_path / "m", {"embedding.weight": table})
    found = embedder.embed(["a b", "", "zz"], dimension=4, role=Role.QUERY)
    wanted = table[3] + table[4]
    np.testing.assert_allclose(found.vectors[0], wanted / np.linalg.norm(wanted), rtol=1e-5)
    assert dict(found.failures) == {1: "embedding has zero norm (no direction)"}
    moved = folder_model(tmp_path / "elsewhere", {"embedding.weight": table})
    other = folder_model(tmp_path / "other", {"embedding.weight": table + 1})
    assert embedder.identity == moved.identity != other.identity


@needs_tokenizers
@pytest.mark.parametrize("damaged", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_damaged_folder_is_named(tmp_path: Path, damaged: str) -> None:
    embedder = folder_model(tmp_path / "m", tiny_weights())
    (tmp_path / "m" / damaged).write_bytes(b"\x09\x00\x00\x00\x00\x00\x00\x00{")
    with pytest.raises(EmbeddingConfigError, match=r"cannot be read|is not JSON"):
        embedder.embed(["a"], dimension=WIDTH, role=Role.QUERY)


def other_weights() -> list[tuple[dict[str, np.ndarray], str]]:
    lacking = tiny_weights()
    del lacking["encoder.layer.1.output.dense.bias"]
    big, few = np.zeros((TOKENS, 2), np.float32), np.zeros((2, 2), np.float32)
    return [
        ({"a": big, "b": big}, "neither a model of the BERT family"),
        ({"a": few}, "knows fewer tokens than its tokenizer"),
        (lacking, "none of the BERT family: 'encoder.layer.1.output.dense.bias'"),
    ]


@needs_tokenizers
@pytest.mark.parametrize(("weights", "message"), other_weights())
def test_weights_of_something_else_are_refused(tmp_path: Path, weights: dict[str, np.ndarray], message: str) -> None:
    embedder = folder_model(tmp_path / "m", weights)
    with pytest.raises(EmbeddingConfigError, match=message):
        embedder.embed(["a"], dimension=2, role=Role.QUERY)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    embedder = embedder_for(resolve_config({}, provider="local", model=str(tmp_path / "no")))
    with pytest.raises(EmbeddingConfigError, match=r"there is no local model .*model.safetensors and .*tokenizer.json"):
        embedder.embed(["a"], dimension=2, role=Role.QUERY)


@pytest.mark.skipif(not is_installed(), reason="needs the extra local-embeddings")
def test_wordllama_knows_what_is_alike() -> None:
    embedder = embedder_for(resolve_config({"OMNIGRAPH_EMBED_PROVIDER": "local"}))
    assert embedder.model == WORDLLAMA
    texts = ["a love story in Paris", "romance in France", "a report on steel prices"]
    for dimension in (64, 128, 256):
        found = embedder.embed(texts, dimension=dimension, role=Role.DOCUMENT)
        assert not found.failures
        love, romance, steel = found.vectors
        assert love @ romance > love @ steel + 0.2
    with pytest.raises(EmbeddingConfigError, match=r"expected 300, got 256 .*it has 64, 128, 256"):
        embedder.embed(["a"], dimension=300, role=Role.QUERY)


@pytest.mark.skipif(is_installed(), reason="what is said without the extra local-embeddings")
def test_without_the_extra_it_is_named() -> None:
    embedder = embedder_for(resolve_config({"OMNIGRAPH_EMBED_PROVIDER": "local"}))
    with pytest.raises(EmbeddingConfigError, match=r"pip install 'spark-omnigraph\[local-embeddings\]'"):
        embedder.embed(["a"], dimension=256, role=Role.QUERY)
