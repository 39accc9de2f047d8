"""How the text of an option becomes a value. Every parser raises ValueError with a message fit for the user."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from spark_omnigraph.catalog.migration.steps import FromColumn
from spark_omnigraph.catalog.numbers import COUNT_DIGITS, count_of
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.read import arguments
from spark_omnigraph.manifest.facts import checked_metadata
from spark_omnigraph.redaction import SECRET_NAME, has_credentials
from spark_omnigraph.storage.uri import DELTA, has_scheme, locate, nearest_path, plain

Parser = Callable[[str], object]


class MissingFileError(ValueError):
    """A file that an option names is not there."""


class Missing(str):
    """A mistake that is a file which is not there: the exit code is that of whatever is not found."""

    __slots__ = ()


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE | re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE | re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SHOWN = 60
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def text(value: str) -> str:
    """Any text but the empty one."""
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def check_characters(value: str) -> None:
    """ValueError for a text that no file, no object store and no commit can hold."""
    if "\0" in value:
        raise ValueError("must not hold a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("is not UTF-8 text") from None


def local_path(value: str) -> str:
    """A path on this machine."""
    try:
        path = plain(text(value))
    except BadRequestError as error:
        raise ValueError(error.message) from None
    if has_scheme(path):
        raise ValueError(f"'{value}' must be a path on this machine")
    return path


def existing_file(value: str) -> str:
    """A file on this machine that is there."""
    path = local_path(value)
    if Path(path).is_dir():
        raise ValueError(f"'{value}' is a folder, not a file")
    if not Path(path).is_file():
        if os.path.exists(path):
            raise ValueError(f"'{value}' is no regular file")  # some verbs read their input twice
        raise MissingFileError(f"there is no file '{value}'{nearest_path(path)}")
    return path


def query_file(value: str) -> str:
    """A file of queries. A query in place of its name is answered with the option for that."""
    if "{" in value and not os.path.exists(value):
        raise ValueError("that is a query and not the name of a file; a query itself is given with -e")
    return existing_file(value)


def new_file(value: str) -> str:
    """A file on this machine that can be written, as far as can be seen before the work that fills it."""
    path = Path(local_path(value))
    if path.is_dir():
        raise ValueError(f"'{value}' is a folder; name a file in it")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise ValueError(f"'{value}' cannot be written: '{folder}' is a file, not a folder")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"'{value}' cannot be written: no permission to write to '{folder}'")
    return str(path)


def output(value: str) -> str:
    """A new file on this machine, or an object: `s3://…`."""
    place = graph_uri(value)
    if not plain(place).startswith("s3://"):
        return new_file(place)
    try:
        locate(place)
    except BadRequestError as error:
        raise ValueError(error.message) from None
    if place.endswith("/"):
        raise ValueError(f"'{place}' is a folder; name a file in it")
    return plain(place)


def answer(value: str) -> str:
    """As `output`, for rows that Spark may write, as a folder."""
    if not has_scheme(value) and Path(local_path(value)).is_dir():
        raise ValueError(f"'{value}' is a folder already; name a new file, or for --executor spark a new folder")
    return output(value)


def page(value: str) -> str:
    """A new file or an object that is a page."""
    if not value.lower().endswith(".html"):
        raise ValueError(f"'{value}' does not end in .html, which a page does")
    return output(value)


def graph_uri(value: str) -> str:
    """A place. Credentials inside a URI are refused: it is logged and stands in the summary."""
    if has_credentials(text(value)):
        raise ValueError("must not hold credentials; give them in the environment or the Spark configuration")
    return value


def json_object(value: str) -> dict[str, object]:
    """The members of a JSON object."""
    try:
        return arguments.json_object(value)
    except ValueError:
        if os.path.isfile(value):
            raise ValueError(f"takes JSON, and '{value}' is a file: \"$(cat {value})\" is its content") from None
        raise


def positive(value: str) -> int:
    """A whole number of at least 1."""
    number = whole_number(value)
    if not number:
        raise ValueError(f"'{shortened(value)}' is not a whole number of at least 1")
    return number


def natural(value: str) -> int:
    """A whole number from 0 on."""
    number = whole_number(value)
    if number is None:
        raise ValueError(f"'{shortened(value)}' is not a whole number from 0 on")
    return number


def whole_number(value: str) -> int | None:
    """A number of digits alone, None for any other text. ValueError for one that no count reaches."""
    number = count_of(value)
    if number is None and value.isascii() and value.isdigit():
        raise ValueError(f"'{shortened(value)}' is too large: at most {COUNT_DIGITS} digits")
    return number


def names(value: str) -> tuple[str, ...]:
    """Names with commas between them."""
    found = tuple(name.strip() for name in value.split(","))
    if not all(found):
        raise ValueError(f"'{shortened(value)}' is not a list such as title,plot")
    return found


def amount(value: str) -> float:
    """A number from 0 on."""
    try:
        found = float(value)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ValueError(f"'{shortened(value)}' is not a number from 0 on, such as 5 or 0.25")
    return found


def count(value: str) -> int:
    """A whole number, 0 too."""
    number = whole_number(value)
    if number is None:
        raise ValueError(f"'{shortened(value)}' is not a whole number")
    return number


def shortened(value: str) -> str:
    """A text as a message shows it."""
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"


def size(value: str) -> int:
    """A number of bytes: `500000`, `500MB`, `1GiB`; letters without `i` are powers of 1000."""
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise ValueError(f"'{shortened(value)}' is not a size such as 500MB or 1GiB")
    number, letter, binary = found.groups()
    if len(number) > COUNT_DIGITS:
        raise ValueError(f"'{shortened(value)}' is too large: at most {COUNT_DIGITS} digits")
    return int(float(number) * (1024 if binary else 1000) ** _POWER[letter.upper()])


def duration(value: str) -> timedelta:
    """A length of time: `7d`, `12h`, `90m`, `30s`, `2w`."""
    found = _DURATION.fullmatch(value.strip())
    if found is None:
        raise ValueError(
            f"'{shortened(value)}' is not a length of time: a number and s, m, h, d or w, as in 30s, 90m or 7d"
        )
    number, unit = found.groups()
    try:
        return timedelta(**{_UNITS[unit.lower()]: float(number)})
    except OverflowError as error:
        raise ValueError(f"'{shortened(value)}' is too long") from error


def instant(value: str) -> str:
    """A time in ISO 8601, as the library reads it."""
    try:
        arguments.time_micros(value)
    except BadRequestError as error:
        raise ValueError(error.message) from None
    return value


@dataclass(frozen=True, slots=True)
class OneOf:
    """One word of a list."""

    choices: tuple[str, ...]

    def __call__(self, value: str) -> str:
        if value not in self.choices:
            raise ValueError(f"'{shortened(value)}' is not one of {', '.join(self.choices)}")
        return value


def one_of(*choices: str) -> OneOf:
    """The parser of one word of a list."""
    return OneOf(choices)


def switch(value: str) -> bool:
    """`true` or `false`, as the environment spells a switch."""
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if value.lower() not in known:
        raise ValueError(f"'{shortened(value)}' is neither true nor false")
    return known[value.lower()]


def metrics(value: str) -> str:
    """A file of JSON lines here, or a folder of Parquet files or a Delta table, which may be an object store's."""
    place = graph_uri(value)
    if place.startswith(DELTA):
        return place
    is_folder = plain(place).rstrip("/").endswith(".parquet")
    if not is_folder and plain(place).startswith("s3://"):
        raise ValueError("nothing is added to an object: name a folder of Parquet files, s3://…/runs.parquet")
    if not is_folder:
        return new_file(place)
    folder = output(f"{place.rstrip('/')}/run.parquet").rpartition("/")[0]
    if Path(folder).is_file():
        raise ValueError(f"'{value}' is a file, and each run adds one to a folder: name another")
    return folder


