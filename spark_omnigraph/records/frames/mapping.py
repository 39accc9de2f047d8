"""Which rows of a table become rows of which types: the mapping that a user gives, as checked values.

One table without a mapping holds rows of one type, columns named as its properties, or records of any types.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import BadRequestError, NotFoundError
from spark_omnigraph.records.mode import InputFormat
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.yaml_text import parsed_yaml

LARGEST = 1 << 20
"""Bytes of a mapping; YAML is read slowly."""
NULLS = ("",)
"""Fields of CSV that are null, where they are not in quotes."""

MappingSource = str | os.PathLike[str] | Mapping[str, object]
"""A path, the text itself, or its values."""


@dataclass(frozen=True, slots=True)
class MappingRule:
    """Rows of one type out of the rows of a table; of records of any types without `table_key`.

    `columns` gives a property for a column, `ends` the columns of the keys of `src` and `dst`. Rows whose column `when`
    is null give none; with `distinct` equal rows count once.
    """

    table_key: TableKey | None
    columns: tuple[tuple[str, str], ...] = ()
    constants: tuple[tuple[str, object], ...] = ()
    ends: tuple[tuple[str, tuple[str, ...]], ...] = ()
    id: tuple[str, ...] = ()
    when: str | None = None
    distinct: bool = False

    @property
    def says_nothing(self) -> bool:
        """Whether columns are taken by their names alone."""
        return self == MappingRule(self.table_key)


@dataclass(frozen=True, slots=True)
class TableInput:
    """How the rows of a table are read. `nulls`, `delimiter` and `single_line` are of CSV, `version` is of Delta: the
    newest without one. `partitions` are columns that folders of a file have in their names (`year=1995`).
    """

    rules: tuple[MappingRule, ...] = (MappingRule(None),)
    format: InputFormat = InputFormat.AUTO
    ignore: tuple[str, ...] = ()
    coerce: bool = False
    nulls: tuple[str, ...] = NULLS
    delimiter: str | None = None
    single_line: bool = False
    version: int | None = None
    partitions: tuple[str, ...] = ()

    @classmethod
    def of_type(cls, table_key: TableKey | None) -> TableInput:
        """Of rows of one type whose columns are named as its properties; without one of records of any types."""
        return cls((MappingRule(table_key),))


@dataclass(frozen=True, slots=True)
class InputMapping:
    """What a mapping says: of inputs that it names by path, or (a path of None) of the input that is given beside it.
    `digest` is that of its values, however they were written.
    """

    inputs: tuple[tuple[str | None, TableInput], ...]
    digest: str

    @property
    def of_given(self) -> TableInput | None:
        """What it says of the input that is given beside it."""
        return next((how for path, how in self.inputs if path is None), None)


_Names = str | list[str]
_One = Annotated[str, msgspec.Meta(min_length=1, max_length=1, pattern=r"[\t !#-~]")]
"""One character that separates fields: no quote, no line break, none that takes several bytes."""


class _Rule(msgspec.Struct, forbid_unknown_fields=True):
    node: str | None = None
    edge: str | None = None
    columns: dict[str, _Names] = {}
    constants: dict[str, Any] = {}
    start: _Names = msgspec.field(default_factory=list, name="from")
    to: _Names = []
    id: _Names = []
    when: str | None = None
    distinct: bool = False


class _Input(_Rule, forbid_unknown_fields=True):
    path: str | None = None
    format: Literal["auto", "parquet", "csv", "arrow", "delta"] = "auto"
    rows: list[_Rule] = []
    ignore: list[str] = []
    nulls: list[str] = msgspec.field(default_factory=lambda: list(NULLS))
    delimiter: _One | None = None
    version: Annotated[int, msgspec.Meta(ge=0)] | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    inputs: list[_Input]


def read_mapping(source: MappingSource) -> InputMapping:
    """A mapping from a file, a text (of several lines, or beginning with a brace), or values. BadRequestError names
    the member that is wrong; NotFoundError a file that is not there.
    """
    what, body = _body(source)
    try:
        whole = body if isinstance(body, dict) and "inputs" in body else {"inputs": [body]}
        found = msgspec.convert(whole, _File)
        digest = sha256(msgspec.json.encode(found, order="sorted")).hexdigest()
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        # YAML reads a bare no, on or 1 as what is no text.
        quotes = "; a text that looks like another value stands in quotes" if "`str" in str(error) else ""
        raise BadRequestError(f"{what}: {error}{quotes}") from None
    inputs = tuple((each.path, _table_input(what, each)) for each in found.inputs)
    if not inputs or (len(inputs) > 1 and any(path is None for path, _ in inputs)):
        raise BadRequestError(f"{what}: each of several inputs needs a 'path'")
    return InputMapping(inputs, f"sha256:{digest}")


def type_named(node: str | None, edge: str | None) -> TableKey | None:
    """The table of a type named by one of two options. BadRequestError for both."""
    if node is not None and edge is not None:
        raise BadRequestError("'node' and 'edge' contradict each other; give one of them")
    if node is not None:
        return TableKey.node(node)
    return None if edge is None else TableKey.edge(edge)


def _body(source: MappingSource) -> tuple[str, object]:
    if isinstance(source, Mapping):
        return "the mapping", dict(source)
    if not isinstance(source, (str, os.PathLike)):
        raise BadRequestError(f"a mapping is a path, a text or a dictionary, not {as_shown(source)}")
    text = os.fspath(source)
    what = "the mapping"
    if not isinstance(source, str) or not ("\n" in text or text.lstrip().startswith("{")):
        what, text = f"mapping '{text}'", _file_text(text)
    try:
        return what, parsed_yaml(text)
    except ValueError as error:
        raise BadRequestError(f"{what} {error}") from None


def _file_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise BadRequestError(f"mapping '{path}' is too large: at most {LARGEST:,} bytes")
        return content.decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"there is no mapping '{path}'") from None
    except UnicodeDecodeError as error:
        raise BadRequestError(f"mapping '{path}' is not UTF-8 text (byte {error.start + 1})") from None
    except (OSError, ValueError) as error:
        raise BadRequestError(f"mapping '{path}' cannot be read: {error}") from None


def _table_input(what: str, given: _Input) -> TableInput:
    own = _row_rule(what, given)
    if given.rows and not replace(own, distinct=False).says_nothing:
        raise BadRequestError(f"{what}: an input has 'rows', or the members of one rule itself, not both")
    rules = tuple(_row_rule(what, each) for each in given.rows) or (own,)
    if len(rules) > 1 and any(rule.table_key is None for rule in rules):
        raise BadRequestError(f"{what}: each of several 'rows' needs a 'node' or an 'edge'")
    return TableInput(
        rules,
        InputFormat(given.format),
        tuple(given.ignore),
        nulls=tuple(given.nulls),
        delimiter=given.delimiter,
        version=given.version,
    )


def _row_rule(what: str, given: _Rule) -> MappingRule:
    key = type_named(given.node, given.edge)
    ends = tuple((name, _names(value)) for name, value in (("src", given.start), ("dst", given.to)) if value)
    if ends and (key is None or key.kind != "edge"):
        raise BadRequestError(f"{what}: 'from' and 'to' are of an 'edge'")
    if key is None and (given.columns or given.constants or given.id):
        raise BadRequestError(f"{what}: name the type of the rows with 'node' or 'edge'")
    columns = tuple((source, name) for source, names in given.columns.items() for name in _names(names))
    constants = tuple(given.constants.items())
    return MappingRule(key, columns, constants, ends, _names(given.id), given.when, given.distinct)


def _names(value: _Names) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
