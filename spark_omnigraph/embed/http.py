"""Requests over kept connections, through a proxy where there is one, bounded in time and in bytes."""

from __future__ import annotations

import selectors
import ssl
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR
from threading import Lock
from time import monotonic
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from weakref import finalize

_PIECE = 1 << 16
_DEFAULT_PORTS = {"http": 80, "https": 443}


class TransportError(Exception):
    """No answer, or not a whole one: asking again may help."""


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    retry_after: str | None
    body: bytes


class Connections:
    """Connections to the host of one base URL. Any number of threads may ask at the same time."""

    def __init__(self, base_url: str, proxy: str, timeout: float) -> None:
        self._to = urlsplit(base_url)
        self._by = urlsplit(proxy) if proxy else None
        self._timeout = timeout
        self._idle: deque[HTTPConnection] = deque()
        self._busy: set[HTTPConnection] = set()
        self._lock = Lock()
        finalize(self, _close, self._idle)

    def post(self, path: str, headers: Mapping[str, str], body: bytes, most: int) -> Answer:
        """The answer to a request, of `most` bytes at most. TransportError when there is none within the time."""
        ends = monotonic() + self._timeout
        connection = self._taken()
        kept = False
        try:
            connection.request("POST", self._target(path), body, {**headers, **self._to_proxy(plain=True)})
            response = connection.getresponse()
            answer = Answer(response.status, response.headers.get("Retry-After"), _read(response, ends, most))
            kept = not response.will_close
        except TimeoutError as error:
            raise TransportError(f"no answer within {self._timeout:g} s") from error
        except (OSError, HTTPException) as error:
            raise TransportError(str(error) or type(error).__name__) from error
        finally:
            self._give_back(connection, kept)
        return answer

    def close(self) -> None:
        """Ends the connections that wait for the next request."""
        while self._idle:
            self._idle.pop().close()

    def abort(self) -> None:
        """Ends the requests that are under way: each fails with TransportError."""
        with self._lock:
            sockets = [each.sock for each in self._busy if each.sock is not None]
        for each in sockets:
            try:
                each.shutdown(SHUT_RDWR)
            except OSError:  # it has ended by itself
                continue

    def _taken(self) -> HTTPConnection:
        """A connection that the other side has not closed meanwhile, or a new one."""
        connection = None
        while self._idle and connection is None:
            connection = self._idle.pop()
            if _is_readable(connection):
                connection.close()
                connection = None
        connection = connection or self._made()
        with self._lock:
            self._busy.add(connection)
        return connection

    def _give_back(self, connection: HTTPConnection, kept: bool) -> None:
        with self._lock:
            self._busy.discard(connection)
        if kept:
            self._idle.append(connection)
        else:
            connection.close()

    def _made(self) -> HTTPConnection:
        host, port = _address(self._to)
        if self._by is None:
            return self._connection(host, port)
        connection = self._connection(*_address(self._by))
        if self._to.scheme == "https":
            connection.set_tunnel(host, port, headers=self._to_proxy(plain=False))
        return connection

    def _connection(self, host: str, port: int) -> HTTPConnection:
        if self._to.scheme == "https":
            return HTTPSConnection(host, port, timeout=self._timeout, context=_context())
        return HTTPConnection(host, port, timeout=self._timeout)

    def _target(self, path: str) -> str:
        """What stands in the first line of a request: a proxy of plain HTTP is told the whole URL."""
        through = self._by is not None and self._to.scheme == "http"
        return f"http://{self._to.netloc}{path}" if through else path

    def _to_proxy(self, plain: bool) -> dict[str, str]:
        """Who asks, for a proxy that wants to know: with a plain request, or once with the one for a tunnel."""
        if self._by is None or not self._by.username or plain != (self._to.scheme == "http"):
            return {}
        who = f"{unquote(self._by.username)}:{unquote(self._by.password or '')}"
        return {"Proxy-Authorization": f"Basic {b64encode(who.encode()).decode()}"}


def _address(url: SplitResult) -> tuple[str, int]:
    return url.hostname or "", url.port or _DEFAULT_PORTS[url.scheme]


def _read(response: HTTPResponse, ends: float, most: int) -> bytes:
    """The body, piece by piece, since a server that sends it slowly must not hold the request for ever."""
    pieces, size = [], 0
    while piece := response.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise HTTPException(f"the answer has more than {most} bytes")
        if monotonic() > ends:
            raise TimeoutError
    if response.length:
        raise HTTPException(f"the answer broke off after {size} bytes")
    response.close()  # the connection is free for the next request only then
    return b"".join(pieces)


def _is_readable(connection: HTTPConnection) -> bool:
    """Whether an idle connection has something to say, which is its end."""
    if connection.sock is None:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _close(connections: deque[HTTPConnection]) -> None:
    for each in connections:
        each.close()


@cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()