def metadata(value: str) -> tuple[str, str]:
    """`KEY=VALUE` of the metadata of a commit."""
    key, equals, text_ = value.partition("=")
    if not equals:
        raise ValueError("is not KEY=VALUE")
    try:
        return next(iter(checked_metadata({key.strip(): text_}).items()))
    except BadRequestError as error:
        raise ValueError(error.message) from None


def row_value(value: str) -> tuple[str, object]:
    """`TYPE.PROP=JSON`, or `TYPE.PROP=@OTHER`, a value for stored rows. No JSON begins with `@`."""
    place, equals, text_ = value.partition("=")
    if not equals or "." not in place:
        raise ValueError(f"'{shortened(value)}' is not TYPE.PROP=JSON")
    text_ = text_.strip()
    if text_.startswith("@"):
        return place.strip(), FromColumn(text_[1:])
    try:
        return place.strip(), arguments.json_value(text_)
    except ValueError as error:
        hint = f"; a text stands in quotes, as in {place}='\"{text_}\"'" if text_.isalnum() else ""
        raise ValueError(f"the value of {place} {error}{hint}") from None


def storage_option(value: str) -> tuple[str, str]:
    """`KEY=VALUE` of the object store's client; keys that name a secret are refused."""
    key, equals, setting = value.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ValueError("is not KEY=VALUE (it is not shown, since it may hold a secret)")
    if SECRET_NAME.search(key):
        raise ValueError(
            f"'{key}' names a secret, and arguments and files are seen by others: set it in the environment "
            f"(AWS_…) or as spark.omnigraph.storage.{key} in the Spark configuration"
        )
    return key, setting
