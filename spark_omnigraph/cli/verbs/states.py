"""The verbs about states of the past: `tag create`, `tag list`, `tag delete`."""

from __future__ import annotations

from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.cli.output.log import say_table
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.kept import Tag


def create_tag(job: Job) -> VerbOutcome:
    """A name for a state."""
    config = job.config
    graph = _open(job, "rw", config.branch)
    tag = graph.tag(config.name, dry_run=config.dry_run, **config.past)
    if config.dry_run:
        job.log.info("tag %s can be made; dry run: nothing was written", tag.name)
    else:
        job.log.info("tag %s names version %s of branch %s", tag.name, tag.manifest_version, display(tag.branch))
    return VerbOutcome(branch=display(tag.branch), result=_tag(tag))


def list_tags(job: Job) -> VerbOutcome:
    """All tags."""
    tags = [_tag(tag) for tag in _open(job, "r").tags()]
    say_table(job.log, ("tag", "branch", "manifest_version", "commit", "created_at"), [[*tag.values()] for tag in tags])
    return VerbOutcome(result=tags)


def delete_tag(job: Job) -> VerbOutcome:
    """The name goes; the state may expire."""
    config = job.config
    tag = _open(job, "rw").delete_tag(config.name, dry_run=config.dry_run)
    if config.dry_run:
        job.log.info("tag %s can be deleted; dry run: nothing was written", tag.name)
    else:
        job.log.info("deleted tag %s of version %s of branch %s", tag.name, tag.manifest_version, display(tag.branch))
    return VerbOutcome(branch=display(tag.branch), result=_tag(tag))


def _tag(tag: Tag) -> dict[str, object]:
    return {
        "tag": tag.name,
        "branch": display(tag.branch),
        "manifest_version": tag.manifest_version,
        "commit": tag.commit,
        "created_at": moment_text(tag.created_at),
    }


def _open(job: Job, mode: str, branch: str = "main") -> Graph:
    storage = job.host.storage_options(job.config)
    return Graph.open(job.config.graph, mode=mode, branch=branch, storage_options=storage)
