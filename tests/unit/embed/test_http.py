"""Connections: kept ones, and ways through a proxy."""

from __future__ import annotations

import gzip
import socket
import ssl
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from threading import Event, Thread

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from spark_omnigraph.embed import http
from spark_omnigraph.embed.http import Connections, TransportError
from tests.support.embedding_server import EmbeddingServer, Reply

BODY = b'{"input": ["a"], "dimensions": 2}'


def certificate(folder: Path) -> Path:
    """A certificate for this machine with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "cert.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


@contextmanager
def tunnel(to: int) -> Iterator[tuple[int, list[str]]]:
    """A proxy that takes one CONNECT, whoever it names, and leads it to a port of this machine."""
    heads: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            near, _ = listening.accept()
            with near, socket.create_connection(("127.0.0.1", to)) as far:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += near.recv(1024)
                heads.append(head.decode())
                near.sendall(b"HTTP/1.1 200 go\r\n\r\n")
                back = Thread(target=pump, args=(far, near), daemon=True)
                back.start()
                pump(near, far)
                back.join()

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], heads
        thread.join(30)


def pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
    except OSError:
        return
    finally:
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def test_a_connection_is_kept_and_made_anew_when_the_other_side_ended_it() -> None:
    with EmbeddingServer() as server:
        connections = Connections(server.openai, "", 30)
        for _ in range(3):
            assert connections.post("/v1/embeddings", {}, BODY, 1000).status == 200
        server.end_kept()
        assert connections.post("/v1/embeddings", {}, BODY, 1000).status == 200
    with pytest.raises(TransportError):
        connections.post("/v1/embeddings", {}, BODY, 1000)
    assert len(server.log) == 4


def test_a_plain_request_goes_to_the_proxy_whole() -> None:
    with EmbeddingServer() as proxy:
        connections = Connections("http://nowhere.invalid:81/v1", f"http://me:p%40ss@127.0.0.1:{proxy.port}", 30)
        assert connections.post("/v1/embeddings", {}, BODY, 1000).status == 200
    (asked,) = proxy.log
    assert asked.target == "http://nowhere.invalid:81/v1/embeddings"
    assert asked.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="
    assert asked.headers["host"] == "nowhere.invalid:81"


def test_an_encrypted_one_goes_through_a_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    http._context.cache_clear()
    try:
        with EmbeddingServer(tls=context) as server, tunnel(server.port) as (port, heads):
            connections = Connections("https://127.0.0.1:4433/v1", f"http://me:pass@127.0.0.1:{port}", 30)
            answer = connections.post("/v1/embeddings", {"Authorization": "Bearer K"}, BODY, 1000)
            connections.close()
        assert answer.status == 200
        assert server.log[0].headers["authorization"] == "Bearer K"
        assert "proxy-authorization" not in server.log[0].headers
        assert heads[0].startswith("CONNECT 127.0.0.1:4433 HTTP/1")
        assert "Proxy-Authorization: Basic bWU6cGFzcw==" in heads[0]
        assert "Bearer" not in heads[0]
    finally:
        http._context.cache_clear()


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path))
    with EmbeddingServer(tls=context) as server:
        connections = Connections(f"https://127.0.0.1:{server.port}/v1", "", 30)
        with pytest.raises(TransportError, match="CERTIFICATE_VERIFY_FAILED"):
            connections.post("/v1/embeddings", {}, BODY, 1000)
    assert not server.log


@contextmanager
def dripping(head: bytes, piece: bytes) -> Iterator[str]:
    """A server that answers a request with something, and then with one piece after the other for as long as anybody
    listens. Its base URL.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            near, _ = listening.accept()
            with near, suppress(OSError):
                near.recv(1 << 16)
                near.sendall(head)
                while True:
                    near.sendall(piece)
                    over.wait(0.01)

        over = Event()
        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        over.set()
        thread.join(30)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"a"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"a"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"a"),
    ],
)
def test_a_server_that_answers_letter_by_letter_does_not_hold_a_request(head: bytes, piece: bytes) -> None:
    with dripping(head, piece) as url, pytest.raises(TransportError, match=r"no answer within 0\.3 s"):
        Connections(url, "", 0.3).post("/v1/embeddings", {}, BODY, 1 << 20)


@pytest.mark.parametrize("name", ["gzip", "deflate", "X-GZIP"])
def test_an_answer_that_was_packed_on_the_way(name: str) -> None:
    packed = (gzip.compress if "gzip" in name.lower() else zlib.compress)(b"x" * 900)
    packed_much = gzip.compress(b"x" * (1 << 20))
    script = [Reply(200, body, {"Content-Encoding": name}) for body in (packed, packed_much, packed[:-9], b"no")]
    with EmbeddingServer(script) as server:
        connections = Connections(server.openai, "", 30)
        assert connections.post("/v1/embeddings", {}, BODY, 1000).body == b"x" * 900
        for words in ("more than 1000 bytes", "broke off", "cannot be unpacked"):
            with pytest.raises(TransportError, match=words):
                connections.post("/v1/embeddings", {}, BODY, 1000)


def test_a_kept_connection_has_the_whole_time_again() -> None:
    with EmbeddingServer() as server:
        connections = Connections(server.openai, "", 30)
        assert connections.post("/v1/embeddings", {}, BODY, 1000).status == 200
        (kept,) = connections._idle
        kept.sock.settimeout(0.001)
        assert connections.post("/v1/embeddings", {}, BODY, 1000).status == 200
        assert list(connections._idle) == [kept]


def test_an_answer_is_bounded() -> None:
    with EmbeddingServer() as server:
        connections = Connections(server.openai, "", 30)
        with pytest.raises(TransportError, match="more than 10 bytes"):
            connections.post("/v1/embeddings", {}, BODY, 10)
