"""Options of loads: their mode, what goes with one mode alone, and how edges are known."""

from __future__ import annotations

from spark_omnigraph.cli import options as o
from spark_omnigraph.cli import values
from spark_omnigraph.cli.options import Option, Shape
from spark_omnigraph.records.mode import LoadMode, Nulls, OnDuplicate, OnMissing, bad_row_limit

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
LOADING = (
    *(o.INPUT_FORMAT, o.NODE, o.EDGE, o.MAPPING, o.COERCE, o.CSV_SINGLE_LINE, o.VERSION_AS_OF, o.BASE),
    *(o.MAX_BAD_ROWS, o.BAD_ROWS, ON_DUPLICATE, *KNOWING_EDGES, o.UNKNOWN_FIELDS, o.SCHEMES_OF_BLOBS),
    *(o.EMBED, o.CACHE, o.SHOW_ROWS, o.INDEX, o.LOAD_CONCURRENCY, o.SPARK_THRESHOLD),
)
LOADING_PATCHES = tuple(option for option in LOADING if option not in KNOWING_EDGES)
"""Patches name edges by their ids."""
