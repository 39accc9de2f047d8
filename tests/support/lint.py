"""Compares the report of a `lint` step."""

from __future__ import annotations

from spark_omnigraph.lang.gq.lint import SchemaSource, lint_queries
from spark_omnigraph.lang.pg import compile_schema
from tests.support.cases import Json, Step


def lint_differences(schema: str, step: Step) -> list[str]:
    """What of a `lint` step does not hold: results and findings are compared on the fields that the case gives."""
    report = lint_queries(compile_schema(schema), step.fields["source"], "case.gq", SchemaSource("file", "case.pg"))
    got = report.to_dict()
    found = []
    for name, expected in step.expect.items():
        if name in ("results", "findings"):
            listed = [_shown(one, wanted) for one, wanted in zip(_list(got[name]), expected, strict=False)]
            same = len(_list(got[name])) == len(expected) and listed == [
                {"warnings": [], **wanted} if name == "results" else wanted for wanted in expected
            ]
        else:
            same = got[name] == expected
        if not same:
            found.append(f"{name}: {expected!r} expected, got {got[name]!r}")
    return found


def _list(value: object) -> list[Json]:
    assert isinstance(value, list)
    return value


def _shown(got: Json, wanted: Json) -> Json:
    """The compared fields of a result or finding; absent warnings are none."""
    fields = {name: got.get(name) for name in wanted}
    return {"warnings": got.get("warnings", []), **fields} if "status" in wanted else fields
