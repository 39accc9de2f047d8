"""What follows a write: it is committed, and stands whatever becomes of this."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.indexes import ensure_indices


class Report(Protocol):
    """What a writer reports: the commit, None when nothing changed, its tables, seconds of its phases, warnings."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def commit(self) -> str | None: ...
    @property
    def tables(self) -> Collection[str]: ...
    @property
    def phases(self) -> Mapping[str, float]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=Report)


def after(store: GraphStore, branch: Branch, report: R, write: str, tables: Collection[str] | None = None) -> R:
    """Builds the indexes that tables of a commit lack, all or these; its report, with seconds and what went wrong."""
    tables = report.tables if tables is None else tables
    if report.commit is None or not tables:
        return report
    clock = Clock()
    try:
        with clock.phase("index"):
            warnings = ensure_indices(store, branch, tables).warnings
    except OmnigraphError as error:
        warnings = (f"the {write} is committed, but indexes could not be built: {error.message}",)
    phases = {**report.phases, **clock.seconds()}
    return replace(report, phases=phases, warnings=(*report.warnings, *warnings))
