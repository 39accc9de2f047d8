"""SQL over a graph: which states a statement may name, and how."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import TYPE_CHECKING, cast

from spark_omnigraph.branch.tags import list_tags
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import NotFoundError, UsageError
from spark_omnigraph.graph.read.history import Bounded, Where, target_of
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.limits import split_limits
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.sql.result import SqlResult
from spark_omnigraph.sql.room import Room
from spark_omnigraph.sql.source import SqlSource, StateTables
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.words import listed, nearest

if TYPE_CHECKING:
    from types import ModuleType

MAJOR = "54"
"""The release of DataFusion that Lance is built with; tables of it go to no other."""
INSTALL_SQL = "pip install 'spark-omnigraph[sql]'"

Shown = Callable[[Where], tuple[Catalog, Snapshot]]


class SqlChoices(Bounded, total=False):
    """The state that names without a schema mean, and what a statement may take."""

    memory: int | None
    spill: int | None


@dataclass(frozen=True, slots=True)
class SqlGraph:
    """A graph as a statement sees it. `shown` gives a state; a pinned handle gives its own alone."""

    store: GraphStore
    shown: Shown
    is_pinned: bool

    def run(self, text: str, params: Mapping[str, object] | None, choices: SqlChoices) -> SqlResult:
        """As `Graph.sql`, which says what is raised."""
        engine = _engine()
        limits, rest = split_limits(choices)
        sizes = {name: rest.pop(name, None) for name in ("memory", "spill")}
        room = Room(**{name: size for name, size in sizes.items() if size is not None})
        where = cast("Where", rest)
        catalog, snapshot = self.shown(where)
        is_newest = not self.is_pinned and not any(where.get(n) is not None for n in where if n != "branch")
        default = display(snapshot.branch) + ("" if is_newest else f"@{snapshot.version}")
        asked = self._tables(catalog, snapshot)

        def state(name: str) -> StateTables:
            return asked if name == default else self._tables(*self.shown(self._where(name)))

        source = SqlSource(default, self._listed, state, self.store.reads)
        frame, states = engine.run_sql(source, text, params, limits, room)
        return SqlResult(display(snapshot.branch), snapshot.version, frame, states, limits)

    def _tables(self, catalog: Catalog, snapshot: Snapshot) -> StateTables:
        def pinned(table_key: TableKey) -> PinnedTable | None:
            entry = snapshot.entries.get(table_key)
            return None if entry is None else pin(self.store, entry)

        return StateTables(catalog, pinned)

    def _listed(self) -> Collection[str]:
        """Names of all branches and tags."""
        if self.is_pinned:
            return ()
        branches = self._branches()
        return {*branches, *(f"tag:{name}" if name in branches else name for name in list_tags(self.store))}

    def _branches(self) -> list[str]:
        return [display(branch) for branch in self.store.graph_branches()]

    def _where(self, name: str) -> Where:
        """The state that the name of a schema means. NotFoundError when it means none."""
        branch, at, state = name.partition("@")
        if at:
            target = target_of(state)
            if target.branch is not None:
                raise NotFoundError(
                    f"schema '{name}' names no state: after the @ stands a manifest version, the id of a commit or a "
                    f"time, not '{state}'"
                )
            return {"branch": branch, "version": target.version, "snapshot": target.snapshot, "as_of": target.as_of}
        branches, tag = self._branches(), name.removeprefix("tag:")
        if name in branches:
            return {"branch": name}
        tags = list_tags(self.store)
        if tag in tags:
            return {"tag": tag}
        known = [*branches, *tags]
        raise NotFoundError(
            f"schema '{name}' is neither a branch nor a tag{nearest(name, known)}{listed('schemas', known)}"
        )


def _engine() -> ModuleType:
    """The room that runs statements. UsageError without DataFusion, or with a release that does not fit Lance's."""
    try:
        found = metadata.version("datafusion")
    except metadata.PackageNotFoundError:
        raise UsageError(f"SQL needs the package 'datafusion', which is not installed: {INSTALL_SQL}") from None
    if found.partition(".")[0] != MAJOR:
        raise UsageError(f"SQL needs datafusion {MAJOR}, which Lance is built with, and {found} is here: {INSTALL_SQL}")
    return import_module("spark_omnigraph.sql.run")
