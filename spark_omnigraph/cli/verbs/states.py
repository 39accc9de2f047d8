"""The verbs about states of the past and other places: `tag …`, `restore`, `copy`, `convert`, `erase`, `consumer …`."""

from __future__ import annotations

from dataclasses import asdict

from spark_omnigraph.branch.consumers import Consumer
from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.cli.output.log import say_table
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.errors import UsageError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.read.history import Where
from spark_omnigraph.manifest.branches import MAIN, display
from spark_omnigraph.manifest.kept import Tag
from spark_omnigraph.progress.meter import begin
from spark_omnigraph.words import counted


def create_tag(job: Job) -> VerbOutcome:
    """A name for a state."""
    config = job.config
    graph = _open(job, "rw", config.branch)
    tag = graph.tag(config.name, dry_run=config.dry_run, **config.past())
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


def restore(job: Job) -> VerbOutcome:
    """An old state as a new commit."""
    config = job.config
    if all(value is None for value in config.past().values()):
        raise UsageError("say what to restore: --version, --snapshot (the id of a commit), --as-of (a time) or --tag")
    graph = _open(job, "rw", config.branch).with_origin(job.origin)
    report = graph.restore(
        actor=config.actor,
        dry_run=config.dry_run,
        confirm=config.confirm,
        rewind_apps=config.rewind_apps,
        executor=job.executor(),
        **config.past(),
    )
    for key, counts in sorted(report.tables.items()):
        figures = ", ".join(f"{name} {value:,}" for name, value in asdict(counts).items() if value)
        job.log.info("%s: %s", key, figures)
    done = "set back" if config.rewind_apps else "left" if config.confirm else "in the way"
    for app in report.applications:
        job.log.info("application %s committed %s since, %s by then: %s", app.app_id, app.now, app.then, done)
    state = (report.restored_version, report.restored_branch)
    if config.dry_run:
        job.log.info("version %s of branch %s would be restored; dry run: nothing was written", *state)
    elif report.commit is None:
        job.log.info("nothing to do: the rows are those of version %s of branch %s", *state)
    else:
        job.log.info("restored version %s of branch %s: commit %s", *state, report.commit)
    return VerbOutcome(
        branch=report.branch,
        base_commit=report.base_commit,
        commit=report.commit,
        manifest_version=report.manifest_version,
        tables={
            key: {"inserted": counts.appended, "updated": counts.updated, "deleted": counts.deleted}
            for key, counts in report.tables.items()
        },
        phases=report.phases,
        warnings=report.warnings,
        result={
            "restored_branch": report.restored_branch,
            "restored_version": report.restored_version,
            "applications": [asdict(app) for app in report.applications],
        },
    )


def copy_graph(job: Job) -> VerbOutcome:
    """The graph at another place."""
    config = job.config
    graph = _open(job, "r")
    where: Where = {**config.past(), "branch": config.only}
    storage = config.to_storage_options or job.host.storage_options(config)
    begin(job.progress, "copy")
    report = graph.copy(config.to, storage_options=storage, dry_run=config.dry_run, **where)
    what = "all branches" if report.all_branches else f"one state of branch {config.only or MAIN}"
    size = f"{report.files:,} files, {report.bytes:,} bytes, {report.rows:,} rows"
    if config.dry_run:
        job.log.info("%s would be copied to %s: %s; dry run: nothing was written", what, report.target, size)
    else:
        job.log.info("copied %s to %s: %s; %s files were sent", what, report.target, size, f"{report.sent:,}")
    return VerbOutcome(result=asdict(report), warnings=report.warnings)


def erase_row(job: Job) -> VerbOutcome:
    """A row gone from every kept byte."""
    config = job.config
    confirm = config.confirm and not config.dry_run
    graph = _open(job, "rw" if confirm else "r").with_origin(job.origin)
    begin(job.progress, "erase")
    report = graph.erase(config.table, config.id, confirm=confirm, actor=config.actor)
    for branch, counts in report.deleted.items():
        figures = ", ".join(f"{key} {count:,}" for key, count in sorted(counts.items()))
        job.log.info("%s: %s %s", branch, "deleted" if confirm else "shows", figures)
    if report.held:
        rows = [(held.table, held.branch, held.version) for held in report.held]
        say_table(job.log, ("table", "branch", "holds the row at version"), rows)
    for blocker in report.blocked_by:
        job.log.info("it is kept by %s", blocker)
    if confirm and report.done:
        job.log.info("erased; not of this graph, and to be seen to: %s", "; ".join(report.outside))
    elif not confirm:
        job.log.info("dry run: nothing was erased")
    left = f"{report.id} is deleted, but not out of every file: do what is said above, then run erase again"
    unfinished = confirm and not report.done
    return VerbOutcome(
        warnings=(left,) if unfinished else (), result=report.to_dict(), refused=unfinished, dry_run=not confirm
    )


def list_consumers(job: Job) -> VerbOutcome:
    """Readers that expiry waits for."""
    found = [_consumer(each) for each in _open(job, "r").consumers()]
    say_table(job.log, ("consumer", "branch", "manifest_version", "updated_at"), [[*each.values()] for each in found])
    return VerbOutcome(result=found)


def delete_consumer(job: Job) -> VerbOutcome:
    """Nothing waits for the reader any more."""
    gone = _open(job, "rw").delete_consumer(job.config.name)
    job.log.info("consumer %s is forgotten; it had read branch %s to %s", gone.name, display(gone.branch), gone.version)
    return VerbOutcome(branch=display(gone.branch), result=_consumer(gone))


def _consumer(found: Consumer) -> dict[str, object]:
    return {
        "consumer": found.name,
        "branch": display(found.branch),
        "manifest_version": found.version,
        "updated_at": moment_text(found.updated_at),
    }


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


def convert_graph(job: Job) -> VerbOutcome:
    """The graph in the format that is written, at another place."""
    config = job.config
    storage = job.host.storage_options(config)
    graph = Graph.open(config.graph, mode="r", storage_options=storage).with_origin(job.origin)
    begin(job.progress, "convert")
    report = graph.convert(
        config.to,
        all_branches=config.all_branches,
        storage_options=config.to_storage_options or storage,
        dry_run=config.dry_run,
    )
    rows = [
        (branch, key, each["rows"], each["digest"] or "")
        for branch, tables in report.tables.items()
        for key, each in tables.items()
    ]
    say_table(job.log, ("branch", "table", "rows", "digest"), rows)
    what = f"{counted(len(report.branches), 'branch', 'branches')} of {report.source}, {counted(report.rows, 'row')},"
    if config.dry_run:
        job.log.info("%s would be converted to %s; dry run: nothing was written", what, report.target)
    else:
        job.log.info("%s converted to %s and compared", what, report.target)
    result = {name: value for name, value in asdict(report).items() if name != "warnings"}
    return VerbOutcome(manifest_version=report.branches[MAIN], warnings=report.warnings, result=result)
