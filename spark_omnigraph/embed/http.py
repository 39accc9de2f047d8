"""Requests over kept connections, through a proxy where there is one, bounded in time and in bytes."""

from __future__ import annotations

import selectors
import ssl
import zlib
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from functools import cache, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from socket import SHUT_RDWR, socket
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from weakref import finalize

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PIECE = 1 << 16
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PACKED = ("gzip", "x-gzip", "deflate")
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


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
        connection = self._taken()
        connection.response_class = partial(_Response, monotonic() + self._timeout)  # type: ignore[assignment]  # a call that makes one
        kept = False
        try:
            connection.request("POST", self._target(path), body, {**headers, **self._to_proxy(plain=True)})
            response = connection.getresponse()
            answer = Answer(response.status, response.headers.get("Retry-After"), _read(response, most))
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
            else:
                connection.sock.settimeout(self._timeout)
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


class _Response(HTTPResponse):
    """An answer that is whole within a time, however slowly its lines and pieces come."""

    def __init__(self, ends: float, sock: socket, method: str | None = None) -> None:
        super().__init__(sock, method=method)
        self.fp = BufferedReader(_Until(ends, sock, self.fp.detach()))


class _Until(RawIOBase):
    """What comes in over a socket until a time."""

    def __init__(self, ends: float, sock: socket, source: RawIOBase) -> None:
        super().__init__()
        self._ends, self._sock, self._source = ends, sock, source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        left = self._ends - monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._source.readinto(buffer)

    def close(self) -> None:
        self._source.close()
        super().close()


def _read(response: HTTPResponse, most: int) -> bytes:
    """The body, unpacked where a proxy on the way packed it. HTTPException for one that is too large."""
    pieces, size = [], 0
    while piece := response.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise HTTPException(f"the answer has more than {most} bytes")
    if response.length:
        raise HTTPException(f"the answer broke off after {size} bytes")
    response.close()  # the connection is free for the next request only then
    body = b"".join(pieces)
    return _unpacked(body, most) if response.headers.get("Content-Encoding", "").lower() in _PACKED else body


def _unpacked(body: bytes, most: int) -> bytes:
    unpacking = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        found = unpacking.decompress(body, most + 1)
    except zlib.error as error:
        raise HTTPException(f"the answer cannot be unpacked: {error}") from error
    if len(found) > most:
        raise HTTPException(f"the answer has more than {most} bytes")
    if not unpacking.eof:
        raise HTTPException(f"the answer broke off after {len(found)} bytes")
    return found


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
