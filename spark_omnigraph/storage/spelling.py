"""Roots whose names are spelled in two ways: by letters, and by the percent encoding of object stores.

Everything is read and written at the first spelling. But where Lance makes a branch it first makes the folder of its
reference at the second one, which is another place on a local disk, stays empty, and has to be writable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote, unquote

from spark_omnigraph.errors import StorageError

_REFERENCES = "_refs/branches"
_KEPT = " !$&'()+,;=:@/"
"""Characters besides letters, digits and `-._` that object stores do not encode."""
_UNUSABLE = re.compile(r"[?\x00-\x1f\x7f\ud800-\udfff]")


def refuse_root(text: str) -> str | None:
    r"""Why no graph can live under a name; None for one that Lance and the client of the store take for one place.

    >>> refuse_root("/srv/j\xfcrgen/two words"), refuse_root("/srv/a?b")
    (None, "the character '?'")
    """
    found = _UNUSABLE.search(text)
    return None if found is None else f"the character {found.group()!a}"


def refuse_key(text: str) -> str | None:
    r"""The same for a bucket and a key, of which clients make a URI and read the key back.

    >>> refuse_key("bucket/j\xfcrgen/50%"), refuse_key("bucket/a%20b")
    (None, "the escape '%20', which stands for ' ': write that,")
    """
    found, escape = _UNUSABLE.search(text) or re.search("#", text), re.search("%[0-9A-Fa-f]{2}", text)
    if found is not None:
        return f"the character {found.group()!a}"
    if escape is not None:
        return f"the escape '{escape.group()}', which stands for {unquote(escape.group())!a}: write that,"
    odd = next((segment for segment in text.split("/") if segment in ("", ".", "..")), None)
    return None if odd is None else f"the segment '{odd}'"


@contextmanager
def one_spelling(uri: str) -> Iterator[None]:
    """Removes the empty folders that the making of a branch of a local dataset leaves at its other spelling.

    StorageError where they cannot be made: the branch could not be made either.
    """
    made = [] if "://" in uri else _make_folders(os.path.join(_encoded(uri), _REFERENCES), uri)
    try:
        yield
    finally:
        for folder in made:
            with suppress(OSError):  # somebody else makes a branch there as well
                os.rmdir(folder)


def _make_folders(folder: str, uri: str) -> list[str]:
    """Makes a folder with those above it; the ones that were not there, innermost first."""
    if folder == os.path.join(uri, _REFERENCES):
        return []
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    try:
        for each in reversed(missing):
            os.makedirs(each, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"storage: {uri} has letters that object stores spell otherwise, so that making a branch needs the folder "
            f"{missing[-1]} for a moment, and it cannot be made ({error.strerror}); allow that, or move the graph to a "
            "path of ASCII letters and digits"
        ) from error
    return missing


def _encoded(path: str) -> str:
    return quote(path, safe=_KEPT).replace("~", "%7E")
