"""Schema files that contradict each other: what the refusal says, and that to run it again is not advised."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph import Graph, SchemaFilesError, SchemaParseError
from spark_omnigraph.lang.pg import compile_stored_schema


def test_a_schema_that_was_edited_by_hand_is_refused_for_good(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key }")
    text = (tmp_path / "g" / "_schema.pg").read_text()
    (tmp_path / "g" / "_schema.pg").write_text(text + "\nnode B { k: String @key }")
    for mode in ("r", "rw"):
        with pytest.raises(SchemaFilesError, match=r"edited by hand.*Put back the text") as caught:
            Graph.open(graph.uri, mode=mode)
        assert (caught.value.kind, caught.value.exit_code) == ("schema_files", 3)
    (tmp_path / "g" / "_schema.pg").write_text("// a comment changes nothing\n" + text)
    Graph.open(graph.uri).load(['{"type": "A", "data": {"k": "1"}}'])


@pytest.mark.parametrize("text", ["node A { k: Str", "node A { k: String @key }\nedge E: A -> B"], ids=["cut", "half"])
def test_a_stored_text_that_is_no_schema_is_the_graphs_fault(tmp_path: Path, text: str) -> None:
    """Not that of whoever reads it, who gave no schema."""
    graph = Graph.init(tmp_path / "g", "node A { k: String @key }")
    (tmp_path / "g" / "_schema.pg").write_text(text)
    for mode in ("r", "rw"):
        with pytest.raises(SchemaFilesError, match=r"_schema.pg of '.*' is no schema \(.*put back the text"):
            Graph.open(graph.uri, mode=mode)


@pytest.mark.parametrize("name", ["_schema.ir.json", "__schema_state.json"])
def test_a_missing_schema_file_is_named(tmp_path: Path, name: str) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key }")
    (tmp_path / "g" / name).unlink()
    with pytest.raises(SchemaFilesError, match=name.replace(".", r"\.")):
        Graph.open(graph.uri)


@pytest.mark.parametrize("pattern", [r"^[\\w]{1,1000}$", "(?=x)", "["])
def test_a_pattern_that_no_load_can_use_is_refused_with_its_place(tmp_path: Path, pattern: str) -> None:
    schema = f'node A {{\n  k: String @key\n  @check(k, "{pattern}")\n}}'
    with pytest.raises(SchemaParseError, match="pattern of @check on A cannot be used") as caught:
        Graph.init(tmp_path / "g", schema)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (3, 3)
    assert not (tmp_path / "g").exists()


def test_a_graph_that_was_made_with_such_a_pattern_stays_readable() -> None:
    stored = compile_stored_schema('node A { k: String @key @check(k, "[") }')
    assert list(stored.nodes) == ["A"]
