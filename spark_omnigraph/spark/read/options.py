"""Options of `spark.read.format("omnigraph")` as one checked value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from spark_omnigraph.branch.tags import parse_tag
from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.catalog.numbers import COUNT_DIGITS, count_of
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.read.arguments import json_object
from spark_omnigraph.predicates.where import Term, parse_where
from spark_omnigraph.words import TextEnum, nearest

_Word = TypeVar("_Word", bound=TextEnum)

STORAGE_PREFIX = "storage."
"""Options below this prefix reach the object store, without it: `storage.aws_region`."""

READ_OPTIONS: Mapping[str, str] = {
    "path": "root of the graph, a path, `file://…`, `s3://…` or `s3a://…`; what `load(uri)` sets",
    "node": "name of a node type",
    "edge": "name of an edge type",
    "table": "`commits`, `branches`, `tables`, `tags`, `consumers`, `recoveries`, `conflicts`; `changes`: the feed",
    "query": "text with a read query (`.gq`); its rows are found by one task, or by several where each goes its way",
    "queryName": "which query of the text; without it its only one",
    "params": "parameters of the query, as a JSON object",
    "branch": "default `main`",
    "versionAsOf": "manifest version to read",
    "snapshot": "id of the commit to read",
    "timestampAsOf": "ISO 8601 time whose state is read; without a zone it is UTC",
    "tag": "name of the tag whose state is read",
    "columns": "names separated by commas, in the order wanted",
    "filter": "predicate in Lance SQL",
    "where": 'conditions as JSON, `[["age", ">", 3], ["name", "starts with", "A"]]`; all must hold',
    "limit": "at most so many rows, read by one task",
    "aggregate": "`count`: columns `type`, `count`; without a type one row for each; free without a filter",
    "startingVersion": "of the change feed: first manifest version, included; `latest` starts from now",
    "endingVersion": "of the change feed: last manifest version, included",
    "source": "of `conflicts`: the branch that would be merged",
    "into": "of `conflicts`: the branch that would take it, default `main`",
    "consumer": "of the change feed: a name under which clean-up waits for what was not read yet",
    "maxCommitsPerTrigger": "of the change feed as a stream: at most so many commits in a batch",
}
"""Every option of a read and what it takes; docs/spark-read.md shows them."""
STORAGE_HELP = "for the object store: `storage.aws_region`, `storage.aws_access_key_id`, …"
_CATALOG = (
    ": Spark's catalog tables cannot carry the options of this source; create_views(spark, uri) makes a view of each "
    "type, and CREATE TEMPORARY VIEW … USING omnigraph OPTIONS (path '…', node '…') makes one"
)
_FEED = ": the change feed is option('table', 'changes') with 'startingVersion'"
INSTEAD = {"location": _CATALOG, "owner": _CATALOG, "readchangefeed": _FEED, "readchangedata": _FEED}
"""What to do instead of options that other sources have."""
_PAST = ("versionAsOf", "snapshot", "timestampAsOf", "tag")
_WHOLE = ("tags", "consumers")
_FEED_ONLY = ("startingVersion", "endingVersion", "maxCommitsPerTrigger", "consumer")
_TABLE_ONLY = ("columns", "filter", "where", "limit")


class MetaTable(TextEnum):
    """Values of the option `table`: what a graph knows about itself."""

    COMMITS = "commits"
    BRANCHES = "branches"
    TABLES = "tables"
    TAGS = "tags"
    CONSUMERS = "consumers"
    RECOVERIES = "recoveries"
    CHANGES = "changes"
    CONFLICTS = "conflicts"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What one `load()` asks for. Exactly one of `table_key`, `meta` and a count of all types is meant."""

    uri: str
    table_key: TableKey | None = None
    meta: MetaTable | None = None
    count: bool = False
    branch: str | None = None
    version: int | None = None
    snapshot: str | None = None
    as_of: str | None = None
    tag: str | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    where: tuple[Term, ...] = ()
    limit: int | None = None
    query: str | None = None
    query_name: str | None = None
    params: Mapping[str, object] | None = field(default=None, repr=False)
    starting: int | None = None
    ending: int | None = None
    from_now: bool = False
    commits_per_trigger: int | None = None
    consumer: str | None = None
    source: str = ""
    into: str = "main"
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse_read_options(given: Mapping[str, str]) -> ReadOptions:
    """Checks names, values and combinations. Keys are case-insensitive, as Spark hands them over."""
    named, storage = split_storage(given)
    text = canonical(named, READ_OPTIONS)
    meta = word_of("table", text["table"], MetaTable) if "table" in text else None
    _check_combination(text)
    from_now = text.get("startingVersion", "").strip().lower() == "latest"
    return ReadOptions(
        uri=graph_uri(text),
        table_key=type_key(text),
        meta=meta,
        count="aggregate" in text,
        branch=text.get("branch"),
        version=whole_number("versionAsOf", text.get("versionAsOf"), 1),
        snapshot=text.get("snapshot"),
        as_of=text.get("timestampAsOf"),
        tag=text.get("tag"),
        columns=_columns(text.get("columns")),
        filter=text.get("filter"),
        where=parse_where(text["where"]) if "where" in text else (),
        limit=whole_number("limit", text.get("limit"), 0),
        query=text.get("query"),
        query_name=text.get("queryName"),
        params=_params(text["params"]) if "params" in text else None,
        starting=None if from_now else whole_number("startingVersion", text.get("startingVersion"), 0),
        ending=whole_number("endingVersion", text.get("endingVersion"), 0),
        from_now=from_now,
        commits_per_trigger=whole_number("maxCommitsPerTrigger", text.get("maxCommitsPerTrigger"), 1),
        consumer=None if "consumer" not in text else parse_tag(text["consumer"], "consumer"),
        source=text.get("source", ""),
        into=text.get("into", "main"),
        storage=storage,
    )


