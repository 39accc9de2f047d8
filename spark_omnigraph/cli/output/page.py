"""The page of `--report`: what a run did, for people who did not start it. One file that loads nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.catalog.dates import moment_text
from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.files import whole_file
from spark_omnigraph.cli.output.log import redacted
from spark_omnigraph.cli.output.summary import JobEnding
from spark_omnigraph.draw.card import Grid, figures_grid, grid, without_empty
from spark_omnigraph.draw.html import bars_html, facts_html, grid_html, notes_html, page_html, text
from spark_omnigraph.errors import BadRowsError, MergeConflictsError, OmnigraphError
from spark_omnigraph.words import counted

Facts = Mapping[str, object]

LISTED = 100
"""Files, types, bad rows and conflicts that a page lists."""
_TOLD = 600
"""Characters of a message."""
_SENTENCES = {
    "done": "The run did what was asked.",
    "failed": "The run failed.",
    "usage": "The run did not begin: its options are wrong.",
    "refused": "The run was refused, and nothing in the graph has changed.",
    "conflict": "Somebody else changed the graph meanwhile; it is safe to run this again.",
    "recovery_required": "The graph has an interrupted write that must be recovered first.",
    "not_found": "Something that was named does not exist.",
    "interrupted": "Somebody stopped the run.",
    "terminated": "The system stopped the run.",
}
_WORDS = {
    "read": "records that the input has of the type",
    "valid": "those that the schema accepts",
    "bad": "those that it does not; they are not in the graph",
    "inserted": "rows that are new in the graph",
    "appended": "rows that are new in the branch",
    "updated": "rows that were there, and have new values",
    "deleted": "rows that are gone",
    "superseded": "records that a later one of the same id replaced",
    "conflicts": "rows that both branches changed",
}
"""What the columns of the table of types count."""
_ROOM = (
    "verb",
    "graph",
    "branch",
    "input",
    "text",
    "params",
    "meta",
    "actor",
    "summary",
    "metrics",
    "report",
    "dry_run",
)
"""Options that stand elsewhere on the page, or hold values of rows."""
_WRITTEN = ("output", "bad_rows", "conflicts", "summary", "metrics")


@dataclass(frozen=True, slots=True)
class Run:
    """All that is known of a run at its end. `inputs` are files with their bytes."""

    config: JobConfig
    summary: Mapping[str, object]
    ending: JobEnding
    ended: datetime
    inputs: Sequence[tuple[str, int]] = ()


def is_page(path: str | None) -> bool:
    """Whether a report is a page: cleanup has a list of objects by the same name."""
    return path is not None and path.lower().endswith(".html")


def write_page(path: str, run: Run, secrets: Sequence[str], storage_options: Mapping[str, str]) -> None:
    """Writes the page. IoError when that fails."""
    with whole_file(path, storage_options) as file:
        file.write(render(run, secrets))


def render(run: Run, secrets: Sequence[str] = ()) -> str:
    """The page of a run, without secrets."""
    said = redacted(run.summary, secrets)
    asked = redacted({each.name: getattr(run.config, each.name) for each in fields(run.config) if each.repr}, secrets)
    assert isinstance(said, Mapping)
    assert isinstance(asked, Mapping)
    job = f"{said['job'] or 'job'}: {str(said['status']).replace('_', ' ')}"
    sections = [
        _opening(job, said, asked, run.ended),
        _section("What went wrong", _errors(said, run, secrets)),
        _section("What went in", _went_in(asked, run, secrets)),
        _section("What came of it", _came_out(said)),
        _section("Bad rows", _bad_rows(run, secrets)),
        _section("Conflicts", _conflicts(run, secrets)),
        _section("Commit", _commit(said)),
        _section("Time", _time(said)),
        _section("Files that were written", _grids([_written(asked)])),
        _section("What else it says", _result(said.get("result"))),
    ]
    return page_html(job, "\n".join(section for section in sections if section))


def _section(heading: str, body: str) -> str:
    return f"<h2>{text(heading)}</h2>\n{body}" if body else ""


def _opening(job: str, said: Facts, asked: Facts, ended: datetime) -> str:
    good, meta = said["exit_code"] == 0, asked["meta"]
    begun = ended - timedelta(seconds=_number(said["seconds"]))
    sentence = _SENTENCES.get(str(said["status"]), "")
    if said["dry_run"] and good:
        sentence = "A dry run: everything was looked at, and nothing was written."
    facts = {
        "graph": said["graph"],
        "branch": said["branch"],
        "by": asked["actor"],
        "began": moment_text(begun),
        "ended": f"{moment_text(ended)}, after {_number(said['seconds']):.2f} s",
        "exit code": said["exit_code"],
        "run": said["run_id"],
        "spark-omnigraph": said["version"],
        **(meta if isinstance(meta, Mapping) else {}),
    }
    warnings = said["warnings"]
    notes = notes_html([str(each) for each in warnings]) if isinstance(warnings, Sequence) else ""
    mark = "og-good" if good else "og-bad"
    return f'<h1 class="{mark}">{text(job)}</h1>\n<p>{text(sentence)}</p>\n{facts_html(facts)}{notes}'


def _errors(said: Facts, run: Run, secrets: Sequence[str]) -> str:
    error = said["error"]
    if not isinstance(error, Mapping):
        return ""
    way_out = run.ending.error.way_out if isinstance(run.ending.error, OmnigraphError) else None
    lines = [f"<p>{text(line, _TOLD)}</p>" for line in str(error.get("error", "")).split("\n")[:LISTED] if line.strip()]
    facts = {"kind": error.get("kind"), "what to do": redacted(way_out, secrets)}
    return "".join(lines) + facts_html(facts, _TOLD)


def _went_in(asked: Facts, run: Run, secrets: Sequence[str]) -> str:
    given: list[tuple[object, ...]] = [*run.inputs] or [(path,) for path in run.config.input]
    rows = redacted(given, secrets)
    assert isinstance(rows, list)
    size = f", {sum(size for _, size in run.inputs):,} bytes" if run.inputs else ""
    columns = ("input", "bytes") if run.inputs else ("input",)
    usual = JobConfig(run.config.verb)
    # As they were given, to be compared: what is shown are texts without secrets.
    unusual = [name for name in asked if getattr(run.config, name) != getattr(usual, name) and name not in _ROOM]
    options = [(name.replace("_", " "), asked[name]) for name in unusual]
    files = grid(f"{counted(len(given), 'file')}{size}", columns, rows, len(given), LISTED)
    return _grids([files, grid("Options that are not as usual", ("option", "value"), options, len(options), LISTED)])


def _came_out(said: Facts) -> str:
    tables = said["tables"]
    if not isinstance(tables, Mapping) or not tables:
        return ""
    found = figures_grid("Records and rows by type", tables, most=LISTED)
    words = {name: _WORDS[name] for name in found.columns if name in _WORDS}
    return _grids([found]) + facts_html(words)


def _bad_rows(run: Run, secrets: Sequence[str]) -> str:
    error = run.ending.error
    found = error.summary if isinstance(error, BadRowsError) else None
    if found is None and run.ending.outcome is not None:
        found = run.ending.outcome.bad_row_summary
    if not isinstance(found, BadRowSummary) or not found.total:
        return ""
    where = f" All of them are in {found.report}." if found.report else ""
    first = f"{counted(found.total, 'row')} broke a rule of the schema.{where} The text of rows is not shown here."
    return f"<p>{text(redacted(first, secrets), _TOLD)}</p>" + _grids(
        replace(each, rows=_hidden(each, secrets)) for each in found.grids(LISTED)
    )


def _conflicts(run: Run, secrets: Sequence[str]) -> str:
    error = run.ending.error
    if not isinstance(error, MergeConflictsError):
        return ""
    return _grids(replace(each, rows=_hidden(each, secrets)) for each in error.grids(LISTED))


def _commit(said: Facts) -> str:
    if said["commit"] is None and said["base_commit"] is None and said["manifest_version"] is None:
        return ""
    result = said.get("result")
    second = result.get("source_commit") if isinstance(result, Mapping) else None
    facts = {
        "commit": said["commit"] or "none: nothing was written",
        "parent": said["base_commit"],
        "second parent": second if said["commit"] else None,
        "manifest version": said["manifest_version"],
    }
    return facts_html(facts)


def _time(said: Facts) -> str:
    phases = said["phases"]
    return bars_html({str(k): _number(v) for k, v in phases.items()}) if isinstance(phases, Mapping) else ""


def _written(asked: Facts) -> Grid:
    named = [(name.replace("_", " "), asked[name]) for name in _WRITTEN]
    return grid("", ("what", "path", "bytes"), [(what, path, _bytes_of(str(path))) for what, path in named if path])


def _bytes_of(path: str) -> int | None:
    """Of a file on this machine."""
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _result(result: object) -> str:
    """Plain facts of the result; lists and what is deeper are in the summary."""
    if not isinstance(result, Mapping):
        return ""
    plain = {
        str(name).replace("_", " "): value for name, value in result.items() if isinstance(value, (str, int, float))
    }
    return facts_html(plain)


def _grids(grids: Iterable[Grid]) -> str:
    return "".join(grid_html(each) for each in without_empty(*grids))


def _hidden(each: Grid, secrets: Sequence[str]) -> tuple[tuple[object, ...], ...]:
    return tuple(tuple(redacted(value, secrets) for value in row) for row in each.rows)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
