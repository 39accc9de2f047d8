"""Every option once: its key, how its text is read, default and help.

The key is a field of `JobConfig`, a key of the configuration file, the name of the flag (`--bad-rows` for
`bad_rows`), and for the options marked so the variable `OMNIGRAPH_BAD_ROWS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from spark_omnigraph.branch.conflicts import OnConflict
from spark_omnigraph.cli import values
from spark_omnigraph.cli.values import Parser
from spark_omnigraph.records.mode import InputFormat, bad_row_limit

ENV_PREFIX = "OMNIGRAPH_"


class Shape(Enum):
    """How often an option takes a value, and of what kind."""

    ONE = "one"
    SWITCH = "switch"
    MANY = "many"
    PAIRS = "pairs"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of the program. `default` is the text that help shows; None means there is none."""

    key: str
    help: str
    parse: Parser = values.text
    metavar: str = "TEXT"
    default: str | None = None
    shape: Shape = Shape.ONE
    flag: str = ""
    env: bool = False
    required: bool = False
    unless: str = ""
    """Key of another option that is enough in its place."""
    unless_flag: str = ""
    """How that option is written where it is not as its key."""
    positional: bool = False
    argument_too: bool = False
    """Whether the value may also stand as an argument of its own, without the flag."""

    @property
    def flag_name(self) -> str:
        return self.flag or f"--{self.key.replace('_', '-')}"

    @property
    def way_out(self) -> str:
        """The flag of the option that is enough in its place; empty where none is."""
        return self.unless and (self.unless_flag or f"--{self.unless.replace('_', '-')}")

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it takes; none where it takes others."""
        return self.parse.choices if isinstance(self.parse, values.OneOf) else ()

    @property
    def env_name(self) -> str:
        return ENV_PREFIX + self.key.upper()

    @property
    def shown_name(self) -> str:
        """What messages call the option."""
        return self.metavar if self.positional else self.flag_name


GRAPH = Option("graph", "root of the graph: a path or s3://…", values.graph_uri, "URI", env=True, required=True)
BRANCH = Option("branch", "branch to read or write", metavar="NAME", default="main", env=True)
ACTOR = Option("actor", "who writes, recorded with the commit", metavar="ID", env=True)
CONFIG = Option(
    "config",
    "YAML file with options as keys (log_level for --log-level), for one verb or with a section for each; arguments "
    "win over the file, the file over the environment",
    values.local_path,
    "FILE",
    env=True,
)
EXECUTOR = Option(
    "executor",
    "where the work runs: local processes, or Spark; auto takes Spark when the input is larger than "
    "--spark-threshold, and when the master is a cluster",
    values.one_of("auto", "local", "spark"),
    "auto|local|spark",
    default="auto",
    env=True,
)
MERGE_EXECUTOR = replace(
    EXECUTOR, help="where rows are compared: this process, or Spark; auto takes Spark when the master is a cluster"
)
SCAN_EXECUTOR = replace(
    EXECUTOR, help="where rows are read: this process, or Spark; auto takes Spark when the master is a cluster"
)
QUERY_EXECUTOR = replace(
    EXECUTOR,
    help="who finds the rows: this process, or Spark, which writes answers of any size as the files of a new folder "
    "(--output, --format jsonl, csv or parquet); auto is this process",
    env=False,
)
DRY_RUN = Option("dry_run", "check everything, change nothing", values.switch, default="false", shape=Shape.SWITCH)
SUMMARY = Option("summary", "also write the JSON summary to this file", values.new_file, "PATH", env=True)
LOG_FORMAT = Option(
    "log_format",
    "lines on standard error: text, or one JSON object each",
    values.one_of("text", "json"),
    "text|json",
    default="text",
    env=True,
)
LOG_LEVEL = Option(
    "log_level",
    "least severe message shown; debug adds the stack of an error",
    values.one_of("debug", "info", "warning", "error"),
    "LEVEL",
    default="info",
    env=True,
)
STORAGE_OPTION = Option(
    "storage_options",
    "setting of the object store's client, such as aws_endpoint=…; may be repeated. Secrets come from the "
    "environment or from spark.omnigraph.storage.* in the Spark configuration",
    values.storage_option,
    "KEY=VALUE",
    shape=Shape.PAIRS,
    flag="--storage-option",
    env=True,
)

METRICS = Option(
    "metrics",
    "add a row of figures for this run: to a file of JSON lines, or to a folder of Parquet files when the name ends in "
    ".parquet",
    values.metrics,
    "PATH",
    env=True,
)
META = Option(
    "meta",
    "text of your own that is kept with the commit; may be repeated",
    values.metadata,
    "KEY=VALUE",
    shape=Shape.PAIRS,
)

PAGE = Option(
    "report",
    "write a page about this run for people: what went in, what came of it, bad rows by rule, commit, time, files",
    values.page,
    "PATH.html",
    env=True,
)

PROGRESS = Option(
    "progress",
    "how long work says how far it is: auto draws a bar at a terminal and in a notebook, and writes lines elsewhere; "
    "log always writes lines",
    values.one_of("auto", "log", "none"),
    "auto|log|none",
    default="auto",
    env=True,
)
REPORTING = (CONFIG, SUMMARY, METRICS, LOG_FORMAT, LOG_LEVEL, PROGRESS)
TO_READ = (GRAPH, BRANCH, STORAGE_OPTION, *REPORTING)
"""Common options of what looks at one branch."""
TO_KEEP = (GRAPH, BRANCH, DRY_RUN, STORAGE_OPTION, PAGE, *REPORTING)
"""Common options of what keeps the tables of one branch whole."""
TO_MERGE = (GRAPH, ACTOR, META, MERGE_EXECUTOR, DRY_RUN, STORAGE_OPTION, PAGE, *REPORTING)
"""Common options of what makes a commit on a branch that it names itself."""
TO_PLAN = (GRAPH, SCAN_EXECUTOR, STORAGE_OPTION, *REPORTING)
"""Common options of what reads tables as a whole, and writes nothing."""
TO_EVOLVE = (GRAPH, ACTOR, META, SCAN_EXECUTOR, DRY_RUN, STORAGE_OPTION, PAGE, *REPORTING)
"""Common options of what changes a graph as a whole by one commit."""
TO_CHANGE = (GRAPH, BRANCH, ACTOR, META, DRY_RUN, STORAGE_OPTION, PAGE, *REPORTING)
"""Common options of what makes a commit in somebody's name."""
COMMON = (GRAPH, BRANCH, ACTOR, META, EXECUTOR, DRY_RUN, STORAGE_OPTION, PAGE, *REPORTING)
"""All common options: those of a load, which may run on Spark."""
OF_WHOLE = (GRAPH, STORAGE_OPTION, *REPORTING)
"""Common options of what looks at a graph with all its branches."""
TO_CHANGE_WHOLE = (GRAPH, DRY_RUN, STORAGE_OPTION, PAGE, *REPORTING)
"""Common options of what changes a graph as a whole."""

