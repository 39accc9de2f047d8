"""The verbs that make things: `init`, `demo`."""

from __future__ import annotations

from pathlib import Path

from spark_omnigraph.cli.files import read_text
from spark_omnigraph.cli.output.log import counted, speaker
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.demo.films import run_demo
from spark_omnigraph.graph.create import accept_schema, check_root
from spark_omnigraph.graph.handle import Graph


def init(job: Job) -> VerbOutcome:
    """A new graph from a schema file."""
    config = job.config
    schema = read_text("--schema", config.schema)
    catalog = accept_schema(schema)
    nodes, edges = counted(len(catalog.nodes), "node type"), counted(len(catalog.edges), "edge type")
    job.log.info("schema: %s and %s", nodes, edges)
    warnings = () if catalog.nodes else ("the schema has no types, so the graph will hold nothing",)
    storage = job.host.storage_options(config)
    if config.dry_run:
        check_root(config.graph, config.force, storage)
        job.log.info("dry run: nothing was written")
        return VerbOutcome(warnings=warnings)
    graph = Graph.init(config.graph, schema, force=config.force, storage_options=storage)
    job.log.info("created graph %s", config.graph)
    head = graph.commits(limit=1)[0]
    return VerbOutcome(commit=head.id, manifest_version=head.manifest_version, warnings=warnings)


def demo(job: Job) -> VerbOutcome:
    """Makes, loads and queries the demo graph."""
    folder = None if job.config.folder is None else Path(job.config.folder)
    return VerbOutcome(result=run_demo(folder, speaker(job.log)))
