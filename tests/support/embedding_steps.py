"""Plays the steps of conformance cases that are about providers of embeddings, and says what does not hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import zip_longest
from urllib.parse import urlsplit

import numpy as np
import pytest

from spark_omnigraph.embed.config import MOCK, resolve_config
from spark_omnigraph.embed.embedder import Role, embed_text
from spark_omnigraph.embed.file import FileChoice, FileCounts, FileMode, embed_lines, read_spec
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.embed.providers import embedder_for
from spark_omnigraph.embed.record_texts import parse_selector
from spark_omnigraph.embed.vectors import checked
from tests.support.cases import Json, Step
from tests.support.embedding_server import EmbeddingServer, Reply


@contextmanager
def environment(step: Step, mock: bool) -> Iterator[None]:
    """The variables that a step names; a case may require the mock."""
    named = {**({MOCK: "1"} if mock else {}), **step.fields.get("env", {})}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in named.items():
            if value is not None:
                patch.setenv(name, value)
        yield


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


def embed_request(step: Step) -> list[str]:
    """What is sent, up to the host, which is that of a server of this machine."""
    fields, expect = step.fields, step.expect
    with EmbeddingServer() as server:
        here = f"http://127.0.0.1:{server.port}{urlsplit(fields['base_url']).path}"
        named = {"provider": fields["provider"], "model": fields["model"], "base_url": here, "api_key": "KEY"}
        embed_text(embedder_for(resolve_config({}, **named)), fields["text"], fields["dim"], Role(fields["role"]))
    (asked,) = server.log
    found = {"path": asked.target, "body": asked.body, "headers": {n: asked.headers.get(n) for n in expect["headers"]}}
    return [f"{name}: expected {expect[name]}, got {value}" for name, value in found.items() if value != expect[name]]


def embed_response(step: Step) -> list[str]:
    fields = step.fields
    script = [Reply(each["status"], each["body"]) for each in fields["responses"]]
    with EmbeddingServer(script, repeat_last=fields.get("repeat_last", False)) as server:
        base = server.gemini if fields["provider"] == "gemini" else server.openai
        named = {"provider": fields["provider"], "base_url": base, "api_key": "KEY"}
        embedder = embedder_for(resolve_config(fields["env"], **named))
        try:
            found = _vector_problems(embed_text(embedder, "text", fields["dim"], Role.DOCUMENT), step.expect)
        finally:
            requests = len(server.log)
            assert requests == step.expect.get("requests", requests), f"{requests} requests"
    return found


def _vector_problems(found: Json, expect: dict[str, Json]) -> list[str]:
    wanted = np.array(expect["vector"], dtype=np.float32)
    got = np.array(found, dtype=np.float32)
    if got.shape == wanted.shape and np.all(np.abs(got - wanted) <= expect["tolerance"]):
        return []
    return [f"expected {wanted.tolist()}, got {got.tolist()}"]


def embed_file(step: Step) -> list[str]:
    fields, expect = step.fields, step.expect
    spec = read_spec(json.dumps(fields["spec"]))
    selectors = [parse_selector(text) for text in fields["select"]]
    choice = FileChoice(spec, FileMode(fields["mode"]), fields["types"], selectors)
    counts = FileCounts()
    rows = [json.loads(line) for line in embed_lines(fields["input"], choice, MockEmbedder(), counts)]
    told = {**asdict(counts), "mode": str(choice.told_mode), "dimension": spec.dimension, "model": ""}
    found = [f"{name}: {told[name]!r}" for name, value in expect["summary"].items() if told[name] != value]
    return found + [f"expected {want}, got {got}" for got, want in zip_longest(rows, expect["rows"]) if got != want]
