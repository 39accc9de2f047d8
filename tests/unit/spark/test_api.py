"""Names of views."""

from __future__ import annotations

import pytest

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.spark.api import view_names


def test_views_are_named_after_their_types() -> None:
    assert view_names(["node:Person", "edge:Knows"], "g_") == {"node:Person": "g_Person", "edge:Knows": "g_Knows"}


def test_a_name_shared_without_case_gets_its_kind() -> None:
    assert view_names(["node:Link", "edge:link", "node:P"], "") == {
        "node:Link": "node_Link",
        "edge:link": "edge_link",
        "node:P": "P",
    }


def test_some_types_only() -> None:
    assert view_names(["node:P", "edge:K"], "", {"K"}) == {"edge:K": "K"}
    with pytest.raises(BadRequestError, match="no type 'X'"):
        view_names(["node:P"], "", {"X"})


def test_types_that_differ_in_case_alone_share_no_view() -> None:
    keys = ["node:FILM", "node:Film", "node:P"]
    with pytest.raises(BadRequestError, match=r"'node:FILM' and 'node:Film' would both .* types= .* prefix="):
        view_names(keys, "")
    assert view_names(keys, "", {"Film", "P"}) == {"node:Film": "node_Film", "node:P": "P"}
    assert view_names(keys, "upper_", {"FILM"}) == {"node:FILM": "upper_node_FILM"}
    with pytest.raises(BadRequestError, match="'node:Node_Rate' and 'node:Rate'"):
        view_names(["node:Node_Rate", "node:Rate", "edge:Rate"], "")
