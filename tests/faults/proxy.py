"""A loopback HTTP proxy in front of an S3 server: it counts what Lance and obstore ask for, and loses what it is told.

A request that is lost before it took effect never reaches the server. One whose answer is lost did, and the client
hears an error or nothing at all; then it asks again by itself, as it would in the field.
"""

from __future__ import annotations

import http.client
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from tests.support.object_store import S3Server

_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length", "date", "server"}
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class Fault(Enum):
    """What happens to one request."""

    THROTTLED = "throttled"
    """503, not forwarded."""
    CUT_BEFORE = "cut_before"
    """The connection ends, not forwarded."""
    ERROR_AFTER = "error_after"
    """Forwarded, answered with 500."""
    CUT_AFTER = "cut_after"
    """Forwarded, the connection ends without an answer."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the proxy saw it, with the status that the server gave (0 when it never saw it)."""

    method: str
    path: str
    status: int


class Held:
    """The first request that fits is kept on its way until the test lets it go, as a network may keep one whose sender
    is long dead.
    """

    def __init__(self, fits: Callable[[str, str], bool]) -> None:
        self._fits, self._lock, self._taken = fits, threading.Lock(), False
        self._reached, self._go_on, self._done = threading.Event(), threading.Event(), threading.Event()
        self._status = 0

    def takes(self, method: str, path: str) -> bool:
        with self._lock:
            fits = not self._taken and self._fits(method, path)
            self._taken = self._taken or fits
            return fits

    def wait(self) -> None:
        """Until a request is held."""
        assert self._reached.wait(60)

    def deliver(self) -> int:
        """Lets it go on to the server; the status that it got there."""
        self._go_on.set()
        assert self._done.wait(60)
        return self._status

    def keep(self, ask: Callable[[], int]) -> None:
        self._reached.set()
        assert self._go_on.wait(120)
        self._status = ask()
        self._done.set()


@dataclass
class Proxy:
    """The proxy's state: what was asked for, and what to do with the next requests."""

    endpoint: str
    upstream: str
    held: Held | None = None
    requests: list[Request] = field(default_factory=list)
    plan: Callable[[int, str, str], Fault | None] = lambda number, method, path: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _number: int = 0

    def server(self, behind: S3Server) -> S3Server:
        """The S3 server as it is reached through here."""
        return S3Server(self.endpoint, behind.name)

    def reset(self, plan: Callable[[int, str, str], Fault | None] | None = None) -> None:
        """Forgets what it saw and counts from 0; `plan` says what happens to the n-th request."""
        with self._lock:
            self.requests, self._number, self.held = [], 0, None
            self.plan = plan if plan is not None else lambda number, method, path: None

    def fate(self, method: str, path: str) -> Fault | None:
        """What happens to the next request."""
        with self._lock:
            number, self._number = self._number, self._number + 1
            return self.plan(number, method, path)

    def note(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)

    def counts(self) -> Counter[str]:
        """Requests per method; listings count apart from reads of objects."""
        return Counter("LIST" if r.method == "GET" and "list-type=" in r.path else r.method for r in self.requests)


def once(number: int, fault: Fault) -> Callable[[int, str, str], Fault | None]:
    """A plan that loses one request."""
    return lambda n, method, path: fault if n == number else None


def often(rate: float, seed: int, fault: Fault = Fault.THROTTLED) -> Callable[[int, str, str], Fault | None]:
    """A plan that loses a share of all requests; the same ones for the same seed and order."""
    dice = random.Random(seed)
    return lambda n, method, path: fault if dice.random() < rate else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        held = self.proxy.held
        if held is not None and held.takes(self.command, unquote(self.path)):
            held.keep(lambda: self._ask(body)[0].status)
            self._fail(Fault.CUT_AFTER, 0, b"")
            return
        fault = self.proxy.fate(self.command, self.path)
        if fault in (Fault.THROTTLED, Fault.CUT_BEFORE):
            self.proxy.note(Request(self.command, unquote(self.path), 0))
            self._fail(fault, 503, SLOW_DOWN)
            return
        response, content = self._ask(body)
        self.proxy.note(Request(self.command, unquote(self.path), response.status))
        if fault is not None:
            self._fail(fault, 500, b"<Error><Code>InternalError</Code></Error>")
            return
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        length = response.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        if response.status != 204 and length is not None:
            self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - the names are those of the base class

    def _ask(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(self.proxy.upstream, timeout=60)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("connection", "content-length")}
            connection.request(self.command, self.path, body=body or None, headers=headers)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def _fail(self, fault: Fault, status: int, content: bytes) -> None:
        self.close_connection = True
        if fault in (Fault.CUT_BEFORE, Fault.CUT_AFTER):
            return
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


@contextmanager
def running_proxy(behind: S3Server) -> Iterator[Proxy]:
    """A proxy on a free port in front of a server."""

    class Handler(_Handler):
        """One for each proxy, since a handler finds its proxy by its class."""

    server = _Server(("127.0.0.1", 0), Handler)
    proxy = Proxy(f"http://127.0.0.1:{server.server_port}", urlsplit(behind.endpoint).netloc)
    Handler.proxy = proxy
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
