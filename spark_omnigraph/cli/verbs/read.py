"""The verbs that read: `describe`, `commits`, `diff`, `export`, `schema show`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, astuple

from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.cli.files import whole_file
from spark_omnigraph.cli.output.log import say_table, speaker
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.changes.diff import DiffFilter
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.describe import GraphDescription
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.facts import CommitFacts
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.words import counted
from spark_omnigraph.write.executor import Executor

_DESCRIBED: Mapping[str, Callable[[GraphDescription], str]] = {
    "json": lambda found: json.dumps(found.to_dict(), ensure_ascii=False, indent=2),
    "mermaid": GraphDescription.mermaid,
    "svg": GraphDescription.svg,
}
"""Forms of a description other than a table for people."""


def describe(job: Job) -> VerbOutcome:
    """Types with their counts, versions and index coverage: for people, for programs, or as a picture."""
    found = _at(job).describe()
    form = _DESCRIBED.get(job.config.description_format)
    if form is None:
        _say_types(job, found)
    else:
        _write_lines(job, form(found).removesuffix("\n").split("\n"))
    return VerbOutcome(manifest_version=found.manifest_version, warnings=found.warnings, result=found.to_dict())


def _say_types(job: Job, found: GraphDescription) -> None:
    say = speaker(job.log)
    say(f"{found.graph}, branch {found.branch}, manifest version {found.manifest_version}")
    types = [(f"node:{name}", node) for name, node in found.nodes.items()]
    types += [(f"edge:{name}", edge) for name, edge in found.edges.items()]
    if found.copy_of is not None:
        origin = found.copy_of.to_dict()
        say(f"a copy of {origin['graph']}, branch {origin['branch']}, version {origin['manifest_version']}")
    say_table(
        job.log, ("type", "rows", "version", "properties", "indexes"), [(name, *each.figures()) for name, each in types]
    )
    for name, each in types:
        if each.table is not None and each.table.upkeep.pays:
            worn = each.table.upkeep
            files = f"{worn.files} files instead of {worn.files_after}"
            rows = f"{worn.masked_rows:,} rows masked, {worn.unindexed_rows:,} not indexed"
            say(f"optimize pays for {name}: {files}, {rows}")


def commits(job: Job) -> VerbOutcome:
    """History of a branch, newest first."""
    found = _open(job).commits(limit=job.config.limit, actor=job.config.filter)
    shown = ("created_at", "commit", "branch", "manifest_version", "actor")
    figures = ("operation", "mode", "inserted", "updated", "deleted", "bad", "job")
    rows = [[*(_commit(each)[column] for column in shown), *_figures(each.facts)] for each in found]
    say_table(job.log, (*shown, *figures), rows)
    return VerbOutcome(result=[_commit(each) for each in found])


def diff(job: Job) -> VerbOutcome:
    """Net changes between two states, a JSON object a row."""
    config = job.config
    graph = _open(job)
    only = DiffFilter(type_names=config.types or None)
    found = graph.diff(config.before, config.after, only=only)
    _write_lines(job, (json.dumps(change.to_dict(), ensure_ascii=False) for change in found.changes))
    stats = found.stats()
    counts = ", ".join(f"{name} {stats[name]:,}" for name in ("inserts", "updates", "deletes"))
    job.log.info("from manifest version %s to %s: %s", found.from_version, found.to_version, counts)
    return VerbOutcome(result={"from_version": found.from_version, "to_version": found.to_version, **stats})


def export(job: Job) -> VerbOutcome:
    """The graph as JSON lines, in the form that `ingest` reads, or as a table for each type."""
    config = job.config
    if config.executor == "spark" and config.export_format != "delta":
        raise UsageError("--executor spark writes Delta tables: choose --format delta")
    if config.export_format != "jsonl":
        return _export_tables(job)
    if config.incremental or config.with_blobs:
        raise UsageError("--incremental and --with-blobs are of tables: choose --format delta or parquet")
    count = _write_lines(job, _at(job).export(types=list(config.types) or None))
    job.log.info("exported %s", counted(count, "record"))
    return VerbOutcome(result={"records": count, "output": config.output})


def _export_tables(job: Job) -> VerbOutcome:
    config = job.config
    if config.output is None:
        raise UsageError(f"--format {config.export_format} needs --output: the folder of the tables")
    if config.incremental and config.export_format != "delta":
        raise UsageError("--incremental is of tables that know which state they show: choose --format delta")
    executor = _executor(job)
    graph = _at(job)
    found = graph.export_tables(
        config.output,
        config.export_format,
        types=list(config.types) or None,
        incremental=config.incremental,
        with_blobs=config.with_blobs,
        executor=executor,
    )
    for key, each in found.items():
        gone = f", {each.deleted:,} deleted" if each.deleted else ""
        job.log.info("%s: %s, %s%s -> %s", key, each.outcome, counted(each.rows, "row"), gone, each.uri)
    version = graph.snapshot().version
    return VerbOutcome(
        manifest_version=version,
        result={"records": sum(each.rows for each in found.values()), "output": config.output}
        | {"executor": "local" if executor is None else "spark"}
        | {"written": {key: {**asdict(each), "outcome": str(each.outcome)} for key, each in found.items()}},
    )


def _executor(job: Job) -> Executor | None:
    """Spark, where it is to write; found out before the graph is opened."""
    config = job.config
    if config.export_format != "delta" or not job.host.takes_spark(config, 0):
        return None
    executor = job.host.executor(config, 0)
    from spark_omnigraph.spark.delta_session import has_delta  # noqa: PLC0415 - needs pyspark, which is optional
    from spark_omnigraph.spark.executor import SparkExecutor  # noqa: PLC0415 - needs pyspark, too

    assert isinstance(executor, SparkExecutor)
    return executor if config.executor == "spark" or has_delta(executor.spark) else None


def show_schema(job: Job) -> VerbOutcome:
    """The text of the schema, as it is or as it was at a state."""
    text = _at(job).schema()
    _write_lines(job, text.removesuffix("\n").split("\n"))
    return VerbOutcome(result={"output": job.config.output})


def _write_lines(job: Job, lines: Iterable[str]) -> int:
    """Lines to the output that the job names; how many there were."""
    count = 0
    if job.config.output is None:
        for line in lines:
            job.emit(line)
            count += 1
        return count
    with whole_file(job.config.output, job.host.storage_options(job.config)) as file:
        for line in lines:
            file.write(line + "\n")
            count += 1
    return count


def _commit(commit: Commit) -> dict[str, object]:
    return {
        "commit": commit.id,
        "id": commit.id,  # its name before there was one for all
        "branch": display(commit.branch),
        "manifest_version": commit.manifest_version,
        "parent": commit.parent,
        "merged_parent": commit.merged_parent,
        "created_at": moment_text(commit.created_at),
        "actor": commit.actor,
        "facts": None if commit.facts is None else commit.facts.to_dict(),
    }


def _figures(facts: CommitFacts | None) -> tuple[object, ...]:
    if facts is None:
        return (None,) * 7
    return facts.operation, facts.mode, *astuple(facts.totals()), facts.origin.job


def _at(job: Job) -> Graph:
    """The graph at the state of the past that the job names, or as it is now."""
    graph, past = _open(job), job.config.past()
    return graph if not any(past.values()) else graph.at(**past)


def _open(job: Job) -> Graph:
    config = job.config
    return Graph.open(config.graph, mode="r", branch=config.branch, storage_options=job.host.storage_options(config))
