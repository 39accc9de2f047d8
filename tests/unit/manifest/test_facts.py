"""Facts of a commit as a value: what is stored of them, within which bounds, and what damage does."""

from __future__ import annotations

import json

import pytest

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.manifest.facts import (
    FACTS_LIMIT,
    METADATA_LIMIT,
    CommitFacts,
    CommitOrigin,
    RowFacts,
    checked_metadata,
    decode_facts,
    encode_facts,
    user_metadata,
)
from spark_omnigraph.manifest.rows import Transaction

DIGEST = "sha256:" + "0" * 64
FACTS = CommitFacts(
    "load",
    "merge",
    {"edge:Knows": RowFacts(1), "node:Person": RowFacts(2, 3, 0, 4)},
    seconds=0.25,
    origin=CommitOrigin("nightly", "r1", "app-1", {"ticket": "OPS-7"}),
    transaction=Transaction("etl", 7),
    input_digest=DIGEST,
)


def test_facts_are_stored_as_json_and_come_back() -> None:
    text = encode_facts(FACTS)
    assert json.loads(text) == {
        "operation": "load",
        "mode": "merge",
        "tables": {
            "edge:Knows": {"inserted": 1, "updated": 0, "deleted": 0, "bad": 0},
            "node:Person": {"inserted": 2, "updated": 3, "deleted": 0, "bad": 4},
        },
        "seconds": 0.25,
        "job": "nightly",
        "run_id": "r1",
        "app_id": "app-1",
        "transaction": {"app_id": "etl", "version": 7},
        "input_digest": DIGEST,
        "metadata": {"ticket": "OPS-7"},
    }
    assert decode_facts(text) == FACTS
    assert FACTS.totals() == RowFacts(3, 3, 0, 4)


def test_what_is_not_known_is_not_stored() -> None:
    assert encode_facts(CommitFacts("mutation")) == '{"operation":"mutation"}'
    assert CommitFacts("mutation").totals() == RowFacts()


def test_tables_that_do_not_fit_are_summed_up_with_the_smallest_first() -> None:
    tables = {f"node:Type{number:03}": RowFacts(number, 0, 1, 2) for number in range(300)}
    text = encode_facts(CommitFacts("load", "append", tables, seconds=1.0, input_digest=DIGEST))
    assert FACTS_LIMIT - 100 < len(text.encode()) <= FACTS_LIMIT
    found = decode_facts(text)
    assert found is not None
    kept = len(found.tables)
    assert list(found.tables) == [f"node:Type{number:03}" for number in range(300 - kept, 300)]
    assert found.others == RowFacts(sum(range(300 - kept)), 0, 300 - kept, 2 * (300 - kept))
    assert found.totals() == RowFacts(sum(range(300)), 0, 300, 600)
    assert (found.input_digest, found.seconds) == (DIGEST, 1.0)


def test_a_long_name_of_a_write_goes_before_the_rest() -> None:
    most = CommitOrigin("j" * 128, "r" * 128, "a" * 128, {"note": "n" * (METADATA_LIMIT - 11)})
    fitting = CommitFacts(
        "load", "overwrite", {"node:A": RowFacts(1)}, None, 1.5, most, Transaction("t" * 36, 9), DIGEST
    )
    stored = decode_facts(encode_facts(fitting))
    assert stored is not None
    assert (stored.origin, stored.transaction, stored.input_digest) == (most, fitting.transaction, DIGEST)
    assert stored.totals() == RowFacts(1)
    long = CommitFacts("load", origin=most, transaction=Transaction("t" * 2_000, 9), input_digest=DIGEST)
    stored = decode_facts(encode_facts(long))
    assert stored is not None
    assert (stored.transaction, stored.input_digest, stored.origin) == (None, DIGEST, most)
    wide = CommitOrigin("é" * 128, "漢" * 128, "漢" * 128, {"note": "n" * (METADATA_LIMIT - 11)})
    stored = decode_facts(encode_facts(CommitFacts("load", origin=wide, transaction=Transaction("t", 9))))
    assert stored is not None
    assert (stored.transaction, stored.origin.job, stored.origin.run_id) == (None, None, wide.run_id)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"1st": "x"}, "'1st' is no name of metadata"),
        ({"a b": "x"}, "'a b' is no name of metadata"),
        ({"k" * 65: "x"}, "is no name of metadata"),
        ({7: "x"}, "'7' is no name of metadata"),
        ({"api_token": "x"}, "'api_token' names a secret"),
        ({"count": 7}, "'count' must be a text, not 7"),
        ({"half": "\ud800"}, "'half' must be a text"),
        (["a"], "is a dictionary of texts"),
        ({"note": "n" * METADATA_LIMIT}, "has 1,035 bytes as JSON, and at most 1,024 are kept"),
        ({"note": "é" * 510}, "has 1,031 bytes"),
    ],
)
def test_metadata_that_cannot_be_kept_is_refused(metadata: dict[str, str], message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        CommitOrigin(metadata=metadata)


def test_secrets_in_metadata_are_hidden() -> None:
    assert checked_metadata({"from": "s3://KEY:SECRET@b/x", "how": "password=hunter22"}) == {
        "from": "s3://***@b/x",
        "how": "password=***",
    }


def test_metadata_of_a_call_wins_over_that_of_the_handle() -> None:
    origin = CommitOrigin("job", metadata={"a": "1", "b": "2"})
    assert origin.with_metadata({"b": "3"}) == CommitOrigin("job", metadata={"a": "1", "b": "3"})
    assert origin.with_metadata(None) is origin


def test_one_text_of_metadata_is_json_or_itself() -> None:
    assert user_metadata('{"ticket": "OPS-7"}') == {"ticket": "OPS-7"}
    assert user_metadata("release 5") == {"userMetadata": "release 5"}
    assert user_metadata("[1]") == {"userMetadata": "[1]"}
    with pytest.raises(BadRequestError, match="'ticket' must be a text, not 7"):
        user_metadata('{"ticket": 7}')


def test_names_of_jobs_are_short_texts() -> None:
    with pytest.raises(BadRequestError, match="run_id is a text of at most 128 characters"):
        CommitOrigin(run_id="r" * 129)
    with pytest.raises(BadRequestError, match="job is a text"):
        CommitOrigin(7)  # type: ignore[arg-type]  # what a caller without types may give


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        "{}",
        '{"operation": 7}',
        '{"operation":"load","tables":{"a":{"inserted":-1}}}',
        '{"operation":"load","tables":{"a":{"inserted":9007199254740993}}}',
        '{"operation":"load","metadata":{"a b":"x"}}',
        '{"operation":"load","seconds":NaN}',
        '{"operation":"load","note":"' + "x" * FACTS_LIMIT + '"}',
        "[" * 2_000,
    ],
)
def test_damaged_facts_are_none(text: str | None) -> None:
    assert decode_facts(text) is None


def test_members_of_a_later_release_are_passed_over() -> None:
    text = '{"operation":"load","tables":{"node:A":{"inserted":1,"moved":2}},"cost":{"requests":9}}'
    assert decode_facts(text) == CommitFacts("load", tables={"node:A": RowFacts(1)})
