"""The verbs of branches: `branch create`, `branch list`, `branch delete`."""

from __future__ import annotations

from dataclasses import asdict

from spark_omnigraph.branch.delete import DeletedBranch
from spark_omnigraph.branch.info import BranchInfo
from spark_omnigraph.cli.output.log import counted, say_table, speaker
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.handle import Graph


def create_branch(job: Job) -> VerbOutcome:
    """A branch at the head of another one, or at an earlier state."""
    config = job.config
    graph = _open(job, "rw")
    graph.create_branch(
        config.name, base=config.base, version=config.version, snapshot=config.snapshot, dry_run=config.dry_run
    )
    if config.dry_run:
        job.log.info("dry run: nothing was written")
    else:
        at = config.snapshot if config.version is None else f"version {config.version}"
        state = "" if at is None else f" as of {at}"
        job.log.info("created branch %s from %s%s", config.name, config.base, state)
    return VerbOutcome(branch=config.name, result={"base_branch": config.base})


def list_branches(job: Job) -> VerbOutcome:
    """Names of the branches, or a row for each with all there is to know of it."""
    graph = _open(job, "r")
    if not job.config.verbose:
        names = graph.branches()
        say = speaker(job.log)
        for name in names:
            say(name)
        return VerbOutcome(result=names)
    infos = graph.branch_infos()
    columns = ("branch", "parent", "version", "head", "own tables", "ahead", "behind", "merged into")
    say_table(job.log, columns, [_row(info) for info in infos])
    return VerbOutcome(result=[asdict(info) for info in infos])


def delete_branch(job: Job) -> VerbOutcome:
    """One branch, or all that are merged."""
    config = job.config
    if bool(config.name) == config.merged:
        both = ", not both" if config.merged else ""
        raise UsageError(f"give the NAME of a branch, or --merged for all that are merged{both}")
    graph = _open(job, "rw")
    if config.merged:
        return _delete_merged(job, graph)
    gone = graph.delete_branch(config.name, dry_run=config.dry_run)
    _say(job, gone)
    return VerbOutcome(branch=gone.branch, warnings=gone.warnings, result={"deleted": [asdict(gone)]})


def _delete_merged(job: Job, graph: Graph) -> VerbOutcome:
    merged = graph.delete_merged_branches(dry_run=job.config.dry_run)
    for gone in merged.deleted:
        _say(job, gone)
    if not merged.deleted:
        job.log.info("no branch is merged that could be deleted")
    debris = tuple(warning for gone in merged.deleted for warning in gone.warnings)
    return VerbOutcome(warnings=merged.stays + debris, result={"deleted": [asdict(gone) for gone in merged.deleted]})


def _say(job: Job, gone: DeletedBranch) -> None:
    if job.config.dry_run:
        job.log.info("branch %s can be deleted; dry run: nothing was written", gone.branch)
    else:
        tables = counted(len(gone.forks), "table")
        job.log.info("deleted branch %s, with %s of its own; its head was %s", gone.branch, tables, gone.head)


def _row(info: BranchInfo) -> tuple[object, ...]:
    own, merged = ", ".join(info.own_tables) if info.parent else "all", ", ".join(info.merged_into)
    return info.name, info.parent, info.manifest_version, info.head, own, info.ahead, info.behind, merged


def _open(job: Job, mode: str) -> Graph:
    return Graph.open(job.config.graph, mode=mode, storage_options=job.host.storage_options(job.config))
