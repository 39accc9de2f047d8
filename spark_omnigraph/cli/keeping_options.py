"""Options of the verbs that copy, erase and keep up."""

from __future__ import annotations

from dataclasses import replace

from spark_omnigraph.cli import values
from spark_omnigraph.cli.options import EXECUTOR, GRAPH, PAGE, PAST, STORAGE_OPTION, Option, Shape

COPIED = tuple(replace(each, help=each.help.replace("read", "copy only", 1)) for each in PAST)
FROM = replace(GRAPH, help="the graph to copy: a path or s3://…", metavar="FROM", positional=True)
TO = Option(
    "to", "where the copy is made: an empty place, or one where a copy of the same did not end", values.graph_uri, "TO",
    required=True, positional=True,
)  # laid out as a table  # fmt: skip
TO_STORAGE_OPTION = replace(
    STORAGE_OPTION,
    key="to_storage_options",
    help="the same for the place of the copy; without any, those of --storage-option serve both",
    flag="--to-storage-option",
    env=False,
)
CONVERTED = replace(FROM, help="the graph to convert, of any format that is read: a path or s3://…")
CONVERTED_TO = replace(
    TO, help="where the new graph is made: an empty place, or one where a conversion of the same did not end"
)
CONVERTED_BRANCHES = Option(
    "all_branches",
    "convert every branch under its name; unset: main alone",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
ERASED_TYPE = Option("table", "type of the row", metavar="T", flag="--type", required=True)
ERASED_ID = Option("id", "id of the row", metavar="X", required=True)
ONLY = Option("only", "copy only this branch, as the main of a new graph; unset: all branches", metavar="NAME")
ALL_BRANCHES = Option(
    "all_branches",
    "keep the tables of every branch, one after the other, instead of those of --branch",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
UPKEEP_EXECUTOR = replace(
    EXECUTOR,
    help="where files are joined and indexes built: this process, or Spark, a task for each group of files and for "
    "each index; auto takes Spark when the master is a cluster",
)
OBJECTS = replace(
    PAGE,
    help="write every object that was found to this JSONL file, or, when the name ends in .html, a page about this run",
    parse=values.new_file,
    metavar="PATH",
    env=False,
)
