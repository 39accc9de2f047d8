"""A load of whatever a caller has: files, lines, tables of Arrow, pandas or polars, rows as dictionaries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from spark_omnigraph.branch.control import branch_to_write
from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.commit.stage import staging
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.load.bad_rows import check_report_path
from spark_omnigraph.graph.load.frame import StagedPart, finish_frame_load, plan_frame_load, staged_part
from spark_omnigraph.graph.load.given import joined_batches, read_batches, reader_of_rows, table_reader
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
NO_ROWS = (
    "the input has no rows, and an overwrite would empty the type; an iterator or a reader gives its rows once, so it "
    "may have been read before: to empty the type give a table of Arrow without rows"
)


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

    @property
    def parallelism(self) -> int:
        """Tasks that stage at the same time."""

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        """Stages all rows. Raises what a task raises."""


@dataclass(frozen=True, slots=True)
class LocalRows:
    """A table of Arrow in this process. One that is `passing` may have been read before."""

    reader: pa.RecordBatchReader
    name: str = TABLE_NAME
    has_order: bool = True
    passing: bool = False
    parallelism: int = 1

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema

    def stage(self, context: StageContext, how: TableInput) -> list[StagedPart]:
        receipt = stage_frame(context, how, read_batches(self.reader, self.name), 0)
        if self.passing and not receipt.lines and context.mode is LoadMode.OVERWRITE:
            raise BadRequestError(NO_ROWS)
        return [staged_part(context, receipt)]


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
    rows, lines, source = _as_rows(source, choices, mode)
    found = replace(choices, table_key=None) if lines else choices  # they name the type now
    inputs = Inputs(()) if rows is not None else find_inputs(source, found, store.storage_options)
    check_report_path(options.bad_rows, inputs.files, store.root)
    how = choices.of_rows if rows is not None else None
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
        plan = plan_frame_load(store, request, key, rows.parallelism)
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


def _as_rows(source: Any, choices: InputChoices, mode: LoadMode) -> tuple[OnceRows | None, bool, Any]:
    """A source as rows that are read once where it is such, else as what is listed: paths or lines; and whether those
    are rows that were dictionaries.
    """
    if hasattr(source, OnceRows.stage.__name__):
        return source, False, None
    found = table_reader(source)
    if found is not None:
        return LocalRows(found, passing=isinstance(source, pa.RecordBatchReader)), False, None
    if source is None or isinstance(source, (str, bytes, os.PathLike, Mapping)) or not isinstance(source, Iterable):
        return None, False, source
    items = iter(source)
    first = next(items, None)
    if isinstance(first, (pa.RecordBatch, pa.Table)):
        return LocalRows(joined_batches(first, items)), False, None
    rest = source if isinstance(source, Sequence) else [] if first is None else [first, *items]
    if first is None and choices.table_key is not None:
        if mode is LoadMode.OVERWRITE:
            raise BadRequestError(NO_ROWS)
        return None, True, []
    if not isinstance(first, Mapping):
        return None, False, rest
    if choices.mapping is not None:
        return LocalRows(reader_of_rows(rest)), False, None
    return None, True, record_lines(rest, choices.table_key, mode is LoadMode.CHANGES)
