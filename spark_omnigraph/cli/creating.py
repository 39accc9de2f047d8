"""The verbs that make things: `init`, `branch create`, `demo`."""

from __future__ import annotations

from pathlib import Path

from spark_omnigraph.cli.demo import run_demo
from spark_omnigraph.cli.reporting import counted, speaker
from spark_omnigraph.cli.verb import Job, Outcome
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.lang.pg import compile_schema


def init(job: Job) -> Outcome:
    """A new graph from a schema file."""
    config = job.config
    schema = read_schema(config.schema)
    catalog = compile_schema(schema)
    nodes, edges = counted(len(catalog.nodes), "node type"), counted(len(catalog.edges), "edge type")
    job.log.info("schema: %s and %s", nodes, edges)
    if config.dry_run:
        job.log.info("dry run: nothing was written")
        return Outcome()
    graph = Graph.init(config.graph, schema, force=config.force, storage_options=job.host.storage_options(config))
    job.log.info("created graph %s", config.graph)
    head = graph.commits(limit=1)[-1]
    return Outcome(commit=head.id, manifest_version=head.manifest_version)


def create_branch(job: Job) -> Outcome:
    """A branch at the head of another one."""
    config = job.config
    graph = Graph.open(config.graph, storage_options=job.host.storage_options(config))
    if config.dry_run:
        graph.create_branch(config.name, base=config.base, dry_run=True)
        job.log.info("dry run: nothing was written")
    else:
        graph.create_branch(config.name, base=config.base)
        job.log.info("created branch %s from %s", config.name, config.base)
    return Outcome(branch=config.name, result={"base_branch": config.base})


def demo(job: Job) -> Outcome:
    """Makes, loads and queries the demo graph."""
    folder = None if job.config.folder is None else Path(job.config.folder)
    return Outcome(result=run_demo(folder, speaker(job.log)))


def read_schema(path: str) -> str:
    """Text of a schema file; UsageError when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--schema: cannot read '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--schema: '{path}' is not UTF-8 text") from error
