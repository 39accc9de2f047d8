"""What a run of embedding did: figures by property, and rows whose text got no vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain

import pyarrow as pa

from spark_omnigraph.bad_rows import STORED, BadRow, BadRowSummary, Rule
from spark_omnigraph.draw.card import Card, commit_line, figures_grid, phases_grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.embed.counts import PropertyCounts
from spark_omnigraph.errors import EmbeddingError
from spark_omnigraph.graph.embed.request import EmbedRequest, EmbedTarget
from spark_omnigraph.graph.load.bad_rows import ReportTarget, write_rows


@dataclass(frozen=True, slots=True, repr=False)
class EmbedReport(Displayed):
    """What a run did. `commit` is the last one, None when nothing changed; `commits` are all of them."""

    mode: str
    model: str
    branch: str
    commit: str | None
    base_commit: str | None
    manifest_version: int
    commits: tuple[str, ...]
    tables: Mapping[str, int]
    """Rows by table key that changed."""
    properties: Mapping[str, PropertyCounts]
    """By `Type.property`."""
    bad_rows: BadRowSummary = field(default_factory=BadRowSummary)
    phases: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    minutes: float | None = None
    """Of a dry run, where limits of requests or tokens say how long it takes at least."""

    def _card(self) -> Card:
        figures = {name: asdict(counts) for name, counts in self.properties.items()}
        embedded = sum(counts.embedded for counts in self.properties.values())
        bad = f", {self.bad_rows.total:,} without a vector" if self.bad_rows.total else ""
        return Card(
            "EmbedReport",
            f"{self.mode} on {self.branch} by {self.model}: {embedded:,} embedded{bad}, {commit_line(self.commit)}",
            {
                "base commit": self.base_commit,
                "manifest version": self.manifest_version,
                "commits": len(self.commits),
                "minutes at least": self.minutes,
            },
            without_empty(
                figures_grid("Properties", figures, "property"), *self.bad_rows.grids(), phases_grid(self.phases)
            ),
            self.warnings,
        )


@dataclass(frozen=True, slots=True, eq=False)
class FailedRows:
    """Rows of a property whose texts got no vector: at least `id` and `key`."""

    target: EmbedTarget
    rows: pa.Table


def bad_rows_of(failed: Sequence[FailedRows], failures: Mapping[str, str], request: EmbedRequest) -> BadRowSummary:
    """Counts, sample and report of rows without a vector; `failures` says why, by key."""
    total = sum(each.rows.num_rows for each in failed)
    path = request.bounds.report
    if not total and path is None:
        return BadRowSummary()
    told = chain.from_iterable(_bad_rows(each.target, each.rows, failures) for each in failed)
    sample = write_rows(told, ReportTarget(path, request.store.options))
    return BadRowSummary(total, {str(Rule.EMBEDDING): total} if total else {}, tuple(sample), path)


def _bad_rows(target: EmbedTarget, rows: pa.Table, failures: Mapping[str, str]) -> Iterator[BadRow]:
    file = f"{STORED}{target.entity.table_key}>"
    for number, row in enumerate(rows.select(["id", "key"]).to_pylist(), 1):
        message = f"no vector for {target.name}: {failures.get(row['key'], 'its text was not asked any more')}"
        yield BadRow(file, number, 0, target.entity.name, target.prop, Rule.EMBEDDING, message, "", row["id"])


def refuse(summary: BadRowSummary, meant: int, request: EmbedRequest, commits: int) -> None:
    """EmbeddingError when none of the rows that a run means was answered, or fewer than must be; `commits` are made."""
    if not summary.total:
        return
    nothing = summary.total == meant
    if not nothing and request.bounds.allows(summary.total, meant):
        return
    rows = "1 row" if summary.total == 1 else f"{summary.total:,} rows"
    limit = "" if nothing else request.bounds.limit_of(meant)
    first = summary.sample[0]
    more = f" All of them: {summary.report}." if summary.report else ""
    done = f"{commits} commit{'' if commits == 1 else 's'} made, and no more" if commits else "nothing changed"
    raise EmbeddingError(
        f"{done}: {rows} of {meant:,} got no vector{limit}. First: {first.place}: {first.message}.{more}"
    )
