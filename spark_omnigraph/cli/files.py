"""Files that the program reads and writes for its user."""

from __future__ import annotations

import gzip
import io
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import IO, TextIO, cast

from spark_omnigraph.errors import NotFoundError, UsageError
from spark_omnigraph.storage.input.globs import is_packed
from spark_omnigraph.storage.objects.whole_file import whole_path
from spark_omnigraph.storage.uri import nearest_path

_LEVEL = 6
LARGEST_TEXT = 16 << 20
"""Bytes of a file of text that an option names: schemas and queries are far smaller."""


def read_text(option: str, path: str, most: int = LARGEST_TEXT) -> str:
    """The text of a file that an option names, without a byte order mark. NotFoundError when it is not there,
    UsageError when it cannot be read, or has more than `most` bytes.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise UsageError(f"{option}: '{path}' is no regular file")
        with open(path, "rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise UsageError(f"{option}: '{path}' is too large: at most {most:,} bytes")
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError(f"{option}: there is no file '{path}'{nearest_path(path)}") from None
    except OSError as error:
        raise UsageError(f"{option}: cannot read '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: '{path}' is not UTF-8 text (byte {error.start + 1}); save it as UTF-8") from error


@contextmanager
def whole_file(path: str, storage_options: Mapping[str, str] | None = None) -> Iterator[TextIO]:
    """A text file, or an `s3://` object, that appears under its name when it is complete, and not at all when the work
    fails. It is packed when the name ends in `.gz`, which is how inputs are told apart, too.

    Missing folders are made. IoError when it cannot be written.
    """
    with whole_path(path, storage_options) as part, ExitStack() as opened:
        file: IO[bytes] = opened.enter_context(open(part, "wb"))
        if is_packed(path):
            # Without a name and a time, so that the same rows make the same file.
            file = cast("IO[bytes]", opened.enter_context(gzip.GzipFile("", "wb", _LEVEL, file, 0)))
        yield opened.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline=""))
