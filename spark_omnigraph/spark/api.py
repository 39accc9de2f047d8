"""Calls for notebooks and jobs: DataFrames and views of a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from weakref import WeakSet

from pyspark.sql import DataFrame, Row, SparkSession

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.arguments import NAMES, SWITCH, TEXT, TEXTS, WHOLE, Kind, checked_call
from spark_omnigraph.predicates.where import where_json
from spark_omnigraph.spark.errors import typed_errors
from spark_omnigraph.spark.read.options import STORAGE_PREFIX
from spark_omnigraph.spark.session import storage_options as session_storage_options
from spark_omnigraph.spark.source import OmnigraphDataSource

Conditions = str | Iterable[Sequence[object]]

TABLES_DDL = "table string, branch string, manifest_version bigint"
_FIXED = {"versionAsOf", "snapshot", "timestampAsOf", "tag"}
CONDITIONS: Kind = (
    lambda value: isinstance(value, Iterable) and not isinstance(value, Mapping),
    "a predicate, or a list of (column, operator, value)",
)
MOMENT: Kind = (lambda value: isinstance(value, (datetime, str)), "a time, as a datetime or as a text")
FRAME: Kind = (lambda value: isinstance(value, DataFrame), "a DataFrame of Spark")
check_arguments = checked_call(
    **dict.fromkeys(("uri", "type", "snapshot", "tag", "prefix", "app_id"), TEXT),
    **dict.fromkeys(("columns", "types"), NAMES),
    **dict.fromkeys(("options", "storage_options"), TEXTS),
    df=FRAME,
    where=CONDITIONS,
    version=WHOLE,
    as_of=MOMENT,
    replace=SWITCH,
)
"""Refuses an argument of another kind by its name, before Spark is asked for anything."""

_registered: WeakSet[SparkSession] = WeakSet()


def register(spark: SparkSession) -> None:
    """Makes `format("omnigraph")` known to a session; needed where the package came with `--py-files`."""
    if spark not in _registered:
        spark.dataSource.register(OmnigraphDataSource)
        _registered.add(spark)


@check_arguments
def read_nodes(  # noqa: PLR0913 - the options of the data source, by name
    spark: SparkSession,
    uri: str,
    type: str,
    *,
    columns: Sequence[str] | None = None,
    where: Conditions | None = None,
    branch: str | None = None,
    version: int | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | None = None,
    tag: str | None = None,
    limit: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Nodes of a type: `id` and the properties, or the columns asked for.

    `where` is a list of `(column, operator, value)` with Python values, all of which must hold, or a predicate in
    Lance SQL. Columns, `where` and `limit` reach the storage; Spark's own filters and selections work on top.

    Example: `read_nodes(spark, uri, "Person", columns=["id", "age"], where=[("age", ">", 30)])`
    """
    given = _options(columns, where, limit, _at(branch, version, snapshot, as_of, tag))
    return _load_pinned(spark, uri, {"node": type, **given}, storage_options)


