"""A provider of embeddings on this machine, of either shape, that answers as a script says.

Its good answers are the mock's vectors, so that what comes back can be compared. It writes down every text that it was
asked for.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from ssl import SSLContext
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any

import pytest

from spark_omnigraph.embed.embedder import Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.embed.vectors import Vectors
from spark_omnigraph.words import TextEnum

_LARGEST = 64 << 20
_PATIENCE = 60.0


class Act(TextEnum):
    """What the server does with one request."""

    WELL = "well"
    REORDERED = "reordered"
    SHORT = "short"
    """The last answer is missing."""
    MALFORMED = "malformed"
    HTML = "html"
    DROPPED = "dropped"
    """The connection ends without an answer."""
    CUT = "cut"
    """It ends in the middle of one."""
    SLOW = "slow"
    """The answer comes when `release` is set."""
    NARROW = "narrow"
    """Vectors of one number less than asked for."""


@dataclass(frozen=True)
class Reply:
    """A whole answer: status, body (JSON, or text and bytes as they are), headers."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def refusal(status: int, message: str = "no", **headers: str) -> Reply:
    """A refusal in the words of both kinds of providers; `Retry_After="1"` is a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"error": {"message": message}}, named)


@dataclass(frozen=True)
class Asked:
    """One request: `target` is what stands in its first line."""

    target: str
    headers: dict[str, str]
    body: dict[str, Any]
    texts: tuple[str, ...]


class EmbeddingServer:
    """`with EmbeddingServer(script) as server`: one step of the script a request, then good answers.

    `refuses` names texts for which a request is answered with 400, `quick` whether it knows base64 (OpenAI) or batches
    (Gemini).
    """

    def __init__(
        self,
        script: Iterable[Act | Reply] = (),
        *,
        refuses: Callable[[str], bool] = lambda text: False,
        quick: bool = True,
        repeat_last: bool = False,
        tls: SSLContext | None = None,
    ) -> None:
        self.script = deque(script)
        self.refuses = refuses
        self.quick = quick
        self.repeat_last = repeat_last
        self.log: list[Asked] = []
        self.release = Event()
        self.slow = Event()
        """Set when a slow answer has begun."""
        self._lock = Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.served = self
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> EmbeddingServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.end_kept()
        self._thread.join(_PATIENCE)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def openai(self) -> str:
        """Base URL of the OpenAI-compatible shape."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def gemini(self) -> str:
        """Base URL of the Gemini shape."""
        return f"http://127.0.0.1:{self.port}/v1beta"

    @property
    def asked(self) -> list[str]:
        """Every text of every request, in the order they came in."""
        return [text for each in list(self.log) for text in each.texts]

    def end_kept(self) -> None:
        """Ends the connections that clients keep."""
        self._http.end_kept()

    def environ(self, provider: str = "openai-compatible", key: str = "sk-test-0123456789") -> dict[str, str]:
        """Variables that lead a program here."""
        base = self.gemini if provider == "gemini" else self.openai
        return {
            "OMNIGRAPH_EMBED_PROVIDER": provider,
            "OMNIGRAPH_EMBED_BASE_URL": base,
            "OMNIGRAPH_EMBED_MODEL": "maker/m1",
            "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "1",
            "GEMINI_API_KEY" if provider == "gemini" else "OPENAI_API_KEY": key,
        }

    @contextmanager
    def named(self) -> Iterator[None]:
        """The environment of this process, and of those that begin meanwhile, names it. Other variables that are set
        meanwhile stay: Spark says there that its sessions are those of Connect.
        """
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environ().items():
                patch.setenv(name, value)
            yield

    def next_act(self, asked: Asked) -> Act | Reply:
        """What to do with a request, which is written down."""
        with self._lock:
            self.log.append(asked)
            act: Act | Reply = Act.WELL
            if self.script:
                act = self.script[0] if self.repeat_last and len(self.script) == 1 else self.script.popleft()
        if act is Act.WELL and any(map(self.refuses, asked.texts)):
            return refusal(400, "a text is refused")
        return act


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    served: EmbeddingServer

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._open: set[socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def end_kept(self) -> None:
        """Ends connections that are kept for another request."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # without it every answer on a kept connection takes 40 ms
    timeout = _PATIENCE
    server: _Http

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        served = self.server.served
        size = min(int(self.headers.get("Content-Length", "0")), _LARGEST)
        body = json.loads(self.rfile.read(size))
        asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body, _texts(body))
        act = served.next_act(asked)
        if act is Act.SLOW:
            served.slow.set()
            served.release.wait(_PATIENCE)
        if act is Act.DROPPED:
            self.close_connection = True
        elif isinstance(act, Reply):
            self._send(act.status, act.body, act.headers)
        else:
            status, answer = _answer(asked, act, served.quick)
            self._send(status, answer, {}, cut=act is Act.CUT)

    def _send(self, status: int, body: Any, headers: dict[str, str], cut: bool = False) -> None:
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        data = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection |= cut


def _texts(body: dict[str, Any]) -> tuple[str, ...]:
    if "input" in body:
        return tuple(body["input"])
    return tuple(each["content"]["parts"][0]["text"] for each in body.get("requests", [body]))


def _answer(asked: Asked, act: Act, quick: bool) -> tuple[int, Any]:
    if act is Act.MALFORMED:
        return 200, '{"data": [{"index": 0, '
    if act is Act.HTML:
        return 200, "<html><body>a page for people</body></html>"
    body = asked.body
    one = body.get("requests", [body])[0]
    dimension = one.get("dimensions") or one["outputDimensionality"]
    vectors = MockEmbedder().embed(asked.texts, dimension=dimension - (act is Act.NARROW), role=Role.DOCUMENT).vectors
    vectors = vectors[: len(vectors) - (act is Act.SHORT)]
    if "input" not in body:
        return _gemini_answer(asked, vectors, quick)
    if body.get("encoding_format") == "base64" and not quick:
        return 400, {"error": {"message": "unknown parameter encoding_format"}}
    coded = body.get("encoding_format") == "base64"
    rows = [b64encode(each.tobytes()).decode() if coded else each.tolist() for each in vectors]
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    if act is Act.REORDERED:
        data.reverse()
    tokens = sum(len(text.split()) for text in asked.texts)
    return 200, {"object": "list", "data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


def _gemini_answer(asked: Asked, vectors: Vectors, quick: bool) -> tuple[int, Any]:
    values = [{"values": each.tolist()} for each in vectors]
    if "requests" not in asked.body:
        return 200, {"embedding": values[0]} if values else {}
    return (200, {"embeddings": values}) if quick else (404, {"error": {"message": "no such method"}})
