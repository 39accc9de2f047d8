"""A load of whatever a caller has: files, lines, tables of Arrow, pandas or polars, rows as dictionaries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from spark_omnigraph.branch.control import branch_to_write
from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.graph.load.frame import StagedPart, finish_frame_load, plan_frame_load, staged_part
from spark_omnigraph.graph.load.inputs import InputChoices, accepted, distinct_tables, find_inputs, input_choices
from spark_omnigraph.graph.load.load import LoadRequest, load
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport, decoding
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.frames.mapping import TableInput
from spark_omnigraph.records.frames.rules import plan_rows
from spark_omnigraph.records.mode import InputFormat, LoadMode, OnDuplicate, choice
from spark_omnigraph.records.python_rows import record_lines
from spark_omnigraph.staging.receipt import StageContext
from spark_omnigraph.staging.stage import stage_frame
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.input.delta import BY_SPARK, delta_scan, is_scanned
from spark_omnigraph.storage.input.found import Inputs
from spark_omnigraph.storage.input.ranges import InputFile
from spark_omnigraph.write.after import after

TABLE_NAME = "<table>"


class OnceRows(Protocol):
    """Rows that are read once: staged where they are, maybe by several tasks. Without an order none of them is later
    than another.
    """

    @property
    def name(self) -> str:
        """As reports call it."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    @property
    def has_order(self) -> bool:
        """Whether the last of several rows of one id is the one that was meant."""

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        """Stages all rows. Raises what a task raises."""


@dataclass(frozen=True, slots=True)
class LocalRows:
    """A table of Arrow in this process."""

    reader: pa.RecordBatchReader
    name: str = TABLE_NAME
    has_order: bool = True

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        return [staged_part(context, stage_frame(context, how, self.reader, 0))]


@dataclass(frozen=True, slots=True)
class LoadCall:
    """The arguments of a load besides its source."""

    mode: str
    branch: str
    base: str | None
    actor: str | None
    origin: CommitOrigin
    options: LoadOptions
    inputs: Mapping[str, object]
    transaction: Transaction | None = None
    """The name of the write: refused when it was committed before."""


def load_source(store: GraphStore, source: Any, call: LoadCall) -> LoadReport:
    """Loads a source in one commit. Raises what a load raises; then nothing has changed."""
    choices, options = input_choices(call.inputs), call.options
    mode = choice("mode", call.mode, LoadMode)
    decode = decoding(options, mode)  # before a branch is made for options that do not go together
    rows, lines, source = _as_rows(source, choices, decode.changes)
    found = replace(choices, table_key=None) if lines else choices  # they name the type now
    inputs = Inputs(()) if rows is not None else find_inputs(source, found, store.storage_options)
    check_report_path(options.bad_rows, inputs.files, store.root)
    how = choices.of_tables if rows is not None else None
    scanned = _scanned(inputs, store.storage_options)
    if scanned is not None:
        how = scanned.table
        rows = LocalRows(delta_scan(scanned, store.storage_options), scanned.name, has_order=False)
    if rows is not None and how is not None:
        plan_rows(accepted(read_catalog(store), options), how, rows.schema, decode)
        if not rows.has_order:
            options = replace(options, on_duplicate=OnDuplicate.ERROR)
    name, created = branch_to_write(store, call.branch, call.base, options.dry_run)
    request = LoadRequest(
        inputs.files,
        name,
        mode,
        call.actor,
        options,
        call.base,
        created,
        call.transaction,
        origin=call.origin,
        mapping_digest=choices.digest,
        distinct=distinct_tables(inputs.files, how),
    )
    if rows is not None and how is not None:
        return load_once(store, request, how, rows)
    report = load(store, request)
    done = after(store, name, report, "load") if options.build_indexes else report
    return replace(done, warnings=inputs.warnings + done.warnings)


def load_once(store: GraphStore, request: LoadRequest, how: TableInput, rows: OnceRows) -> LoadReport:
    """Stages rows once; whatever comes after reads what was staged."""
    key = how.rules[0].table_key if len(how.rules) == 1 else None
    with staging(store) as stage:
        request = replace(request, stages=(stage,), frame=rows.name.replace("{", "{{").replace("}", "}}"))
        plan = plan_frame_load(store, request, key)
        return finish_frame_load(store, request, plan, rows.stage(plan.context, how))


def _scanned(inputs: Inputs, options: Mapping[str, str]) -> InputFile | None:
    """A Delta table whose rows can be read only once, and so not beside other inputs."""
    tables = (file for file in inputs.files if file.table is not None and file.table.format is InputFormat.DELTA)
    found = next((file for file in tables if is_scanned(file, options)), None)
    if found is not None and len(inputs.files) > 1:
        raise BadRequestError(
            f"input '{found.name}' has deletion vectors or v2 checkpoints, and its rows come in no order: load it "
            f"alone, or {BY_SPARK}"
        )
    return found


def _as_rows(source: Any, choices: InputChoices, changes: bool) -> tuple[OnceRows | None, bool, Any]:
    """A source as rows that are read once where it is such, else as what is listed: paths or lines; and whether those
    are rows that were dictionaries.
    """
    if hasattr(source, OnceRows.stage.__name__):
        return source, False, None
    found = _arrow(source)
    if found is not None or source is None or isinstance(source, (str, bytes, os.PathLike, Mapping)):
        return None if found is None else LocalRows(found), False, source
    if not isinstance(source, Iterable):
        return None, False, source
    items = iter(source)
    first = next(items, None)
    if isinstance(first, pa.RecordBatch):
        return LocalRows(pa.RecordBatchReader.from_batches(first.schema, chain((first,), items))), False, None
    rest = source if isinstance(source, Sequence) else [] if first is None else [first, *items]
    if not isinstance(first, Mapping):
        return None, False, rest
    if choices.mapping is not None:
        return LocalRows(_of_rows(rest)), False, None
    return None, True, record_lines(rest, choices.table_key, changes)


def _arrow(source: object) -> pa.RecordBatchReader | None:
    if type(source).__module__.partition(".")[0] == "pandas":
        source = _of_pandas(source)
    try:
        if hasattr(source, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(source)
        if hasattr(source, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(source)]).to_reader()
        if hasattr(source, "__dataframe__"):
            return pa.interchange.from_dataframe(source).to_reader()
    except (pa.ArrowException, TypeError) as error:
        raise BadRequestError(f"a {type(source).__name__} is no table of Arrow: {error}") from error
    return None


def _of_pandas(frame: object) -> pa.Table:
    """Columns without the index. Pandas has no integers beside missing values: floats that are whole are integers."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, AttributeError, TypeError) as error:
        raise BadRequestError(f"a {type(frame).__name__} of pandas is no table of Arrow: {error}") from error
    for place, column in enumerate(table.columns):
        if pa.types.is_floating(column.type) and column.null_count:
            try:
                whole = column.cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(place, table.column_names[place], whole)
    return table


def _of_rows(rows: Sequence[object]) -> pa.RecordBatchReader:
    try:
        return pa.Table.from_pylist(list(rows)).to_reader()
    except (pa.ArrowException, AttributeError, TypeError) as error:
        raise BadRequestError(f"the rows have no columns of one type each: {error}") from error