@check_arguments
def read_edges(  # noqa: PLR0913 - the options of the data source, by name
    spark: SparkSession,
    uri: str,
    type: str,
    *,
    columns: Sequence[str] | None = None,
    where: Conditions | None = None,
    branch: str | None = None,
    version: int | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | None = None,
    tag: str | None = None,
    limit: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Edges of a type: `id`, `src`, `dst` and the properties, or the columns asked for; else as `read_nodes`."""
    given = _options(columns, where, limit, _at(branch, version, snapshot, as_of, tag))
    return _load_pinned(spark, uri, {"edge": type, **given}, storage_options)


@check_arguments
def create_views(  # noqa: PLR0913 - the options of the data source, by name
    spark: SparkSession,
    uri: str,
    *,
    prefix: str = "",
    types: Collection[str] | None = None,
    branch: str | None = None,
    version: int | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | None = None,
    tag: str | None = None,
    replace: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """One temporary view for each type, all of one snapshot; table key (`node:Person`) → name of its view.

    A view is named after its type, with `prefix` before it; a node and an edge type of one name get `node_` and
    `edge_` before theirs. BadRequestError when two names would differ in case alone, or when a view or table of such a
    name is there already, unless `replace` says that temporary views may go and tables be hidden; then none is made.
    """
    rows = _tables(spark, uri, _at(branch, version, snapshot, as_of, tag), storage_options)
    wanted = None if types is None else set(types)
    views = view_names([row["table"] for row in rows], prefix, wanted)
    if not replace:
        _refuse_taken(spark, views.values())
    for row in rows:
        if row["table"] not in views:
            continue
        key = TableKey(row["table"])
        pin = {key.kind: key.type_name, "branch": row["branch"], "versionAsOf": str(row["manifest_version"])}
        load_source(spark, uri, pin, storage_options).createOrReplaceTempView(views[row["table"]])
    return views


def view_names(tables: Sequence[str], prefix: str, wanted: set[str] | None = None) -> dict[str, str]:
    """Names of views, no two alike without case. BadRequestError for a wanted type that no table key names, and for
    types that differ in case alone.
    """
    keys = [TableKey(text) for text in tables]
    bare = [key.type_name.lower() for key in keys]
    missing = (wanted or set()) - {key.type_name for key in keys}
    if missing:
        raise BadRequestError(f"no type '{min(missing)}' to make a view of")
    names: dict[str, str] = {}
    for key in keys:
        name = key.type_name
        if wanted is None or name in wanted:
            names[key] = prefix + (f"{key.kind}_{name}" if bare.count(name.lower()) > 1 else name)
    _refuse_alike(names)
    return names


def _refuse_alike(names: Mapping[str, str]) -> None:
    """Spark has one view for names that differ in case alone, so one of the types would be in none."""
    first: dict[str, str] = {}
    for key, name in names.items():
        other = first.setdefault(name.lower(), key)
        if other != key:
            raise BadRequestError(
                f"'{other}' and '{key}' would both be the view '{name}', for which Spark does not look at case: choose"
                " with types= which of them gets a view, and give the other one a prefix= in a call of its own"
            )


def _refuse_taken(spark: SparkSession, names: Iterable[str]) -> None:
    for name in names:
        if spark.catalog.tableExists(f"`{name}`"):
            raise BadRequestError(
                f"a view or table '{name}' exists already: give a prefix, or replace=True to put the graph's in its"
                " place"
            )


def _load_pinned(
    spark: SparkSession, uri: str, options: Mapping[str, str], storage_options: Mapping[str, str] | None
) -> DataFrame:
    """A frame that stays at one snapshot and whose faults show at once.

    A classic session works a `load()` out when it is called. A Connect session does so at every action, and so would
    see another snapshot, and the faults, later: there the version is asked for first.
    """
    pinned = dict(options)
    if is_remote(spark) and not _FIXED.intersection(options):
        at = {"branch": options["branch"]} if "branch" in options else {}
        for row in _tables(spark, uri, at, storage_options)[:1]:
            pinned |= {"branch": row["branch"], "versionAsOf": str(row["manifest_version"])}
    frame = load_source(spark, uri, pinned, storage_options)
    with typed_errors():
        _ = frame.schema
    return frame


def is_remote(spark: SparkSession) -> bool:
    """True for a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _tables(
    spark: SparkSession, uri: str, at: Mapping[str, str], storage_options: Mapping[str, str] | None
) -> list[Row]:
    """All types of a state, with its branch and manifest version; no table is opened for these columns."""
    tables = load_source(spark, uri, {"table": "tables", **at}, storage_options, TABLES_DDL)
    # All rows: Spark ends a Python worker that still has some, and the next task would wait for another.
    with typed_errors():
        return tables.collect()


def load_source(
    spark: SparkSession,
    uri: str,
    options: Mapping[str, str],
    storage_options: Mapping[str, str] | None,
    schema: str | None = None,
) -> DataFrame:
    """A frame of the data source with these options and the storage options of the session."""
    register(spark)
    storage = {**session_storage_options(spark), **(storage_options or {})}
    reader = spark.read.format(OmnigraphDataSource.name()).options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    for name, value in storage.items():
        reader = reader.option(STORAGE_PREFIX + name, value)
    with typed_errors():
        return reader.load(uri)


def _options(
    columns: Sequence[str] | None, where: Conditions | None, limit: int | None, at: Mapping[str, str]
) -> dict[str, str]:
    options = dict(at)
    if columns is not None:
        if not len(columns):
            raise BadRequestError("columns takes a list of at least one column name")
        options["columns"] = ",".join(columns)
    if isinstance(where, str):
        options["filter"] = where
    elif where is not None:
        options["where"] = where_json(where)
    if limit is not None:
        options["limit"] = str(limit)
    return options


def _at(
    branch: str | None, version: int | None, snapshot: str | None, as_of: datetime | str | None, tag: str | None
) -> dict[str, str]:
    moment = as_of.isoformat() if isinstance(as_of, datetime) else as_of
    given = {
        "branch": branch,
        "versionAsOf": None if version is None else str(version),
        "snapshot": snapshot,
        "timestampAsOf": moment,
        "tag": tag,
    }
    return {name: value for name, value in given.items() if value is not None}
