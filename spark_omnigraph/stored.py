"""What other hands may have written into a store, read within bounds: small JSON objects, and paths of tables.

Nothing above trusts such bytes by itself: an object is decoded into a declared shape, and a path is looked at before a
dataset is opened, written or removed by it.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

import msgspec

from spark_omnigraph.errors import DamagedError
from spark_omnigraph.redaction import excerpt

OBJECT_LIMIT = 16 << 20
"""Bytes of the largest small object; a schema with thousands of types has a tenth of it."""
PATH_LIMIT = 1024
"""Characters of the longest path of a table."""
_SEGMENT = re.compile(r"[A-Za-z0-9.~=+@-][A-Za-z0-9._~=+@-]*")
"""Folders of tables; those of the graph itself begin with an underscore."""
_T = TypeVar("_T")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A version or a number of rows."""
Instant = Annotated[float, msgspec.Meta(ge=0, le=250e9)]
"""Seconds since the epoch, up to a year that calendars have."""


def decode(content: bytes, kind: type[_T], what: str, way_out: str = "") -> _T:
    """A small JSON object as a declared shape. Members that the shape does not name are passed over.

    Raises DamagedError, with `what` it is and the way out, for more than OBJECT_LIMIT bytes, text that is not UTF-8 or
    not JSON, nesting that a reader cannot follow, numbers that are not finite or do not fit, missing members and those
    of another type.
    """
    if len(content) > OBJECT_LIMIT:
        raise too_large(what, len(content), OBJECT_LIMIT, way_out)
    try:
        content.decode()
        return msgspec.json.decode(content, type=kind)
    except RecursionError as error:
        raise DamagedError(f"{what} cannot be read: it is nested too deeply{_then(way_out)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedError(f"{what} cannot be read: {excerpt(str(error))}{_then(way_out)}") from error


def too_large(what: str, size: int, limit: int, way_out: str = "") -> DamagedError:
    """The error for an object that is larger than anything of its kind."""
    return DamagedError(
        f"{what} has {size:,} bytes, more than the {limit:,} of the largest of its kind{_then(way_out)}"
    )


def refuse_path(path: str) -> str | None:
    """Why a stored path of a table, relative to the root of the graph, is not used; None for a good one.

    >>> refuse_path("nodes/40d76f1f51639ec0"), refuse_path("../victim/nodes/40d76f1f51639ec0")
    (None, "'../victim/nodes/40d76f1f51639ec0' leaves the graph")
    """
    if len(path) > PATH_LIMIT:
        return f"'{excerpt(path)}' is longer than {PATH_LIMIT} characters"
    segments = path.split("/")
    if path.startswith("/") or ".." in segments:
        return f"'{excerpt(path)}' leaves the graph"
    if not all(_SEGMENT.fullmatch(segment) and segment != "." for segment in segments):
        return f"'{excerpt(path)}' is no path of a table"
    return None


def refuse_branch(branch: str) -> str | None:
    """Why a stored name of a Lance branch is not used; None for one that Lance takes.

    >>> refuse_branch("team/review"), refuse_branch("a/../../b")
    (None, "'a/../../b' is no name of a branch")
    """
    good = len(branch) <= PATH_LIMIT and all(
        segment and segment != "." and ".." not in segment and _is_word(segment) for segment in branch.split("/")
    )
    return None if good else f"'{excerpt(branch)}' is no name of a branch"


def _is_word(segment: str) -> bool:
    return all(letter.isalnum() or letter in "._-" for letter in segment)


def _then(way_out: str) -> str:
    return f". {way_out}" if way_out else ""
