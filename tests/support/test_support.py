"""The supports carry other tests, so they are tested themselves."""

from __future__ import annotations

import json
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

from spark_omnigraph.bad_rows import BadRow, BadRowSummary, Rule
from spark_omnigraph.errors import (
    BadRequestError,
    BadRowsError,
    CatalogError,
    ConflictError,
    InternalError,
    NotFoundError,
    OmnigraphError,
    ParameterError,
    QueryParseError,
    QueryTypeError,
)
from tests.support.cases import read_cases
from tests.support.object_store import BUCKET, careless_server, running_server
from tests.support.outcomes import body_problems, error_of, kept_words, problems
from tests.support.scenario import same

SCHEMA = "node Acct { age: I32? }\nedge Joins: Acct -> Acct"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@range violation on Acct.age: value -1 < min 0", ["Acct", "age", "-1", "0"]),
        ("@unique violation on Acct.mail: value 'm@x' appears in rows 0 and 1", ["m@x", "Acct", "mail"]),
        ("@card violation on edge Joins: source 'u1' has 3 edges (max 2)", ["u1", "Joins", "3", "2"]),
        ("record 2: unknown node type 'Reid'", ["Reid"]),
        ("value '(n, 1)' appears in rows 0 and 1", ["n", "1"]),
    ],
)
def test_words_that_another_wording_keeps(text: str, words: list[str]) -> None:
    assert kept_words(text, SCHEMA) == words


def test_other_words_of_a_message_are_free_but_names_and_values_are_not() -> None:
    row = BadRow("in", 2, 9, "Acct", "age", Rule.RANGE, "121 is above the maximum of 120", "{}")
    error = BadRowsError("1 bad row", BadRowSummary(1, {"range": 1}, (row,)))
    wanted = {"kind": "bad_request", "message_contains": ["violation on Acct.age: value 121 > max 120"]}
    assert problems(error, wanted, SCHEMA) == []
    assert problems(error, {"rules": {"range": 1}}, SCHEMA) == []
    assert problems(error, {"rules": {"range": 2}}, SCHEMA) != []
    assert problems(error, {"message_contains": ["value 122 > max 120"]}, SCHEMA) != []
    assert problems(error, {"kind": "not_found"}, SCHEMA) != []
    assert problems(NotFoundError("x"), {}, SCHEMA) == []
    assert problems(BadRequestError("x"), {"kind": "param"}, SCHEMA) == []


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [(3, 3.0, True), (True, 1, False), (None, 0, False), ([1], [1, 2], False), ({"a": 1}, {"a": 1.0}, True)],
)
def test_json_values_compare_by_value_and_kind(got: object, expected: object, equal: bool) -> None:
    assert same(got, expected) is equal


def test_case_files_are_checked(tmp_path: Path) -> None:
    case = {"name": "one", "area": "load", "schema": "", "steps": []}
    document = {"format_version": 1, "area": "load", "cases": [case]}
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    assert [each.name for each in read_cases(tmp_path)] == ["one"]
    (tmp_path / "b.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ValueError, match="'one' exists already"):
        read_cases(tmp_path)
    (tmp_path / "b.json").write_text(json.dumps({**document, "format_version": 2}), encoding="utf-8")
    with pytest.raises(ValueError, match="format_version 2"):
        read_cases(tmp_path)


def _store(endpoint: str) -> S3Store:
    return S3Store(
        BUCKET,
        endpoint=endpoint,
        region="us-east-1",
        access_key_id="testing",
        secret_access_key="testing",
        client_options={"allow_http": True},
        virtual_hosted_style_request=False,
    )


@pytest.mark.s3
def test_the_real_server_honours_conditions(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        store = _store(server.endpoint)
        obstore.put(store, "a", b"1", mode="create")
        with pytest.raises(AlreadyExistsError):
            obstore.put(store, "a", b"2", mode="create")
        assert bytes(obstore.get(store, "a").bytes()) == b"1"


@pytest.mark.s3
def test_the_careless_server_does_not() -> None:
    with careless_server() as (server, objects):
        store = _store(server.endpoint)
        obstore.put(store, "x/a", b"1", mode="create")
        obstore.put(store, "x/a", b"2", mode="create")
        assert objects == {f"/{BUCKET}/x/a": b"2"}
        assert [found["path"] for found in obstore.list_with_delimiter(store, "x")["objects"]] == ["x/a"]
        assert bytes(obstore.get_range(store, "x/a", start=0, length=1)) == b"2"
        obstore.delete(store, "x/a")
        assert objects == {}


@pytest.mark.parametrize(
    ("kind", "raised", "status"),
    [
        ("parse", QueryParseError, 400),
        ("catalog", CatalogError, 400),
        ("type", QueryTypeError, 400),
        ("plan", BadRequestError, 400),
        ("param", ParameterError, 400),
        ("bad_request", BadRequestError, 400),
        ("not_found", NotFoundError, 404),
        ("conflict", ConflictError, 409),
        ("internal", InternalError, 500),
    ],
)
def test_every_kind_of_error_has_a_body(kind: str, raised: type[OmnigraphError], status: int) -> None:
    error = error_of({"kind": kind, "message": "m"})
    assert type(error) is raised
    wanted = {"status": status, "body": {"error": "m", "code": error.code}}
    assert body_problems(error, wanted, ("error", "code", "manifest_conflict")) == []
    assert body_problems(error, {**wanted, "status": 418}, ("error",)) != []


def test_an_error_without_fields_of_its_own_may_name_its_detail() -> None:
    error = error_of({"kind": "conflict", "message": "m", "details": "row_level_cas_contention"})
    wanted = {"status": 409, "body": {"error": "m", "code": "conflict"}}
    assert (type(error), body_problems(error, wanted, ("error", "code", "manifest_conflict"))) == (ConflictError, [])


@pytest.mark.parametrize("given", [{"uri": "/g"}, {"message": "graph already initialized at '/g'; pass --force"}])
def test_a_graph_that_is_there_is_named(given: dict[str, str]) -> None:
    error = error_of({"kind": "already_initialized", **given})
    text = "graph already initialized at '/g'; pass --force to overwrite"
    wanted = {"status": 409, "body": {"error": text, "code": "conflict"}}
    assert body_problems(error, wanted, ("error", "code")) == []
    assert body_problems(error, {**wanted, "body": {"error": "graph already initialized at '/h'"}}, ("error",)) != []
