"""From arguments, configuration file and environment to one frozen `JobConfig`, with all mistakes reported at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from spark_omnigraph.branch.conflicts import OnConflict
from spark_omnigraph.cli.embed_options import EMBED_MODES
from spark_omnigraph.cli.loading_options import PATCHING
from spark_omnigraph.cli.options import CONFIG, PAST, Option, Shape
from spark_omnigraph.cli.request import Given, Request, Source
from spark_omnigraph.cli.values import Missing, MissingFileError, check_characters, shortened
from spark_omnigraph.errors import BadRequestError, NotFoundError, UsageError
from spark_omnigraph.manifest.facts import checked_metadata
from spark_omnigraph.memory import BUDGET
from spark_omnigraph.records.mode import (
    REMOTE_SCHEMES,
    EmbedAtLoad,
    LoadMode,
    Nulls,
    OnDuplicate,
    OnMissing,
    UnknownFields,
)
from spark_omnigraph.sql.room import MEMORY, SPILL
from spark_omnigraph.storage import targets
from spark_omnigraph.storage.uri import DELTA

if TYPE_CHECKING:
    from spark_omnigraph.graph.read.history import Bounded, Where

_READ = ("input", "mapping", "schema", "file", "config", "decisions", "spec", "seed")
"""Options that name files which are read, and which no option that names a file to write may replace."""
_WRITTEN = ("output", "bad_rows", "summary", "metrics", "report", "conflicts")

EXCLUSIVE = (PAST, EMBED_MODES)
"""Options of which at most one can be given."""

WhyNot = Callable[[str, str, Iterable[str]], str | None]


@dataclass(frozen=True, slots=True)
class JobConfig:
    """Everything a verb may be told, typed and checked. Options that a verb does not have keep their default."""

    verb: str
    graph: str = ""
    branch: str = "main"
    actor: str | None = None
    config: str | None = None
    executor: str = "auto"
    dry_run: bool = False
    summary: str | None = None
    metrics: str | None = None
    meta: dict[str, str] = field(default_factory=dict)
    log_format: str = "text"
    log_level: str = "info"
    progress: str = "auto"
    storage_options: dict[str, str] = field(default_factory=dict, repr=False)
    schema: str = ""
    accept: bool = False
    force: bool = False
    input: tuple[str, ...] = ()
    input_format: str = "auto"
    mapping: str | None = None
    node: str | None = None
    edge: str | None = None
    coerce: bool = False
    csv_single_line: bool = False
    version_as_of: int | None = None
    mode: LoadMode = LoadMode.APPEND
    base: str = "main"
    max_bad_rows: int | float = 0
    max_deletes: int | float | None = None
    full: bool = False
    every: timedelta | None = None
    app_id: str | None = None
    edge_id: str | None = None
    adopt_edges: bool = False
    bad_rows: str | None = None
    show_rows: int | None = None
    on_duplicate: OnDuplicate = OnDuplicate.LAST
    missing_rows: OnMissing = OnMissing.ERROR
    nulls: Nulls = Nulls.SET
    unknown_fields: UnknownFields = UnknownFields.REFUSE
    blob_schemes: tuple[str, ...] = REMOTE_SCHEMES
    index: bool = True
    load_concurrency: int | None = None
    spark_threshold: int = 1024**3
    version: int | None = None
    snapshot: str | None = None
    as_of: str | None = None
    tag: str | None = None
    limit: int | None = None
    filter: str | None = None
    types: tuple[str, ...] = ()
    output: str | None = None
    name: str = ""
    source: str = ""
    into: str = "main"
    on_conflict: OnConflict = OnConflict.FAIL
    conflicts: str | None = None
    decisions: str | None = None
    delete_branch: bool = False
    merged: bool = False
    break_lock: bool = False
    verbose: bool = False
    folder: str | None = None
    confirm: bool = False
    all_branches: bool = False
    older_than: timedelta | None = None
    keep: int | None = None
    rewind_apps: bool = False
    to: str = ""
    to_storage_options: dict[str, str] = field(default_factory=dict, repr=False)
    only: str | None = None
    table: str = ""
    id: str = ""
    report: str | None = None
    before: str = ""
    after: str = ""
    file: str = ""
    text: str = ""
    format: str = "table"
    export_format: str = "jsonl"
    incremental: bool = False
    with_blobs: bool = False
    description_format: str = "text"
    explain: bool = False
    analyze: bool = False
    time_limit: timedelta | None = None
    max_rows: int | None = None
    memory: int = MEMORY
    spill: int = SPILL
    params: dict[str, object] | None = field(default=None, repr=False)
    cache_memory: int = BUDGET
    spec: str = ""
    seed: str = ""
    select: tuple[str, ...] = ()
    property: str | None = None
    fields: tuple[str, ...] = ()
    missing: bool = False
    stale: bool = False
    all: bool = False
    clean: bool = False
    where: str | None = None
    adopt: bool = False
    provider: str | None = None
    model: str | None = None
    batch: int = 64
    parallel: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    cache: str | None = None
    embed: EmbedAtLoad = EmbedAtLoad.OFF
    no_cache: bool = False
    cache_every: int | None = None
    cache_seconds: int = 10
    commit_every: int | None = None
    price_per_million: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    set: dict[str, object] = field(default_factory=dict, repr=False)
    allow_data_loss: bool = False

    def past(self) -> Where:
        """The state of the past that is named, nothing but None where none is."""
        return {"version": self.version, "snapshot": self.snapshot, "as_of": self.as_of, "tag": self.tag}

    def bounded(self) -> Bounded:
        """The state of the past that is named, and what an answer may take."""
        return {**self.past(), "time_limit": self.time_limit, "max_rows": self.max_rows}


def resolve(request: Request, arguments: Given, environ: Mapping[str, str], mistakes: Sequence[str] = ()) -> JobConfig:
    """The configuration of a verb: arguments win over the file, the file over the environment.

    `mistakes` are those found while splitting the arguments. Raises UsageError that names every mistake, or
    NotFoundError when all that is wrong are files that are not there.
    """
    problems = list(mistakes)
    environment = Source("the environment", _from_environment(request.options, environ))
    sources = [Source("", arguments), environment]
    path = _value(CONFIG, sources, [])
    if isinstance(path, str):
        from spark_omnigraph.cli.config_file import options_of_file  # noqa: PLC0415 - YAML is slow to import

        sources[1:1] = options_of_file(path, request, problems)
    found: dict[str, object] = {"verb": request.verb, **request.fixed}
    for option in request.options:
        value = _value(option, sources, problems)
        if value is not None:
            found[option.key] = value
        elif option.required and not _is_given(option, sources) and not _named(option, mistakes):
            other = f" without {option.way_out}" if option.unless else ""
            problems.append(f"{option.shown_name} is required{other}: {option.help}")
    problems += _given_together(found)
    meta = found.get("meta")
    if isinstance(meta, dict):
        try:
            checked_metadata(meta)
        except BadRequestError as error:
            problems.append(f"--meta: {error.message}")
    if problems:
        missing = all(isinstance(problem, Missing) for problem in problems)
        raise NotFoundError(_listed(problems)) if missing else UsageError(_listed(problems))
    config = msgspec.convert(found, JobConfig)
    replaced = list(refused_files(config).values())
    if replaced:
        raise UsageError(_listed(replaced))
    return config


def _given_together(found: Mapping[str, object]) -> list[str]:
    """Mistakes: options of which at most one can be meant, and those of another mode."""
    groups = ([option.shown_name for option in group if found.get(option.key)] for group in EXCLUSIVE)
    mistakes = [f"give one of {', '.join(given)}, not {len(given)}" for given in groups if len(given) > 1]
    if found.get("mode") != LoadMode.UPDATE:
        named = (option.flag_name for option in PATCHING if found.get(option.key, option.default) != option.default)
        mistakes += [f"{name} is of patches: it goes with mode update alone" for name in named]
    return mistakes


def salvage(request: Request, arguments: Given) -> JobConfig:
    """What stands in the arguments about the report itself, for the summary of a job whose arguments are wrong."""
    wanted = {"graph", "branch", "dry_run", "summary", "metrics", "report", "output", "log_format", "log_level", *_READ}
    options = [option for option in request.options if option.key in wanted and option.key in arguments]
    source = Source("", arguments)
    found = {option.key: value for option in options if (value := _value(option, [source], [])) is not None}
    return msgspec.convert({"verb": request.verb, **found}, JobConfig)


def refused_files(config: JobConfig, why: WhyNot = targets.why_not) -> dict[str, str]:
    """By key of an option that names a file to write: why it may not be written, where it would replace a file of the
    graph, or one that the job reads, or cannot be.
    """
    named = (config.mapping, config.schema, config.file, config.config, config.decisions, config.spec, config.seed)
    read = (*config.input, *named)
    found = {}
    for key in _WRITTEN:
        path: str | None = getattr(config, key)
        if key == "metrics" and path is not None and path.endswith(".parquet"):
            path += "/run.parquet"  # a folder, to which each run adds a file
        if key == "output" and path is not None and config.verb == "export" and config.export_format != "jsonl":
            path = f"{path.removeprefix(DELTA).rstrip('/')}/nodes/TYPE"  # a table, or a file, in its folder
        reason = None if path is None else why(path, config.graph, [name for name in read if name])
        if reason is not None:
            found[key] = f"--{key.replace('_', '-')}: '{path}' {reason}"
    return found


def _is_given(option: Option, sources: Sequence[Source]) -> bool:
    """Whether an option, or one that is enough in its place, is given, be it wrong."""
    return any(option.key in source.given or option.unless in source.given for source in sources)


def _named(option: Option, mistakes: Sequence[str]) -> bool:
    """Whether a mistake names an option already: it is not called missing then, too."""
    name = re.compile(rf"(?<![\w-]){re.escape(option.shown_name)}(?![\w-])")
    return not option.positional and any(name.search(mistake) for mistake in mistakes)


def _listed(problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return f"{len(problems)} mistakes:" + "".join(f"\n  {problem}" for problem in problems)


def _value(option: Option, sources: Sequence[Source], problems: list[str]) -> object:
    """Parsed value of an option from the first source that has it; the pairs of all sources together."""
    having = [source for source in sources if option.key in source.given]
    if option.shape is Shape.PAIRS:
        pairs = (pair for source in reversed(having) for pair in _parsed(option, source, problems))
        return dict(pair for pair in pairs if isinstance(pair, tuple)) or None
    if not having:
        return None
    parsed = _parsed(option, having[0], problems)
    if not parsed:
        return None
    return tuple(parsed) if option.shape is Shape.MANY else parsed[-1]


def _parsed(option: Option, source: Source, problems: list[str]) -> list[object]:
    values = []
    for text in source.given[option.key]:
        try:
            check_characters(text)
            values.append(option.parse(text))
        except (ValueError, OSError) as error:
            where = f" (from {source.label})" if source.label else ""
            reason = f"'{shortened(text)}': {error.strerror}" if isinstance(error, OSError) else error
            problem = Missing if isinstance(error, MissingFileError) else str
            problems.append(problem(f"{option.shown_name}: {reason}{where}"))
    return values


def _from_environment(options: Sequence[Option], environ: Mapping[str, str]) -> dict[str, list[str]]:
    given = {}
    for option in options:
        text = environ.get(option.env_name, "") if option.env else ""
        if text:
            given[option.key] = text.split(",") if option.shape is Shape.PAIRS else [text]
    return given
