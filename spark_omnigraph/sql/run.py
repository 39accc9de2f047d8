"""Plans a statement and runs it: nothing but reading, in bounded memory and room on the disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from datafusion import DataFrame, RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.limits import Leaving, Limits
from spark_omnigraph.sql.faults import GROWING, planning
from spark_omnigraph.sql.growth import Growth
from spark_omnigraph.sql.room import Room
from spark_omnigraph.sql.source import SqlSource
from spark_omnigraph.sql.states import GraphCatalog, States
from spark_omnigraph.sql.text import bound_values, check_text

CATALOG = "graph"

_READ_ALONE = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
_SETTINGS = {
    "datafusion.sql_parser.enable_ident_normalization": "false",  # names of types and properties have their case
    "datafusion.optimizer.enable_round_robin_repartition": "false",  # it goes into Lance's plans too, and breaks limits
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",  # of Utf8 a batch has 2 GiB, more is an error
    "datafusion.execution.enforce_batch_size_in_joins": "true",
    "datafusion.catalog.information_schema": "true",
    "datafusion.catalog.create_default_catalog_and_schema": "false",
    "datafusion.catalog.default_catalog": CATALOG,
}
_MAKING = re.compile(r"\|\||\[|\b(?:\w*concat\w*|\w*replace|(?:array|list|make|string)_\w+)\b", re.IGNORECASE)
_DEEPEST = 16
"""Subqueries in subqueries, of a statement that makes texts: they are looked into in time that doubles with each."""
_MOST_MAKING = 8
"""Operators and functions that make texts and lists, in a statement that cannot be looked into."""


def run_sql(
    source: SqlSource, text: str, params: Mapping[str, object] | None, limits: Limits, room: Room
) -> tuple[DataFrame, States]:
    """A statement that is planned and has not run, and what it names. Raises as `planning`; LimitError."""
    checked = check_text(text)
    values = bound_values(checked, params)
    context = _context(source.default, room)
    work = Leaving[DataFrame](limits.seconds)
    states = States(source, context, work.check)
    context.register_catalog_provider(CATALOG, GraphCatalog(states))

    def read() -> DataFrame:
        work.check()  # one step of planning cannot be broken, but the next one is not begun
        return context.sql(checked, options=_READ_ALONE, param_values=values or None)

    def planned() -> DataFrame:
        with planning(checked, states.faults):
            frame, growth = read(), Growth()
            growth.check(frame.logical_plan())
            if growth.has_hidden:
                _check_hidden(checked, context, read)
            return frame

    frame = work.value(planned)
    states.check = _go_on
    states.faults.clear()  # names that were no tables, and were something else
    return frame, states


def _go_on() -> None:
    """What a statement that is planned looks at."""


def _check_hidden(text: str, context: SessionContext, read: Callable[[], DataFrame]) -> None:
    """Checks how values grow where subqueries hide it: most of them are seen when they have become joins."""
    making = len(_MAKING.findall(text))
    if not making:
        return
    depths = {len(line) for line in read().logical_plan().display_indent().splitlines() if line.strip() == "Subquery:"}
    if len(depths) > _DEEPEST:
        raise BadRequestError(f"subqueries stand in each other more than {_DEEPEST} deep: ask in several statements")
    context.sql("SET datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery = false")
    growth = Growth()
    try:
        plan = read().optimized_logical_plan()
    except Exception:  # noqa: BLE001 - of any class: it may be run all the same
        growth.has_hidden = True
    else:
        growth.check(plan)
    if growth.has_hidden and making > _MOST_MAKING:
        raise BadRequestError("a subquery stands where it hides how far texts and lists grow: put it into FROM")


def _context(default: str, room: Room) -> SessionContext:
    """A session that has no place to read from or write to but the catalog that it is given."""
    config = SessionConfig(_SETTINGS | {"datafusion.catalog.default_schema": default})
    context = SessionContext(config, RuntimeEnvBuilder().with_fair_spill_pool(room.memory))
    context.sql(f"SET datafusion.runtime.max_temp_directory_size = '{-(-room.spill >> 20)}M'")
    context.deregister_object_store("file://")
    for name in GROWING:
        context.deregister_udf(name)
    return context
