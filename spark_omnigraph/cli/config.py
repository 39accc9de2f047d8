"""From arguments, configuration file and environment to one frozen `JobConfig`, with all mistakes reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import msgspec
import yaml

from spark_omnigraph.cli.options import COMMON, CONFIG, PAST, Option, Shape
from spark_omnigraph.errors import UsageError
from spark_omnigraph.records.mode import REMOTE_SCHEMES, LoadMode, OnDuplicate, UnknownFields
from spark_omnigraph.words import nearest

Given = Mapping[str, list[str]]
"""Texts of the options that one source gives, by key."""


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
    log_format: str = "text"
    log_level: str = "info"
    storage_options: dict[str, str] = field(default_factory=dict, repr=False)
    schema: str = ""
    force: bool = False
    input: tuple[str, ...] = ()
    mode: LoadMode = LoadMode.APPEND
    base: str = "main"
    max_bad_rows: int | float = 0
    bad_rows: str | None = None
    on_duplicate: OnDuplicate = OnDuplicate.LAST
    unknown_fields: UnknownFields = UnknownFields.REFUSE
    blob_schemes: tuple[str, ...] = REMOTE_SCHEMES
    index: bool = True
    load_concurrency: int | None = None
    spark_threshold: int = 1024**3
    version: int | None = None
    snapshot: str | None = None
    as_of: str | None = None
    limit: int | None = None
    filter: str | None = None
    types: tuple[str, ...] = ()
    output: str | None = None
    name: str = ""
    folder: str | None = None
    query_file: str = ""
    confirm: bool = False
    older_than: timedelta = timedelta(days=7)
    report: str | None = None
    before: str = ""
    after: str = ""
    file: str = ""
    text: str = ""
    format: str = "table"
    explain: bool = False
    params: dict[str, object] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Source:
    """One place that gives options, and what messages call it."""

    label: str
    given: Given


@dataclass(frozen=True, slots=True)
class Request:
    """What a verb's options are: those it takes, and those it decides itself."""

    verb: str
    options: tuple[Option, ...]
    fixed: Mapping[str, str]


def resolve(request: Request, arguments: Given, environ: Mapping[str, str], mistakes: Sequence[str] = ()) -> JobConfig:
    """The configuration of a verb: arguments win over the file, the file over the environment.

    `mistakes` are those found while splitting the arguments. Raises UsageError that names every mistake.
    """
    problems = list(mistakes)
    environment = Source("the environment", _from_environment(request.options, environ))
    sources = [Source("", arguments), environment]
    path = next((texts[0] for s in sources if (texts := s.given.get(CONFIG.key))), None)
    if path is not None:
        sources.insert(1, Source(path, _from_file(path, request, problems)))
    found: dict[str, object] = {"verb": request.verb, **request.fixed}
    for option in request.options:
        value = _value(option, sources, problems)
        if value is not None:
            found[option.key] = value
        elif option.required and not any(option.key in s.given for s in sources):
            problems.append(f"{option.shown_name} is required: {option.help}")
    past = [option.shown_name for option in PAST if option.key in found]
    if len(past) > 1:
        problems.append(f"give one of {', '.join(past)}, not {len(past)}")
    if problems:
        raise UsageError("\n".join(problems) if len(problems) == 1 else _listed(problems))
    return msgspec.convert(found, JobConfig)


def salvage(request: Request, arguments: Given) -> JobConfig:
    """What stands in the arguments about the report itself, for the summary of a job whose arguments are wrong."""
    wanted = {"graph", "branch", "dry_run", "summary", "log_format", "log_level"}
    options = [option for option in request.options if option.key in wanted and option.key in arguments]
    source = Source("", arguments)
    found = {option.key: value for option in options if (value := _value(option, [source], [])) is not None}
    return msgspec.convert({"verb": request.verb, **found}, JobConfig)


def _listed(problems: Sequence[str]) -> str:
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
            values.append(option.parse(text))
        except ValueError as error:
            where = f" (from {source.label})" if source.label else ""
            problems.append(f"{option.shown_name}: {error}{where}")
    return values


def _from_environment(options: Sequence[Option], environ: Mapping[str, str]) -> dict[str, list[str]]:
    given = {}
    for option in options:
        text = environ.get(option.env_name, "") if option.env else ""
        if text:
            given[option.key] = text.split(",") if option.shape is Shape.PAIRS else [text]
    return given


def _from_file(path: str, request: Request, problems: list[str]) -> dict[str, list[str]]:
    """Options of a configuration file. Common keys may stand there for other verbs; other keys must be this verb's."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(f"--config: cannot read '{path}': {error.strerror}")
        return {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problems.append(f"--config: '{path}' is not YAML: {' '.join(str(error).split())}")
        return {}
    if content is None:
        return {}
    if not isinstance(content, dict):
        problems.append(f"--config: '{path}' must hold keys and values")
        return {}
    known = {option.key: option for option in (*COMMON, *request.options) if option is not CONFIG}
    unknown = [str(key) for key in content if key not in known]
    for key in unknown:
        problems.append(f"unknown key '{key}' in {path}{nearest(key, known)}")
    if unknown:
        problems[-1] += f" (keys of {request.verb}: {', '.join(sorted(known))})"
    given = {}
    for key, value in content.items():
        if key in known and value is not None and value != []:
            given[key] = _texts(known[key], value, path, problems)
    return given


def _texts(option: Option, value: object, path: str, problems: list[str]) -> list[str]:
    """Texts of a YAML value, as if they had been arguments."""
    if option.shape is Shape.PAIRS and isinstance(value, dict):
        return [f"{key}={_scalar(item)}" for key, item in value.items()]
    items = value if isinstance(value, list) and option.shape in (Shape.MANY, Shape.PAIRS) else [value]
    texts = [text for item in items if (text := _scalar(item)) is not None]
    if len(texts) < len(items):
        expected = {Shape.MANY: "a value or a list of values", Shape.PAIRS: "keys and values"}
        problems.append(f"'{option.key}' in {path} must be {expected.get(option.shape, 'a single value')}")
        return []
    return texts


def _scalar(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    # YAML reads an unquoted 2026-01-31 as a date.
    return None if isinstance(value, (list, dict)) or value is None else str(value)
