"""Files that the program reads and writes for its user."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from spark_omnigraph.errors import IoError, UsageError


def read_text(option: str, path: str) -> str:
    """The text of a file that an option names; UsageError when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option}: cannot read '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: '{path}' is not UTF-8 text (byte {error.start + 1}); save it as UTF-8") from error


@contextmanager
def whole_file(path: str) -> Iterator[TextIO]:
    """A text file that appears under its name when it is complete, and not at all when the work fails.

    Missing folders are made. IoError when it cannot be written.
    """
    with whole_path(path) as part, open(part, "w", encoding="utf-8") as file:
        yield file


@contextmanager
def whole_path(path: str) -> Iterator[str]:
    """The path of an empty file that takes the place of another one at the end; otherwise as `whole_file`."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        os.close(handle)
        try:
            yield part
            os.chmod(part, 0o644)
            os.replace(part, target)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise IoError(f"cannot write '{path}': {error.strerror or error}") from error
