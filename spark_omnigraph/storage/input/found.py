"""What a load reads: paths, folders, globs and URIs → files in order, each once; or lines that the caller has.

A folder is read as Spark reads one. What it leaves out without a word are the traces of other programs (names that
begin with a dot, or with `_` unless they are a partition such as `_day=1`); files that nobody finished are named in a
warning; whatever else cannot be read is an error.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import repr as shortened
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import NotFoundError as ObjectNotFoundError

from spark_omnigraph.errors import BadRequestError, IoError, NotFoundError
from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.input.delta import LOG
from spark_omnigraph.storage.input.globs import expand, fixed_folder, has_magic, is_hidden, is_unfinished, matches
from spark_omnigraph.storage.input.ranges import InputFile, file_stamp
from spark_omnigraph.storage.objects.files import split_s3
from spark_omnigraph.storage.objects.small import open_object_store
from spark_omnigraph.storage.uri import DELTA, PLACES, has_scheme, locate, nearest_path, plain

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import LocalStore, S3Store

MEMORY_NAME = "<input>"
_SHOWN = 5
_STREAMS = ("-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0")
_TABLES = ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__")
"""What tables of pandas, polars, Arrow and others have."""

Source = str | os.PathLike[str] | Iterable[str]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files of a load in order, and what the caller should know about what was left out."""

    files: tuple[InputFile, ...]
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes as stored."""
        return sum(file.size for file in self.files)


def list_inputs(source: Source | Sequence[str | os.PathLike[str]], options: Mapping[str, str]) -> Inputs:
    """Inputs of a load in order: paths, globs, folders, `s3://` URIs, or lines.

    A list whose items are all texts that can be paths, globs or URIs counts as paths; any other iterable of text as
    lines. A file that is reached twice, through links too, is read once. NotFoundError names a path that matches
    nothing or a link that leads nowhere; BadRequestError what is no list of lines, and what is no regular file.
    """
    if isinstance(source, (str, os.PathLike)):
        text = os.fspath(source)
        if not text.strip():
            raise BadRequestError("the input is an empty path; name a file, a folder, a glob or a URI")
        if text.lstrip().startswith("{") and not os.path.lexists(text[:255]):
            raise BadRequestError("the input is a JSON line where a path is expected: give a list of lines")
        return _files_of([text], options)
    items = list(_iterable(source))
    if items and all(looks_like_path(item) for item in items):
        return _files_of([os.fspath(item) for item in items if isinstance(item, (str, os.PathLike))], options)
    content = b"\n".join(_line(place, item) for place, item in enumerate(items))
    return Inputs((InputFile(MEMORY_NAME, len(content), "memory", content),))


def _iterable(source: object) -> Iterable[object]:
    kind = type(source).__name__
    if any(hasattr(source, name) for name in _TABLES):
        raise BadRequestError(
            f"a {kind} is a table, and a load reads JSON lines: write it through Spark (format 'omnigraph'), or give a "
            'list of lines such as {"type": "T", "data": {…}}'
        )
    if isinstance(source, (Mapping, bytes)) or not isinstance(source, Iterable):
        raise BadRequestError(f"a {kind} is no input: give paths, or a list of JSON lines (json.dumps makes one)")
    return source


def _line(place: int, item: object) -> bytes:
    """One line in UTF-8; text that has none there is kept as it is, for the reader of lines to refuse."""
    if not isinstance(item, str):
        kind = type(item).__name__
        raise BadRequestError(
            f"item {place} of the input is a {kind}, no JSON line: json.dumps makes one of a dictionary"
        )
    return item.removesuffix("\n").encode("utf-8", "surrogatepass")


def looks_like_path(item: object) -> bool:
    """Whether an item of a list can be a path, glob or URI, and not a JSON line."""
    if isinstance(item, str):
        text = item.strip().removeprefix("\ufeff")
        return bool(text) and "\n" not in item and not text.startswith(("{", "//", "["))
    return isinstance(item, os.PathLike)


def _files_of(given: Iterable[str], options: Mapping[str, str]) -> Inputs:
    listing = _Listing()
    for each in given:
        found = len(listing.files)
        text = plain(each)
        if text.startswith("s3://"):
            _add_s3(listing, text, options)
        else:
            _add_local(listing, text)
        if len(listing.files) == found and not listing.again:
            listing.empty.append(each)
        listing.again = False
    return Inputs(tuple(listing.files), tuple(listing.warnings()))


@dataclass(slots=True)
class _Listing:
    """What is found so far. `again` says that a place held files which are listed already."""

    files: list[InputFile] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    again: bool = False
    _seen: set[str] = field(default_factory=set)

    def warnings(self) -> Iterator[str]:
        """What the caller should know."""
        for place in self.empty:
            yield f"no input files in '{place}'"
        if self.unfinished:
            more = f" and {len(self.unfinished) - _SHOWN} more" if len(self.unfinished) > _SHOWN else ""
            shown = ", ".join(sorted(self.unfinished)[:_SHOWN])
            yield f"left out as unfinished, by its name: {shown}{more}; name such a file itself to read it"

    def is_new(self, real: str) -> bool:
        """Whether a place is met for the first time, under whatever name."""
        self.again |= real in self._seen
        new = real not in self._seen
        self._seen.add(real)
        return new

    def folder(self, path: str) -> None:
        """All files below a folder, by name; linked folders too."""
        waiting = [path]
        while waiting:
            each = waiting.pop()
            if not os.path.isdir(each):
                self.file(each)
            elif self.is_new(os.path.realpath(each)):
                with os.scandir(each) as entries:
                    names = sorted(entry.name for entry in entries)
                if LOG in names:
                    raise _is_delta_table(each)
                paths = [os.path.join(each, name) for name in reversed(names) if not is_hidden(name)]
                waiting += [path for path in paths if os.path.isdir(path) or self.is_finished(path)]

    def is_finished(self, path: str, glob: str = "") -> bool:
        """Whether a file is read that a folder holds or a glob names; one that is not is kept in mind."""
        finished = not is_unfinished(path.rpartition("/")[2]) or is_unfinished(glob.rpartition("/")[2])
        if not finished:
            self.unfinished.append(path)
        return finished

    def file(self, path: str) -> None:
        """One file."""
        try:
            facts = os.stat(path)
        except FileNotFoundError:
            to = os.readlink(path) if os.path.islink(path) else ""
            raise NotFoundError(f"input '{path}' is a link to '{to}', which is not there: mend or remove it") from None
        if not stat.S_ISREG(facts.st_mode):
            raise _no_file(path)
        if not os.access(path, os.R_OK):
            raise IoError(f"storage: cannot read input '{path}': Permission denied")
        if self.is_new(os.path.realpath(path)):
            self.files.append(InputFile(path, facts.st_size, file_stamp(facts)))


def _is_delta_table(place: str) -> BadRequestError:
    return BadRequestError(
        f"'{place}' is a Delta table, of whose files only those count that its log names: give it by itself, as "
        f"{DELTA}{place}"
    )


def _no_file(path: str) -> BadRequestError:
    return BadRequestError(f"input '{path}' is no regular file, and input is read twice: save it in a file first")


def _add_local(listing: _Listing, text: str) -> None:
    if text in _STREAMS:
        raise _no_file(text)
    if text.startswith("dbfs:/"):
        text = "/dbfs/" + text.removeprefix("dbfs:/").lstrip("/")
    elif has_scheme(text):
        raise BadRequestError(f"input '{text}' has an unsupported scheme: input is read {PLACES}, or from a mount")
    _check_path(text)
    try:
        if _exists(text):
            listing.folder(text)
            return
        found = sorted(expand(text)) if has_magic(text) else []
        for path in found:
            if os.path.isdir(path) or listing.is_finished(path, text):
                listing.folder(path)
    except OSError as error:
        raise IoError(f"storage: cannot read input '{error.filename or text}': {error.strerror}") from error
    if not found:
        raise NotFoundError(f"input '{text}' not found: no file, folder or glob match{nearest_path(text)}")


def _check_path(text: str) -> None:
    if "\0" in text:
        raise BadRequestError(f"input {shortened(text)} has a zero byte, which no path has")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise BadRequestError(f"input {shortened(text)} holds half of a surrogate pair, which no path has") from None


def _exists(path: str) -> bool:
    """Whether a file, folder or link stands there. OSError where nobody may look."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _add_s3(listing: _Listing, uri: str, options: Mapping[str, str]) -> None:
    """The object of that key, else what is below the folder of that key, else what the key matches as a glob: the order
    in which a local path is looked at too.
    """
    bucket, key = split_s3(uri)
    store = open_object_store(locate(bucket, options))
    with reading(f"list {uri}"):
        named = _named_object(store, key)
        found = named or list(_listed(store, key.rstrip("/")))
        wanted = [meta for meta in found if named or _is_visible(meta["path"].removeprefix(key.rstrip("/")))]
        if not found and has_magic(key):
            wanted = found = [meta for meta in _listed(store, fixed_folder(key)) if matches(meta["path"], key)]
    if not found:
        raise NotFoundError(f"input '{uri}' not found: no object matches")
    logs = [] if named else [meta["path"] for meta in found if f"/{LOG}/" in f"/{meta['path']}"]
    if logs:
        raise _is_delta_table(f"{bucket}/{logs[0]}".partition(f"/{LOG}/")[0])
    for meta in sorted(wanted, key=lambda m: m["path"]):
        name = f"{bucket}/{meta['path']}"
        if (named or listing.is_finished(name, key)) and listing.is_new(name):
            listing.files.append(InputFile(name, int(meta["size"]), str(meta["e_tag"])))


def _is_visible(below: str) -> bool:
    return not any(is_hidden(part) for part in below.split("/"))


def _named_object(store: LocalStore | S3Store, key: str) -> list[ObjectMeta]:
    if not key or key.endswith("/"):
        return []
    try:  # a listing of the key would show what is below it, not itself
        return [obstore.head(store, key)]
    except (FileNotFoundError, ObjectNotFoundError):
        return []


def _listed(store: LocalStore | S3Store, folder: str) -> Iterator[ObjectMeta]:
    for page in obstore.list(store, folder or None):
        yield from page
