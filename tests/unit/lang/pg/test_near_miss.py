"""Which unknown names count as a misspelt known one."""

from __future__ import annotations

import pytest

from spark_omnigraph.lang.pg.near_miss import FORMS, advice, resembles


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Key", "key"),
        ("KEY", "key"),
        ("keys", "key"),
        ("kye", "key"),
        ("ky", "key"),
        ("key_", "key"),
        ("pk", "key"),
        ("primary_key", "key"),
        ("primaryKey", "key"),
        ("uniqe", "unique"),
        ("uniuqe", "unique"),
        ("uniq", "unique"),
        ("unique_", "unique"),
        ("uniques", "unique"),
        ("indx", "index"),
        ("idx", "index"),
        ("index_", "index"),
        ("indexes", None),
        ("indexed", "index"),
        ("rnage", "range"),
        ("ranges", "range"),
        ("chek", "check"),
        ("checks", "check"),
        ("cards", "card"),
        ("crad", "card"),
        ("cardinality", "card"),
        ("embedd", "embed"),
        ("embedding", "embed"),
        ("descripton", "description"),
        ("Description", "description"),
        ("desc", "description"),
        ("describtions", "description"),
        ("instuction", "instruction"),
        ("rename", "rename_from"),
        ("renamed_from", "rename_from"),
        ("renameFrom", "rename_from"),
        ("rename_form", "rename_from"),
    ],
)
def test_near_misses(name: str, known: str | None) -> None:
    assert resembles(name) == known


@pytest.mark.parametrize(
    "name",
    [
        "team",
        "pii",
        "mask",
        "flag",
        "owner",
        "care",
        "cart",
        "kay",
        "hey",
        "text",
        "note",
        "unit",
        "inverse",
        "dec",
        "x",
    ],
)
def test_names_of_their_own(name: str) -> None:
    assert resembles(name) is None


@pytest.mark.parametrize("name", FORMS)
def test_known_names_are_no_near_misses(name: str) -> None:
    assert resembles(name) is None
    assert f"@{name}" in advice(name)


def test_long_names_cost_nothing() -> None:
    assert resembles("k" * 1_000_000) is None
