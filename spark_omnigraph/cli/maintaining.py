"""The verbs that keep a graph whole: `recover`."""

from __future__ import annotations

from spark_omnigraph.cli.reporting import say_table
from spark_omnigraph.cli.verb import Job, Outcome
from spark_omnigraph.commit.recovery import Recovered
from spark_omnigraph.graph.handle import Graph


def recover(job: Job) -> Outcome:
    """Finishes or undoes interrupted writes."""
    config = job.config
    storage = job.host.storage_options(config)
    if config.dry_run:
        pending = Graph.open(config.graph, mode="r", storage_options=storage).interrupted()
        say_table(job.log, ("operation", "writer", "branch", "tables"), [list(row.values()) for row in pending])
        job.log.info("dry run: nothing was recovered")
        return Outcome(result=pending)
    found = [_figures(recovered) for recovered in Graph.open(config.graph, storage_options=storage).recovered]
    say_table(
        job.log, ("operation", "writer", "kind", "branch", "manifest_version"), [list(r.values())[:5] for r in found]
    )
    if not found:
        job.log.info("nothing to recover")
    return Outcome(result=found)


def _figures(recovered: Recovered) -> dict[str, object]:
    return {
        "operation": recovered.operation_id,
        "writer": recovered.writer_kind,
        "kind": recovered.kind.value,
        "branch": recovered.branch or "main",
        "manifest_version": recovered.manifest_version,
        "tables": {o.table_key: [o.from_version, o.to_version] for o in recovered.outcomes},
    }
