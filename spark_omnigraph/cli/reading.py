"""The verbs that read: `describe`, `commits`, `export`, `branch list`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from spark_omnigraph.cli.files import whole_file
from spark_omnigraph.cli.reporting import say_table, speaker
from spark_omnigraph.cli.verb import Job, Outcome
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.manifest.lineage import Commit


def describe(job: Job) -> Outcome:
    """Types with their counts, versions and index coverage."""
    described = _at(job).describe()
    version = described["manifest_version"]
    say = speaker(job.log)
    say(f"{described['graph']}, branch {described['branch']}, manifest version {version}")
    rows = [_table_row(kind, name, table) for kind in ("nodes", "edges") for name, table in _tables(described, kind)]
    say_table(job.log, ("type", "rows", "version", "properties", "indexes"), rows)
    return Outcome(manifest_version=version if isinstance(version, int) else None, result=described)


def commits(job: Job) -> Outcome:
    """History of a branch, newest first."""
    oldest_first = _open(job).commits(limit=job.config.limit, actor=job.config.filter)
    found = [_commit(commit) for commit in reversed(oldest_first)]
    shown = ("created_at", "id", "branch", "manifest_version", "actor")
    say_table(job.log, shown, [[commit[column] for column in shown] for commit in found])
    return Outcome(result=found)


def export(job: Job) -> Outcome:
    """The graph as JSON lines, in the form that `ingest` reads."""
    config = job.config
    lines = _at(job).export(types=list(config.types) or None)
    count = 0
    if config.output is None:
        for line in lines:
            job.emit(line)
            count += 1
    else:
        with whole_file(config.output) as file:
            for line in lines:
                file.write(line + "\n")
                count += 1
    job.log.info("exported %s records", f"{count:,}")
    return Outcome(result={"records": count, "output": config.output})


def list_branches(job: Job) -> Outcome:
    """Names of the branches."""
    names = _open(job).branches()
    say = speaker(job.log)
    for name in names:
        say(name)
    return Outcome(result=names)


def _commit(commit: Commit) -> dict[str, str | int | None]:
    created = datetime.fromtimestamp(commit.created_at / 1_000_000, timezone.utc)
    return {
        "id": commit.id,
        "branch": commit.branch or "main",
        "manifest_version": commit.manifest_version,
        "parent": commit.parent,
        "merged_parent": commit.merged_parent,
        "created_at": created.isoformat(timespec="milliseconds"),
        "actor": commit.actor,
    }


def _tables(described: Mapping[str, object], kind: str) -> list[tuple[str, Mapping[str, object]]]:
    tables = described[kind]
    assert isinstance(tables, Mapping)
    return list(tables.items())


def _table_row(kind: str, name: str, table: Mapping[str, object]) -> tuple[object, ...]:
    properties, indexes = table["properties"], table.get("indexes", {})
    assert isinstance(properties, Mapping)
    assert isinstance(indexes, Mapping)
    return f"{kind[:-1]}:{name}", table.get("rows"), table.get("version"), len(properties), len(indexes)


def _at(job: Job) -> Graph:
    """The graph at the state of the past that the job names, or as it is now."""
    config = job.config
    graph = _open(job)
    if (config.version, config.snapshot, config.as_of) == (None, None, None):
        return graph
    return graph.at(version=config.version, snapshot=config.snapshot, as_of=config.as_of)


def _open(job: Job) -> Graph:
    config = job.config
    return Graph.open(config.graph, mode="r", branch=config.branch, storage_options=job.host.storage_options(config))
