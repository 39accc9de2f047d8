"""Arguments of the calls for notebooks: another kind is refused by name, before Spark is asked for anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from spark_omnigraph import create_views, last_write, read_edges, read_nodes, write_edges, write_nodes
from spark_omnigraph.errors import BadRequestError

SPARK: Any = None
reads: list[Any] = [read_nodes, read_edges]
writes: list[Any] = [write_nodes, write_edges]
views: Any = create_views
last: Any = last_write


@pytest.mark.parametrize(
    ("call", "says"),
    [
        *((lambda read=read: read(SPARK, 5, "P"), "uri is a text, not 5") for read in reads),
        *((lambda read=read: read(SPARK, "g", None), "type is a text, not None") for read in reads),
        *((lambda read=read: read(SPARK, "g", "P", columns="id"), "columns is a list of names") for read in reads),
        *((lambda read=read: read(SPARK, "g", "P", columns=[]), "columns takes a list") for read in reads),
        *((lambda read=read: read(SPARK, "g", "P", where=5), "where is a predicate, or a list of") for read in reads),
        *((lambda read=read: read(SPARK, "g", "P", version="3"), "version is a whole number") for read in reads),
        *((lambda read=read: read(SPARK, "g", "P", limit=True), "limit is a whole number, not True") for read in reads),
        *((lambda read=read: read(SPARK, "g", "P", as_of=5), "as_of is a time, as a datetime or") for read in reads),
        *((lambda read=read: read(SPARK, "g", "P", branch=5), "branch is a text, not 5") for read in reads),
        *((lambda w=w: w([{"id": "a"}], "g", "P"), "df is a DataFrame of Spark, not [{'id': 'a'}]") for w in writes),
        (lambda: views(SPARK, "g", types="Person"), "types is a list of names"),
        (lambda: views(SPARK, "g", replace="no"), "replace is True or False, not 'no'"),
        (lambda: views(SPARK, "g", prefix=None), "prefix is a text, not None"),
        (lambda: views(SPARK, "g", storage_options={"allow_http": True}), "storage_options is a dictionary of texts"),
        (lambda: last(SPARK, "g", 5), "app_id is a text, not 5"),
    ],
)  # a line for each call  # fmt: skip
def test_another_kind_is_refused_by_name(call: Callable[[], object], says: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        call()
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"mode": 5}, "mode is a text, not 5"),
        ({"actor": 5}, "actor is a text, not 5"),
        ({"options": {"maxBadRows": 1}}, "options is a dictionary of texts, not {'maxBadRows': 1}"),
    ],
)
def test_so_are_those_of_a_write(given: dict[str, Any], says: str) -> None:
    frame: Any = object.__new__(DataFrame)
    for write in writes:
        with pytest.raises(BadRequestError) as caught:
            write(frame, "g", "P", **given)
        assert caught.value.message == says
