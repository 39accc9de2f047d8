"""The verbs that make things: `init`, `demo`."""

from __future__ import annotations

from pathlib import Path

from spark_omnigraph.cli.files import read_text
from spark_omnigraph.cli.output.log import speaker
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.cli.verbs.profile import propose
from spark_omnigraph.demo.films import run_demo
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.create import accept_schema, check_root, strangers
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.words import counted


def init(job: Job) -> VerbOutcome:
    """A new graph from a schema file."""
    config = job.config
    if bool(config.schema) == bool(config.input):
        raise UsageError("give a schema as --schema FILE, or data to propose one from as --from PATH…")
    if config.input:
        found = propose(job)
        if not config.accept:
            say = speaker(job.log)
            for line in found.schema.removesuffix("\n").split("\n"):
                say(line)
            job.log.info("no graph was made: --accept makes it of this; profile --output keeps it to be changed first")
            return VerbOutcome(result={"schema": found.schema}, dry_run=True, warnings=found.left_out)
    schema = found.schema if config.input else read_text("--schema", config.schema)
    catalog = accept_schema(schema)
    nodes, edges = counted(len(catalog.nodes), "node type"), counted(len(catalog.edges), "edge type")
    job.log.info("schema: %s and %s", nodes, edges)
    warnings = found.left_out if config.input else ()
    warnings += () if catalog.nodes else ("the schema has no types, so the graph will hold nothing",)
    others = strangers(config.graph)
    if others:
        warnings += (f"{config.graph} holds other files ({', '.join(others)}): a graph is best alone in its folder",)
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
