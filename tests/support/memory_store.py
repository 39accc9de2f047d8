"""An S3 server in this process that keeps objects in a dictionary, and so can be given thousands of them at once.

It honours conditional PUTs and pages its listings, which is all that Lance and obstore need of a store.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

from tests.support.object_store import BUCKET, Careless, S3Server, tag

PAGE = 1000
"""Entries of one answer to a listing, as on S3."""
STAMP = "2026-01-01T00:00:00.000Z"


class _Careful(Careless):
    """Refuses a PUT whose condition does not hold."""

    turn: threading.Lock

    def do_PUT(self) -> None:  # noqa: N802 - the name is that of the base class
        body = self._body()
        with self.turn:
            found = self.objects.get(self._key())
            wanted = self.headers.get("If-Match")
            taken = self.headers.get("If-None-Match") == "*" and found is not None
            changed = wanted is not None and (found is None or tag(found) != wanted)
            if not taken and not changed:
                self.objects[self._key()] = body
        if taken or changed:
            self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>", {"Content-Type": "application/xml"})
        else:
            self._answer(200, b"", {"ETag": tag(body)})

    def _list(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        bucket, delimiter = "/" + self._key().strip("/") + "/", query.get("delimiter", "")
        prefix, after = query.get("prefix", ""), max(query.get("start-after", ""), query.get("continuation-token", ""))
        entries = set()
        for key in list(self.objects):
            if key.startswith(bucket + prefix):
                name = key.removeprefix(bucket)
                head, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
                entries.add(prefix + head + cut if cut else name)
        page = sorted(entry for entry in entries if entry > after)
        self._answer(200, self._page(bucket, page).encode(), {"Content-Type": "application/xml"})

    def _page(self, bucket: str, entries: list[str]) -> str:
        shown, more = entries[:PAGE], len(entries) > PAGE
        xml = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        if more:
            xml += f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>"
        for entry in shown:
            content = self.objects.get(bucket + entry)
            xml += (
                f"<CommonPrefixes><Prefix>{escape(entry)}</Prefix></CommonPrefixes>"
                if content is None
                else f"<Contents><Key>{escape(entry)}</Key><Size>{len(content)}</Size>"
                f"<LastModified>{STAMP}</LastModified><ETag>{tag(content)}</ETag></Contents>"
            )
        return f"<ListBucketResult>{xml}</ListBucketResult>"


@contextmanager
def memory_server(folder: Path, name: str) -> Iterator[S3Server]:
    """A store whose bucket has everything of a local folder below `name`."""
    objects = {
        f"/{BUCKET}/{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    handler = type("Careful", (_Careful,), {"objects": objects, "turn": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield S3Server(f"http://127.0.0.1:{server.server_port}", "memory")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
