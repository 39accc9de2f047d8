"""The verbs of branches: `branch create`, `branch list`, `branch merge`, `branch delete`."""

from __future__ import annotations

from dataclasses import asdict

from spark_omnigraph.branch.conflicts import STALE
from spark_omnigraph.branch.delete import DeletedBranch
from spark_omnigraph.branch.info import BranchInfo
from spark_omnigraph.cli.output.log import say_table, speaker
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.errors import BadRequestError, ConflictError, MergeConflictsError, UsageError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.merge.merge import MergeOutcome, MergeReport
from spark_omnigraph.words import counted


def create_branch(job: Job) -> VerbOutcome:
    """A branch at the head of another one, or at an earlier state."""
    config = job.config
    graph = _open(job, "rw")
    graph.create_branch(
        config.name,
        base=config.base,
        version=config.version,
        snapshot=config.snapshot,
        tag=config.tag,
        dry_run=config.dry_run,
    )
    if config.dry_run:
        job.log.info("dry run: nothing was written")
    else:
        at = config.snapshot or config.tag if config.version is None else f"version {config.version}"
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


def merge_branch(job: Job) -> VerbOutcome:
    """What one branch changed, into another one."""
    config = job.config
    graph = _open(job, "rw")
    try:
        report = graph.with_origin(job.origin).merge_branch(
            config.source,
            config.into,
            actor=config.actor,
            dry_run=config.dry_run,
            on_conflict=config.on_conflict,
            conflicts=config.conflicts,
            decisions=config.decisions,
            executor=job.executor(),
        )
    except MergeConflictsError as error:
        _say_conflicts(job, error)
        raise
    _say_merged(job, report)
    deleted, kept = _delete_source(job, graph, report)
    return VerbOutcome(
        branch=report.target,
        base_commit=report.target_commit,
        commit=report.commit,
        manifest_version=report.manifest_version,
        tables={key: asdict(counts) for key, counts in report.tables.items()},
        phases=report.phases,
        warnings=report.warnings + kept,
        result={
            "outcome": report.outcome,
            "source": report.source,
            "source_commit": report.source_commit,
            "bases": list(report.bases),
            "branch_deleted": deleted,
        },
    )


def _say_conflicts(job: Job, error: MergeConflictsError) -> None:
    for kind, count in error.counts.items():
        job.log.error("%s of %s", counted(count, "conflict"), kind)
    late = sum(conflict.message.endswith(STALE) for conflict in error.conflicts)
    if late:
        least = "at least " if sum(error.counts.values()) > error.SAMPLE else ""
        told = counted(late, "decision was", "decisions were")
        job.log.error("%s%s made on rows that are others by now: decide these anew", least, told)
    if job.config.conflicts is None:
        job.log.info("--conflicts PATH writes all of them to a file, with the rows of all sides")
    else:
        job.log.info("all of them are in %s", job.config.conflicts)


def _say_merged(job: Job, report: MergeReport) -> None:
    for key, counts in sorted(report.tables.items()):
        figures = ", ".join(f"{name} {value:,}" for name, value in asdict(counts).items() if value)
        job.log.info("%s: %s", key, figures)
    if report.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
        job.log.info("nothing to do: branch %s has every commit of %s", report.target, report.source)
    elif job.config.dry_run:
        job.log.info("%s would be merged into %s; dry run: nothing was written", report.source, report.target)
    else:
        job.log.info("merged %s into %s: commit %s", report.source, report.target, report.commit)


def _delete_source(job: Job, graph: Graph, report: MergeReport) -> tuple[bool, tuple[str, ...]]:
    """Whether the source was deleted, and why not when it was to be: the merge stands."""
    if not job.config.delete_branch or job.config.dry_run:
        return False, ()
    try:
        gone = graph.delete_branch(report.source)
    except (BadRequestError, ConflictError) as error:
        return False, (f"branch '{report.source}' is merged, and stays: {error.message}",)
    _say(job, gone)
    return True, gone.warnings


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
