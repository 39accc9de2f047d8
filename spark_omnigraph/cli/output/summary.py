"""The one JSON object a job ends with: last line of standard output, and the file of `--summary`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_omnigraph import __version__
from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.files import whole_file
from spark_omnigraph.cli.output.log import safe_json
from spark_omnigraph.cli.verb import Verb, VerbOutcome
from spark_omnigraph.errors import BadRowsError, OmnigraphError
from spark_omnigraph.redaction import redact

REFUSED = 3
INTERRUPTED = 130
TERMINATED = 143
INTERRUPTED_KIND = "interrupted"
"""Of the error that both signals leave in the summary."""
_STATUS = {
    0: "done",
    1: "failed",
    2: "usage",
    REFUSED: "refused",
    4: "conflict",
    5: "recovery_required",
    6: "not_found",
    INTERRUPTED: "interrupted",
    TERMINATED: "terminated",
}


@dataclass(frozen=True, slots=True)
class JobEnding:
    """How a job ended: its exit code with either an outcome or an error."""

    exit_code: int
    outcome: VerbOutcome | None = None
    error: BaseException | None = None
    left: str = ""
    """What a verb that a signal stopped has left, for whoever reads the error."""


def summary_of(config: JobConfig, run_id: str, seconds: float, ending: JobEnding) -> dict[str, object]:
    """The summary, its keys in a fixed order. What is not known is null, never 0."""
    outcome = ending.outcome or VerbOutcome()
    bad_rows: Mapping[str, object] | None = outcome.bad_rows
    if isinstance(ending.error, BadRowsError):
        bad_rows = bad_row_figures(ending.error.summary)
    body: dict[str, object] = {
        "job": config.verb or None,
        "version": __version__,
        "run_id": run_id,
        "graph": config.graph or None,
        "branch": outcome.branch or _branch_of(config),
        "status": _STATUS.get(ending.exit_code, "failed"),
        "exit_code": ending.exit_code,
        "dry_run": config.dry_run or outcome.dry_run,
        "base_commit": outcome.base_commit,
        "commit": outcome.commit,
        "manifest_version": outcome.manifest_version,
        "tables": outcome.tables,
        "bad_rows": bad_rows,
        "phases": outcome.phases,
        "seconds": round(seconds, 3),
        "warnings": list(outcome.warnings),
        "error": None if ending.error is None else error_body(ending.error, ending.left),
    }
    if outcome.result is not None:
        body["result"] = outcome.result
    return body


def _branch_of(config: JobConfig) -> str | None:
    """The branch that a verb was asked for: the verbs of branches name it by themselves, or are about none."""
    if not config.graph:
        return None
    if config.verb.startswith("branch "):
        return (config.into if config.source else config.name) or None
    return config.branch


def bad_row_figures(summary: BadRowSummary) -> dict[str, object]:
    """Total, counts per rule, and the path of the report."""
    return {"total": summary.total, "per_rule": dict(summary.per_rule), "report": summary.report}


def error_body(error: BaseException, left: str = "") -> dict[str, object]:
    """`to_dict()` of our errors; the like for others, with the first line of their message (Spark's have pages), and
    for signals, with what is `left`.
    """
    if isinstance(error, OmnigraphError):
        return error.to_dict()
    if not isinstance(error, Exception):
        signal = "SIGINT" if isinstance(error, KeyboardInterrupt) else "SIGTERM"
        return {"error": f"stopped by {signal}{left}", "code": INTERRUPTED_KIND, "kind": INTERRUPTED_KIND}
    text = redact(next(iter(str(error).splitlines()), ""))
    name = type(error).__name__
    return {"error": f"{name}: {text}" if text else name, "code": "internal", "kind": "unexpected"}


def left_by(verb: Verb, config: JobConfig) -> str:
    """What a stopped verb leaves: nothing unless it writes to a graph."""
    if not verb.writes or not config.graph or config.dry_run:
        return ""
    keeps = verb.name == "embed" and not config.clean and not config.no_cache
    answers = "; answers of the provider are kept, and the same command goes on with the rest" if keeps else ""
    return f"; a write that was under way, if there was one, is finished or undone by the next read-write open{answers}"


def as_line(summary: Mapping[str, object], secrets: Sequence[str] = ()) -> str:
    """The summary as one line of JSON, without secrets."""
    return safe_json(summary, secrets)


def as_sentence(summary: Mapping[str, object]) -> str:
    """The summary for a person: how it ended, after how long, and where the answer stands."""
    commit = f", commit {summary['commit']}" if summary["commit"] else ""
    dry = " (dry run)" if summary["dry_run"] else ""
    status = str(summary["status"]).replace("_", " ")
    code = f" (exit code {summary['exit_code']})" if summary["exit_code"] else ""
    return f"{summary['job'] or 'job'}: {status}{dry}{code} after {summary['seconds']:.2f} s{commit}"


def write_summary(path: str, line: str) -> None:
    """Puts the summary into a file."""
    with whole_file(path) as file:
        file.write(line + "\n")
