"""The verb `embed` for a file: records of JSON lines get vectors, and no graph is touched."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import NamedTuple

import msgspec

from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.config_file import read_yaml
from spark_omnigraph.cli.files import read_text, whole_file
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.cli.verbs.provider import (
    cost_of,
    most_tokens,
    naming_cost,
    provider_of,
    provider_of_dry_run,
    say_dry_run,
)
from spark_omnigraph.embed.config import EmbedConfig
from spark_omnigraph.embed.counts import estimated, minutes, refuse_dear
from spark_omnigraph.embed.file import FileChoice, FileCounts, FileMode, FileSpec, checked_spec, embed_lines, read_spec
from spark_omnigraph.embed.providers import embedder_for
from spark_omnigraph.embed.record_texts import parse_selector
from spark_omnigraph.errors import BadRequestError, NotFoundError, UsageError
from spark_omnigraph.storage.input.globs import is_packed
from spark_omnigraph.storage.targets import why_not
from spark_omnigraph.storage.uri import nearest_path
from spark_omnigraph.words import counted

_OF_A_GRAPH = (
    "property", "source", "fields", "where", "stale", "adopt", "cache", "no_cache", "cache_every", "cache_seconds",
    "commit_every", "meta",
)  # laid out as a table  # fmt: skip
_DEFAULT_OUTPUT = "./build/seed.embedded.jsonl"
_DEFAULT = JobConfig("")


class _Files(NamedTuple):
    """What is read and written."""

    input: str
    output: str
    spec: FileSpec


def is_of_file(config: JobConfig) -> bool:
    """Whether the options are those of the form for a file."""
    return bool(config.spec or config.seed or config.input or config.output or config.select)


def embed_file(job: Job) -> VerbOutcome:
    """The summary has the names of the reference's, and besides how many rows were to get a vector, and got none."""
    config = job.config
    foreign = [f"--{key.replace('_', '-')}" for key in _OF_A_GRAPH if getattr(config, key) != getattr(_DEFAULT, key)]
    if foreign:
        raise UsageError(f"{', '.join(foreign)}: only for the rows of a graph, not with --input or --seed")
    if isinstance(config.max_bad_rows, float):
        raise UsageError("--max-bad-rows: a file takes a number of rows, not a share of them")
    if config.bad_rows is not None:
        job.log.warning(
            "--bad-rows: rows of a file have no report; the first ones that fail are warnings of the summary"
        )
    files = _of_manifest(config.seed) if config.seed else _of_options(config)
    mode = FileMode.CLEAN if config.clean else FileMode.REEMBED_ALL if config.all else FileMode.FILL_MISSING
    choice = FileChoice(files.spec, mode, config.types, [parse_selector(text) for text in config.select])
    provider = _provider(job, mode)
    counts = _looked_at(files, choice) if config.dry_run or most_tokens(config) is not None else FileCounts()
    embedder = None
    if config.dry_run:
        counts.taken(estimated(counts.of_all, provider))
        say_dry_run(job, provider, [counts.of_all])
    else:
        with naming_cost(config):
            refuse_dear(counts.bytes, most_tokens(config))
        embedder, counts = None if provider is None else embedder_for(provider), FileCounts()
        lines = embed_lines(_lines(files.input), choice, embedder, counts, config.max_bad_rows)
        with whole_file(files.output, job.host.storage_options(config)) as file:
            file.writelines(f"{line}\n" for line in lines)
        done, verb = (counts.cleaned_rows, "cleaned") if mode is FileMode.CLEAN else (counts.embedded_rows, "embedded")
        job.log.info("%s: %s of %s %s", files.output, done, counted(counts.rows, "row"), verb)
    told = {name: value for name, value in asdict(counts).items() if name != "failures"}
    summary = {
        "input": files.input,
        "output": files.output,
        **told,
        "mode": str(choice.told_mode),
        "dimension": files.spec.dimension,
        "model": "" if embedder is None else embedder.model,
        "minutes": minutes(provider, [counts.of_all]) if config.dry_run else None,
        "cost": cost_of(config, counts.tokens),
    }
    return VerbOutcome(warnings=tuple(counts.failures), result=summary)


def _provider(job: Job, mode: FileMode) -> EmbedConfig | None:
    """Who is asked, None where nobody is; a dry run does without."""
    if mode is FileMode.CLEAN:
        return None
    return provider_of_dry_run(job) if job.config.dry_run else provider_of(job)


def _looked_at(files: _Files, choice: FileChoice) -> FileCounts:
    """What there is to ask for."""
    counts = FileCounts()
    for _ in embed_lines(_lines(files.input), choice, None, counts):
        continue
    return counts


def _of_options(config: JobConfig) -> _Files:
    if len(config.input) != 1 or not config.output or not config.spec:
        raise UsageError("a file needs --input FILE, --output FILE and --spec FILE, or --seed FILE that names them")
    return _Files(config.input[0], config.output, read_spec(read_text("--spec", config.spec)))


def _of_manifest(path: str) -> _Files:
    """What a manifest of seeds says; its paths are relative to it."""
    content = read_yaml("--seed", path)
    raw = _member(content, "sources", "raw_seed") or _member(content, "seed", "data")
    if not isinstance(raw, str):
        raise UsageError(f"--seed: '{path}' names no input: sources.raw_seed")
    folder = os.path.dirname(path)
    source = os.path.join(folder, raw)
    output = os.path.join(folder, str(_member(content, "artifacts", "embedded_seed") or _DEFAULT_OUTPUT))
    reason = why_not(output, "", [source, path])
    if reason is not None:
        raise UsageError(f"--seed: '{output}' {reason}")
    try:
        return _Files(source, output, checked_spec(msgspec.convert(content.get("embeddings"), FileSpec)))
    except msgspec.ValidationError as error:
        raise UsageError(f"--seed: 'embeddings' of '{path}' is no specification: {error}") from error


def _member(content: object, *names: str) -> object:
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _lines(path: str) -> Iterator[str]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig") if is_packed(path) else open(path, encoding="utf-8-sig") as file
        ):
            yield from file
    except FileNotFoundError:
        raise NotFoundError(f"there is no file '{path}'{nearest_path(path)}") from None
    except UnicodeDecodeError as error:
        raise BadRequestError(f"'{path}' is not UTF-8 text (byte {error.start + 1} of a piece of it)") from error
    except (OSError, EOFError) as error:
        raise UsageError(f"cannot read '{path}': {error}") from error
