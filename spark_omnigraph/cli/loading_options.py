"""Options of the verbs that load files."""

from __future__ import annotations

from dataclasses import replace

from spark_omnigraph.cli import options as o
from spark_omnigraph.cli import values
from spark_omnigraph.cli.options import Option, Shape
from spark_omnigraph.records.mode import (
    REMOTE_SCHEMES,
    EmbedAtLoad,
    LoadMode,
    Nulls,
    OnDuplicate,
    OnMissing,
    UnknownFields,
    bad_row_limit,
    schemes_of,
)

MODE = Option(
    "mode",
    "append refuses an id that is stored, merge replaces its row, update changes the properties that the record has, "
    "overwrite replaces every type of the input, changes replaces or deletes as each record says",
    values.one_of(*LoadMode),
    "|".join(LoadMode),
    default="append",
)
MISSING = Option(
    "missing_rows",
    "what update does with an id that is not stored: a bad row, or a new row out of a whole record",
    values.one_of(*OnMissing),
    "error|insert",
    default="error",
    flag="--missing",
)
NULLS = Option(
    "nulls",
    "what a null means to update: the property is null, or it stays as it is",
    values.one_of(*Nulls),
    "set|keep",
    default="set",
)
PATCHING = (MISSING, NULLS)
MAX_DELETES = Option(
    "max_deletes",
    "refuse changes that delete more than N stored rows, or P percent of those of a type, before anything is written",
    bad_row_limit,
    "N|P%",
)
MAPPING = Option(
    "mapping",
    "YAML file that says which columns of which tables become which properties; it may name the input, too",
    values.existing_file,
    "FILE",
)
NODE = Option("node", "node type of the rows of tables", metavar="T")
EDGE = Option("edge", "edge type of the rows of tables", metavar="T")
COERCE = Option(
    "coerce", "read a text as the value that it spells where a property takes none; fields of CSV always are",
    values.switch, default="false", shape=Shape.SWITCH,
)  # laid out as a table  # fmt: skip
CSV_SINGLE_LINE = Option(
    "csv_single_line", "no value of CSV spans lines, so that one file is read by several tasks", values.switch,
    default="false", shape=Shape.SWITCH,
)  # laid out as a table  # fmt: skip
VERSION_AS_OF = Option("version_as_of", "version of a Delta table; by default its newest", values.natural, "N")
BASE = Option(
    "base", "where the branch starts when it does not exist yet", metavar="BASE", default="main", flag="--from"
)
ON_DUPLICATE = Option(
    "on_duplicate",
    "what merge and changes do with an id that the input repeats, and update with a second patch of a row: the last "
    "one wins, or each repeat is a bad row",
    values.one_of(*OnDuplicate),
    "last|error",
    default="last",
)
EDGE_ID = Option(
    "edge_id",
    "ids of edges follow from their ends: from these alone (ends), or from some properties, too",
    metavar="ends|COLUMNS",
)
ADOPT_EDGES = Option(
    "adopt_edges",
    "with --edge-id: an edge takes the id of a stored one with the same ends, where that has another",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
KNOWING_EDGES = (EDGE_ID, ADOPT_EDGES)
UNKNOWN_FIELDS = Option(
    "unknown_fields",
    "what to do with members of data that the type does not declare",
    values.one_of(*UnknownFields),
    "refuse|ignore",
    default="refuse",
)
SCHEMES_OF_BLOBS = Option(
    "blob_schemes",
    "schemes of the URIs that a blob may refer to; a reference is stored, not fetched",
    schemes_of,
    "SCHEME,…",
    default=",".join(REMOTE_SCHEMES),
)


def _embed(value: str) -> str:
    """YAML takes `off` for false."""
    return str(values.one_of(*EmbedAtLoad)("off" if value == "false" else value))


EMBED = Option(
    "embed",
    "ask for vectors of @embed properties that rows lack, of the provider that OMNIGRAPH_EMBED_… name; off asks nobody",
    _embed,
    "off|missing",
    default="off",
)
INDEX = Option("index", "build missing indexes after the load", values.switch, default="true", shape=Shape.SWITCH)
LOAD_CONCURRENCY = Option(
    "load_concurrency",
    "at most this many tasks write fragments at a time; unset: one for each core",
    values.positive,
    "N",
    env=True,
)
SPARK_THRESHOLD = Option(
    "spark_threshold", "input size from which auto takes Spark", values.size, "SIZE", default="1GiB", env=True
)
LOADING = (
    *(o.INPUT_FORMAT, NODE, EDGE, MAPPING, COERCE, CSV_SINGLE_LINE, VERSION_AS_OF, BASE),
    *(o.MAX_BAD_ROWS, o.BAD_ROWS, ON_DUPLICATE, *KNOWING_EDGES, UNKNOWN_FIELDS, SCHEMES_OF_BLOBS),
    *(EMBED, o.CACHE, o.SHOW_ROWS, INDEX, LOAD_CONCURRENCY, SPARK_THRESHOLD),
)
_FROM = Option("source", "the Delta table to follow", values.graph_uri, "delta:URI", required=True, flag="--from")
_FULL = Option(
    "full", "compare all rows of the table, and delete what is not among them", values.switch, default="false",
    shape=Shape.SWITCH,
)  # laid out as a table  # fmt: skip
_SYNC_DELETES = replace(
    MAX_DELETES, help="refuse to delete more than N stored rows, or P percent of those of a type; unset: 10%"
)
_EVERY = Option("every", "look for changes every so often until stopped; unset: once", values.duration, "TIME")
_APP_ID = Option("app_id", "under which name the graph remembers where it stands; unset: of table and types")
SYNCING = (
    *(_FROM, replace(NODE, help="node type of the rows of the table")),
    replace(EDGE, help="edge type of the rows of the table"),
    replace(MAPPING, help="YAML file that says which columns of the table become which properties of which types"),
    *(_FULL, _SYNC_DELETES, _EVERY, _APP_ID, COERCE, o.MAX_BAD_ROWS, o.BAD_ROWS),
    *(*KNOWING_EDGES, UNKNOWN_FIELDS, SCHEMES_OF_BLOBS, EMBED, o.CACHE, o.SHOW_ROWS, INDEX, LOAD_CONCURRENCY),
)
_READER = replace(
    o.EXECUTOR,
    help="who reads the table: local processes, or the Delta of a Spark session; auto takes Spark when the master is a "
    "cluster",
)
TO_SYNC = tuple(_READER if option is o.EXECUTOR else option for option in o.COMMON)
LOADING_PATCHES = tuple(option for option in LOADING if option not in KNOWING_EDGES)
"""Patches name edges by their ids."""
