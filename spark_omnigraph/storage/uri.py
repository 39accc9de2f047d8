"""Graph roots: which URIs are accepted, how they are normalised, and the options that reach the object store."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.redaction import as_shown, excerpt, has_credentials
from spark_omnigraph.storage.spelling import refuse_key, refuse_root
from spark_omnigraph.words import nearest

PLACES = "on a local disk (a path, file://) or on S3 and what speaks its protocol (s3://, s3a://)"
DELTA = "delta:"
"""What the place of a Delta table begins with."""
DELTA_EXTRA = "pip install 'spark-omnigraph[delta]'"
_S3_SCHEMES = ("s3", "s3a", "s3n")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FUSE_MOUNTS = ("/Volumes/", "/dbfs/")
_LOOKED_AT = 10_000
"""Names of a folder among which the nearest one is looked for."""
_ENVIRONMENT = (
    ("aws_endpoint", ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")),
    ("allow_http", ("AWS_ALLOW_HTTP",)),
    ("aws_region", ("AWS_REGION", "AWS_DEFAULT_REGION")),
)


@dataclass(frozen=True, slots=True)
class Location:
    """A normalised root: an absolute local path, or an `s3://` URI without a trailing slash."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_local(self) -> bool:
        return "://" not in self.root

    def join(self, *parts: str) -> str:
        """URI of a path below the root."""
        return "/".join((self.root, *parts))

    def object_path(self, uri: str) -> str:
        """Object-store path of a URI below this root: absolute without the leading slash, or the key in the bucket."""
        if self.is_local:
            return uri.lstrip("/")
        return urlsplit(uri).path.lstrip("/")


def plain(uri: str | os.PathLike[str]) -> str:
    """One spelling for each place: `s3://` for what Hadoop calls `s3a://` or `s3n://`, a path for `file:`.

    Raises BadRequestError for a `file:` URI of another machine, and for what is no text. Other texts stay as they are.

    >>> plain("s3a://bucket/g"), plain("file:///srv/a%20b"), plain("file:/srv/g"), plain("g")
    ('s3://bucket/g', '/srv/a b', '/srv/g', 'g')
    """
    text = os.fspath(uri) if isinstance(uri, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise BadRequestError(f"a path or URI is a text, not {as_shown(uri)}")
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() in _S3_SCHEMES and rest.startswith("//"):
        return f"s3:{rest}"
    if colon and scheme.lower() == "file" and rest.startswith("/"):
        if not rest.startswith("//"):
            return unquote(rest)
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost") or not slash:
            raise BadRequestError(f"'{text}' names no path of this machine: write file:///… with three slashes")
        return unquote(f"/{path}")
    return text


def has_scheme(text: str) -> bool:
    """Whether a text is a URI; `C:` is none, nor is a name with a colon in it."""
    return _SCHEME.match(text) is not None


def nearest_path(path: str) -> str:
    """What a message about a path that is not there ends with: `; did you mean 'films.jsonl'?`, or nothing. It is
    looked for in the folder that is there, among its first names.
    """
    folder, name = os.path.split(path.rstrip("/"))
    try:
        with os.scandir(folder or ".") as entries:
            near = nearest(name, (entry.name for entry in islice(entries, _LOOKED_AT)))
    except (OSError, ValueError):
        return ""
    return near.replace("did you mean '", f"did you mean '{os.path.join(folder, '')}") if near else ""


def is_inside(place: str, root: str) -> bool:
    """Whether a file is a root or lies below it, as paths or as `s3://` URIs, with links followed."""
    inner, outer = plain(place), plain(root)
    if ("://" in inner) is not ("://" in outer):
        return False
    if "://" in inner:
        return f"{_simple(inner)}/".startswith(f"{_simple(outer)}/")
    real, base = os.path.realpath(inner), os.path.realpath(outer)
    return real == base or real.startswith(base.rstrip("/") + "/")


def _simple(uri: str) -> str:
    """An `s3://` URI without doubled slashes."""
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://" + "/".join(part for part in rest.split("/") if part not in ("", "."))


def locate(uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Location:
    """Location of a graph root given as a path, `file://`, `s3://` or `s3a://`.

    Raises BadRequestError for other schemes and for FUSE mounts, which lack the atomic link that a commit needs.
    """
    text = plain(uri)
    if not text.strip():
        raise BadRequestError("graph URI is empty")
    if text.startswith("s3://"):
        if has_credentials(text):
            raise BadRequestError(
                f"'{text}' holds credentials: give them in the environment, as storage options, or in the Spark "
                "configuration"
            )
        if not text[len("s3://") :].strip("/"):
            raise BadRequestError(f"'{text}' names no bucket: write s3://bucket/path")
        _refuse_spelling(text, refuse_key(text[len("s3://") :].rstrip("/")))
        return Location(text.rstrip("/"), _s3_options(_texts(options or {})))
    if text.startswith("dbfs:") or text.startswith(_FUSE_MOUNTS):
        raise BadRequestError(
            f"'{text}' cannot hold a graph: this mount has no atomic rename or link, and commits would be lost "
            "silently. Use an object store URI (s3://…); JSONL input may stay there."
        )
    if has_scheme(text):
        raise BadRequestError(f"'{text}' has an unsupported scheme: a graph lives {PLACES}")
    root = str(Path(text).absolute()).rstrip("/") or "/"
    _refuse_spelling(root, refuse_root(root))
    return Location(root, _texts(options or {}))


def _texts(options: object) -> dict[str, str]:
    """Storage options, all texts. Values are told to nobody: some are secrets."""
    if not isinstance(options, Mapping):
        raise BadRequestError(f"storage options are a dictionary of texts, not a {type(options).__name__}")
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise BadRequestError(
                f"the storage option {name!r} is a {type(value).__name__}: write names and values as texts"
            )
    return dict(options)


def _refuse_spelling(root: str, why: str | None) -> None:
    if why is not None:
        raise BadRequestError(
            f"'{excerpt(root)}' cannot hold a graph: with {why} in its path, clients of the store would not agree on "
            "its place; choose a path without it"
        )


def _s3_options(given: Mapping[str, str]) -> dict[str, str]:
    """Explicit options win over the AWS variables that the reference engine reads; keys keep Lance's names."""
    merged = dict(given)
    for name, variables in _ENVIRONMENT:
        if name in merged:
            continue
        value = next((os.environ[v] for v in variables if os.environ.get(v)), None)
        if value is not None:
            merged[name] = value
    if os.environ.get("AWS_S3_FORCE_PATH_STYLE", "").lower() in ("1", "true"):
        merged.setdefault("aws_virtual_hosted_style_request", "false")
    return merged