SCHEMA = Option(
    "schema",
    "schema of the new graph (.pg)",
    values.existing_file,
    "FILE",
    required=True,
    unless="input",
    unless_flag="--from",
)
FORCE = Option(
    "force", "replace a graph that stands there; its data is lost", values.switch, default="false", shape=Shape.SWITCH
)

INPUT = Option(
    "input",
    "files (JSONL and CSV also .gz, Parquet, Arrow), folders or globs, or Delta tables (delta:PATH)",
    values.graph_uri,
    "PATH",
    shape=Shape.MANY,
    required=True,
    unless="mapping",
)
INPUT_FORMAT = Option(
    "input_format",
    "what the files hold; auto goes by the endings .parquet, .csv, .tsv and .arrow, and takes all others as JSONL",
    values.one_of(*InputFormat),
    "auto|jsonl|parquet|csv|arrow|delta",
    default="auto",
    flag="--format",
)
START = Option("base", "the branch to start from", metavar="B", default="main", flag="--from")
MAX_BAD_ROWS = Option(
    "max_bad_rows",
    "load the good rows as long as at most N rows, or P percent of them, are bad",
    bad_row_limit,
    "N|P%",
    default="0",
    env=True,
)
BAD_ROWS = Option(
    "bad_rows",
    "write every bad row to this JSONL file, or add it to a Delta table (delta:PATH)",
    values.graph_uri,
    "PATH",
    env=True,
)
SHOW_ROWS = Option(
    "show_rows",
    "show the text of so many bad rows in messages; unset: 3 at a terminal, none otherwise",
    values.count,
    "N",
    env=True,
)


