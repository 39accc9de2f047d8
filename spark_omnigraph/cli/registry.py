"""The table of verbs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from spark_omnigraph.cli import embed_options as e
from spark_omnigraph.cli import keeping_options as k
from spark_omnigraph.cli import loading_options as lo
from spark_omnigraph.cli import options as o
from spark_omnigraph.cli import schema_options as s
from spark_omnigraph.cli.verb import Job, Verb, VerbOutcome


def _in(module: str, function: str) -> Callable[[Job], VerbOutcome]:
    """The function of a module of `verbs`, imported when it runs: help and mistakes need neither Lance nor Arrow."""

    def run(job: Job) -> VerbOutcome:
        found: Callable[[Job], VerbOutcome] = getattr(import_module(f"spark_omnigraph.cli.verbs.{module}"), function)
        return found(job)

    return run


_ALL = (
    Verb(
        "demo",
        "Makes a graph of films in a folder, loads and queries it, and shows what it finds.",
        "spark-omnigraph demo",
        _in("create", "demo"),
        (o.FOLDER,),
        o.REPORTING,
    ),
    Verb(
        "init",
        "Makes a new graph.",
        "spark-omnigraph init --graph graphs/films --schema films.pg",
        _in("create", "init"),
        (o.SCHEMA, s.PROPOSED_FROM, o.INPUT_FORMAT, s.ACCEPT, o.FORCE),
        o.TO_CHANGE_WHOLE,
    ),
    Verb(
        "profile",
        "Proposes a schema from data, with what was seen as comments; makes no graph.",
        "spark-omnigraph profile raw/*.parquet --output films.pg",
        _in("profile", "profile_files"),
        (s.PROFILED, o.INPUT_FORMAT, o.OUTPUT),
        (o.STORAGE_OPTION, *o.REPORTING),
        has_rows=True,
    ),
    Verb(
        "ingest",
        "Loads files into a branch, all or nothing; the branch is made when it is missing.",
        "spark-omnigraph ingest --graph graphs/films --input films.jsonl people/*.jsonl.gz --bad-rows bad.jsonl",
        _in("load", "ingest"),
        (o.INPUT, lo.MODE, *lo.PATCHING, lo.MAX_DELETES, *lo.LOADING),
        o.COMMON,
    ),
    Verb(
        "merge",
        "Loads files and replaces the rows whose id is stored: ingest --mode merge.",
        "spark-omnigraph merge --graph graphs/films --input changes.jsonl --on-duplicate error",
        _in("load", "ingest"),
        (o.INPUT, *lo.LOADING),
        o.COMMON,
        {"mode": "merge"},
    ),
    Verb(
        "update",
        "Loads patches: each record changes the properties that it has of a stored row: ingest --mode update.",
        "spark-omnigraph update --graph graphs/films --input ratings.csv --node Film --nulls keep",
        _in("load", "ingest"),
        (o.INPUT, *lo.PATCHING, *lo.LOADING_PATCHES),
        o.COMMON,
        {"mode": "update"},
    ),
    Verb(
        "overwrite",
        "Loads files and replaces all rows of every type in them: ingest --mode overwrite.",
        "spark-omnigraph overwrite --graph graphs/films --input snapshot/ --branch nightly",
        _in("load", "ingest"),
        (o.INPUT, *lo.LOADING),
        o.COMMON,
        {"mode": "overwrite"},
    ),
    Verb(
        "changes",
        "Loads upserts and deletes, as each record says, in one commit: ingest --mode changes.",
        "spark-omnigraph changes --graph graphs/films --input feed.parquet --node Film --max-deletes 5%",
        _in("load", "ingest"),
        (o.INPUT, lo.MAX_DELETES, *lo.LOADING),
        o.COMMON,
        {"mode": "changes"},
    ),
    Verb(
        "query",
        "Runs one read query of a text and shows its rows, or writes them to a file.",
        "spark-omnigraph query --graph graphs/films --file films.gq --name by_year --params '{\"year\": 1995}'",
        _in("query", "query"),
        (
            *(o.QUERY_FILE, o.QUERY_TEXT, o.QUERY_NAME, o.PARAMS, o.FORMAT, o.OUTPUT, o.EXPLAIN, o.ANALYZE),
            *(*o.BOUNDS, *o.PAST, o.CACHE_MEMORY, o.QUERY_EXECUTOR),
        ),
        o.TO_READ,
        has_rows=True,
    ),
    Verb(
        "sql",
        "Runs one SQL statement that reads and shows its rows, or writes them to a file; needs the extra sql.",
        "spark-omnigraph sql --graph graphs/films -e 'SELECT year, count(*) FROM Film GROUP BY year ORDER BY year'",
        _in("sql", "sql"),
        (
            *(o.SQL_FILE, o.SQL_TEXT, o.SQL_PARAMS, o.FORMAT, o.OUTPUT, o.EXPLAIN, o.ANALYZE),
            *(*o.BOUNDS, *o.PAST, o.MEMORY, o.SPILL),
        ),
        o.TO_READ,
        has_rows=True,
    ),
    Verb(
        "mutate",
        "Runs one mutation of a query text in one commit: inserts, updates, or deletes.",
        'spark-omnigraph mutate --graph graphs/films --file changes.gq --name retire --params \'{"name": "Heat"}\'',
        _in("mutate", "mutate"),
        (o.QUERY_FILE, o.QUERY_TEXT, o.QUERY_NAME, o.PARAMS),
        o.TO_CHANGE,
    ),
    Verb(
        "describe",
        "Shows the types of a graph with their counts and versions, or draws them.",
        "spark-omnigraph describe --graph graphs/films --format svg --output films.svg",
        _in("read", "describe"),
        (s.DESCRIBED_AS, o.OUTPUT, *o.PAST),
        o.TO_READ,
        row_formats=s.DRAWN,
    ),
    Verb(
        "commits",
        "Shows the history of a branch, newest first.",
        "spark-omnigraph commits --graph graphs/films --filter actor=nightly --limit 20",
        _in("read", "commits"),
        (o.FILTER, o.LIMIT),
        o.TO_READ,
    ),
    Verb(
        "diff",
        "Shows the net changes from one state of the graph to another, row by row.",
        "spark-omnigraph diff main review --graph graphs/films --type Film",
        _in("read", "diff"),
        (o.BEFORE, o.AFTER, o.TYPES, o.OUTPUT),
        o.TO_READ,
        has_rows=True,
    ),
    Verb(
        "export",
        "Writes the graph as JSON lines that ingest reads again, or its types as Delta tables or Parquet.",
        "spark-omnigraph export --graph graphs/films --type Film --output films.jsonl",
        _in("read", "export"),
        (o.TYPES, *o.TABLES_OUT, *o.PAST),
        o.TO_READ,
        has_rows=True,
    ),
    Verb(
        "lint",
        "Checks a file of queries against a schema and runs none; exit code 3 when one cannot run.",
        "spark-omnigraph lint films.gq --schema films.pg",
        _in("lint", "lint"),
        (o.QUERIES, o.SCHEMA_FILE),
        (o.SCHEMA_OF_GRAPH, o.STORAGE_OPTION, *o.REPORTING),
    ),
    Verb(
        "embed",
        "Gives rows that have a text and no vector one, in one commit; run again, it goes on where it was stopped.",
        "spark-omnigraph embed --graph graphs/films --type Film --property plot_vec --dry-run",
        _in("embed", "embed"),
        e.EMBEDDING,
        e.TO_EMBED,
    ),
    Verb(
        "branch create",
        "Makes a branch; it costs the same whatever the size of the graph.",
        "spark-omnigraph branch create review --from main --graph graphs/films",
        _in("branch", "create_branch"),
        (o.NAME, o.START, o.AT_VERSION, o.AT_COMMIT, o.AT_TAG),
        o.TO_CHANGE_WHOLE,
    ),
    Verb(
        "branch list",
        "Lists the branches of a graph.",
        "spark-omnigraph branch list --graph graphs/films",
        _in("branch", "list_branches"),
        (o.VERBOSE,),
        o.OF_WHOLE,
    ),
    Verb(
        "branch merge",
        "Merges what a branch changed into another one, by row, in one commit with two parents.",
        "spark-omnigraph branch merge review --into main --graph graphs/films",
        _in("branch", "merge_branch"),
        (o.SOURCE, o.INTO, o.ON_CONFLICT, o.CONFLICTS, o.DECISIONS, o.DELETE_BRANCH),
        o.TO_MERGE,
    ),
    Verb(
        "branch delete",
        "Deletes a branch, or all that are merged; no other branch changes.",
        "spark-omnigraph branch delete review --graph graphs/films",
        _in("branch", "delete_branch"),
        (o.DELETED, o.MERGED),
        o.TO_CHANGE_WHOLE,
    ),
    Verb(
        "schema show",
        "Shows the schema of a graph, as it is or as it was.",
        "spark-omnigraph schema show --graph graphs/films --output films.pg",
        _in("read", "show_schema"),
        (o.OUTPUT, *o.PAST),
        o.TO_READ,
        has_rows=True,
    ),
    Verb(
        "schema plan",
        "Shows what a change to another schema would do, with the rows that stand in its way; writes nothing.",
        "spark-omnigraph schema plan films.pg --set Film.seen=false --graph graphs/films",
        _in("schema", "plan_schema"),
        (o.NEW_SCHEMA, o.SET, o.ALLOW_DATA_LOSS, o.BROKEN_ROWS, o.SHOW_ROWS),
        o.TO_PLAN,
    ),
    Verb(
        "schema apply",
        "Gives the graph another schema with all its rows, in one commit, or refuses it and changes nothing.",
        "spark-omnigraph schema apply films.pg --set Film.seen=false --graph graphs/films",
        _in("schema", "apply_schema"),
        (o.NEW_SCHEMA, o.SET, o.ALLOW_DATA_LOSS, o.BROKEN_ROWS, o.SHOW_ROWS),
        o.TO_EVOLVE,
    ),
    Verb(
        "tag create",
        "Names a state of the graph, by default the newest: it stays readable until the tag is deleted.",
        "spark-omnigraph tag create release-7 --graph graphs/films",
        _in("states", "create_tag"),
        (o.NEW_TAG, *o.NAMED),
        o.TO_KEEP,
    ),
    Verb(
        "tag list",
        "Lists the tags of a graph.",
        "spark-omnigraph tag list --graph graphs/films",
        _in("states", "list_tags"),
        (),
        o.OF_WHOLE,
    ),
    Verb(
        "tag delete",
        "Deletes a tag; what it kept may expire from now on.",
        "spark-omnigraph tag delete release-7 --graph graphs/films",
        _in("states", "delete_tag"),
        (o.OLD_TAG,),
        o.TO_CHANGE_WHOLE,
    ),
    Verb(
        "restore",
        "Makes a branch show the rows of an old state again, in a new commit.",
        "spark-omnigraph restore --tag release-7 --graph graphs/films --dry-run",
        _in("states", "restore"),
        (
            *o.RESTORED,
            o.LEAVE_APPS,
            o.REWIND_APPS,
        ),
        (o.BRANCH, *o.TO_MERGE),
    ),
    Verb(
        "copy",
        "Copies a graph to another place: all branches with their history, or one state; others may write meanwhile.",
        "spark-omnigraph copy graphs/films s3://backup/graphs/films --to-storage-option aws_region=eu-central-1",
        _in("states", "copy_graph"),
        (k.FROM, k.TO, k.ONLY, *k.COPIED, k.TO_STORAGE_OPTION),
        o.TO_CHANGE_WHOLE[1:],
    ),
    Verb(
        "convert",
        "Makes a graph that can be written of one of any format that is read; history and tags stay behind.",
        "spark-omnigraph convert graphs/films-0.9 graphs/films --all-branches",
        _in("states", "convert_graph"),
        (k.CONVERTED, k.CONVERTED_TO, k.CONVERTED_BRANCHES, k.TO_STORAGE_OPTION),
        o.TO_CHANGE_WHOLE[1:],
    ),
    Verb(
        "erase",
        "Erases a row on every branch, with its edges, from every file of the graph; older states of it expire.",
        "spark-omnigraph erase --type Person --id ada --graph graphs/films --dry-run",
        _in("states", "erase_row"),
        (k.ERASED_TYPE, k.ERASED_ID, o.CONFIRM, o.ACTOR, o.META),
        o.TO_CHANGE_WHOLE,
    ),
    Verb(
        "consumer list",
        "Lists the readers of the change feed that clean-up waits for.",
        "spark-omnigraph consumer list --graph graphs/films",
        _in("states", "list_consumers"),
        (),
        o.OF_WHOLE,
    ),
    Verb(
        "consumer delete",
        "Forgets a reader of the change feed: clean-up waits for it no more.",
        "spark-omnigraph consumer delete nightly --graph graphs/films",
        _in("states", "delete_consumer"),
        (o.OLD_CONSUMER, o.PAGE),
        o.OF_WHOLE,
    ),
    Verb(
        "index",
        "Builds missing indexes, and extends those that do not cover all rows.",
        "spark-omnigraph index --graph graphs/films",
        _in("maintain", "index"),
        (k.ALL_BRANCHES, k.UPKEEP_EXECUTOR),
        o.TO_KEEP,
    ),
    Verb(
        "optimize",
        "Joins small files of tables and of internal datasets, and makes indexes whole; no row changes.",
        "spark-omnigraph optimize --graph graphs/films",
        _in("maintain", "optimize"),
        (k.ALL_BRANCHES, k.UPKEEP_EXECUTOR, o.ACTOR, o.META),
        o.TO_KEEP,
    ),
    Verb(
        "recover",
        "Finishes or undoes writes whose writer is gone; running writes are left alone.",
        "spark-omnigraph recover --graph graphs/films --dry-run",
        _in("maintain", "recover"),
        (o.BREAK_LOCK,),
        o.TO_CHANGE_WHOLE,
    ),
    Verb(
        "repair",
        "Finds tables that another program committed to past the manifest, and publishes what may be published.",
        "spark-omnigraph repair --graph graphs/films --confirm",
        _in("maintain", "repair"),
        (k.ALL_BRANCHES, o.CONFIRM, o.UNCHECKED, o.META),
        o.TO_KEEP,
    ),
    Verb(
        "cleanup",
        "Lets old states expire by a policy, and removes what interrupted work left: unnamed files, forks, leases.",
        "spark-omnigraph cleanup --graph graphs/films --keep 10 --older-than 30d --confirm --report removed.jsonl",
        _in("maintain", "cleanup"),
        (o.KEEP, o.OLDER_THAN, o.CONFIRM, o.WITHIN_RETENTION, k.OBJECTS),
        tuple(each for each in o.TO_CHANGE_WHOLE if each is not o.PAGE),
    ),
)
VERBS = {verb.name: verb for verb in _ALL}
"""Verbs by name, in the order that help shows."""
