"""Declarations that contradict each other, and where the error points."""

from __future__ import annotations

import pytest

from spark_omnigraph.errors import CatalogError
from spark_omnigraph.lang.pg import compile_schema


@pytest.mark.parametrize(
    ("source", "headline", "place"),
    [
        ("node Rug { w: I32 }\nnode Rug { h: I32 }", "duplicate node type: Rug", "2, column 6"),
        ("interface I { }\n\ninterface I { }", "duplicate interface: I", "3, column 11"),
        ("node A {}\nedge On: A -> A\nedge On: A -> A", "duplicate edge type: On", "3, column 6"),
        (
            "node Rug {\n  w: I32\n  w: I32 }",
            "property id collision on Rug: 'w' and 'w' both hash to 4108100222",
            "3, column 3",
        ),
        (
            "node Rug {}\nedge On: Rug -> Rug { w: I32 w: F32 }",
            "property id collision on On: 'w' and 'w' both hash to 341801468",
            "2, column 30",
        ),
        (
            "node Rug { ahrcei: I32\nbjzyba: I32 }",
            "property id collision on Rug: 'ahrcei' and 'bjzyba' both hash to 2583323233",
            "2, column 1",
        ),
        (
            "node Bcxqzr {}\nnode Afgkba {}",
            "type id collision: 'Bcxqzr' and 'Afgkba' both hash to 3722003685",
            "2, column 6",
        ),
        ("node Rug { }\nedge On: Rug -> Floor", "edge On references unknown target type: Floor", "2, column 17"),
        ("node Rug { }\nedge On: Floor -> Rug", "edge On references unknown source type: Floor", "2, column 10"),
        ("edge On: Floor -> Floor", "edge On references unknown source type: Floor", "1, column 10"),
        ("interface Floor {} node Rug {} edge On: Rug -> Floor", "edge On references unknown target type: Floor", "48"),
        (
            "node Rug { }\nedge Lieson: Rug -> Rug\nedge LiesOn: Rug -> Rug",
            "edge name collision after case folding: 'Lieson' conflicts with 'LiesOn'",
            "2, column 6",
        ),
    ],
)
def test_contradictions(source: str, headline: str, place: str) -> None:
    with pytest.raises(CatalogError) as caught:
        compile_schema(source)
    lines = caught.value.message.splitlines()
    assert lines[0] == f"catalog error: {headline}"
    assert lines[1].endswith(place)
    assert lines[-1].endswith("^")
