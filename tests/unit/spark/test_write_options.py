"""Options of a write: what each value means, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.manifest.facts import CommitOrigin
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.mode import LoadMode
from spark_omnigraph.spark.write.options import parse_write_options

BASE = {"path": "graph", "node": "Person"}


def test_what_is_not_given_has_its_default() -> None:
    options = parse_write_options(BASE, overwrite=False)
    assert (options.uri, options.table_key, options.deletes) == ("graph", "node:Person", False)
    assert (options.request.mode, options.request.branch) == (LoadMode.APPEND, None)
    assert options.request.options.build_indexes
    assert options.request.options.max_bad_rows == 0


@pytest.mark.parametrize(("text", "build"), [("true", True), ("TRUE", True), ("false", False), (" False ", False)])
def test_indexes_may_be_left_to_later(text: str, build: bool) -> None:
    options = parse_write_options({**BASE, "index": text}, overwrite=False)
    assert options.request.options.build_indexes is build


@pytest.mark.parametrize("overwrite", [True, False])
def test_spark_mode_decides_without_a_load_mode(overwrite: bool) -> None:
    mode = parse_write_options(BASE, overwrite).request.mode
    assert mode is (LoadMode.OVERWRITE if overwrite else LoadMode.APPEND)


def test_a_write_may_have_a_name_and_a_number() -> None:
    options = parse_write_options({**BASE, "txnAppId": "nightly", "txnVersion": "7"}, overwrite=False)
    assert options.request.transaction == Transaction("nightly", 7)


def test_a_write_may_say_who_makes_it_and_why() -> None:
    given = {"userMetadata": '{"ticket": "OPS-7"}', "job": "nightly", "runId": "r1", "applicationId": "app-1"}
    options = parse_write_options({**BASE, **given}, overwrite=False)
    assert options.request.origin == CommitOrigin("nightly", "r1", "app-1", {"ticket": "OPS-7"})
    named = parse_write_options({**BASE, "usermetadata": "release 5"}, overwrite=True, stream=True)
    assert named.request.origin == CommitOrigin(metadata={"userMetadata": "release 5"})
    deleting = parse_write_options({**BASE, **given, "loadMode": "delete"}, overwrite=False)
    assert deleting.request.origin == options.request.origin


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"userMetadata": '{"a b": "x"}'}, "'a b' is no name of metadata"),
        ({"userMetadata": "x" * 2_000}, "and at most 1,024 are kept"),
        ({"runId": "r" * 200}, "run_id is a text of at most 128 characters"),
        ({"index": "later"}, "option 'index' is 'later' (it takes one of true, false"),
        ({"loadMode": "merg"}, "option 'loadMode' is 'merg'; did you mean 'merge'?"),
        ({"edge": "Knows"}, "options 'node' and 'edge' contradict each other"),
        ({"txnAppId": "nightly"}, "options 'txnAppId' and 'txnVersion' go together"),
        ({"txnAppId": "nightly", "txnVersion": "-1"}, "option 'txnVersion' is '-1'"),
        ({"maxBadRows": "few"}, "option 'maxBadRows': 'few' is neither a number of rows nor a share"),
        ({"loadMode": "delete", "index": "false"}, "option 'index' does not go with loadMode 'delete'"),
        ({"blobSchemes": "s3, ftp"}, "option 'blobSchemes': 'ftp' is none of abfss, az"),
    ],
)
def test_values_that_mean_nothing_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        parse_write_options({**BASE, **given}, overwrite=False)
    assert message in refused.value.message


def test_overwrite_and_another_load_mode_contradict_each_other() -> None:
    with pytest.raises(BadRequestError, match="mode\\('overwrite'\\) and loadMode 'merge' contradict"):
        parse_write_options({**BASE, "loadMode": "merge"}, overwrite=True)


def test_tasks_that_share_a_limit_are_counted_from_one() -> None:
    assert parse_write_options(BASE, overwrite=False).embed_tasks is None
    assert parse_write_options({**BASE, "embedTasks": "8"}, overwrite=False).embed_tasks == 8
    for text in ("0", "-1", "many", "2.5"):
        with pytest.raises(BadRequestError, match="embedTasks"):
            parse_write_options({**BASE, "embedTasks": text}, overwrite=False)
