"""Options of a read: names, values, combinations."""

from __future__ import annotations

import pytest

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.predicates.where import Term
from spark_omnigraph.spark.read.options import MetaTable, ReadOptions, parse_read_options


def test_everything_a_node_read_can_say() -> None:
    given = {
        "path": "/g",
        "NODE": "Person",
        "branch": "dev",
        "versionasof": "7",
        "columns": "id, age",
        "filter": "age > 3",
        "where": '[["age", "<", 9]]',
        "limit": "0",
        "storage.aws_region": "eu",
    }
    assert parse_read_options(given) == ReadOptions(
        uri="/g",
        table_key=TableKey.node("Person"),
        branch="dev",
        version=7,
        columns=("id", "age"),
        filter="age > 3",
        where=(Term("age", "<", 9),),
        limit=0,
        storage={"aws_region": "eu"},
    )


def test_other_reads() -> None:
    assert parse_read_options({"path": "/g", "edge": "Knows", "snapshot": "01A"}).table_key == "edge:Knows"
    assert parse_read_options({"path": "/g", "table": "Commits", "branch": "b"}).meta is MetaTable.COMMITS
    assert parse_read_options({"path": "/g", "table": "tables", "timestampAsOf": "2020-01-01"}).as_of == "2020-01-01"
    assert parse_read_options({"path": "/g", "aggregate": "count"}).count
    assert parse_read_options({"path": "/g", "aggregate": "COUNT", "node": "P", "filter": "a"}).filter == "a"


def test_secrets_are_not_printed() -> None:
    assert "hidden" not in repr(parse_read_options({"path": "/g", "node": "P", "storage.secret": "hidden"}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"node": "P"}, "no graph is named"),
        ({"path": " ", "node": "P"}, "no graph is named"),
        ({"path": "/g"}, "say what to read"),
        ({"path": "/g", "node": " "}, "option 'node' is empty"),
        ({"path": "/g", "nodes": "P"}, "unknown option 'nodes'; did you mean 'node'?"),
        ({"path": "/g", "node": "P", "versionas": "1"}, "did you mean 'versionAsOf'?"),
        ({"path": "/g", "node": "P", "zzzzzz": "1"}, "unknown option 'zzzzzz' (options: path, node"),
        (
            {"location": "/g", "owner": "x"},
            "catalog tables cannot carry the options of this source; create_views(",
        ),
        ({"path": "/g", "readChangeFeed": "true"}, "the change feed is option('table', 'changes')"),
        ({"path": "/g", "NODE": "P", "FILTERS": "x"}, "did you mean 'filter'?"),
        ({"path": "/g", "node": "P", "edge": "E"}, "'node' and 'edge' contradict"),
        ({"path": "/g", "node": "P", "table": "commits"}, "'node' and 'table' contradict"),
        ({"path": "/g", "node": "P", "versionAsOf": "1", "snapshot": "a"}, "contradict"),
        ({"path": "/g", "node": "P", "timestampAsOf": "1", "snapshot": "a"}, "contradict"),
        ({"path": "/g", "node": "P", "versionAsOf": "0"}, "takes a whole number, 1 or more"),
        ({"path": "/g", "node": "P", "versionAsOf": "x"}, "takes a whole number"),
        ({"path": "/g", "node": "P", "limit": "-1"}, "takes a whole number, 0 or more"),
        ({"path": "/g", "node": "P", "limit": str(2**63)}, "of at most 18 digits"),
        ({"path": "/g", "node": "P", "versionAsOf": "9" * 5000}, "option 'versionAsOf' is '999999999999999999…'"),
        ({"path": "/g", "table": "changes", "maxCommitsPerTrigger": "0"}, "takes a whole number, 1 or more"),
        ({"path": "/g", "node": "P", "columns": "a,,b"}, "takes names separated by commas"),
        ({"path": "/g", "node": "P", "columns": ""}, "takes names separated by commas"),
        ({"path": "/g", "table": "commit"}, "did you mean 'commits'?"),
        ({"path": "/g", "table": "commits", "columns": "a"}, "does not go with 'table'"),
        ({"path": "/g", "table": "commits", "versionAsOf": "1"}, "the log has one state"),
        ({"path": "/g", "table": "branches", "branch": "b"}, "all branches are listed"),
        ({"path": "/g", "node": "P", "aggregate": "sum"}, "the only aggregate is 'count'"),
        ({"path": "/g", "node": "P", "aggregate": "count", "limit": "1"}, "does not go with 'aggregate'"),
        ({"path": "/g", "aggregate": "count", "filter": "a"}, "name the type that is filtered"),
        (
            {"path": "/g", "node": "P", "params": "{}"},
            "option 'params' belongs to the option 'query', which is missing",
        ),
        ({"path": "/g", "node": "P", "endingVersion": "3"}, "belongs to the option 'table' with 'changes'"),
        ({"path": "/g", "table": "conflicts"}, "needs the option 'source'"),
        ({"path": "/g", "table": "conflicts", "source": "b", "branch": "c"}, "the branches are 'source' and 'into'"),
        ({"path": "/g", "table": "branches", "source": "b"}, "belongs to the option 'table' with 'conflicts'"),
        ({"path": "/g", "node": "P", "into": "b"}, "belongs to the option 'table' with 'conflicts'"),
        ({"path": "/g", "aggregate": "count", "table": "tables"}, "does not go with 'table'"),
        ({"path": "/g", "query": "q", "params": "[" * 100_000}, "option 'params' is nested too deeply"),
    ],
)
def test_what_contradicts_itself_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        parse_read_options(given)
    assert message in caught.value.message
