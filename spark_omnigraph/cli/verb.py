"""What a verb is: its options and texts, the job it is handed, the outcome it gives back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.cli.config import JobConfig
from spark_omnigraph.cli.host import Host
from spark_omnigraph.cli.options import Option
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.progress.meter import Progress, unheard

if TYPE_CHECKING:
    from spark_omnigraph.write.executor import Executor


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a verb. What `emit` is given goes to standard output; `log` speaks to people."""

    config: JobConfig
    host: Host
    log: logging.Logger
    emit: Callable[[str], None]
    said: CommitOrigin = field(default_factory=CommitOrigin)
    """What is known of the run before it has a Spark session."""
    inputs: list[tuple[str, int]] = field(default_factory=list)
    """Files that go in, with their bytes: noted as soon as they are known, for the page of a run that fails, too."""

    progress: Progress = unheard
    """Is told how far the work is."""

    def executor(self) -> Executor:
        """The executor of the job, this process where it names none; what it runs tells how far it is."""
        from spark_omnigraph.write.executor import LocalExecutor, WatchedExecutor  # noqa: PLC0415 - help needs neither

        return self.named_executor() or WatchedExecutor(LocalExecutor(1), self.progress)

    def named_executor(self) -> Executor | None:
        """As `executor`; None where the job names none, for work that has threads of its own then."""
        from spark_omnigraph.write.executor import WatchedExecutor  # noqa: PLC0415 - help needs it not

        chosen = self.host.executor(self.config, 0)
        return None if chosen is None else WatchedExecutor(chosen, self.progress)

    @property
    def origin(self) -> CommitOrigin:
        """What commits of this run say of who makes them."""
        return replace(self.said, app_id=self.host.application_id)


@dataclass(frozen=True, slots=True)
class VerbOutcome:
    """Figures of a finished verb for the summary; None is unknown or does not apply."""

    branch: str | None = None
    base_commit: str | None = None
    commit: str | None = None
    manifest_version: int | None = None
    tables: Mapping[str, Mapping[str, int | None]] | None = None
    bad_rows: Mapping[str, object] | None = None
    phases: Mapping[str, float] | None = None
    warnings: tuple[str, ...] = ()
    result: object = None
    refused: bool = False
    """Whether the verb did its work and the answer is no, as for queries with errors: the exit code is 3."""
    dry_run: bool = False
    """Whether the verb only looked although no dry run was asked for: it does so unless told otherwise."""
    bad_row_summary: BadRowSummary | None = None
    """With the first rows, for the page of the run."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the program; `name` has a space where there are two words (`branch create`)."""

    name: str
    help: str
    example: str
    run: Callable[[Job], VerbOutcome]
    options: tuple[Option, ...] = ()
    common: tuple[Option, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Options that the verb itself decides: `merge` is `ingest` with `mode` merge."""

    has_rows: bool = False
    """Whether the answer is rows on standard output, where nothing else may stand then."""

    row_formats: tuple[str, ...] = ()
    """Forms of a description with which it has rows all the same."""

    @property
    def all_options(self) -> tuple[Option, ...]:
        return (*self.options, *self.common)

    @property
    def writes(self) -> bool:
        """Whether it may write to a graph: such verbs have a page about their run."""
        return any(option.key == "report" for option in self.all_options)

    @property
    def required(self) -> frozenset[str]:
        """Keys of the options that must be given."""
        return frozenset(option.key for option in self.all_options if option.required and not option.unless)
