"""Stored rows that a schema change would break, as bad rows: read again by their places, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from spark_omnigraph.bad_rows import MISTAKES, STORED, BadRow, BadRowSummary, Mistake
from spark_omnigraph.catalog.migration.planner import SchemaPlan
from spark_omnigraph.catalog.types import EntityType, Scalar
from spark_omnigraph.errors import InternalError
from spark_omnigraph.graph.load.bad_rows import ReportTarget, write_rows
from spark_omnigraph.graph.merge.rows import text_rows
from spark_omnigraph.graph.schema.count import BrokenRule, BrokenTable, StepCounts
from spark_omnigraph.graph.schema.projection import Projection
from spark_omnigraph.graph.schema.rules import RowRule
from spark_omnigraph.records.record_text import record_text
from spark_omnigraph.redaction import cut
from spark_omnigraph.storage.tables.stored_rows import StoredRows
from spark_omnigraph.validate.batch import BatchChecker
from spark_omnigraph.write.personal import without_personal
from spark_omnigraph.write.staged_table import Rows

_MOST_ROWS = 256
"""Rows that are read together at most: who wants the first ones alone does not wait for many."""


def report_broken(counts: StepCounts, plan: SchemaPlan, path: str | None, options: Mapping[str, str]) -> BadRowSummary:
    """Counts, the first bad rows without what either schema marks as of a person, and all of them, as they are, in a
    file of JSON lines (or an `s3://` object) when one is given.
    """
    rows = (row for each in counts.broken for row in _bad_rows(each))
    sample = write_rows(rows, ReportTarget(path, options))
    summary = BadRowSummary(counts.bad_rows, dict(counts.per_rule), tuple(sample), path)
    return _without_personal(without_personal(summary, plan.accepted), counts, plan)


def _without_personal(summary: BadRowSummary, counts: StepCounts, plan: SchemaPlan) -> BadRowSummary:
    """Mistakes name properties by the desired schema, and rows their types by the accepted one."""
    news = {_file(each.diff.old): each.diff.new.name for each in counts.broken if each.diff.old and each.diff.new}
    renamed = tuple(replace(row, record_type=news[row.file]) for row in summary.sample)
    hidden = without_personal(replace(summary, sample=renamed), plan.desired).sample
    shown = (replace(row, record_type=each.record_type) for row, each in zip(hidden, summary.sample, strict=True))
    return replace(summary, sample=tuple(shown))


def _file(entity: EntityType) -> str:
    return f"{STORED}{entity.table_key}>"


def _bad_rows(broken: BrokenTable) -> Iterator[BadRow]:
    places, table = broken.places, _Table(broken)
    for start in range(0, len(places), table.at_once):
        yield from table.rows(places[start : start + table.at_once])


class _Table:
    """The rows of one table that break a rule, and why."""

    def __init__(self, broken: BrokenTable) -> None:
        if broken.diff.old is None or broken.diff.new is None:
            raise InternalError("rows of a table that does not stay cannot break a rule")
        self._old, self._new = broken.diff.old, broken.diff.new
        self._projection = Projection(broken.diff.columns)
        row_rules = [each.rule for each in broken.rules if isinstance(each.rule, RowRule)]
        self._checkers = [(rule, BatchChecker(rule.entity)) for rule in row_rules]
        self._findings = [each for each in broken.rules if each.finding is not None]
        shown = [name for name in self._old.columns if not _is_blob(self._old, name)]
        needed = self._projection.needed(name for rule in row_rules for name in rule.columns)
        self._shown = shown
        self.at_once = min(text_rows(self._old), _MOST_ROWS)
        self._stored = StoredRows.open(broken.table, list(dict.fromkeys((*shown, *needed))))

    def rows(self, places: Rows) -> list[BadRow]:
        """The bad rows at these places, which rise."""
        read = self._stored.take(self._stored.row_ids(places.tolist()))
        mistakes: list[list[Mistake]] = [[] for _ in places]
        for rule, checker in self._checkers:
            for found in checker.check(self._projection.of(read, rule.columns)):
                mistakes[found.row].append(Mistake(found.field, found.rule, found.message))
        for broken in self._findings:
            self._add_findings(broken, places, mistakes)
        ids = read.column("id").to_pylist()
        texts = record_text(self._old, read.select(self._shown), None)
        return [self._bad_row(*each) for each in zip(places.tolist(), ids, texts, mistakes, strict=True)]

    def _bad_row(self, place: int, row_id: str, text: str, mistakes: Sequence[Mistake]) -> BadRow:
        first, further = mistakes[0], tuple(mistakes[1:MISTAKES])
        return BadRow(
            _file(self._old),
            place + 1,
            0,
            self._old.name,
            first.field,
            first.rule,
            first.message,
            text,
            row_id,
            further,
        )

    def _add_findings(self, broken: BrokenRule, places: Rows, mistakes: list[list[Mistake]]) -> None:
        finding = broken.finding
        if finding is None:
            return
        at = np.searchsorted(broken.places, places)
        at[at == len(broken.places)] = 0
        for i in np.flatnonzero(broken.places[at] == places).tolist():
            message = finding.message(int(at[i]))
            if finding.holders is not None and finding.ids is not None:
                message += f" (id '{cut(finding.ids[int(finding.holders[at[i]])].as_py())}')"
            mistakes[i].append(Mistake(finding.field, finding.rule, message))


def _is_blob(entity: EntityType, name: str) -> bool:
    prop = entity.property(name)
    return prop is not None and prop.type.scalar is Scalar.BLOB
