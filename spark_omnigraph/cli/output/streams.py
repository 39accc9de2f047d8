"""Standard output: rows of an answer, and the last line."""

from __future__ import annotations

import codecs
import os
import sys
from typing import TextIO

from spark_omnigraph.errors import IoError
from spark_omnigraph.progress.shown import is_terminal
from spark_omnigraph.redaction import visible

_ESCAPES = "spark_omnigraph.json_escapes"


def emit(line: str) -> None:
    """One line of an answer. IoError when nobody takes it. What a terminal would obey is escaped where one shows it."""
    try:
        write_to(sys.stdout, line)
    except (OSError, ValueError) as error:
        silence(sys.stdout)
        reason = getattr(error, "strerror", None) or error
        raise IoError(f"cannot write to standard output: {reason}") from error


def print_out(text: str) -> None:
    """One line, or several, of standard output, at once. OSError when nobody takes them."""
    write_to(sys.stdout, text.rstrip("\n"))
    if sys.stdout is not None:
        sys.stdout.flush()


def write_to(stream: TextIO | None, text: str) -> None:
    """A line on a stream, if there is one: with escapes for what its encoding does not have."""
    if stream is None:
        return
    if is_terminal(stream):
        text = visible(text)
    try:
        stream.write(text + "\n")
    except UnicodeEncodeError:
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, _ESCAPES).decode(encoding) + "\n")


def silence(stream: TextIO | None) -> None:
    """Lets go of what a stream could not write: Python would complain of it once more when it closes the stream."""
    if stream is None:
        return
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):  # no stream of the process, or closed
        return


def _json_escapes(error: UnicodeError) -> tuple[str, int]:
    r"""`\u00e9`, in pairs above 16 bits: what stands for a character in JSON too."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)), error.end


codecs.register_error(_ESCAPES, _json_escapes)
