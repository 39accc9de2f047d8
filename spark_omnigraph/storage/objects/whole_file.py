"""Files written for a user: each appears under its name when it is complete, and not at all when the work fails."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from spark_omnigraph.errors import IoError


@contextmanager
def whole_path(path: str, storage_options: Mapping[str, str] | None = None) -> Iterator[str]:
    """The path of an empty file that takes the place of another one, or of an `s3://` object, at the end.

    Missing folders are made. A device or a pipe is written as it is. IoError when it cannot be written.
    """
    if path.startswith("s3://"):
        with _uploaded(path, storage_options or {}) as part:
            yield part
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            yield path
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        # Made like any file, so that the user's own mask says who may read it; a folder of inputs leaves it out.
        fresh = target.with_name(f".omnigraph-{uuid.uuid4().hex}")
        fresh.touch(exist_ok=False)
        try:
            yield str(fresh)
            os.replace(fresh, target)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise IoError(f"cannot write '{path}': {error.strerror or error}") from error


@contextmanager
def _uploaded(uri: str, storage_options: Mapping[str, str]) -> Iterator[str]:
    """A file beside the program that becomes an object when it is complete."""
    from spark_omnigraph.storage.objects.files import put_file  # noqa: PLC0415 - the store's client is slow to import

    with tempfile.NamedTemporaryFile(prefix="omnigraph-") as part:
        yield part.name
        with open(part.name, "rb") as content:
            put_file(uri, content, storage_options)