def split_storage(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Options of the source, and those of the object store without their prefix."""
    storage = {k[len(STORAGE_PREFIX) :]: v for k, v in given.items() if k.lower().startswith(STORAGE_PREFIX)}
    return {k: v for k, v in given.items() if not k.lower().startswith(STORAGE_PREFIX)}, storage


def canonical(given: Mapping[str, str], known: Iterable[str], instead: Mapping[str, str] = INSTEAD) -> dict[str, str]:
    """The options under their own spelling. BadRequestError for an unknown one says what to do instead, or names the
    nearest.
    """
    by_folded = {k.lower(): k for k in known}
    unknown = [k for k in given if k.lower() not in by_folded]
    if unknown:
        name = next((k for k in unknown if k.lower() in instead), unknown[0])
        hint = instead.get(name.lower()) or nearest(name, by_folded.values())
        raise BadRequestError(
            f"unknown option '{name}'{hint} (options: {', '.join(by_folded.values())}, {STORAGE_PREFIX}*)"
        )
    return {by_folded[k.lower()]: v for k, v in given.items()}


def _check_combination(text: Mapping[str, str]) -> None:
    if "query" in text:
        others = ("node", "edge", "table", "aggregate", *_TABLE_ONLY)
        _refuse_with(text, "query", others, "a query says itself what is read")
        return _at_most_one(text, _PAST)
    _refuse_alone(text, ("queryName", "params"), "'query'")
    return _check_table(text)


def _check_table(text: Mapping[str, str]) -> None:
    is_feed = text.get("table", "").strip().lower() == MetaTable.CHANGES.value
    _at_most_one(text, ("node", "edge") if is_feed else ("node", "edge", "table"))
    if not is_feed:
        _refuse_alone(text, _FEED_ONLY, "'table' with 'changes'")
    _at_most_one(text, _PAST)
    if "table" in text:
        _refuse_with(text, "table", ("aggregate", *_TABLE_ONLY), "use Spark's own select, filter and limit")
    table = text.get("table", "").strip().lower()
    if table and table != MetaTable.TABLES.value:
        _refuse_with(text, "table", _PAST, "the log has one state")
    _check_conflicts(text, table)
    if table in (MetaTable.BRANCHES.value, MetaTable.RECOVERIES.value, *_WHOLE):
        _refuse_with(text, "table", ("branch",), "all branches are listed")
    if "aggregate" in text:
        if text["aggregate"].lower() != "count":
            raise BadRequestError(f"option 'aggregate' is '{text['aggregate']}'; the only aggregate is 'count'")
        _refuse_with(text, "aggregate", ("columns", "limit"), "a count has the columns type and count")
    if "node" not in text and "edge" not in text:
        if "table" not in text and "aggregate" not in text:
            raise BadRequestError("say what to read: option 'node' or 'edge' with a type name, 'table', or 'query'")
        _refuse_with(text, "aggregate", ("filter", "where"), "name the type that is filtered with 'node' or 'edge'")


def _check_conflicts(text: Mapping[str, str], table: str) -> None:
    if table != MetaTable.CONFLICTS.value:
        return _refuse_alone(text, ("source", "into"), "'table' with 'conflicts'")
    if not text.get("source"):
        raise BadRequestError("table 'conflicts' needs the option 'source': the branch that would be merged")
    return _refuse_with(text, "table", ("branch",), "the branches are 'source' and 'into'")


def _at_most_one(text: Mapping[str, str], names: tuple[str, ...]) -> None:
    found = [name for name in names if name in text]
    if len(found) > 1:
        raise BadRequestError(f"options '{found[0]}' and '{found[1]}' contradict each other; give one of them")


def _refuse_alone(text: Mapping[str, str], names: tuple[str, ...], owner: str) -> None:
    for name in names:
        if name in text:
            raise BadRequestError(f"option '{name}' belongs to the option {owner}, which is missing")


def _refuse_with(text: Mapping[str, str], name: str, others: tuple[str, ...], reason: str) -> None:
    for other in others:
        if other in text:
            raise BadRequestError(f"option '{other}' does not go with '{name}': {reason}")


def graph_uri(text: Mapping[str, str]) -> str:
    """Root of the graph. BadRequestError when none is given."""
    uri = text.get("path", "").strip()
    if not uri:
        raise BadRequestError(
            "no graph is named: give its root to load(uri) or save(uri), or as option 'path'; saveAsTable and "
            "insertInto name a table of Spark's catalog, which has no place for it"
        )
    return uri


def type_key(text: Mapping[str, str]) -> TableKey | None:
    """Table key of the type that the options name, None when they name none."""
    for kind in ("node", "edge"):
        if kind in text:
            if not text[kind].strip():
                raise BadRequestError(f"option '{kind}' is empty; it takes the name of a {kind} type")
            return TableKey(f"{kind}:{text[kind].strip()}")
    return None


def _columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise BadRequestError(f"option 'columns' is '{text}'; it takes names separated by commas")
    return names


def _params(text: str) -> Mapping[str, object]:
    try:
        return json_object(text)
    except ValueError as error:
        raise BadRequestError(f"option 'params' {error}") from None


def whole_number(name: str, text: str | None, least: int) -> int | None:
    """The number of an option that takes one, None without it."""
    if text is None:
        return None
    number = count_of(text.strip())
    if number is None or number < least:
        shown = text if len(text) <= 2 * COUNT_DIGITS else f"{text[:COUNT_DIGITS]}…"
        raise BadRequestError(
            f"option '{name}' is '{shown}'; it takes a whole number, {least} or more, of at most {COUNT_DIGITS} digits"
        )
    return number


def word_of(name: str, text: str, choices: type[_Word], also: tuple[str, ...] = ()) -> _Word:
    """The member that an option names, in whatever case; `also` are words that others take care of."""
    try:
        return choices(text.strip().lower())
    except ValueError:
        known = [*map(str, choices), *also]
        raise BadRequestError(
            f"option '{name}' is '{text}'{nearest(text, known)} (it takes one of {', '.join(known)})"
        ) from None