CACHE = Option(
    "cache",
    "where answers are kept, so that none is asked for twice: a folder or s3://…; unset: beside the graph",
    values.graph_uri,
    "URI",
)
VERSION = Option("version", "read this manifest version", values.positive, "N")
SNAPSHOT = Option("snapshot", "read the state that this commit left", metavar="COMMIT")
AS_OF = Option("as_of", "read the state at this time (2026-01-31T12:00:00Z)", values.instant, "TIME")
TAG = Option("tag", "read the state of this tag", metavar="TAG")
PAST = (VERSION, SNAPSHOT, AS_OF, TAG)
"""Options that name a state of the past; at most one of them can be meant."""
RESTORED = tuple(replace(each, help=each.help.replace("read", "restore", 1)) for each in PAST)
NAMED = tuple(replace(each, help=each.help.replace("read", "name", 1)) for each in PAST[:3])

LIMIT = Option("limit", "show at most this many, newest first; unset: all", values.positive, "N")


def _actor_filter(value: str) -> str:
    name, equals, actor = value.partition("=")
    if name != "actor" or not equals or not actor:
        raise ValueError(f"'{value}' is not actor=NAME")
    return actor


FILTER = Option("filter", "only commits of this actor", _actor_filter, "actor=A")
TYPES = Option("types", "only this type; may be repeated. unset: all", metavar="T", shape=Shape.MANY, flag="--type")
OUTPUT = Option(
    "output",
    "write to this file or object (s3://…) instead of standard output; packed when the name ends in .gz",
    values.output,
    "PATH",
)
ANSWER_OUTPUT = replace(OUTPUT, parse=values.answer)
EXPORT_FORMAT = Option(
    "export_format",
    "JSON lines that ingest reads again; or a table for each type: Delta, or a file of Parquet; those need --output",
    values.one_of("jsonl", "delta", "parquet"),
    "jsonl|delta|parquet",
    default="jsonl",
    flag="--format",
)
EXPORT_OUTPUT = Option(
    "output",
    "write to this file or object (s3://…) instead of standard output, packed when the name ends in .gz; of tables the "
    "folder, which gets nodes/TYPE and edges/TYPE",
    values.graph_uri,
    "PATH",
)
INCREMENTAL = Option(
    "incremental", "of Delta tables write only what changed since the state that they show", values.switch,
    default="false", shape=Shape.SWITCH,
)  # laid out as a table  # fmt: skip
WITH_BLOBS = Option("with_blobs", "tables have blobs too", values.switch, default="false", shape=Shape.SWITCH)
EXPORT_EXECUTOR = replace(
    EXECUTOR,
    help="who writes Delta tables: this process, or Spark with the Delta of its session; auto takes Spark when the "
    "master is a cluster and the session has Delta",
)
TABLES_OUT = (EXPORT_FORMAT, EXPORT_OUTPUT, INCREMENTAL, WITH_BLOBS, EXPORT_EXECUTOR)
CONFIRM = Option(
    "confirm", "do it; without this only what would be done is shown", values.switch, default="false",
    shape=Shape.SWITCH,
)  # laid out as a table  # fmt: skip
UNCHECKED = Option(
    "force",
    "with --confirm: publish besides what only compaction moved also what nobody checked",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
OLDER_THAN = Option(
    "older_than",
    "let states expire that nobody was shown for so long, such as 30d, 12h or 90m; what is left over from interrupted "
    "work goes at this age, too (unset: 7d)",
    values.duration,
    "AGE",
)
KEEP = Option(
    "keep", "let states expire beyond the newest N commits of their branch; with --older-than, what both let go",
    values.count, "N",
)  # laid out as a table  # fmt: skip
WITHIN_RETENTION = Option(
    "force",
    "let states expire, too, that were shown within the last 7 days, whose readers may still be at work",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
REWIND_APPS = Option(
    "rewind_apps",
    "set applications (streams, named writes) that committed after the state back to it, so that they write again",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
LEAVE_APPS = replace(CONFIRM, help="restore although applications committed after the state, and leave their numbers")
OLD_CONSUMER = Option("name", "the consumer to forget", metavar="NAME", required=True, positional=True)
_STATE = "a manifest version, a commit id, a time (2026-01-31T12:00:00Z) or a branch"
BEFORE = Option("before", f"the earlier state: {_STATE}", metavar="A", required=True, positional=True)
AFTER = Option("after", f"the later state: {_STATE}", metavar="B", required=True, positional=True)
NAME = Option("name", "name of the new branch", metavar="NAME", required=True, positional=True)
DELETED = Option("name", "the branch to delete", metavar="NAME", positional=True)
MERGED = Option(
    "merged",
    "delete every branch whose commits main or its parent has; one without commits of its own stays",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
BREAK_LOCK = Option(
    "break_lock",
    "remove the lock of a schema change of another engine, of whom nobody knows whether it is alive",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
VERBOSE = Option(
    "verbose",
    "also show parent, head, own tables, and commits ahead of and behind the parent",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
SOURCE = Option("source", "the branch whose changes are merged", metavar="SOURCE", required=True, positional=True)
INTO = Option("into", "the branch that takes them", metavar="TARGET", default="main")
ON_CONFLICT = Option(
    "on_conflict",
    "what becomes of a row that both branches changed differently: nothing is merged, or the row of one side wins, "
    "which needs --conflicts",
    values.one_of(*OnConflict),
    "fail|source|target",
    default="fail",
)
CONFLICTS = Option(
    "conflicts",
    "write every conflict with the rows of all sides to this file: JSONL, or Parquet when it ends in .parquet",
    values.graph_uri,
    "PATH",
)
DECISIONS = Option(
    "decisions",
    "file (JSONL or .parquet) that says of rows in conflict what becomes of them: what --conflicts wrote, with take "
    "set to source or target, or row to a record",
    values.graph_uri,
    "PATH",
)
DELETE_BRANCH = Option(
    "delete_branch",
    "delete the source afterwards, unless something bars that",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
AT_VERSION = Option("version", "start from this manifest version of the branch", values.positive, "N")
AT_COMMIT = Option("snapshot", "start from the state that this commit left, on whatever branch", metavar="COMMIT")
NEW_SCHEMA = Option("file", "the new schema (.pg)", values.existing_file, "FILE", required=True, argument_too=True)
SET = Option(
    "set",
    "what stored rows get in a property that is new or required now: JSON, or @ and the name of another property of "
    "the row; may be repeated",
    values.row_value,
    "TYPE.PROP=JSON|@OTHER",
    shape=Shape.PAIRS,
)
ALLOW_DATA_LOSS = Option(
    "allow_data_loss",
    "what is dropped is gone at once, from older states too",
    values.switch,
    default="false",
    shape=Shape.SWITCH,
)
BROKEN_ROWS = replace(BAD_ROWS, help="write every stored row that the new schema refuses to this JSONL file")
NEW_TAG = Option("name", "name of the new tag", metavar="NAME", required=True, positional=True)
OLD_TAG = Option("name", "the tag to delete", metavar="NAME", required=True, positional=True)
AT_TAG = Option("tag", "start from the state of this tag", metavar="TAG")
QUERIES = Option("file", "file of queries (.gq)", values.existing_file, "FILE", required=True, argument_too=True)
SCHEMA_OF_GRAPH = Option("graph", "take the schema of this graph: a path or s3://…", values.graph_uri, "URI", env=True)
SCHEMA_FILE = Option("schema", "take this schema (.pg) instead of a graph's", values.existing_file, "FILE")
FOLDER = Option("folder", "where the graph is made; unset: omnigraph-demo in this folder", values.local_path, "PATH")
QUERY_FILE = Option("file", "text with the query (.gq)", values.query_file, "FILE", argument_too=True)
QUERY_TEXT = Option("text", "the query itself instead of a file", flag="-e")
FORMAT = Option(
    "format",
    "how rows are written: a table for people, or a form for programs; parquet needs --output",
    values.one_of("table", "json", "jsonl", "csv", "parquet"),
    "table|json|jsonl|csv|parquet",
    default="table",
)
EXPLAIN = Option("explain", "show the plan, read nothing", values.switch, default="false", shape=Shape.SWITCH)
QUERY_NAME = Option("name", "which query of the text; unset: its only one", metavar="NAME")
PARAMS = Option("params", "parameters of the query, as a JSON object", values.json_object, "JSON")
CACHE_MEMORY = Option(
    "cache_memory",
    "what the query may keep in memory of the tables that it reads",
    values.size,
    "SIZE",
    default="2GiB",
    env=True,
)
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
