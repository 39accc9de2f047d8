"""Plays one conformance case against a fresh graph: every step is compared, a refused step must leave no trace."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from spark_omnigraph.errors import MergeConflictsError, OmnigraphError
from spark_omnigraph.graph.changes.diff import DiffFilter
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.graph.read.history import Where
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.manifest.snapshot import TableEntry
from spark_omnigraph.records.ulid import new_ulid
from spark_omnigraph.write.executor import Executor
from tests.support import embedding_steps
from tests.support.cases import Case, Json, Step
from tests.support.lint import lint_differences
from tests.support.outcomes import body_problems, error_of, missing_error_class, problems

_LATER = {"branch", "merge", "schema_apply", "maintenance"}
"""Areas whose cases are about an operation: where that is not built, nothing before it is played either."""


class MismatchError(AssertionError):
    """A step did not do what the case expects."""


class NotBuiltError(Exception):
    """The case needs something that does not exist yet; everything before it held."""


def check_answer(step: Step, columns: list[str], rows: list[Json]) -> None:
    """MismatchError where these are not the columns and rows that a step of a query expects."""
    _equal(step, columns, step.expect["columns"])
    if "row_count" in step.expect:
        _equal(step, len(rows), step.expect["row_count"])
    if "rows" in step.expect:
        ordered, expected = step.expect.get("ordered"), step.expect["rows"]
        _equal(step, rows if ordered else _multiset(rows), expected if ordered else _multiset(expected))


@dataclass
class Scenario:
    """State of one run: the graph, its named checkpoints, and the read steps that had to be left out."""

    case: Case
    root: Path
    executor: Executor | None
    not_built: dict[str, dict[str, str]]
    graph: Graph | None = None
    marks: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    begun: set[object] = field(default_factory=set)
    """Beginnings that held already; a case that adds nothing to one of them is not played again."""

    def play(self) -> None:
        """Raises MismatchError for a wrong outcome, NotBuiltError when a part of the case could not be played."""
        case = self.case
        if case.area in _LATER:
            self._refuse_unbuilt()
        beginning = (case.schema, case.data, case.load_mode, json.dumps(case.expect), self.executor is None)
        if case.schema and not (beginning in self.begun and self._adds_nothing()):
            self._expecting(case.expect, self._begin, None)
            self.begun.add(beginning)
        for step in case.steps:
            reason = self._cannot_play(step)
            if reason is not None:
                self.left_out.append(reason)
                continue
            handler = getattr(self, f"_{step.op}", None)
            if handler is None:
                raise NotBuiltError(self.not_built["operations"].get(step.op, f"operation {step.op!r} is unknown"))
            self._expecting(step.expect, partial(handler, step), step)
        if self.left_out:
            raise NotBuiltError(self.left_out[0])

    def _refuse_unbuilt(self) -> None:
        for step in self.case.steps:
            if not hasattr(self, f"_{step.op}"):
                raise NotBuiltError(self.not_built["operations"].get(step.op, f"operation {step.op!r} is unknown"))

    def _adds_nothing(self) -> bool:
        """Whether no step can be played: all before the first unknown operation are left out."""
        for step in self.case.steps:
            if not hasattr(self, f"_{step.op}"):
                return True
            if self._cannot_play(step) is None:
                return False
        return bool(self.case.steps)

    # --- beginning and outcomes

    def _begin(self) -> None:
        self.graph = Graph.init(str(self.root / "graph"), self.case.schema)
        if self.case.data:
            self._load_lines(self.case.data, self.case.load_mode)

    def _expecting(self, expect: dict[str, Json], act: Callable[[], None], step: Step | None) -> None:
        wanted = expect.get("error") if step is None or step.fails else None
        before = self._state() if wanted is not None else None
        try:
            act()
        except OmnigraphError as error:
            if wanted is None:
                raise MismatchError(f"{_title(step)}: unexpected {type(error).__name__}: {error.to_dict()}") from error
            found = problems(error, wanted, self.case.schema)
            if step is not None and self._state() != before:
                found.append("the refused step changed the graph")
            if step is not None and "conflicts" in step.expect:
                found += _conflict_problems(error, step.expect)
            if found:
                raise MismatchError(f"{_title(step)}: " + "; ".join(found)) from error
            return
        if wanted is not None:
            raise MismatchError(f"{_title(step)}: an error was expected: {wanted}")

    def _cannot_play(self, step: Step) -> str | None:
        """Why a step that changes nothing is left out, or None."""
        if step.op == "http_error":
            missing = missing_error_class(step)
            return None if missing is None else self.not_built["error_bodies"][missing]
        return None

    def _state(self) -> object:
        if self.graph is None:
            return None
        branches = self.graph.branches()
        return branches, [
            (sorted(self.graph.export(branch=name)), len(self.graph.commits(branch=name))) for name in branches
        ]

    @property
    def _open(self) -> Graph:
        assert self.graph is not None, "the case has no schema"
        return self.graph

    # --- operations

    def _load_lines(self, lines: tuple[str, ...] | list[str], mode: str, **options: Json) -> Json:
        """Without an executor the lines are given as they are, with one as a file that its tasks read."""
        if self.executor is None:
            return self._open.load(list(lines), mode=mode, **options)
        path = self.root / f"input-{len(list(self.root.glob('input-*')))}.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return self._open.load(str(path), mode=mode, options=LoadOptions(executor=self.executor), **options)

    def _load(self, step: Step) -> None:
        options = {name: step.fields[name] for name in ("branch", "base", "actor") if name in step.fields}
        report = self._load_lines(step.fields["data"], step.fields["mode"], **options)
        if not step.fails:
            told = {name: value for name, value in step.expect.items() if name != "ok"}
            _equal(step, {name: getattr(report, name) for name in told}, told)

    def _ingest(self, step: Step) -> None:
        report = self._open.ingest(step.fields["data"], branch=step.fields["branch"], mode=step.fields["mode"])
        got = {name: getattr(report, name) for name in step.expect if name != "tables"}
        _equal(step, got, {name: value for name, value in step.expect.items() if name != "tables"})

    def _mutate(self, step: Step) -> None:
        options = {name: step.fields[name] for name in ("branch", "actor") if name in step.fields}
        result = self._open.mutate(step.fields["source"], step.fields["query"], step.fields.get("params"), **options)
        if not step.fails:
            _equal(step, {name: getattr(result, name) for name in step.expect}, step.expect)

    def _count(self, step: Step) -> None:
        got = self._open.count(step.fields["table"], **self._where(step))
        if not step.fails:
            _equal(step, got, step.expect["count"])

    def _describe(self, step: Step) -> None:
        described: Json = self._open.describe().to_dict()
        for kind in ("nodes", "edges"):
            for name, expected in step.expect.get(kind, {}).items():
                got = {member: described[kind][name].get(member) for member in expected}
                _equal(step, got, expected)

    def _query(self, step: Step) -> None:
        asked = (step.fields["source"], step.fields.get("query"), step.fields.get("params"))
        with embedding_steps.environment(step, mock="mock_embeddings" in self.case.requires):
            got = self._open.query(*asked, **self._where(step))
        if not step.fails:
            check_answer(step, got.column_names, got.to_pylist())

    def _lint(self, step: Step) -> None:
        found = lint_differences(self.case.schema, step)
        if found:
            raise MismatchError(f"{_title(step)}: {'; '.join(found)}")

    def _export(self, step: Step) -> None:
        types, tables = (step.fields.get(name) or None for name in ("types", "tables"))
        got = [json.loads(line) for line in self._open.export(types=types, tables=tables, **self._where(step))]
        if "records" in step.expect:
            _equal(step, got, step.expect["records"])
        for wanted in step.expect.get("contains", ()):
            kept = ({name: record["data"].get(name) for name in wanted} for record in got)
            if not any(same(members, wanted) for members in kept):
                raise MismatchError(f"{_title(step)}: no record has {wanted!r}")

    def _export_reload(self, step: Step) -> None:
        lines = list(self._open.export())
        self._load_lines(lines, step.fields["mode"])
        _equal(step, sorted(self._open.export()), sorted(lines))

    def _checkpoint(self, step: Step) -> None:
        self.marks[step.fields["as"]] = self._open.commits(branch=step.fields.get("branch"))[0].id

    def _diff(self, step: Step) -> None:
        only = DiffFilter(**step.fields.get("filter", {}))
        before, after = (Where(snapshot=self.marks[step.fields[end]]) for end in ("from", "to"))
        found = self._open.diff(before, after, only=only)
        shown = ("kind", "type_name", "id", "op", "endpoints")
        changes = [{n: v for n, v in change.to_dict().items() if n in shown} for change in found.changes]
        _equal(step, _multiset(changes), _multiset(step.expect["changes"]))
        if "stats" in step.expect:
            _equal(step, found.stats(), step.expect["stats"])

    def _entity(self, step: Step) -> None:
        found = self._open.entity(step.fields["table"], step.fields["id"], **self._where(step))
        _equal(step, found, step.expect["entity"])

    def _commits(self, step: Step) -> None:
        commits = self._open.commits(branch=step.fields.get("branch"))
        _equal(step, len(commits), step.expect["count"])
        if "last" in step.expect:
            newest = _reference_names(commits[0])
            newest["has_merged_parent"] = commits[0].merged_parent is not None
            _equal(step, {name: newest[name] for name in step.expect["last"]}, step.expect["last"])

    def _get_commit(self, step: Step) -> None:
        found = _reference_names(self._open.commit(step.fields["id"]))
        _equal(step, {name: found[name] for name in step.expect}, step.expect)

    def _branch_create(self, step: Step) -> None:
        self._open.create_branch(step.fields["name"], step.fields.get("from", "main"))

    def _cleanup(self, step: Step) -> None:
        """The reference engine knows no retention and asks for nothing."""
        seconds = step.fields.get("older_than_seconds")
        age = None if seconds is None else timedelta(seconds=seconds)
        self._open.cleanup(age, keep=step.fields.get("keep"), confirm=True, force=True)

    def _optimize(self, step: Step) -> None:
        before = {key: entry.version for key, entry in self._open.snapshot().entries.items()}
        report = self._open.optimize()
        after = self._open.snapshot().entries
        got = {
            "committed": sorted(key for key, entry in after.items() if entry.version != before[key]),
            "skipped": {key: table.left for key, table in report.tables.items() if table.left is not None},
        }
        told = {name: sorted(value) if name == "committed" else value for name, value in step.expect.items()}
        told.pop("ok", None)
        _equal(step, {name: got[name] for name in told}, told)

    def _repair(self, step: Step) -> None:
        actions = self._open.repair(confirm=step.fields["confirm"], force=step.fields["force"]).actions()
        if not step.fails:
            told = step.expect["actions"]
            _equal(step, {key: str(actions.get(key)) for key in told}, told)

    def _branch_delete(self, step: Step) -> None:
        self._open.delete_branch(step.fields["name"])

    def _branch_merge(self, step: Step) -> None:
        into, actor = step.fields.get("into", "main"), step.fields.get("actor")
        report = self._open.merge_branch(step.fields["source"], into, actor=actor, executor=self.executor)
        if "outcome_in" in step.expect:
            _equal(step, str(report.outcome) in step.expect["outcome_in"], True)
        elif "outcome" in step.expect:
            _equal(step, str(report.outcome), step.expect["outcome"])

    def _leave_sidecar(self, step: Step) -> None:
        """What a writer of the reference engine left that died long ago; whoever comes next opens the graph anew."""
        entries, operation = self._open.snapshot().entries, new_ulid()
        body = {
            "schema_version": 2,
            "operation_id": operation,
            "started_at": "1750000000000000",
            "branch": None,
            "actor_id": None,
            "writer_kind": step.fields["writer_kind"],
            "tables": [self._pin(entries[key], moved) for key, moved in step.fields["tables"].items()],
            "merge_source_commit_id": self._open.commits(branch=step.fields["merge_source"])[0].id,
        }
        self._open.store.objects.put(f"__recovery/{operation}.json", json.dumps(body, indent=2).encode())
        self.graph = Graph.open(self._open.uri)

    def _pin(self, entry: TableEntry, moved: Json) -> Json:
        expected = entry.version + moved["expected"]
        confirmed = {"confirmed_version": entry.version + moved["confirmed"]} if "confirmed" in moved else {}
        return {
            "table_key": entry.table_key,
            "table_path": self._open.store.table_uri(entry.location, None),
            "expected_version": expected,
            "post_commit_pin": expected + 1,
            **confirmed,
        }

    def _branch_list(self, step: Step) -> None:
        _equal(step, self._open.branches(), step.expect["branches"])

    def _compare(self, step: Step) -> None:
        left, right = (sorted(self._open.export(branch=step.fields[side])) for side in ("left", "right"))
        _equal(step, left == right, step.expect["equal"])

    def _snapshot(self, step: Step) -> None:
        found = self._open.snapshot(**self._where(step))
        for key, wanted in step.expect.get("tables", {}).items():
            entry = found.entry(key)
            facts = {"rows": entry.row_count, "own": entry.branch == found.branch}
            _equal(step, {name: facts[name] for name in wanted}, wanted)
        _equal(step, sorted(found.entries.keys() & set(step.expect.get("absent", ()))), [])

    def _schema_source(self, step: Step) -> None:
        _equal(step, self._open.schema().strip(), step.expect["equals"].strip())

    def _of_provider(self, step: Step) -> None:
        """A step that needs no graph: what a provider of embeddings is asked, and what comes of its answer."""
        found = getattr(embedding_steps, step.op)(step)
        if found:
            raise MismatchError(f"{_title(step)}: {'; '.join(found)}")

    _mock_embed = _normalize = _embed_config = _embed_request = _embed_response = _embed_file = _of_provider

    def _plan_schema(self, step: Step) -> None:
        choices = {"allow_data_loss": step.fields["allow_data_loss"]} if "allow_data_loss" in step.fields else {}
        found: Json = self._open.plan_schema(step.fields["schema"], executor=self.executor, **choices).to_dict()
        _equal(step, found["supported"], step.expect["supported"])
        _check_steps(step, found["steps"])

    def _schema_apply(self, step: Step) -> None:
        choices = {"allow_data_loss": step.fields["allow_data_loss"]} if "allow_data_loss" in step.fields else {}
        report = self._open.apply_schema(step.fields["schema"], executor=self.executor, **choices)
        if not step.fails:
            _equal(step, report.applied, step.expect["applied"])
            _check_steps(step, report.to_dict()["steps"])

    def _where(self, step: Step) -> Json:
        """Which state a step reads: a checkpoint, or the newest of a branch."""
        at = step.fields.get("at")
        if at is not None:
            return {"snapshot": self.marks[at]}
        return {"branch": step.fields["branch"]} if "branch" in step.fields else {}

    def _http_error(self, step: Step) -> None:
        members = step.expect["body"].keys() | {"manifest_conflict", "merge_conflicts"}
        found = body_problems(error_of(step.fields["error"]), step.expect, sorted(members))
        if found:
            raise MismatchError(f"http_error: {'; '.join(found)}")


def _check_steps(step: Step, steps: Json) -> None:
    """Steps by the given members, in their order, and the codes of those that have one."""
    if "steps" in step.expect:
        _equal(step, _given(steps, step.expect["steps"]), step.expect["steps"])
    if "codes" in step.expect:
        _equal(step, [each["code"] for each in steps if "code" in each], step.expect["codes"])


def _conflict_problems(error: OmnigraphError, expect: dict[str, Json]) -> list[str]:
    """Expected conflicts that are not reported, and, where they are all, those that are reported besides."""
    reported = list(error.conflicts) if isinstance(error, MergeConflictsError) else []
    found = []
    for wanted in expect["conflicts"]:
        texts = wanted.get("message_contains", [])
        fits = [
            c
            for c in reported
            if (c.table_key, c.kind) == (wanted["table_key"], wanted["kind"])
            and ("row_id" not in wanted or c.row_id == wanted["row_id"])
            and all(text in c.message for text in texts)
        ]
        if fits:
            reported.remove(fits[0])
        else:
            found.append(f"conflict {wanted} is not among {error}")
    if expect.get("conflicts_exact") and reported:
        found.append(f"unexpected conflicts {reported}")
    return found


def _given(got: Json, expected: Json) -> Json:
    """Of steps the members that are expected; all of those that are one too many."""
    wanted = [*expected, *[{}] * len(got)]
    return [{n: v for n, v in each.items() if not want or n in want} for each, want in zip(got, wanted, strict=False)]


def _title(step: Step | None) -> str:
    return "init" if step is None else f"step {step.op}"


def _reference_names(commit: Commit) -> dict[str, Json]:
    return {
        "graph_commit_id": commit.id,
        "manifest_branch": commit.branch,
        "manifest_version": commit.manifest_version,
        "parent_commit_id": commit.parent,
        "merged_parent_commit_id": commit.merged_parent,
        "actor_id": commit.actor,
        "created_at": commit.created_micros,
    }


def _multiset(rows: Json) -> list[Json]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def _equal(step: Step, got: Json, expected: Json) -> None:
    if not same(got, expected):
        raise MismatchError(f"step {step.op}: expected {expected!r}, got {got!r}")


def same(got: Json, expected: Json) -> bool:
    """Equality of JSON values: numbers by value, but a boolean is never a number."""
    if isinstance(expected, dict):
        return isinstance(got, dict) and got.keys() == expected.keys() and all(same(got[k], expected[k]) for k in got)
    if isinstance(expected, list):
        return isinstance(got, list | tuple) and len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(expected, bool) or isinstance(got, bool) or expected is None or got is None:
        return got is expected
    if isinstance(expected, float) and isinstance(got, float):
        return math.isclose(got, expected, rel_tol=1e-12, abs_tol=0.0)
    return bool(got == expected)
