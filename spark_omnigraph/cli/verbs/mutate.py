"""The verb that changes rows by a query text: `mutate`."""

from __future__ import annotations

from dataclasses import asdict

from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.files import read_text
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.mutate.mutate import MutationResult
from spark_omnigraph.words import counted


def mutate(job: Job) -> VerbOutcome:
    """Runs one mutation in one commit."""
    config = job.config
    text = query_text(config)
    graph = Graph.open(config.graph, branch=config.branch, storage_options=job.host.storage_options(config))
    graph = graph.with_origin(job.origin)
    result = graph.mutate(text, config.name or None, config.params, actor=config.actor, dry_run=config.dry_run)
    _say(job, result)
    return VerbOutcome(
        branch=result.branch,
        base_commit=result.base_commit,
        commit=result.commit,
        manifest_version=result.manifest_version,
        tables={key: asdict(rows) for key, rows in result.tables.items()},
        phases=result.phases,
        warnings=result.warnings,
        result={
            "query_name": result.query,
            "affected_nodes": result.affected_nodes,
            "affected_edges": result.affected_edges,
            "actor_id": result.actor,
        },
    )


def query_text(config: JobConfig) -> str:
    """The query of a job, from its file or its argument. UsageError for a file that cannot be read."""
    if bool(config.file) == bool(config.text):
        raise UsageError("give the query as --file FILE or as -e TEXT" + (", not both" if config.file else ""))
    return config.text or read_text("--file", config.file)


def _say(job: Job, result: MutationResult) -> None:
    nodes, edges = counted(result.affected_nodes, "node"), counted(result.affected_edges, "edge")
    job.log.info("%s: %s and %s affected", result.query, nodes, edges)
    if job.config.dry_run:
        job.log.info("dry run: nothing was written")
    elif result.commit is None:
        job.log.info("nothing to do: branch %s is unchanged", result.branch)
    else:
        job.log.info("commit %s on branch %s", result.commit, result.branch)
