"""Nothing in the library reaches for what Spark Connect does not have."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ABSENT = {
    "sparkContext",
    "rdd",
    "_sc",
    "_jvm",
    "_jdf",
    "_jsc",
    "_jsparkSession",
    "parallelize",
    "accumulator",
    "addPyFile",
}
FILES = [
    f for folder in ("spark_omnigraph", "pyspark_omnigraph", "jobs") for f in sorted((ROOT / folder).rglob("*.py"))
]


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_only_calls_that_connect_has(file: Path) -> None:
    used = {
        node.attr for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)
    }
    assert not used & ABSENT


def test_the_files_are_found() -> None:
    assert len(FILES) > 50
