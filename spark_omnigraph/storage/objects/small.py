"""Small objects under a graph root: whole-object put, create-if-absent, get, delete, flat listing."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, InvalidPathError, NotFoundError, PreconditionError
from obstore.store import LocalStore, S3Store

from spark_omnigraph.errors import BadRequestError, DamagedError, StorageError
from spark_omnigraph.storage.objects.local_swap import remove_file, swap_file
from spark_omnigraph.storage.objects.local_walk import (
    file_stamp,
    find_links,
    find_pieces,
    names_in,
    require_inside,
    special_in,
    walk_files,
)
from spark_omnigraph.storage.uri import Location
from spark_omnigraph.stored import OBJECT_LIMIT, too_large

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

SWAP_LOCK = "x_swap.lock"
"""File that an earlier release left in a local folder; it is no object."""
_BULK = 1000
"""Objects that a store removes in one request."""
_ABSENT = (FileNotFoundError, NotFoundError)
_ROLE_SERVER = "169.254.169.254"
"""Where credentials are asked for last, when the environment has none."""
_FOREIGN = (BaseError, OSError, ValueError, RuntimeError)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a listing. `modified` is the store's time, which some stores cut to whole seconds."""

    path: str
    size: int
    modified: datetime


class Objects:
    """Client for the small objects of one graph. Paths are relative to its root."""

    def __init__(self, location: Location, *, create: bool = False) -> None:
        self.location = location
        self._store = self.client = open_object_store(location, create)

    def get(self, path: str, limit: int | None = OBJECT_LIMIT) -> bytes | None:
        """Content of an object, or None when it does not exist.

        Raises DamagedError for one of more bytes than `limit`, and for what is no regular file and may never end.
        """
        try:
            if self.location.is_local:
                self._refuse_special(path)
            found = obstore.get(self._store, path)
            size = int(found.meta["size"])
            if limit is not None and size > limit:
                raise too_large(f"storage: {self.location.root}/{path}", size, limit)
            return bytes(found.bytes())
        except _ABSENT:
            return None
        except _FOREIGN as error:
            raise self._failed("read", path, error) from error

    def _refuse_special(self, path: str) -> None:
        """A pipe or a device in place of an object is no object: whoever opens it may wait for ever."""
        with suppress(*_ABSENT):
            if stat.S_ISREG(os.stat(self.location.join(path)).st_mode):
                return
            found = f"{self.location.root}/{path}"
            raise DamagedError(f"storage: {found} is no regular file: put the file back from a backup, or remove it")

    def put(self, path: str, content: bytes) -> None:
        """Writes the whole object, replacing an existing one."""
        try:
            obstore.put(self._store, path, content)
        except _FOREIGN as error:
            raise self._failed("write", path, error) from error

    def create(self, path: str, content: bytes) -> bool:
        """Writes the object only if none exists; False when one does. Exactly one of several racers gets True."""
        try:
            obstore.put(self._store, path, content, mode="create")
        except (AlreadyExistsError, PreconditionError):
            return False
        except _FOREIGN as error:
            raise self._failed("create", path, error) from error
        return True

    def swap(self, path: str, expected: bytes, content: bytes) -> bool:
        """Replaces an object only while its content is `expected`. Exactly one of several racers gets True."""
        try:
            if self.location.is_local:
                self._refuse_special(path)
                return swap_file(self.location.join(path), expected, content)
            found = obstore.get(self._store, path)
            tag = found.meta["e_tag"]
            if bytes(found.bytes()) != expected or tag is None:
                return False
            obstore.put(self._store, path, content, mode={"e_tag": tag})
        except (*_ABSENT, AlreadyExistsError, PreconditionError):
            return False
        except _FOREIGN as error:
            raise self._failed("replace", path, error) from error
        return True

    def remove(self, path: str, expected: bytes | None = None, wait: float | None = None) -> bool:
        """Removes an object, if `expected` is given only while that is its content; False when it is another. A missing
        one is fine.

        On a local disk a swap under way is waited for, at most `wait` seconds, then StorageError: so no swap that began
        before brings the object back. On an object store none does either, since a replacement there asks for the
        version that it has read; but one may land between the look at the content and the removal, and is removed.
        """
        try:
            if self.location.is_local:
                return remove_file(self.location.join(path), expected, wait)
            if expected is not None and bytes(obstore.get(self._store, path).bytes()) != expected:
                return False
            obstore.delete(self._store, path)
        except _ABSENT:
            return True
        except _FOREIGN as error:
            raise self._failed("delete", path, error) from error
        return True

    def modified(self, path: str) -> datetime | None:
        """When an object was last written, by the store's time; None when it does not exist."""
        try:
            if self.location.is_local:  # whatever stands there, and be it no file
                return datetime.fromtimestamp(os.stat(self.location.join(path)).st_mtime, timezone.utc)
            return obstore.head(self._store, path)["last_modified"]
        except _ABSENT:
            return None
        except _FOREIGN as error:
            raise self._failed("read", path, error) from error

    def stamp(self, path: str) -> Hashable:
        """What tells the content of an object from any other in its place; None when it does not exist. The stamp of a
        local file that was changed just now equals no other one.
        """
        try:
            if self.location.is_local:
                stamp = file_stamp(self.location.join(path))
                return object() if stamp.may_recur else stamp
            return obstore.head(self._store, path)["e_tag"]
        except _ABSENT:
            return None
        except _FOREIGN as error:
            raise self._failed("read", path, error) from error

    def delete(self, path: str) -> None:
        """Removes an object; a missing one is fine. On a local disk never through a symbolic link to its folder."""
        self._require_inside([path])
        try:
            obstore.delete(self._store, path)
        except _ABSENT:
            return
        except _FOREIGN as error:
            raise self._failed("delete", path, error) from error

    def delete_all(self, paths: Sequence[str]) -> None:
        """Removes many objects, in few requests where the store can; missing ones are fine. On a local disk never
        through a symbolic link to their folder.
        """
        self._require_inside(paths)
        for start in range(0, len(paths), _BULK):
            chunk = [*paths[start : start + _BULK]]
            try:
                obstore.delete(self._store, chunk)
            except _ABSENT:
                for path in chunk:
                    self.delete(path)
            except _FOREIGN as error:
                raise self._failed("delete", chunk[0], error) from error

    def list(self, folder: str) -> list[str]:
        """Names of the objects directly in a folder, sorted; empty when the folder does not exist. The lock file
        that an earlier release left there is none of them.
        """
        try:
            found = obstore.list_with_delimiter(self._store, folder)["objects"]
        except _ABSENT:
            return []
        except InvalidPathError as error:
            self._refuse_remote("list", folder, error)
            return names_in(self.location.join(folder))
        except _FOREIGN as error:
            raise self._failed("list", folder, error) from error
        names = (meta["path"].rsplit("/", 1)[-1] for meta in found)
        return sorted(name for name in names if name != SWAP_LOCK)

    def walk(self, folder: str) -> tuple[StoredObject, ...]:
        """All objects below a folder at any depth, by path; empty when the folder does not exist. Symbolic links of a
        local disk are no objects, and are not followed; see `links`.
        """
        try:
            if self.location.is_local:
                return tuple(sorted(self._local(folder), key=lambda o: o.path))
            found = [meta for page in obstore.list(self._store, folder) for meta in page]
        except _ABSENT:
            return ()
        except _FOREIGN as error:
            raise self._failed("list", folder, error) from error
        objects = (StoredObject(meta["path"], int(meta["size"]), meta["last_modified"]) for meta in found)
        return tuple(sorted(objects, key=lambda o: o.path))

    def links(self, folder: str) -> tuple[str, ...]:
        """Symbolic links at a local folder, on the way to it from the root, and below it."""
        return tuple(find_links(self.location.root, folder)) if self.location.is_local else ()

    def _local(self, folder: str) -> Iterator[StoredObject]:
        for path, facts in walk_files(self.location.root, folder):
            yield _local_object(path, facts)

    def _require_inside(self, paths: Iterable[str]) -> None:
        if self.location.is_local:
            require_inside(self.location.root, {os.path.dirname(path) for path in paths})

    def files(self, folder: str) -> tuple[StoredObject, ...]:
        """The objects directly in a folder (the root for the empty one)."""
        try:
            found = obstore.list_with_delimiter(self._store, folder or None)["objects"]
        except _ABSENT:
            return ()
        except InvalidPathError as error:
            self._refuse_remote("list", folder, error)
            return tuple(each for each in self._local(folder) if "/" not in each.path[len(folder) + 1 :])
        except _FOREIGN as error:
            raise self._failed("list", folder, error) from error
        return tuple(StoredObject(meta["path"], int(meta["size"]), meta["last_modified"]) for meta in found)

    def pieces(self) -> tuple[StoredObject, ...]:
        """What writes that were interrupted left unnamed on a local disk; object stores keep no such thing."""
        found = find_pieces(self.location.root) if self.location.is_local else ()
        return tuple(_local_object(path, facts) for path, facts in found)

    def refuse_special_in(self, folder: str) -> None:
        """DamagedError when a pipe or a device stands in a folder of files that Lance opens."""
        found = special_in(self.location.join(folder)) if self.location.is_local else None
        if found is not None:
            raise DamagedError(f"storage: {found} is no regular file: put the file back from a backup, or remove it")

    def remove_piece(self, path: str) -> None:
        """Removes what `pieces` found, whose name no client of a store takes; a missing one is fine."""
        try:
            os.unlink(self.location.join(path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed("delete", path, error) from error

    def _refuse_remote(self, verb: str, folder: str, error: InvalidPathError) -> None:
        """Names that no store has are passed over where they can be: on a local disk."""
        if not self.location.is_local:
            raise self._failed(verb, folder, error) from error

    def clock(self, folder: str) -> datetime:
        """The store's own time, as it stamps objects: read off an object that is made and removed."""
        path = f"{folder}/x_clock_{uuid.uuid4().hex}"
        try:
            obstore.put(self._store, path, b"")
            now = obstore.head(self._store, path)["last_modified"]
            obstore.delete(self._store, path)
        except _FOREIGN as error:
            raise self._failed("write", path, error) from error
        return now

    def has_prefix(self, folder: str) -> bool:
        """True when an object stands below a folder; an empty local folder does not count."""
        try:
            return any(page for page in obstore.list(self._store, folder, chunk_size=1))
        except _ABSENT:
            return False
        except InvalidPathError as error:
            self._refuse_remote("list", folder, error)
            return any(True for _ in self._local(folder))
        except _FOREIGN as error:
            raise self._failed("list", folder, error) from error

    def purge(self, folder: str, hold: Callable[[], None] = lambda: None) -> None:
        """Removes every object below a folder, and symbolic links at and below it, but nothing that they lead to. On a
        local disk never through a link to the folder. `hold` is asked again and again in between, and may raise.
        """
        try:
            if self.location.is_local:
                self._purge_files(folder, hold)
                return
            for page in obstore.list(self._store, folder):
                hold()
                obstore.delete(self._store, [meta["path"] for meta in page])
        except _ABSENT:
            return
        except _FOREIGN as error:
            raise self._failed("delete", folder, error) from error

    def _purge_files(self, folder: str, hold: Callable[[], None]) -> None:
        self._require_inside([folder])
        for path in (*self.links(folder), *(each.path for each in self._local(folder))):
            hold()
            with suppress(FileNotFoundError):
                os.unlink(self.location.join(path))

    def probe(self, folder: str) -> None:
        """Refuses a store that cannot be written, or would corrupt a graph silently: one that ignores create-if-absent,
        or, locally, one without hard links and rename. Raises StorageError; leaves nothing behind.
        """
        name = f"{folder}/x_probe_{uuid.uuid4().hex}"
        try:
            if self.location.is_local:
                # First, since create-if-absent is made of links here and would fail without a reason to go by.
                self._put_first(name)
                _probe_links(self.location.join(name))
                self.delete(name)
            # A lost answer makes the client ask again, and then it meets its own object.
            made = self.create(name, b"1") or self.get(name) == b"1"
            if not made or self.create(name, b"2"):
                raise StorageError(
                    f"storage: {self.location.root} ignores conditional puts (If-None-Match); two writers would "
                    "overwrite each other silently. Use a store that supports them."
                )
        finally:
            with suppress(StorageError):  # the store's own fault matters more than an object that stays
                self.delete(name)

    def _put_first(self, name: str) -> None:
        try:
            self.put(name, b"0")
        except StorageError as error:
            reason = error.message.rpartition(": ")[2]
            raise StorageError(
                f"storage: {self.location.root} cannot be written: {reason}. A write needs that permission there; "
                "opening with mode 'r' does not"
            ) from error

    def _failed(self, verb: str, path: str, error: BaseException) -> StorageError:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if _ROLE_SERVER in reason:
            reason = f"no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give a role ({reason})"
        return StorageError(f"storage: cannot {verb} {self.location.root}/{path}: {reason}")


def _local_object(path: str, facts: os.stat_result) -> StoredObject:
    return StoredObject(path, facts.st_size, datetime.fromtimestamp(facts.st_mtime_ns / 1e9, timezone.utc))


def open_object_store(location: Location, create: bool = False) -> LocalStore | S3Store:
    """Client of a root; with `create`, a missing local folder is made."""
    if location.is_local:
        if not create and not os.path.exists(location.root):
            raise StorageError(
                f"storage: folder {location.root} does not exist: correct the path, or mount what holds it"
            )
        return _local_store(location.root, create)
    config, client = _s3_config(location.options)
    return S3Store.from_url(location.root, config=cast("S3Config", config), client_options=cast("ClientConfig", client))


def _local_store(root: str, create: bool) -> LocalStore:
    if os.path.exists(root) and not os.path.isdir(root):
        raise BadRequestError(f"'{root}' is a file; a graph needs a folder")
    try:
        return LocalStore(prefix=root, mkdir=create)
    except _FOREIGN as error:
        raise StorageError(f"storage: cannot make the folder {root} ({error}): choose another, or allow it") from error


def _s3_config(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, bool]]:
    """Lance's option names in obstore's two groups; AWS credentials also come from the environment."""
    config = {k: v for k, v in options.items() if k.startswith("aws_")}
    allow_http = options.get("allow_http", options.get("aws_allow_http", "")).lower() in ("1", "true")
    config.pop("aws_allow_http", None)
    return config, ({"allow_http": True} if allow_http else {})


def _probe_links(path: str) -> None:
    linked, renamed = f"{path}.link", f"{path}.moved"
    try:
        os.link(path, linked)
        os.rename(linked, renamed)
    except OSError as error:
        raise StorageError(
            f"storage: {os.path.dirname(path)} has no atomic link and rename ({error.strerror}); a graph root needs "
            "them. Use a local disk or an object store URI."
        ) from error
    finally:
        for leftover in (linked, renamed):
            if os.path.lexists(leftover):
                os.unlink(leftover)
