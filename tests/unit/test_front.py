"""The root of the package: every type that a caller meets is there, and nothing is loaded before it is asked for."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import pytest
import typing_extensions

import spark_omnigraph
from spark_omnigraph import errors
from spark_omnigraph.graph.provider import VectorSource
from spark_omnigraph.graph.read.history import ReadTarget
from spark_omnigraph.spark.delta import SparkDelta
from spark_omnigraph.spark.delta_tables import SparkTable
from spark_omnigraph.storage.delta_write import Followed
from spark_omnigraph.storage.graph_store import GraphStore

INSIDE = {GraphStore, ReadTarget, SparkDelta, SparkTable, Followed}
"""What a handle holds, and what is only handed on: no caller makes one or looks into it."""
FRAMES = SimpleNamespace(DataFrame=object)
LATER = (
    "QueryResult", "Diff", "DiffFilter", "DeleteReport", "CleanupReport", "OptimizeReport", "RepairReport",
    "MergeChoices", "MergeReport", "MutationResult", "SchemaChoices", "SchemaPreview", "EmbedConfig", "Embedder",
    "EmbedReport", "EmbedChoices", "SqlChoices", "SqlResult",
)  # laid out as a table  # fmt: skip
ELSEWHERE = {
    **{name: getattr(spark_omnigraph, name) for name in LATER},
    **{"Unpack": typing_extensions.Unpack, "SparkSession": object, "pd": FRAMES, "pl": FRAMES, "Source": str},
    **{"VectorSource": VectorSource, "DataFrame": object, "States": object},
}
"""Names that stand in signatures and are imported for type checkers alone."""


def named(hint: object) -> Iterator[type]:
    """The classes of ours in a hint, whatever they are wrapped in."""
    if isinstance(hint, type) and hint.__module__.startswith("spark_omnigraph."):
        yield hint
    for part in typing.get_args(hint):
        for each in part if isinstance(part, list) else [part]:
            yield from named(each)


def hints(thing: object) -> Iterator[object]:
    yield from typing.get_type_hints(thing, localns=ELSEWHERE).values()


def members(kind: type) -> Iterator[object]:
    """Hints of public fields, and of public methods and properties."""
    fields = typing.get_type_hints(kind, localns=ELSEWHERE)
    yield from (hint for name, hint in fields.items() if not name.startswith("_"))
    for name, member in vars(kind).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function):
            yield from hints(function)


def met() -> set[type]:
    """Types that a caller of the public names meets, in signatures and in the members of what these name."""
    found: set[type] = set()
    public = [getattr(spark_omnigraph, name) for name in spark_omnigraph.__all__]
    waiting = [thing for thing in public if isinstance(thing, type)]
    functions = [thing for thing in public if not isinstance(thing, type)]
    waiting += [kind for function in functions for hint in hints(function) for kind in named(hint)]
    while waiting:
        kind = waiting.pop()
        if kind in found:
            continue
        found.add(kind)
        if kind not in INSIDE and not issubclass(kind, Enum):
            waiting += [each for hint in members(kind) for each in named(hint)]
    return found


def test_every_type_that_signatures_name_is_exported() -> None:
    exported = {getattr(spark_omnigraph, name) for name in spark_omnigraph.__all__}
    found = met()
    assert {f"{kind.__module__}.{kind.__qualname__}" for kind in found - exported - INSIDE} == set()
    assert found >= INSIDE
    for name in ("Diff", "DeleteReport", "RowChange", "Snapshot", "TableEntry", "RecoveryKind", "GraphDescription"):
        assert getattr(spark_omnigraph, name) in found


def test_every_error_is_exported() -> None:
    public = {name for name, each in vars(errors).items() if inspect.isclass(each) and issubclass(each, Exception)}
    assert {name for name in public if not name.startswith("_")} <= set(spark_omnigraph.__all__)


def test_names_are_what_type_checkers_see() -> None:
    tree = ast.parse(Path(inspect.getfile(spark_omnigraph)).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module is not None]
    seen = {a.asname: node.module for node in imports for a in node.names if a.asname is not None}
    homes = {name: f"spark_omnigraph.{home}" for name, home in spark_omnigraph._HOME_OF.items()}
    assert seen == homes
    assert list(homes) == [a.asname for node in imports for a in node.names if a.asname is not None]


def test_exports_are_listed_and_found() -> None:
    assert set(spark_omnigraph.__all__) <= set(dir(spark_omnigraph))
    assert "__version__" in dir(spark_omnigraph)
    assert spark_omnigraph.Graph.diff.__annotations__["return"] == "verbs.Diff"
    with pytest.raises(AttributeError, match="module 'spark_omnigraph' has no attribute 'Grahp'"):
        spark_omnigraph.Grahp  # noqa: B018 - looking is what is tested
    look = "import sys, spark_omnigraph as so; dir(so); print([m for m in ('lance', 'pyarrow') if m in sys.modules])"
    looked = subprocess.run([sys.executable, "-c", look], capture_output=True, timeout=60, check=True)
    assert looked.stdout.split() == [b"[]"]


def test_public_values_are_frozen() -> None:
    values = [kind for kind in met() if dataclasses.is_dataclass(kind)]
    thawed = [kind.__name__ for kind in values if not vars(kind)["__dataclass_params__"].frozen]
    assert len(values) > 40
    assert thawed == []
