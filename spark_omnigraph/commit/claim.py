"""Claims: one process at a time does a step that Lance does not make safe under a race.

A claim is an object in `__recovery/` that does not end in `.json`, created only if absent, and removed afterwards. One
whose owner died stays; it is taken over once its term is past, which creating branches tolerates (it looks again).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from spark_omnigraph.errors import WriterBusyError
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY

TERM = 120.0
"""Seconds after which a claim counts as abandoned; the claimed steps take milliseconds."""
WAIT = 30.0
_POLL = 0.05


@contextmanager
def claimed(store: GraphStore, name: str, wait: float = WAIT) -> Iterator[None]:
    """Holds the claim `name` during the block. WriterBusyError when another process keeps it for `wait` seconds."""
    path = f"{RECOVERY}/x_claim~{name}.claim"
    token = uuid.uuid4().hex
    _take(store, path, token, wait)
    try:
        yield
    finally:
        _release(store, path, token)


def _take(store: GraphStore, path: str, token: str, wait: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        content = json.dumps({"token": token, "expires_at": time.time() + TERM}).encode()
        if store.objects.create(path, content):
            return
        if _is_abandoned(store, path):
            store.objects.delete(path)
            continue
        if time.monotonic() >= deadline:
            raise WriterBusyError(f"another process holds {path} for longer than {wait:g} s; try again later")
        time.sleep(_POLL)


def _is_abandoned(store: GraphStore, path: str) -> bool:
    content = store.objects.get(path)
    if content is None:
        return False
    try:
        return time.time() > float(json.loads(content)["expires_at"])
    except (ValueError, KeyError, TypeError):
        return True


def _release(store: GraphStore, path: str, token: str) -> None:
    content = store.objects.get(path)
    if content is not None and token.encode() in content:
        store.objects.delete(path)
