"""Graph roots: which URIs are accepted, how they are normalised, and the options that reach the object store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spark_omnigraph.errors import BadRequestError

_FUSE_MOUNTS = ("/Volumes/", "/dbfs/")
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


def locate(uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Location:
    """Location of a graph root given as a path, `file://` or `s3://`.

    Raises BadRequestError for other schemes and for FUSE mounts, which lack the atomic link that a commit needs.
    """
    text = os.fspath(uri)
    if not text.strip():
        raise BadRequestError("graph URI is empty")
    if text.startswith("s3://"):
        return Location(text.rstrip("/"), _s3_options(options or {}))
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    if text.startswith("dbfs:") or text.startswith(_FUSE_MOUNTS):
        raise BadRequestError(
            f"'{text}' cannot hold a graph: this mount has no atomic rename or link, and commits would be lost "
            "silently. Use an object store URI (s3://…); JSONL input may stay there."
        )
    if "://" in text:
        raise BadRequestError(f"'{text}' has an unsupported scheme: use a local path, file:// or s3://")
    return Location(str(Path(text).absolute()).rstrip("/") or "/", dict(options or {}))


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
