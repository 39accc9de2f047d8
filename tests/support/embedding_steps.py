"""Plays the steps of conformance cases that are about providers of embeddings, and says what does not hold."""

from __future__ import annotations

import numpy as np

from spark_omnigraph.embed.config import resolve_config
from spark_omnigraph.embed.embedder import Role, embed_text
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.embed.vectors import checked
from tests.support.cases import Json, Step


def mock_embed(step: Step) -> list[str]:
    found = embed_text(MockEmbedder(), step.fields["text"], step.fields["dim"], Role.DOCUMENT)
    return _vector_problems(found, step.expect)


def normalize(step: Step) -> list[str]:
    vectors, _ = checked([step.fields["values"]], step.fields["dim"])
    return _vector_problems(vectors[0], step.expect)


def embed_config(step: Step) -> list[str]:
    config = resolve_config(step.fields["env"])
    found = {name: str(getattr(config, name)) for name in step.expect if name != "error"}
    return [f"{name}: {value!r}" for name, value in found.items() if value != step.expect[name]]


def _vector_problems(found: Json, expect: dict[str, Json]) -> list[str]:
    wanted = np.array(expect["vector"], dtype=np.float32)
    got = np.array(found, dtype=np.float32)
    if got.shape == wanted.shape and np.all(np.abs(got - wanted) <= expect["tolerance"]):
        return []
    return [f"expected {wanted.tolist()}, got {got.tolist()}"]
