"""Plans a statement and runs it: nothing but reading, in bounded memory and room on the disk."""

from __future__ import annotations

from collections.abc import Mapping

from datafusion import DataFrame, RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions

from spark_omnigraph.limits import Leaving, Limits
from spark_omnigraph.sql.faults import planning
from spark_omnigraph.sql.room import Room
from spark_omnigraph.sql.source import SqlSource
from spark_omnigraph.sql.states import GraphCatalog, States
from spark_omnigraph.sql.text import bound_values, check_text

CATALOG = "graph"

_READ_ALONE = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
_SETTINGS = {
    "datafusion.sql_parser.enable_ident_normalization": "false",  # names of types and properties have their case
    "datafusion.optimizer.enable_round_robin_repartition": "false",  # it goes into Lance's plans too, and breaks limits
    "datafusion.catalog.information_schema": "true",
    "datafusion.catalog.create_default_catalog_and_schema": "false",
    "datafusion.catalog.default_catalog": CATALOG,
}
_GROWING = (
    "repeat", "lpad", "rpad", "array_repeat", "list_repeat", "array_resize", "list_resize", "range", "generate_series",
)  # laid out as a table  # fmt: skip
"""Functions that make values of any size from small ones, in memory that nothing bounds."""


def run_sql(
    source: SqlSource, text: str, params: Mapping[str, object] | None, limits: Limits, room: Room
) -> tuple[DataFrame, States]:
    """A statement that is planned and has not run, and what it names. Raises as `planning`; LimitError."""
    checked = check_text(text)
    values = bound_values(checked, params)
    context = _context(source.default, room)
    states = States(source, context)
    context.register_catalog_provider(CATALOG, GraphCatalog(states))

    def planned() -> DataFrame:
        with planning(checked, states.faults):
            return context.sql(checked, options=_READ_ALONE, param_values=values or None)

    frame = Leaving[DataFrame](limits.seconds).value(planned)
    states.faults.clear()  # names that were no tables, and were something else
    return frame, states


def _context(default: str, room: Room) -> SessionContext:
    """A session that has no place to read from or write to but the catalog that it is given."""
    config = SessionConfig(_SETTINGS | {"datafusion.catalog.default_schema": default})
    context = SessionContext(config, RuntimeEnvBuilder().with_fair_spill_pool(room.memory))
    context.sql(f"SET datafusion.runtime.max_temp_directory_size = '{-(-room.spill >> 20)}M'")
    context.deregister_object_store("file://")
    for name in _GROWING:
        context.deregister_udf(name)
    return context
