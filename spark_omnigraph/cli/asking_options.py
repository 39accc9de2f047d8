"""Options of `sql`, and those that it and `query` have in common: what an answer may take, and how it was found."""

from __future__ import annotations

from spark_omnigraph.cli import values
from spark_omnigraph.cli.options import Option, Shape

ANALYZE = Option(
    "analyze",
    "run the query, and show its plan with the rows and the time of each operator in place of its rows",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
TIME_LIMIT = Option("time_limit", "give up after this time, such as 90s or 5m; unset: none", values.duration, "TIME")
MAX_ROWS = Option("max_rows", "refuse an answer of more rows; unset: any number", values.count, "N")
BOUNDS = (TIME_LIMIT, MAX_ROWS)
SQL_FILE = Option("file", "text with the statement", values.existing_file, "FILE", argument_too=True)
SQL_TEXT = Option("text", "the statement itself instead of a file", flag="-e")
SQL_PARAMS = Option("params", "values of $name in the statement, as a JSON object", values.json_object, "JSON")
MEMORY = Option(
    "memory",
    "what joins, groups and sorts may take in memory; sorts and groups spill the rest to the disk",
    values.size,
    "SIZE",
    default="2GiB",
    env=True,
)
SPILL = Option("spill", "what may be spilled to the folder for temporary files", values.size, "SIZE", "16GiB", env=True)
