from __future__ import annotations

import json
import pickle

import pytest

from spark_omnigraph.errors import StorageError
from spark_omnigraph.redaction import has_credentials, one_line, redact, visible


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("cannot write s3://AKIA:wJal/rX+tn@b/x: no", "cannot write s3://***@b/x: no"),
        ("'https://token@host/x'", "'https://***@host/x'"),
        ("aws_secret_access_key:wJalrX", "aws_secret_access_key:***"),
        ("aws-secret-access-key=wJalrX,aws_region=x", "aws-secret-access-key=***,aws_region=x"),
        ('{"aws_session_token": "abc", "n": 1}', '{"aws_session_token": "***", "n": 1}'),
        ("s3://bucket/a@b and http://host:9000/x@y", "s3://bucket/a@b and http://host:9000/x@y"),
        ("unexpected token: ')'", "unexpected token: ')'"),
        ("aws_access_key_id=AKIA", "aws_access_key_id=AKIA"),
    ],
)
def test_secrets_go_and_the_rest_stays(text: str, left: str) -> None:
    assert redact(text) == left


def test_known_values_go_wherever_they_stand() -> None:
    assert redact("signature of wJalrXUtn failed", ["wJalrXUtn", "x"]) == "signature of *** failed"


def test_an_error_never_holds_a_secret() -> None:
    error = StorageError("storage: cannot read s3://K:S@b/x")
    assert (str(error), error.message, str(pickle.loads(pickle.dumps(error)))) == (
        ("storage: cannot read s3://***@b/x",) * 3
    )


def test_credentials_in_a_uri() -> None:
    found = [has_credentials(text) for text in ("s3://k:s@b", "s3://k@b/x", "s3://b/k@x", "a@b", "http://h:1/a@b")]
    assert found == [True, True, False, False, False]


def test_what_a_terminal_obeys_becomes_visible_and_stays_json() -> None:
    bad = "a\x1b[31m\x07\x9b\u202e\ud800\r\nb\t"
    assert visible(bad) == r"a\u001b[31m\u0007\u009b\u202e\ud800\u000d" + "\nb\t"
    assert one_line(bad) == r"a\u001b[31m\u0007\u009b\u202e\ud800\u000d\u000ab\u0009"
    assert json.loads(visible(json.dumps(bad, ensure_ascii=False))) == bad
