"""What a caller gives to be loaded: files of which format, tables of Arrow, by which rules."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.arguments import SWITCH, WHOLE, require
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.records.frames.mapping import (
    InputMapping,
    MappingSource,
    TableInput,
    read_mapping,
    type_named,
)
from spark_omnigraph.records.frames.rules import plan_rows
from spark_omnigraph.records.mode import DecodeOptions, EmbedAtLoad, InputFormat, choice
from spark_omnigraph.staging.filling import accepting
from spark_omnigraph.storage.input.delta import delta_input, is_delta
from spark_omnigraph.storage.input.found import Inputs, Source, list_inputs, looks_like_path
from spark_omnigraph.storage.input.ranges import InputFile
from spark_omnigraph.storage.input.tables import table_columns
from spark_omnigraph.storage.uri import DELTA
from spark_omnigraph.words import nearest


class InputArguments(TypedDict, total=False):
    """What a load is told about its input: the type of the rows of tables, the format of files, which columns become
    which properties (a path, a text or a dictionary), whether no value of CSV spans lines, and which version of a Delta
    table is read.
    """

    node: str | None
    edge: str | None
    format: str
    mapping: MappingSource | None
    csv_single_line: bool
    version_as_of: int | None


class LoadArguments(InputArguments, total=False):
    """What a load is told besides its source and mode."""

    branch: str | None
    base: str | None
    actor: str | None
    metadata: Mapping[str, str] | None
    options: LoadOptions | None


_ENDINGS = {
    ".parquet": InputFormat.PARQUET,
    ".pq": InputFormat.PARQUET,
    ".csv": InputFormat.CSV,
    ".tsv": InputFormat.CSV,
    ".tab": InputFormat.CSV,
    ".arrow": InputFormat.ARROW,
    ".arrows": InputFormat.ARROW,
    ".ipc": InputFormat.ARROW,
    ".feather": InputFormat.ARROW,
}


@dataclass(frozen=True, slots=True)
class InputChoices:
    """The arguments, checked."""

    table_key: TableKey | None = None
    format: InputFormat = InputFormat.AUTO
    mapping: InputMapping | None = None
    single_line: bool = False
    version: int | None = None

    @property
    def of_tables(self) -> TableInput:
        """How the rows of a table are read that is given beside a mapping, or without one."""
        how = self.mapping.of_given if self.mapping is not None else None
        if how is None:
            return TableInput.of_type(self.table_key)
        if self.table_key is None:
            return how
        if len(how.rules) > 1 or how.rules[0].table_key not in (None, self.table_key):
            raise BadRequestError(f"the mapping names the types of its rows; '{self.table_key}' contradicts it")
        return replace(how, rules=(replace(how.rules[0], table_key=self.table_key),))

    @property
    def of_rows(self) -> TableInput:
        """How rows in memory are read. BadRequestError when the mapping is of files alone, which nobody would read."""
        if self.mapping is not None and self.mapping.of_given is None:
            raise BadRequestError(
                "the mapping names its inputs by 'path', and rows are given beside it: leave out 'path'"
            )
        return self.of_tables

    @property
    def digest(self) -> str | None:
        """That of the mapping."""
        return None if self.mapping is None else self.mapping.digest


def input_choices(given: Mapping[str, object]) -> InputChoices:
    """The checked arguments. BadRequestError names one that is unknown or wrong."""
    for name in given:
        if name not in InputArguments.__annotations__:
            raise BadRequestError(f"a load has no argument '{name}'{nearest(name, InputArguments.__annotations__)}")
    named = {}
    for name in ("node", "edge"):
        named[name] = value = given.get(name)
        if value is not None and not isinstance(value, str):
            raise BadRequestError(f"'{name}' is the name of a type")
    single_line, mapping = given.get("csv_single_line", False), given.get("mapping")
    require("csv_single_line", single_line, SWITCH)
    version = given.get("version_as_of")
    if version is not None:
        require("version_as_of", version, WHOLE)
        if version < 0:  # type: ignore[operator]  # a whole number, as was looked at
            raise BadRequestError("version_as_of is a version of a Delta table, from 0 on")
    return InputChoices(
        type_named(named["node"], named["edge"]),  # type: ignore[arg-type]  # texts, as was looked at
        choice("format", given.get("format", InputFormat.AUTO), InputFormat),
        None if mapping is None else read_mapping(mapping),  # type: ignore[arg-type]  # which looks at it
        bool(single_line),
        version,  # type: ignore[arg-type]  # a whole number, as was looked at
    )


def find_inputs(
    source: Source | Sequence[str | os.PathLike[str]] | None, choices: InputChoices, options: Mapping[str, str]
) -> Inputs:
    """The files of a load in order: those that are given, then those that the mapping names."""
    found: list[InputFile] = []
    warnings: list[str] = []
    mapped = [] if choices.mapping is None else [each for each in choices.mapping.inputs if each[0] is not None]
    if source is not None or not mapped:
        inputs = _listed(() if source is None else source, choices.format, choices.version, options)
        warnings += inputs.warnings
        found += [_in_partitions(_formed(file, choices), source) for file in inputs.files]
    for path, how in mapped:
        inputs = _listed(path or "", how.format, how.version, options)
        warnings += inputs.warnings
        tables = (_table(file, how, _format(file, how.format), choices) for file in inputs.files)
        found += [_in_partitions(file, path) for file in tables]
    names = [file.name for file in found]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise BadRequestError(f"input '{twice}' is read twice; give all its 'rows' in one input of the mapping")
    return Inputs(tuple(found), tuple(warnings))


def delta_alone(paths: Sequence[str], choices: InputChoices) -> str | None:
    """The Delta table of a load that has no other input."""
    named = () if choices.mapping is None else [path for path, _ in choices.mapping.inputs if path is not None]
    if len(paths) != 1 or named or not (choices.format is InputFormat.DELTA or is_delta(paths[0])):
        return None
    return paths[0]


def _listed(
    source: Source | Sequence[str | os.PathLike[str]],
    form: InputFormat,
    version: int | None,
    options: Mapping[str, str],
) -> Inputs:
    """Files, and Delta tables in their places."""
    given = [source] if isinstance(source, (str, os.PathLike)) else source
    named = isinstance(given, Sequence) and all(looks_like_path(each) for each in given)
    tables = [each for each in given if form is InputFormat.DELTA or is_delta(os.fspath(each))] if named else []
    if version is not None and not tables:
        raise BadRequestError("a version is of a Delta table, and no input is one")
    if not tables:
        return list_inputs(source, options)
    files: list[InputFile] = []
    warnings: list[str] = []
    for each in given:
        if each in tables:
            files.append(delta_input(os.fspath(each), version, options))
        else:
            inputs = list_inputs(each, options)
            files += inputs.files
            warnings += inputs.warnings
    return Inputs(tuple(files), tuple(warnings))


def distinct_tables(files: Iterable[InputFile], how: TableInput | None = None) -> frozenset[str]:
    """Tables of whose rows equal ones count once."""
    hows = [how, *(file.table for file in files)]
    rules = (rule for each in hows if each is not None for rule in each.rules)
    return frozenset(rule.table_key for rule in rules if rule.distinct and rule.table_key is not None)


def accepted(catalog: Catalog, options: LoadOptions) -> Catalog:
    """The schema that rows must fit: columns may be missing that are filled in later."""
    return catalog if options.embed is EmbedAtLoad.OFF else accepting(catalog)


def check_tables(
    catalog: Catalog, files: Sequence[InputFile], decode: DecodeOptions, options: Mapping[str, str]
) -> None:
    """Whether the columns of every table suit the rules by which it is read. BadRequestError names the file."""
    for file in files:
        if file.table is not None:
            columns = table_columns(file, options)
            try:
                plan_rows(catalog, file.table, columns, decode)
            except BadRequestError as error:
                raise BadRequestError(f"input '{file.name}': {error.message}") from None


def _formed(file: InputFile, choices: InputChoices) -> InputFile:
    kind = InputFormat.JSONL if file.content is not None else _format(file, choices.format)
    if kind is not InputFormat.JSONL:
        return _table(file, choices.of_tables, kind, choices)
    if choices.table_key is not None or (choices.mapping is not None and choices.mapping.of_given is not None):
        raise BadRequestError(
            f"input '{file.name}' is read as JSON lines, whose records name their types: a type or a mapping is of "
            "tables; for a table say its format"
        )
    return file


def _in_partitions(file: InputFile, given: object) -> InputFile:
    """The file with the columns that are in the names of its folders, below those that were given."""
    if file.table is None or file.table.format is InputFormat.DELTA:
        return file
    paths = [given] if isinstance(given, (str, os.PathLike)) else given if isinstance(given, Sequence) else ()
    known = {part for path in paths for part in os.fspath(path).split("/")}
    parts = [part for part in file.name.split("/")[:-1] if part not in known]
    names = tuple(part.partition("=")[0] for part in parts if "=" in part)
    return replace(file, table=replace(file.table, partitions=names)) if names else file


def _format(file: InputFile, given: InputFormat) -> InputFormat:
    if file.name.startswith(DELTA):
        return InputFormat.DELTA
    if given is not InputFormat.AUTO:
        return given
    name = file.name.lower()
    stem, ending = os.path.splitext(name)
    if ending in (".gz", ".gzip"):
        ending = os.path.splitext(stem)[1]
    return _ENDINGS.get(ending, InputFormat.JSONL)


def _table(file: InputFile, how: TableInput, kind: InputFormat, choices: InputChoices) -> InputFile:
    if kind is InputFormat.JSONL:
        raise BadRequestError(f"input '{file.name}' of the mapping is no table by its name; say its 'format'")
    if kind is not InputFormat.CSV and file.is_compressed:
        raise BadRequestError(f"input '{file.name}' is packed, and {kind} is read in parts: unpack it")
    is_csv = kind is InputFormat.CSV
    form = replace(how, format=kind, coerce=is_csv, single_line=is_csv and choices.single_line)
    return replace(file, table=form)
