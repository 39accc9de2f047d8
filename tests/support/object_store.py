"""S3 servers on the loopback interface: SeaweedFS as a child process, and a small one that ignores conditions."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

BUCKET = "graphs"
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class S3Server:
    endpoint: str
    name: str

    @property
    def storage_options(self) -> dict[str, str]:
        return {
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
            "aws_region": "us-east-1",
            "aws_access_key_id": "testing",
            "aws_secret_access_key": "testing",
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same as environment variables."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextmanager
def running_server(folder: Path) -> Iterator[S3Server]:
    """A server with the empty bucket `graphs`; the process that this started is ended by its id."""
    weed = shutil.which("weed") or str(Path(sys.executable).parent / "weed")
    process, server = _start_weed(weed, folder) if Path(weed).exists() else _start_moto()
    try:
        _wait_for_bucket(server, process)
        yield server
    finally:
        # Its data is thrown away, so nothing is gained by the 20 seconds of an orderly end.
        process.kill()
        process.wait()


def _start_weed(weed: str, folder: Path) -> tuple[subprocess.Popen[bytes], S3Server]:
    names = ("master.port", "volume.port", "filer.port", "s3.port")
    pairs = free_ports(2 * len(names))
    arguments = [weed, "-logtostderr=true", "server", "-s3", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    for i, name in enumerate(names):
        arguments += [f"-{name}={pairs[2 * i]}", f"-{name}.grpc={pairs[2 * i + 1]}"]
    arguments += ["-master.volumeSizeLimitMB=64", "-volume.max=100", "-master.telemetry=false", "-s3.iam=false"]
    # Its other listeners have fixed ports, which a second server on this machine would find taken.
    arguments += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(arguments, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    log.close()
    return process, S3Server(f"http://127.0.0.1:{pairs[6]}", "seaweedfs")


def _start_moto() -> tuple[subprocess.Popen[bytes], S3Server]:
    (port,) = free_ports(1)
    arguments = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return process, S3Server(f"http://127.0.0.1:{port}", "moto")


def _wait_for_bucket(server: S3Server, process: subprocess.Popen[bytes]) -> None:
    """Create the bucket and an object in it as soon as the server lets us; bounded."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the {server.name} server ended with code {process.returncode} at its start")
        if _put(server.endpoint, f"/{BUCKET}") == 200 and _put(server.endpoint, f"/{BUCKET}/ready") == 200:
            return
        # Nothing tells when the volumes are ready, so ask again.
        time.sleep(0.2)
    raise RuntimeError(f"the {server.name} server did not answer within {START_SECONDS:.0f} seconds")


def _put(endpoint: str, path: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=5)
    try:
        connection.request("PUT", path, body=b"")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


class Careless(BaseHTTPRequestHandler):
    """PUT, GET, HEAD, DELETE and list of a dictionary; `If-None-Match` and `If-Match` are not looked at."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]

    def do_PUT(self) -> None:
        body = self._body()
        self.objects[self._key()] = body
        self._answer(200, b"", {"ETag": tag(body)})

    def do_GET(self) -> None:
        if "list-type" in urlsplit(self.path).query:
            self._list()
            return
        body = self.objects.get(self._key())
        if body is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", {})
            return
        start, end = self._range(len(body))
        headers = {"ETag": tag(body), "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if "Range" in self.headers:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
        self._answer(206 if "Range" in self.headers else 200, body[start:end], headers)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.objects.pop(self._key(), None)
        self._answer(204, b"", {})

    def do_POST(self) -> None:
        """Deletes the objects that the body names, whatever else was asked for."""
        named = re.findall(rb"<Key>(.*?)</Key>", self._body())
        for key in named:
            self.objects.pop(f"{self._key().rstrip('/')}/{unescape(key.decode())}", None)
        gone = b"".join(b"<Deleted><Key>" + key + b"</Key></Deleted>" for key in named)
        self._answer(200, b"<DeleteResult>" + gone + b"</DeleteResult>", {"Content-Type": "application/xml"})

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path)

    def _body(self) -> bytes:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return _unchunked(raw) if "aws-chunked" in self.headers.get("Content-Encoding", "") else raw

    def _range(self, size: int) -> tuple[int, int]:
        asked = self.headers.get("Range", "")
        if not asked.startswith("bytes="):
            return 0, size
        first, _, last = asked.removeprefix("bytes=").partition("-")
        if not first:
            return max(0, size - int(last)), size
        return int(first), min(size, int(last) + 1 if last else size)

    def _list(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        bucket = "/" + self._key().strip("/") + "/"
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        keys = sorted(key.removeprefix(bucket) for key in self.objects if key.startswith(bucket + prefix))
        folders, files = set(), []
        for key in keys:
            head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if cut:
                folders.add(prefix + head + cut)
            else:
                files.append(key)
        stamp = "2026-01-01T00:00:00.000Z"
        xml = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[bucket + key])}</Size>"
            f"<LastModified>{stamp}</LastModified><ETag>{tag(self.objects[bucket + key])}</ETag></Contents>"
            for key in files
        )
        xml += "".join(f"<CommonPrefixes><Prefix>{escape(p)}</Prefix></CommonPrefixes>" for p in sorted(folders))
        page = f"<ListBucketResult><IsTruncated>false</IsTruncated>{xml}</ListBucketResult>"
        self._answer(200, page.encode(), {"Content-Type": "application/xml"})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def tag(body: bytes) -> str:
    return f'"{md5(body, usedforsecurity=False).hexdigest()}"'


def _unchunked(raw: bytes) -> bytes:
    """Payload of the `aws-chunked` encoding."""
    parts = []
    while raw:
        head, _, raw = raw.partition(b"\r\n")
        size = int(head.split(b";")[0], 16)
        if size == 0:
            break
        parts.append(raw[:size])
        raw = raw[size + 2 :]
    return b"".join(parts)


@contextmanager
def careless_server() -> Iterator[tuple[S3Server, dict[str, bytes]]]:
    """A store that overwrites whatever the condition says, and the dictionary of its objects."""
    objects: dict[str, bytes] = {}
    handler = type("Careless", (Careless,), {"objects": objects})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield S3Server(f"http://127.0.0.1:{server.server_port}", "careless"), objects
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
