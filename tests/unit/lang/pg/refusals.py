"""Schemas that are refused, with the place of the fault marked: `node Ox { t: «Int» }`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_omnigraph.catalog.types import Catalog
from spark_omnigraph.errors import SchemaParseError
from spark_omnigraph.lang.pg import compile_schema


def refusal(marked: str, compiler: Callable[[str], Catalog] = compile_schema) -> str:
    """What is said about a marked schema, without its prefix; fails unless the error points at the mark."""
    before, _, rest = marked.partition("«")
    inside, _, after = rest.partition("»")
    with pytest.raises(SchemaParseError) as caught:
        compiler(before + inside + after)
    error = caught.value
    assert error.span is not None
    assert error.span.start == len(before.encode()), error.message
    assert error.span.end == len((before + inside).encode()), error.message
    assert error.span.line == before.count("\n") + 1
    assert error.span.column == len(before) - (before.rfind("\n") + 1) + 1
    headline, *picture = error.message.split("\n")
    assert picture[0].strip() == f"--> line {error.span.line}, column {error.span.column}"
    assert picture[2] == f"{error.span.line} | {error.span.text}"
    assert headline.startswith("parse error: ")
    return headline.removeprefix("parse error: ")
