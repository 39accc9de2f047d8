"""The verbs that keep a graph whole and fast: `recover`, `repair`, `cleanup`, `index`, `optimize`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace

from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.cli.files import whole_file
from spark_omnigraph.cli.output.log import say_table
from spark_omnigraph.cli.output.page import is_page
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.commit.recovery import Recovered
from spark_omnigraph.commit.schema.lock import lock_holder
from spark_omnigraph.errors import BadRequestError, OmnigraphError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.maintain.cleanup import CleanupReport
from spark_omnigraph.graph.maintain.expire import ExpiryReport
from spark_omnigraph.graph.maintain.repair import Drift, RepairReport
from spark_omnigraph.manifest.branches import MAIN, display
from spark_omnigraph.progress.meter import begin
from spark_omnigraph.words import counted
from spark_omnigraph.write.indexes import BuiltIndexes


def recover(job: Job) -> VerbOutcome:
    """Finishes or undoes interrupted writes."""
    config = job.config
    storage = job.host.storage_options(config)
    if config.dry_run:
        graph = Graph.open(config.graph, mode="r", storage_options=storage)
        pending = [{**write.to_dict(), "state": "interrupted"} for write in graph.interrupted()]
        pending += [{**write.to_dict(), "state": "running"} for write in graph.running()]
        columns = ("operation", "writer", "branch", "tables", "state", "alive_until")
        if pending:
            say_table(job.log, columns, [[_words(row.get(column, "")) for column in columns] for row in pending])
        else:
            job.log.info("no write is interrupted or under way")
        job.log.info("dry run: nothing was recovered")
        return VerbOutcome(result=pending)
    graph = Graph.open(config.graph, storage_options=storage)
    more = graph.recover(break_lock=True) if config.break_lock else []
    found = [_figures(recovered) for recovered in (*graph.recovered, *more)]
    headers = ("operation", "writer", "kind", "branch", "manifest_version")
    if found:
        say_table(job.log, headers, [list(row.values())[:5] for row in found])
    else:
        job.log.info("nothing to recover")
    for write in graph.running():
        job.log.info("%s %s counts as running until %s", write.writer, write.operation, write["alive_until"])
    locked = lock_holder(graph.store)
    return VerbOutcome(result=found, warnings=() if locked is None else (f"the schema is locked. {locked}",))


def _words(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _each(job: Job, work: Callable[[Job], VerbOutcome]) -> VerbOutcome:
    """The work on the branch of the job, or on every branch: one that fails does not hold up the others."""
    config = job.config
    if not config.all_branches:
        return work(job)
    if config.branch != MAIN:
        raise BadRequestError(f"give --branch {config.branch} or --all-branches, not both")
    graph = Graph.open(config.graph, mode="r", storage_options=job.host.storage_options(config))
    done: dict[str, VerbOutcome] = {}
    failed: dict[str, OmnigraphError] = {}
    for branch in graph.branches():
        job.log.info("branch %s", branch)
        try:
            done[branch] = work(replace(job, config=replace(config, branch=branch)))
        except OmnigraphError as error:
            failed[branch] = error
    if failed and not done:
        raise next(iter(failed.values()))
    warnings = [f"{branch}: {text}" for branch, outcome in done.items() for text in outcome.warnings]
    warnings += [f"{branch} was left: {error.message}" for branch, error in failed.items()]
    results = {
        branch: {"commit": outcome.commit, "manifest_version": outcome.manifest_version, "result": outcome.result}
        for branch, outcome in done.items()
    }
    dry_run = any(outcome.dry_run for outcome in done.values())
    return VerbOutcome(warnings=tuple(warnings), result={"branches": results}, refused=bool(failed), dry_run=dry_run)


def repair(job: Job) -> VerbOutcome:
    """Says which tables drifted, and publishes those that may be published."""
    return _each(job, _repair)


def _repair(job: Job) -> VerbOutcome:
    config = job.config
    confirm = config.confirm and not config.dry_run
    storage = job.host.storage_options(config)
    if config.force and not config.confirm:
        raise BadRequestError("--force publishes what nobody checked, and needs --confirm, too")
    graph = Graph.open(config.graph, mode="rw" if confirm else "r", branch=config.branch, storage_options=storage)
    report = graph.with_origin(job.origin).repair(confirm=confirm, force=config.force and confirm)
    _say_drift(job, report)
    if report.drifts and not confirm:
        job.log.info("dry run: nothing was published")
    left = [d for d in report.drifts if d.table_key not in report.repaired]
    warnings = report.warnings + tuple(f"{d.table_key} is left as it is: {d.advice}" for d in left if confirm)
    return VerbOutcome(
        branch=config.branch,
        commit=report.commit,
        manifest_version=report.manifest_version,
        warnings=warnings,
        result=[_drift(d, report.actions()[d.table_key], d.table_key in report.repaired) for d in report.drifts],
        dry_run=not confirm,
    )


def _say_drift(job: Job, report: RepairReport) -> None:
    if not report.drifts:
        job.log.info("nothing to repair: every table is at its published version")
        return
    headers = ("table", "published", "head", "verdict", "operations", "rows", "rows_head")
    rows = [
        (d.table_key, d.published, d.head, d.verdict, ", ".join(d.operations), d.rows_published, d.rows_head)
        for d in report.drifts
    ]
    say_table(job.log, headers, rows)
    for drift in report.drifts:
        if drift.table_key in report.repaired:
            job.log.info("%s: repaired", drift.table_key)
        else:
            job.log.info("%s: %s", drift.table_key, drift.advice)


def _drift(drift: Drift, action: str, repaired: bool) -> dict[str, object]:
    return {
        "table": drift.table_key,
        "folder": drift.folder,
        "published": drift.published,
        "head": drift.head,
        "verdict": str(drift.verdict),
        "operations": list(drift.operations),
        "rows_published": drift.rows_published,
        "rows_head": drift.rows_head,
        "action": str(action),
        "repaired": repaired,
        "advice": drift.advice,
    }


def cleanup(job: Job) -> VerbOutcome:
    """Says which states may expire and what interrupted work left behind, and removes both."""
    config = job.config
    confirm = config.confirm and not config.dry_run
    storage = job.host.storage_options(config)
    graph = Graph.open(config.graph, mode="rw" if confirm else "r", storage_options=storage)
    begin(job.progress, "look")
    report = graph.cleanup(config.older_than, keep=config.keep, confirm=confirm, force=config.force)
    if config.report is not None and not is_page(config.report):
        with whole_file(config.report) as file:
            for item in report.items:
                file.write(json.dumps(item.to_dict(), ensure_ascii=False) + "\n")
    _say_cleanup(job, report, confirm)
    result = {
        "before": moment_text(report.before),
        "objects": len(report.items),
        "bytes": report.size,
        "by_reason": {reason: {"objects": n, "bytes": size} for reason, (n, size) in report.by_reason().items()},
        "younger": report.younger,
        "kept": [{"what": kept.what, "why": kept.why} for kept in report.kept],
        "report": config.report,
        "expiry": None if report.expiry is None else report.expiry.to_dict(),
        "consumers": [each.name for each in graph.consumers()],
    }
    return VerbOutcome(warnings=report.warnings, result=result, dry_run=not confirm)


def _say_expiry(job: Job, expiry: ExpiryReport) -> None:
    if expiry.lines:
        rows = [(line.dataset, line.branch, len(line.versions), line.bytes, line.left) for line in expiry.lines]
        say_table(job.log, ("dataset", "branch", "versions", "bytes", "left"), rows)
    else:
        job.log.info("no state expires")
    for branch in expiry.branches:
        if branch.states:
            since = (branch.oldest_version, moment_text(branch.oldest_at))
            lost = counted(len(branch.commits), "commit")
            job.log.info("%s: %s can no longer be read; the oldest is version %s of %s", branch.branch, lost, *since)
    for what, why in expiry.kept:
        job.log.info("left: %s: %s", what, why)


def _say_cleanup(job: Job, report: CleanupReport, confirm: bool) -> None:
    if report.expiry is not None:
        _say_expiry(job, report.expiry)
    rows = [(reason, count, size) for reason, (count, size) in report.by_reason().items()]
    if rows:
        say_table(job.log, ("reason", "objects", "bytes"), rows)
    else:
        job.log.info("nothing to clean up")
    if report.younger:
        job.log.info("left because they are younger: %s", counted(report.younger, "object"))
    for kept in report.kept:
        job.log.info("left: %s: %s", kept.what, kept.why)
    if not confirm:
        job.log.info("dry run: nothing was removed")


def index(job: Job) -> VerbOutcome:
    """Builds missing indexes and extends those that do not cover all rows; says what each covers."""
    return _each(job, _index)


def _index(job: Job) -> VerbOutcome:
    config = job.config
    storage = job.host.storage_options(config)
    mode = "r" if config.dry_run else "rw"
    graph = Graph.open(config.graph, mode=mode, branch=config.branch, storage_options=storage)
    begin(job.progress, "index")
    built = BuiltIndexes() if config.dry_run else graph.ensure_indices(executor=job.named_executor())
    found = graph.indexes()
    rows = [(s.table_key, s.column, s.kind, s.rows, s.total, s.progress) for s in found]
    say_table(job.log, ("table", "column", "kind", "rows", "total", "progress"), rows)
    if config.dry_run:
        job.log.info("dry run: nothing was built")
    elif built:
        job.log.info("built or extended: %s", ", ".join(built))
    else:
        job.log.info("nothing to do")
    return VerbOutcome(
        branch=config.branch,
        manifest_version=graph.snapshot().version,
        warnings=built.warnings,
        result={"built": list(built), "indexes": [{**asdict(s), "progress": str(s.progress)} for s in found]},
    )


def optimize(job: Job) -> VerbOutcome:
    """Compacts tables and internal datasets, and makes indexes whole."""
    return _each(job, _optimize)


def _optimize(job: Job) -> VerbOutcome:
    config = job.config
    mode = "r" if config.dry_run else "rw"
    storage = job.host.storage_options(config)
    graph = Graph.open(config.graph, mode=mode, branch=config.branch, storage_options=storage)
    begin(job.progress, "optimize")
    executor = None if config.dry_run else job.named_executor()
    graph = graph.with_origin(job.origin)
    report = graph.optimize(actor=config.actor, dry_run=config.dry_run, executor=executor)
    rows = [(key, t.files_before, t.files_after, t.left or "") for key, t in report.tables.items()]
    say_table(job.log, ("table", "files_before", "files_after", "left"), rows)
    if config.dry_run:
        job.log.info("dry run: nothing was written")
    left = tuple(f"{key} was left alone: {t.left}" for key, t in report.tables.items() if t.left is not None)
    return VerbOutcome(
        branch=report.branch,
        commit=report.commit,
        manifest_version=report.manifest_version,
        warnings=report.warnings + left,
        result={
            "tables": {key: asdict(table) for key, table in report.tables.items()},
            "indexes": list(report.indexes),
            "internal": dict(report.internal),
        },
    )


def _figures(recovered: Recovered) -> dict[str, object]:
    return {
        "operation": recovered.operation_id,
        "writer": recovered.writer_kind,
        "kind": recovered.kind.value,
        "branch": display(recovered.branch),
        "manifest_version": recovered.manifest_version,
        "tables": {o.table_key: [o.from_version, o.to_version] for o in recovered.outcomes},
    }
