"""Models on this machine: no text leaves it. The one of the package `wordllama`, or a folder with a model.

Nothing is downloaded, and `wordllama` itself is not imported: it would set up logging and a client for downloads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from spark_omnigraph.embed.config import MODEL, EmbedConfig
from spark_omnigraph.embed.embedder import Embedded, Role, check_dimension
from spark_omnigraph.embed.models.bert import EPSILON, WORDS, Bert, Weights
from spark_omnigraph.embed.vectors import NORMALISATION, Vectors, checked, mismatch
from spark_omnigraph.errors import EmbeddingConfigError
from spark_omnigraph.words import is_text

WORDLLAMA = "wordllama-256"
_CUTS = (64, 128, 256)
"""Widths at which the vectors of wordllama may be cut: it was trained so."""
_FILES = ("model.safetensors", "tokenizer.json")
_TOGETHER = 256
_HEAD = 32
"""Numbers of a head of attention where no file says it."""
EXTRA = "pip install 'spark-omnigraph[local-embeddings]'"


class _Model(Protocol):
    """What makes numbers from tokens."""

    def vectors(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """One row a text."""


@dataclass(frozen=True, slots=True)
class Static:
    """Each token has a vector, wherever it stands; a text is their mean."""

    tokens: Vectors

    def vectors(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """Zero for a text without tokens. A long text takes no more memory than the model."""
        found = np.zeros((len(texts), self.tokens.shape[1]), dtype=np.float32)
        for row, text in enumerate(texts):
            known, counts = np.unique(np.asarray(text, dtype=np.int64), return_counts=True)
            if len(known):
                found[row] = counts.astype(np.float32) @ self.tokens[known].astype(np.float32) / len(text)
        return found


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A tokenizer and a model, with the widths that its vectors may have."""

    tokenizer: Any
    model: _Model
    widths: tuple[int, ...]
    special: bool
    """Whether tokens that begin and end a text are put in."""


@dataclass(frozen=True, slots=True)
class LocalEmbedder:
    """A model that is read at the first text, once a process."""

    config: EmbedConfig

    @property
    def model(self) -> str:
        """Its name, or its folder."""
        return self.config.model

    @property
    def identity(self) -> str:
        """Of a folder, what is in it: where it lies is no part of a vector."""
        name = self.model if self.model == WORDLLAMA else _digest(*_files(self.model))
        return f"local/{name}/{NORMALISATION}"

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        """A text without any word that the model knows fails. EmbeddingConfigError when there is no such model, or none
        of this dimension.
        """
        check_dimension(dimension)
        loaded = _loaded(self.model)
        if dimension not in loaded.widths:
            known = ", ".join(map(str, loaded.widths))
            raise EmbeddingConfigError(f"{mismatch(dimension, loaded.widths[-1], self.model)} (it has {known})")
        vectors = np.full((len(texts), dimension), np.nan, dtype=np.float32)
        failures = {at: "the text is not UTF-8" for at, text in enumerate(texts) if not is_text(text)}
        fit = [at for at in range(len(texts)) if at not in failures]
        for start in range(0, len(fit), _TOGETHER):
            places = fit[start : start + _TOGETHER]
            coded = loaded.tokenizer.encode_batch([texts[at] for at in places], add_special_tokens=loaded.special)
            rows = loaded.model.vectors([each.ids for each in coded])[:, :dimension]
            vectors[places], wrong = checked(rows, dimension)
            failures.update((places[at], message) for at, message in wrong.items())
        return Embedded(vectors, failures)


def is_installed() -> bool:
    """Whether the model of the extra `local-embeddings` is here."""
    return all(find_spec(name) is not None for name in ("wordllama", "tokenizers", "safetensors"))


@lru_cache(maxsize=2)
def _loaded(model: str) -> _Loaded:
    weights_file, tokenizer_file = _files(model)
    try:
        tokenizers, safetensors = import_module("tokenizers"), import_module("safetensors.numpy")
    except ImportError as error:
        raise EmbeddingConfigError(f"the local embedding provider needs packages that are missing: {EXTRA}") from error
    try:
        weights: Weights = safetensors.load_file(weights_file)
        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # both libraries raise plain exceptions, from Rust
        raise EmbeddingConfigError(f"the model in '{weights_file.parent}' cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    weights = {name.removeprefix("bert."): value for name, value in weights.items()}
    sentences = WORDS in weights
    table = weights.get(WORDS) if sentences else next(iter(weights.values()), None)
    if table is not None and tokenizer.get_vocab_size() > len(table):
        raise EmbeddingConfigError(f"'{weights_file}' knows fewer tokens than its tokenizer ({len(table)})")
    if sentences:
        return _sentence_model(weights_file.parent, weights, tokenizer)
    tables = [value for value in weights.values() if value.ndim == 2]
    if len(weights) != 1 or len(tables) != 1:
        raise EmbeddingConfigError(
            f"'{weights_file}' is neither a model of the BERT family nor one table of token vectors ({MODEL})"
        )
    width = int(tables[0].shape[1])
    return _Loaded(tokenizer, Static(tables[0]), _CUTS if model == WORDLLAMA else (width,), special=False)


def _sentence_model(folder: Path, weights: Weights, tokenizer: Any) -> _Loaded:
    told = _told(folder / "config.json")
    width = int(weights[WORDS].shape[1])
    heads = int(told.get("num_attention_heads", max(1, width // _HEAD)))
    single = {name: np.asarray(value, dtype=np.float32) for name, value in weights.items() if value.dtype.kind == "f"}
    model = Bert(single, heads, float(told.get("layer_norm_eps", EPSILON)))
    try:
        model.vectors([[0]])
    except (KeyError, ValueError) as error:
        raise EmbeddingConfigError(f"the model in '{folder}' is none of the BERT family: {error}") from error
    longest = int(_told(folder / "sentence_bert_config.json").get("max_seq_length", model.longest))
    tokenizer.enable_truncation(min(longest, model.longest))
    return _Loaded(tokenizer, model, (width,), special=True)


def _told(path: Path) -> dict[str, Any]:
    """Members of a small file beside a model; none where there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise EmbeddingConfigError(f"'{path}' is not JSON: {error}") from error
    return found if isinstance(found, dict) else {}


def _files(model: str) -> tuple[Path, Path]:
    """Where weights and tokenizer of a model are. EmbeddingConfigError when they are not there."""
    if model == WORDLLAMA:
        found = find_spec("wordllama")
        if found is None or not found.submodule_search_locations:
            raise EmbeddingConfigError(f"the model '{WORDLLAMA}' is not installed: {EXTRA}")
        folder = Path(found.submodule_search_locations[0])
        files = folder / "weights/l2_supercat_256.safetensors", folder / "tokenizers/l2_supercat_tokenizer_config.json"
    else:
        files = Path(model) / _FILES[0], Path(model) / _FILES[1]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise EmbeddingConfigError(
            f"there is no local model '{model}': {' and '.join(missing)} not found; {MODEL} is '{WORDLLAMA}' or a "
            f"folder with {' and '.join(_FILES)}"
        )
    return files


@lru_cache(maxsize=4)
def _digest(*files: Path) -> str:
    found = sha256()
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()[:32]
