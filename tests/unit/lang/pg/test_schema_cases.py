"""The schema cases of the conformance suite, as far as the language alone decides them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph.catalog.types import Catalog, EntityType, Unique
from spark_omnigraph.errors import InputError
from spark_omnigraph.lang.pg import compile_schema, compile_stored_schema
from tests.support.cases import Case, read_cases

CASES = read_cases(Path(__file__).parents[3] / "conformance" / "cases")
SCHEMAS = [case for case in CASES if case.area == "schema" and case.schema]
STRICTER = {"unique_body_on_blob"}
"""Cases of the reference revision that later ones, and this package, refuse."""


@pytest.mark.parametrize("case", SCHEMAS, ids=lambda case: case.name)
def test_schema_case(case: Case) -> None:
    if case.name in STRICTER:
        compile_stored_schema(case.schema)
        with pytest.raises(InputError):
            compile_schema(case.schema)
    elif "error" in case.expect:
        _refused(case.schema, case.expect["error"])
    else:
        _described(compile_schema(case.schema), case)


@pytest.mark.parametrize("case", [c for c in CASES if c.area != "schema" and c.schema], ids=lambda case: case.name)
def test_schemas_of_other_cases_compile(case: Case) -> None:
    assert compile_schema(case.schema) == compile_stored_schema(case.schema)


def _refused(schema: str, expected: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        compile_schema(schema)
    assert caught.value.kind == expected["kind"]
    assert caught.value.message.startswith(f"{expected['kind']} error: ")
    for part in expected.get("message_contains", ()):
        assert part in caught.value.message


def _described(catalog: Catalog, case: Case) -> None:
    for step in case.steps:
        if step.op != "describe":
            continue
        for name, facts in step.expect.get("nodes", {}).items():
            node = catalog.nodes[name]
            assert (list(node.key) if node.key else None) == facts["key"]
            assert _properties(node) == facts["properties"]
        for name, facts in step.expect.get("edges", {}).items():
            edge = catalog.edges[name]
            assert (edge.from_type, edge.to_type) == (facts["from"], facts["to"])
            assert edge.cardinality.display() == facts["cardinality"]
            assert _properties(edge) == facts["properties"]
            if "unique" in facts:
                assert [list(c.columns) for c in edge.constraints if isinstance(c, Unique)] == facts["unique"]


def _properties(entity: EntityType) -> dict[str, str]:
    return {prop.name: prop.type.display() for prop in entity.properties}
